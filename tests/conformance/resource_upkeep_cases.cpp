// What becomes of resources while tasks run: limits that are set later, names that nobody uses any
// more, queues that are told when something is free. And reads that bring no more than they may.
#include "conformance/resource_suite.h"
#include "model/limits.h"
#include "store/finished.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

class Upkeep : public ResourceSuite {
protected:
    TaskId MakeNeeding(const std::string& resource, const std::string& queue = "default") {
        NewTask task{.type = "t", .queue = queue};
        task.needs = Needs{{resource, 1}};
        return Make(task);
    }
    bool Known(const std::string& name) { return resources.Find(name).has_value(); }
};
INSTANTIATE_TEST_SUITE_P(Store, Upkeep, testing::ValuesIn(Backends()), &BackendName);

// ---- set while tasks run ----

TEST_P(Upkeep, TasksThatRunAlreadyCountForACapacityThatIsSetLater) {
    for (int i = 0; i < 5; ++i) MakeNeeding("gpu");
    std::vector<Lease> running = ClaimMany(2);
    Limit("gpu", 2);
    EXPECT_EQ(Held("gpu"), 2);
    EXPECT_THAT(resources.Find("gpu")->holders, SizeIs(2));
    EXPECT_THAT(ClaimMany(5), IsEmpty());
    Complete(running[0]);
    EXPECT_EQ(Held("gpu"), 1);
    EXPECT_THAT(ClaimMany(5), SizeIs(1));
    SettleAs(running[1], Kind::kSnooze, 1h);
    EXPECT_THAT(ClaimMany(5), SizeIs(1));
    EXPECT_EQ(Held("gpu"), 2);
}

TEST_P(Upkeep, AndForPatternsQueuesAndTypes) {
    MakeNeeding("host:a"), MakeNeeding("host:b"), MakeNeeding("host:a"), MakeNeeding("host:a");
    std::vector<Lease> running = ClaimMany(3);
    ASSERT_THAT(running, SizeIs(3));
    Limit("host:*", 2);
    EXPECT_EQ(Held("host:a"), 2);
    EXPECT_EQ(Held("host:b"), 1);
    EXPECT_EQ(resources.Find("host:a")->pattern, "host:*");
    EXPECT_THAT(ClaimMany(5), IsEmpty());
    Limit("queue:default", 3);
    EXPECT_EQ(Held("queue:default"), 3);
    Limit("type:t", 2);
    EXPECT_EQ(Held("type:t"), 3);
    Complete(running[0]);
    EXPECT_EQ(Held("queue:default"), 2);
    EXPECT_THAT(ClaimMany(5), IsEmpty()) << "the type still has as many as it may";
    Complete(running[1]);
    EXPECT_THAT(ClaimMany(5), SizeIs(1));
}

TEST_P(Upkeep, MoreMayBeHeldOnlyAsFarAsItWasWhenTheCapacityWasSet) {
    for (int i = 0; i < 4; ++i) MakeNeeding("gpu");
    std::vector<Lease> running = ClaimMany(3);
    Limit("gpu", 1);
    EXPECT_EQ(Held("gpu"), 3);
    for (const CheckFinding& finding : store.Check()) EXPECT_TRUE(finding.ok) << finding.detail;
    Complete(running[0]);
    Complete(running[1]);
    EXPECT_THAT(ClaimMany(5), IsEmpty());
    Complete(running[2]);
    EXPECT_THAT(ClaimMany(5), SizeIs(1));
}

TEST_P(Upkeep, WhatHasLostItsOwnSettingsCountsForThePattern) {
    Limit("host:*", 1);
    Limit("host:a", 2);
    for (int i = 0; i < 3; ++i) MakeNeeding("host:a");
    EXPECT_THAT(ClaimMany(5), SizeIs(2));
    ASSERT_TRUE(resources.Remove("host:a", "ann"));
    EXPECT_EQ(Held("host:a"), 2);
    EXPECT_THAT(ClaimMany(5), IsEmpty());
}

// ---- names of patterns ----

