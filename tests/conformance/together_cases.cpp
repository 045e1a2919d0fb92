// Tasks that wait for tasks and for resources: neither alone lets them start.
#include "conformance/resource_suite.h"

namespace stint::conformance {
namespace {

class Together : public ResourceSuite {
protected:
    Together() { Limit("gpu", 1); }
    // Starts after `on`, and needs the only unit there is.
    TaskId Waiter(TaskId on) {
        NewTask task{.type = "t"};
        task.after = WaitOn{.on = {on}};
        task.needs = Needs{{"gpu", 1}};
        return Make(task);
    }
    Lease Holder() { return MakeClaimed(Needing({{"gpu"}}, "u")); }
    std::vector<Lease> ClaimWaiter() { return ClaimMany(1, {.types = {"t"}}); }
};
INSTANTIATE_TEST_SUITE_P(Store, Together, testing::ValuesIn(Backends()), &BackendName);

TEST_P(Together, TheTaskEndsFirstAndTheResourceIsStillAwaited) {
    Lease holder = Holder();
    Lease first = MakeClaimed({.type = "v"});
    TaskId waiter = Waiter(first.task);
    EXPECT_THAT(ClaimWaiter(), IsEmpty());
    Complete(first);
    EXPECT_THAT(ClaimWaiter(), IsEmpty()) << "the resource is held";
    Complete(holder);
    std::vector<Lease> claimed = ClaimWaiter();
    ASSERT_THAT(claimed, SizeIs(1));
    EXPECT_EQ(claimed[0].task, waiter);
}

TEST_P(Together, TheResourceIsFreeAndTheTaskIsStillAwaited) {
    Lease first = MakeClaimed({.type = "v"});
    TaskId waiter = Waiter(first.task);
    Complete(Holder());
    EXPECT_THAT(ClaimWaiter(), IsEmpty()) << "the first one runs";
    EXPECT_EQ(Held("gpu"), 0) << "who waits for a task holds nothing";
    Complete(first);
    std::vector<Lease> claimed = ClaimWaiter();
    ASSERT_THAT(claimed, SizeIs(1));
    EXPECT_EQ(claimed[0].task, waiter);
}

}  // namespace
}  // namespace stint::conformance
