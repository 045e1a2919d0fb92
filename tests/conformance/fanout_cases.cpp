// As many subtasks as a task may wait for, done by two claimers in turn.
#include <algorithm>
#include <array>

#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

class FanOut : public Conformance {
protected:
    struct Claimer {
        std::shared_ptr<Store> store;
        SessionId session;
        std::vector<Settlement> done = {};  // of what it holds
    };

    Lease Parent(int children) {
        Lease parent = MakeClaimed();
        Settlement blocked = Outcome(parent, Kind::kBlocked);
        blocked.end = AttemptEnd::kBlocked;
        const std::int64_t first = store.ReserveIds(children).value();
        for (int i = 0; i < children; ++i) {
            NewTask child{.id = TaskId(first + i), .type = "u", .queue = "children"};
            blocked.children.push_back(std::move(child));
        }
        SettleReply reply = Settle(blocked);
        EXPECT_EQ(reply.kind, SettleReply::Kind::kAccepted) << reply.message;
        return parent;
    }
    void Take(Claimer& claimer, int limit) {
        ClaimRequest request{
            .session = claimer.session, .limit = limit, .types = {"u"}, .hinted = true};
        for (const Lease& lease : claimer.store->Claim(request).leases) {
            Settlement done = Outcome(lease, Kind::kComplete);
            done.session = claimer.session;
            claimer.done.push_back(std::move(done));
        }
    }
    int End(Claimer& claimer) {
        std::vector<SettleReply> replies = claimer.store->Settle(claimer.done);
        claimer.done.clear();
        return static_cast<int>(
            std::ranges::count(replies, SettleReply::Kind::kAccepted, &SettleReply::kind)
        );
    }
};
INSTANTIATE_TEST_SUITE_P(Store, FanOut, testing::ValuesIn(Backends()), &BackendName);

TEST_P(FanOut, TheParentOfTenThousandResumesOnceWithAllOfThem) {
    constexpr int kChildren = limits::kWaitMembers;
    constexpr int kAtOnce = 300;
    Lease parent = Parent(kChildren);
    std::array<Claimer, 2> claimers = {
        {{OpenAgain(), OpenSession()}, {OpenAgain(), OpenSession(limits::kLeaseMax, "host-b")}}};
    int ended = 0;
    while (ended < kChildren) {
        ASSERT_EQ(Get(parent.task).waiting_for, kChildren - ended);
        ASSERT_EQ(StateOf(parent.task), State::kBlocked);
        // Both hold some before the first of them lets go.
        for (Claimer& claimer : claimers) Take(claimer, kAtOnce);
        int before = ended;
        for (Claimer& claimer : claimers) ended += End(claimer);
        ASSERT_GT(ended, before) << "nothing more is found";
    }
    EXPECT_EQ(ended, kChildren);
    std::vector<Lease> resumed;
    for (Claimer& claimer : claimers) {
        ClaimRequest request{.session = claimer.session, .limit = 10, .hinted = true};
        request.types = {"t", "u"};
        for (Lease& lease : claimer.store->Claim(request).leases) {
            resumed.push_back(std::move(lease));
        }
    }
    ASSERT_THAT(resumed, SizeIs(1));
    EXPECT_EQ(resumed[0].task, parent.task);
    EXPECT_EQ(resumed[0].stage, Stage::kResume);
    EXPECT_THAT(EventsOf(parent.task), testing::Contains(Event::kUnblock).Times(1));
    std::vector<WaitMember> members = store.Waited(parent.task);
    EXPECT_THAT(members, SizeIs(kChildren));
    EXPECT_THAT(members, Each(testing::Field(&WaitMember::ended, State::kComplete)));
}

}  // namespace
}  // namespace stint::conformance
