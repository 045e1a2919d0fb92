// Housekeeping. Start-by deadlines that passed make waiting tasks DEAD; expired keys and old
// sessions go; finished tasks go with their period once their retention is over. The retention is
// the queue's for the state, as it was when the task finished, else 90 days; a period may outlive
// it by two days.
#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;
constexpr Duration kDay = 24h;

CONFORMANCE_SUITE(Housekeeping);

TEST_P(Housekeeping, TasksThatMissedTheirDeadlineDie) {
    TaskId late = Make({.delay = 1h, .start_by = store.Now() + 10min});
    TaskId early = Make({.start_by = store.Now() + 10h});
    EXPECT_EQ(Housekeep().expired_tasks, 0);
    Advance(11min);
    EXPECT_EQ(Housekeep().expired_tasks, 1);
    TaskRecord task = Get(late);
    EXPECT_EQ(task.state, State::kDead);
    EXPECT_NE(task.reason, "");
    EXPECT_EQ(AuditOf(late).back().event, Event::kExpire);
    EXPECT_EQ(AuditOf(late).back().actor, "housekeeping");
    EXPECT_EQ(StateOf(early), State::kOpen);
    EXPECT_EQ(Housekeep().expired_tasks, 0);
}

TEST_P(Housekeeping, ADeadlineHoldsForTheNextTryToo) {
    Lease lease = MakeClaimed({.start_by = store.Now() + 10min});
    Advance(11min);
    EXPECT_EQ(Housekeep().expired_tasks, 0);
    EXPECT_EQ(StateOf(lease.task), State::kInProgress);
    SettleAs(lease, Kind::kRetry);
    EXPECT_THAT(ClaimMany(5), IsEmpty());
    EXPECT_EQ(Housekeep().expired_tasks, 1);
    EXPECT_EQ(StateOf(lease.task), State::kDead);
    EXPECT_EQ(AuditOf(lease.task).back().from, State::kError);
}

TEST_P(Housekeeping, ADeadTasksUniqueKeyIsFree) {
    Make({.start_by = store.Now() + 10min, .unique_key = "k"});
    Advance(11min);
    Housekeep();
    Make({.unique_key = "k"});
}

TEST_P(Housekeeping, OneCallIsBounded) {
    MakeMany(5, {.start_by = store.Now() + 10min});
    Advance(11min);
    HousekeepReply reply = store.Housekeep({.limit = 2});
    EXPECT_EQ(reply.expired_tasks, 2);
    EXPECT_TRUE(reply.more);
    EXPECT_EQ(Housekeep().expired_tasks, 3);
    EXPECT_THAT(ListAll({.states = {State::kDead}}), SizeIs(5));
}

TEST_P(Housekeeping, ExpiredKeysGo) {
    Make({.idempotency_key = "a"});
    Make({.throttle = Throttle{"b", 1h}});
    EXPECT_EQ(Housekeep().expired_keys, 0);
    Advance(2h);
    EXPECT_EQ(Housekeep().expired_keys, 1);
    Advance(limits::kIdempotencyRetention);
    EXPECT_EQ(Housekeep().expired_keys, 1);
    EXPECT_EQ(Housekeep().expired_keys, 0);
}

TEST_P(Housekeeping, EndedSessionsStayVisibleForAWhile) {
    SessionId closed = OpenSession();
    store.CloseSession(closed);
    OpenSession(1min);
    Advance(10min);
    ReclaimAll();
    EXPECT_EQ(Housekeep().forgotten_sessions, 0);
    EXPECT_THAT(store.Sessions(), SizeIs(2));
    Advance(25h);
    SessionId live = OpenSession(1h);
    EXPECT_EQ(Housekeep().forgotten_sessions, 2);
    ASSERT_THAT(store.Sessions(), SizeIs(1));
    EXPECT_EQ(store.Sessions()[0].id, live);
}

TEST_P(Housekeeping, ASessionThatStillHoldsTasksIsNotForgotten) {
    Lease lease = MakeClaimed();
    Advance(72h);
    Housekeep();
    ReclaimReply reply = ReclaimAll();
    ASSERT_THAT(reply.tasks, SizeIs(1));
    EXPECT_EQ(reply.tasks[0].task, lease.task);
    EXPECT_EQ(StateOf(lease.task), State::kOpen);
}

TEST_P(Housekeeping, FinishedTasksAreKeptForTheirRetentionAndThenGo) {
    Lease lease = MakeClaimed();
    Complete(lease);
    TaskId open = Make({.delay = limits::kRetention * 3});
    Advance(limits::kRetention - kDay);
    EXPECT_THAT(Housekeep().dropped_periods, IsEmpty());
    EXPECT_EQ(StateOf(lease.task), State::kComplete);
    Advance(3 * kDay + 1h);
    EXPECT_THAT(Housekeep().dropped_periods, testing::Not(IsEmpty()));
    EXPECT_EQ(store.Get(lease.task), std::nullopt);
    EXPECT_THAT(store.Attempts(lease.task), IsEmpty());
    EXPECT_THAT(Ids(ListAll()), ElementsAre(open));
    EXPECT_THAT(store.Finished({&lease.task, 1}), IsEmpty());
    EXPECT_EQ(StateOf(open), State::kOpen);
}

