// Cancelling. What waits is cancelled at once. What runs is flagged: its worker hears it at the
// next heartbeat, and however the attempt ends, except by success, it ends CANCELLED; no new
// attempt starts (I13). A success is accepted. The operator's reason is the task's reason in both
// cases.
#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;
using Reply = CancelReply::Kind;

CONFORMANCE_SUITE(Cancels);

TEST_P(Cancels, AWaitingTaskAtOnce) {
    TaskId id = Make();
    CancelReply reply = Cancel(id, "not needed");
    EXPECT_EQ(reply.kind, Reply::kCancelled);
    EXPECT_EQ(reply.state, State::kCancelled);
    TaskRecord task = Get(id);
    EXPECT_EQ(task.state, State::kCancelled);
    EXPECT_EQ(task.reason, "not needed");
    EXPECT_TRUE(task.finished_at.has_value());
    AuditEntry entry = AuditOf(id).back();
    EXPECT_EQ(entry.event, Event::kCancel);
    EXPECT_EQ(entry.from, State::kOpen);
    EXPECT_EQ(entry.actor, "operator:ann");
    EXPECT_EQ(entry.reason, "not needed");
    EXPECT_THAT(ClaimMany(5), IsEmpty());
}

TEST_P(Cancels, ATaskThatIsNotDueYet) {
    TaskId id = Make({.delay = 1h});
    EXPECT_EQ(Cancel(id).kind, Reply::kCancelled);
    Advance(2h);
    EXPECT_THAT(ClaimMany(5), IsEmpty());
}

TEST_P(Cancels, ATaskThatWaitsForItsNextTry) {
    Lease lease = MakeClaimed();
    SettleAs(lease, Kind::kRetry, 1min);
    EXPECT_EQ(Cancel(lease.task).kind, Reply::kCancelled);
    EXPECT_EQ(AuditOf(lease.task).back().from, State::kError);
    Advance(5min);
    EXPECT_THAT(ClaimMany(5), IsEmpty());
}

TEST_P(Cancels, ATaskThatRunsOutside) {
    Lease lease = MakeClaimed();
    SettleAs(lease, Kind::kBackground);
    EXPECT_EQ(Cancel(lease.task).kind, Reply::kCancelled);
    Result<State> late =
        store.FinishBackground({.task = lease.task, .token = lease.token, .output = "1"});
    EXPECT_FALSE(late);
    EXPECT_EQ(StateOf(lease.task), State::kCancelled);
}

TEST_P(Cancels, ASuspect) {
    Lease lease = MakeClaimed();
    Crash(lease);
    EXPECT_EQ(Cancel(lease.task).kind, Reply::kCancelled);
    Advance(1min);
    EXPECT_THAT(Claim({.suspect = true}).leases, IsEmpty());
}

TEST_P(Cancels, ARunningTaskIsFlaggedAndItsWorkerIsTold) {
    Lease lease = MakeClaimed();
    CancelReply reply = Cancel(lease.task);
    EXPECT_EQ(reply.kind, Reply::kRequested);
    EXPECT_EQ(reply.state, State::kInProgress);
    EXPECT_TRUE(Get(lease.task).cancel_requested);
    EXPECT_THAT(EventsOf(lease.task), ElementsAre(Event::kSubmit, Event::kClaim));
    RenewReply renewed =
        store.Renew({.session = Worker(), .lease = 1h, .held = {{lease.task, lease.token}}});
    EXPECT_THAT(renewed.cancel_requested, ElementsAre(Held{lease.task, lease.token}));
    EXPECT_THAT(renewed.lost, IsEmpty());
    EXPECT_EQ(Cancel(lease.task).kind, Reply::kRequested);
}

TEST_P(Cancels, EveryEndButSuccessIsCancelledThen) {
    for (Kind kind :
         {Kind::kRetry,
          Kind::kDead,
          Kind::kSnooze,
          Kind::kRelease,
          Kind::kBackground,
          Kind::kCancelled}) {
        Lease lease = MakeClaimed();
        Cancel(lease.task, "not needed");
        SettleReply reply = Settle(Outcome(lease, kind));
        EXPECT_EQ(reply.kind, SettleReply::Kind::kAccepted);
        EXPECT_EQ(reply.state, State::kCancelled);
        TaskRecord task = Get(lease.task);
        EXPECT_EQ(task.state, State::kCancelled);
        EXPECT_EQ(task.reason, "not needed");
        // Not given back, also where the holder has handed it back: there is no next try.
        EXPECT_EQ(task.attempt, 1);
        EXPECT_EQ(AuditOf(lease.task).back().event, Event::kCancel);
        EXPECT_EQ(AuditOf(lease.task).back().actor, "worker");
        EXPECT_THAT(ClaimMany(5), IsEmpty());
    }
}