TEST_P(Upkeep, NamesOfPatternsThatNobodyUsesAreForgotten) {
    Limit("host:*", 1);
    Limit("host:own", 1);
    for (const char* name : {"host:idle", "host:wanted", "host:wanted", "host:held", "host:own"})
        MakeNeeding(name);
    for (const Lease& lease : ClaimMany(10)) {
        if (lease.placement.needs.at(0).resource != "host:held") Complete(lease);
    }
    EXPECT_TRUE(Known("host:idle")) << "until housekeeping comes by";
    EXPECT_TRUE(Known("host:wanted"));
    Housekeep();
    EXPECT_FALSE(Known("host:idle"));
    EXPECT_TRUE(Known("host:wanted")) << "something waits for it";
    EXPECT_EQ(Held("host:held"), 1);
    EXPECT_TRUE(Known("host:own")) << "somebody has set it";
    EXPECT_EQ(resources.Find("host:wanted")->waiting, 1);
    Complete(ClaimOne());
    Housekeep();
    EXPECT_FALSE(Known("host:wanted"));
    MakeNeeding("host:idle");
    ClaimOne();
    EXPECT_EQ(Held("host:idle"), 1);
}

TEST_P(Upkeep, OneThatDoesNotWorkIsRememberedForADay) {
    Limit("host:*", 5);
    MakeNeeding("host:a");
    Lease lease = ClaimOne();
    ASSERT_EQ(Settle(Unavailable(lease, "host:a")).kind, SettleReply::Kind::kAccepted);
    Cancel(lease.task);
    Advance(1h);
    Housekeep();
    EXPECT_TRUE(Known("host:a"));
    Advance(30h);
    Housekeep();
    EXPECT_FALSE(Known("host:a"));
}

TEST_P(Upkeep, NamesThatOnlyReportsMadeAreForgottenToo) {
    Limit("host:own", 1);
    for (const char* name : {"mail", "disk", "host:own"}) {
        Lease lease = MakeClaimed();
        ASSERT_EQ(Settle(Unavailable(lease, name)).kind, SettleReply::Kind::kAccepted);
        Cancel(lease.task);
        EXPECT_TRUE(Known(name));
    }
    TaskId waits = MakeNeeding("disk");
    Advance(1h);
    Housekeep();
    EXPECT_TRUE(Known("mail")) << "it was said not long ago";
    Advance(30h);
    Housekeep();
    EXPECT_FALSE(Known("mail"));
    EXPECT_TRUE(Known("disk")) << "something waits for it";
    EXPECT_TRUE(Known("host:own")) << "somebody has set it";
    Cancel(waits);
    Housekeep();
    EXPECT_FALSE(Known("disk"));
    EXPECT_THAT(resources.List(), SizeIs(1));
}

// ---- who is told ----

TEST_P(Upkeep, WhatIsFreeIsToldToTheQueuesThatWaitForIt) {
    Limit("gpu", 1);
    Limit("type:u", 1);
    MakeNeeding("gpu", "one");
    std::vector<Lease> running = ClaimMany(1);
    MakeNeeding("gpu", "two");
    MakeNeeding("gpu", "two");
    MakeNeeding("gpu", "three");
    MakeNeeding("disk", "four");
    SettleReply reply = Settle(Outcome(running.at(0), Kind::kComplete));
    EXPECT_THAT(reply.opened, UnorderedElementsAre("two", "three"));
    Make({.type = "u", .queue = "five"});
    Make({.type = "u", .queue = "six"});
    Lease typed = ClaimOne({.types = {"u"}});
    EXPECT_THAT(Settle(Outcome(typed, Kind::kSnooze, 1h)).opened, ElementsAre("six"));
}

// ---- what one read brings ----

TEST_P(Upkeep, LargeOutputsComeInSeveralAnswers) {
    const std::string output = '"' + std::string(limits::kOutput - 2, 'x') + '"';
    const int count = static_cast<int>(limits::kFinishedBytes / output.size()) + 4;
    std::vector<TaskId> tasks = MakeMany(count);
    for (const Lease& lease : ClaimMany(count)) {
        Settlement outcome = Outcome(lease, Kind::kComplete);
        outcome.output = output;
        Settle(outcome);
    }
    TaskId open = Make();
    tasks.push_back(open);
    std::vector<FinishedTask> first = store.Finished(tasks);
    EXPECT_LT(static_cast<int>(first.size()), count);
    EXPECT_GE(first.size() * output.size(), limits::kFinishedBytes);
    EXPECT_LE(first.size() * output.size(), limits::kFinishedBytes + output.size());
    std::vector<TaskId> all;
    EachFinished(
        tasks,
        [&](auto some) { return store.Finished(some); },
        [&](const FinishedTask& one) { all.push_back(one.id); }
    );
    tasks.pop_back();
    EXPECT_THAT(all, UnorderedElementsAreArray(tasks));
}

}  // namespace
}  // namespace stint::conformance