TEST_P(Housekeeping, EachQueueAndStateHasItsOwnRetention) {
    store.SetQueue(
        {.name = "a",
         .keep_complete = 2 * kDay,
         .keep_dead = 20 * kDay,
         .keep_cancelled = 10 * kDay},
        "ann"
    );
    auto finish = [&](const std::string& queue, Kind kind) {
        Make({.queue = queue});
        Lease lease = ClaimOne();
        SettleAs(lease, kind);
        return lease.task;
    };
    TaskId complete = finish("a", Kind::kComplete);
    TaskId dead = finish("a", Kind::kDead);
    TaskId cancelled = finish("a", Kind::kCancelled);
    TaskId other = finish("b", Kind::kComplete);
    auto left = [&] {
        Housekeep();
        return Ids(ListAll());
    };
    EXPECT_THAT(left(), SizeIs(4));
    Advance(4 * kDay + 2h);
    EXPECT_THAT(left(), UnorderedElementsAre(dead, cancelled, other));
    EXPECT_EQ(store.Get(complete), std::nullopt);
    Advance(8 * kDay);
    EXPECT_THAT(left(), UnorderedElementsAre(dead, other));
    Advance(11 * kDay);
    EXPECT_THAT(left(), ElementsAre(other));
}

TEST_P(Housekeeping, AnOperatorCanBringBackATaskAsLongAsItIsKept) {
    Lease lease = MakeClaimed();
    SettleAs(lease, Kind::kDead);
    Advance(limits::kRetention - kDay);
    Housekeep();
    EXPECT_EQ(Retry(lease.task).kind, RetryReply::Kind::kRequeued);
    Advance(4 * kDay);
    Housekeep();
    EXPECT_EQ(StateOf(lease.task), State::kOpen);
    Complete(ClaimOne());
    EXPECT_EQ(StateOf(lease.task), State::kComplete);
}

TEST_P(Housekeeping, WhatALiveParentMayReadIsKept) {
    TaskId parent = Make({.type = "u", .delay = limits::kRetention * 4});
    Lease child = MakeClaimed({.parent = parent});
    Complete(child);
    Advance(limits::kRetention + 3 * kDay);
    Housekeep();
    EXPECT_EQ(StateOf(child.task), State::kComplete);
    EXPECT_THAT(EventsOf(child.task), SizeIs(3));
    EXPECT_THAT(store.Attempts(child.task), SizeIs(1));
    Cancel(parent);
    Advance(limits::kRetention + 3 * kDay);
    Housekeep();
    EXPECT_EQ(store.Get(child.task), std::nullopt);
}

TEST_P(Housekeeping, AnAuditPeriodGoesWhileTheOthersStay) {
    Lease old = MakeClaimed();
    Complete(old);
    Advance(30 * kDay);
    Housekeep();
    // By another process: ids that were set aside a month ago belong to their own period.
    std::vector<NewTask> two(2, NewTask{.type = "t"});
    OpenAgain()->Submit(two);
    Lease young = ClaimOne();
    Complete(young);
    TaskId open = ListAll({.states = {State::kOpen}}).at(0).id;
    Advance(limits::kRetention - 30 * kDay);
    Housekeep();
    EXPECT_THAT(EventsOf(old.task), SizeIs(3));
    Advance(3 * kDay);
    Housekeep();
    EXPECT_THAT(EventsOf(old.task), IsEmpty());
    std::vector<TaskId> told;
    for (const AuditEntry& entry : store.Audit({})) told.push_back(entry.task);
    EXPECT_THAT(told, UnorderedElementsAre(young.task, young.task, young.task, open));
}

TEST_P(Housekeeping, RetentionsMayChangeForEver) {
    for (int i = 0; i < 20; ++i) {
        QueueSettings settings{.name = "q", .keep_complete = kDay * (i + 2)};
        store.SetQueue(settings, "ann");
        Complete(MakeClaimed({.queue = "q"}));
        Advance(6 * kDay);
        Housekeep();
    }
    EXPECT_THAT(ListAll(), testing::Not(IsEmpty()));
}

TEST_P(Housekeeping, ACleanStoreHasNothingToDo) {
    HousekeepReply reply = store.Housekeep({});
    EXPECT_EQ(reply.expired_tasks + reply.expired_keys + reply.forgotten_sessions, 0);
    EXPECT_THAT(reply.dropped_periods, IsEmpty());
    EXPECT_FALSE(reply.more);
}

TEST_P(Housekeeping, TheStoreSaysWhatItIs) {
    StoreInfo info = store.Info();
    EXPECT_NE(info.kind, "");
    EXPECT_NE(info.durability, "");
    EXPECT_NE(info.version, "");
    EXPECT_THAT(store.Check(), testing::Not(IsEmpty()));
}

TEST_P(Housekeeping, OneStoreHasOneIdentityForEveryHandle) {
    std::string identity = store.Info().identity;
    EXPECT_THAT(identity, testing::SizeIs(32));
    EXPECT_EQ(identity.find_first_not_of("0123456789abcdef"), std::string::npos) << identity;
    EXPECT_EQ(store.Info().identity, identity);
    EXPECT_EQ(OpenAgain()->Info().identity, identity);
    EXPECT_NE(OpenAnother()->Info().identity, identity);
}

}  // namespace
}  // namespace stint::conformance