TEST_P(Cancels, ASuccessIsASuccess) {
    Lease lease = MakeClaimed();
    Cancel(lease.task);
    EXPECT_EQ(Complete(lease), State::kComplete);
    EXPECT_EQ(AuditOf(lease.task).back().event, Event::kComplete);
}

TEST_P(Cancels, ACrashIsCancelledThen) {
    Lease lease = MakeClaimed();
    Cancel(lease.task, "not needed");
    ReclaimReply reply = Crash(lease);
    ASSERT_THAT(reply.tasks, SizeIs(1));
    EXPECT_EQ(reply.tasks[0].to, State::kCancelled);
    EXPECT_FALSE(reply.tasks[0].suspect);
    EXPECT_EQ(Get(lease.task).reason, "not needed");
    EXPECT_EQ(store.Attempts(lease.task).back().end, AttemptEnd::kCrashed);
    Advance(1min);
    EXPECT_THAT(ClaimMany(5), IsEmpty());
    EXPECT_THAT(Claim({.suspect = true}).leases, IsEmpty());
}

TEST_P(Cancels, ATaskThatHadNotStartedInADeadProcessIsCancelledThen) {
    SessionId session = OpenSession(1min);
    Make();
    Lease lease = ClaimOne({.session = session});
    Cancel(lease.task);
    Advance(2min);
    store.Reclaim({.flights = {{session, {}}}});
    EXPECT_EQ(StateOf(lease.task), State::kCancelled);
    EXPECT_EQ(Get(lease.task).attempt, 1);
    EXPECT_EQ(store.Attempts(lease.task).back().end, AttemptEnd::kReleased);
}

TEST_P(Cancels, ATimeoutIsCancelledThen) {
    Lease lease = MakeClaimed({.timeout = 1min});
    Cancel(lease.task);
    Advance(10min);
    ReclaimReply reply = store.Reclaim({});
    ASSERT_THAT(reply.tasks, SizeIs(1));
    EXPECT_EQ(reply.tasks[0].to, State::kCancelled);
    EXPECT_EQ(StateOf(lease.task), State::kCancelled);
}

TEST_P(Cancels, ACrashedChildIsCancelledThenNotQuarantined) {
    Lease lease = MakeClaimed();
    Cancel(lease.task);
    Settlement outcome = Outcome(lease, Kind::kRetry);
    outcome.crashed = true;
    EXPECT_EQ(Settle(outcome).state, State::kCancelled);
}

TEST_P(Cancels, AStaleHolderCannotUndoIt) {
    Lease lease = MakeClaimed();
    Cancel(lease.task);
    Settlement stale = Outcome(lease, Kind::kComplete);
    stale.token = random.MakeId<LeaseToken>();
    EXPECT_EQ(Settle(stale).kind, SettleReply::Kind::kLost);
    EXPECT_EQ(SettleAs(lease, Kind::kCancelled), State::kCancelled);
    EXPECT_EQ(Settle(Outcome(lease, Kind::kComplete)).kind, SettleReply::Kind::kLost);
}

TEST_P(Cancels, WhatIsFinishedOrNotThereIsSaid) {
    EXPECT_EQ(Cancel(store.ReserveIds(1)).kind, Reply::kNotFound);
    for (Kind kind : {Kind::kComplete, Kind::kDead, Kind::kCancelled}) {
        Lease lease = MakeClaimed();
        State state = SettleAs(lease, kind);
        CancelReply reply = Cancel(lease.task);
        EXPECT_EQ(reply.kind, Reply::kAlreadyTerminal);
        EXPECT_EQ(reply.state, state);
        EXPECT_THAT(EventsOf(lease.task), SizeIs(3));
    }
}

TEST_P(Cancels, SeveralAtOnceAreAnsweredInOrder) {
    Lease running = MakeClaimed();
    TaskId open = Make();
    TaskId nobody = store.ReserveIds(1);
    std::vector<TaskId> tasks = {nobody, running.task, open};
    std::vector<CancelReply> replies = store.Cancel(tasks, "ann", "");
    ASSERT_THAT(replies, SizeIs(3));
    EXPECT_EQ(replies[0].kind, Reply::kNotFound);
    EXPECT_EQ(replies[1].kind, Reply::kRequested);
    EXPECT_EQ(replies[2].kind, Reply::kCancelled);
}

TEST_P(Cancels, AnOperatorsRetryForgetsTheCancel) {
    Lease lease = MakeClaimed();
    Cancel(lease.task);
    SettleAs(lease, Kind::kRelease);
    EXPECT_EQ(Retry(lease.task).kind, RetryReply::Kind::kRequeued);
    EXPECT_FALSE(Get(lease.task).cancel_requested);
    Lease next = ClaimOne();
    EXPECT_EQ(SettleAs(next, Kind::kRetry), State::kError);
}

}  // namespace
}  // namespace stint::conformance
