// Recovering. A session whose lease is over is found dead; what it held goes back: what had started
// is a suspect and its attempt counts, what had not gets its attempt back. Only a crash while alone
// counts towards quarantine. Crashed tasks wait CrashDelay. Attempts over their own timeout plus
// grace end as a retryable failure of class "timeout". A cancel request wins over all of it.
#include <set>

#include "conformance/conformance.h"
#include "model/decide.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

CONFORMANCE_SUITE(Reclaims);

TEST_P(Reclaims, TheTasksOfADeadSessionComeBackAsSuspects) {
    SessionId session = OpenSession(1min, "host-b");
    MakeMany(2);
    std::vector<Lease> leases = ClaimMany(2, {.session = session});
    ASSERT_THAT(leases, SizeIs(2));
    Advance(2min);
    ReclaimReply reply = store.Reclaim({});
    EXPECT_THAT(reply.expired, ElementsAre(session));
    EXPECT_FALSE(reply.more);
    ASSERT_THAT(reply.tasks, SizeIs(2));
    for (const Reclaimed& reclaimed : reply.tasks) {
        EXPECT_EQ(reclaimed.from, session);
        EXPECT_EQ(reclaimed.hostname, "host-b");
        EXPECT_EQ(reclaimed.to, State::kOpen);
        EXPECT_EQ(reclaimed.end, AttemptEnd::kCrashed);
        EXPECT_TRUE(reclaimed.suspect);
    }
    for (const Lease& lease : leases) {
        TaskRecord task = Get(lease.task);
        EXPECT_EQ(task.state, State::kOpen);
        EXPECT_TRUE(task.suspect);
        EXPECT_EQ(task.attempt, 1);
        EXPECT_EQ(task.crash_count, 0);
        EXPECT_GT(task.due_at, store.Now() - 30s);
        ASSERT_TRUE(task.error.has_value());
        EXPECT_EQ(task.error->klass, "crash");
        AuditEntry entry = AuditOf(lease.task).back();
        EXPECT_EQ(entry.event, Event::kReclaim);
        EXPECT_EQ(entry.actor, "sweeper");
        EXPECT_EQ(entry.session, session);
        EXPECT_EQ(entry.attempt, 1);
        EXPECT_EQ(store.Attempts(lease.task).back().end, AttemptEnd::kCrashed);
    }
    EXPECT_THAT(store.Reclaim({}).tasks, IsEmpty());
    EXPECT_THAT(store.Reclaim({}).expired, IsEmpty());
}

TEST_P(Reclaims, ALiveSessionKeepsItsTasks) {
    Lease lease = MakeClaimed();
    OpenSession(1min);
    Advance(2min);
    ReclaimReply reply = store.Reclaim({});
    EXPECT_THAT(reply.expired, SizeIs(1));
    EXPECT_THAT(reply.tasks, IsEmpty());
    EXPECT_EQ(StateOf(lease.task), State::kInProgress);
    EXPECT_EQ(Complete(lease), State::kComplete);
}

TEST_P(Reclaims, RenewalKeepsASessionAlive) {
    SessionId session = OpenSession(10min);
    Make();
    Lease lease = ClaimOne({.session = session});
    for (int i = 0; i < 5; ++i) {
        Advance(8min);
        EXPECT_TRUE(store.Renew({.session = session, .lease = 10min}).live);
        EXPECT_THAT(store.Reclaim({}).expired, IsEmpty());
    }
    EXPECT_EQ(Complete(lease), State::kComplete);
}

TEST_P(Reclaims, ACrashedTaskWaitsItsDelay) {
    Lease lease = MakeClaimed();
    Crash(lease);
    TaskRecord task = Get(lease.task);
    EXPECT_TRUE(Near(task.due_at, store.Now() + CrashDelay(1)));
    Advance(1min);
    EXPECT_EQ(ClaimSuspect().task, lease.task);
}

TEST_P(Reclaims, WhatHadNotStartedIsNoSuspectAndGetsItsAttemptBack) {
    SessionId session = OpenSession(1min);
    MakeMany(3);
    std::vector<Lease> leases = ClaimMany(3, {.session = session});
    ASSERT_THAT(leases, SizeIs(3));
    Advance(2min);
    ReclaimReply reply = store.Reclaim({.flights = {{session, {leases[1].task}}}});
    ASSERT_THAT(reply.tasks, SizeIs(3));
    for (const Lease& lease : leases) {
        bool started = lease.task == leases[1].task;
        TaskRecord task = Get(lease.task);
        EXPECT_EQ(task.state, State::kOpen);
        EXPECT_EQ(task.suspect, started);
        EXPECT_EQ(task.attempt, started ? 1 : 0);
        EXPECT_EQ(task.claim_no, 1);
        EXPECT_EQ(AuditOf(lease.task).back().event, Event::kReclaim);
        EXPECT_EQ(
            store.Attempts(lease.task).back().end,
            started ? AttemptEnd::kCrashed : AttemptEnd::kReleased
        );
    }
    Advance(1min);
    EXPECT_THAT(ClaimMany(5), SizeIs(2));
}

TEST_P(Reclaims, AnEmptyFlightRecordMeansNothingHadStarted) {
    SessionId session = OpenSession(1min);
    Make();
    Lease lease = ClaimOne({.session = session});
    Advance(2min);
    store.Reclaim({.flights = {{session, {}}}});
    EXPECT_FALSE(Get(lease.task).suspect);
    EXPECT_EQ(Get(lease.task).attempt, 0);
}

TEST_P(Reclaims, TheFlightRecordOfAnotherSessionSaysNothing) {
    SessionId session = OpenSession(1min);
    Make();
    Lease lease = ClaimOne({.session = session});
    Advance(2min);
    store.Reclaim({.flights = {{random.MakeId<SessionId>(), {}}}});
    EXPECT_TRUE(Get(lease.task).suspect);
}

TEST_P(Reclaims, OnlyACrashWhileAloneCounts) {
    Lease lease = MakeClaimed();
    Crash(lease);
    EXPECT_EQ(Get(lease.task).crash_count, 0);
    Advance(1min);
    lease = ClaimSuspect();
    EXPECT_TRUE(lease.alone);
    Crash(lease);
    EXPECT_EQ(Get(lease.task).crash_count, 1);
    EXPECT_EQ(StateOf(lease.task), State::kOpen);
}

TEST_P(Reclaims, ThreeCrashesWhileAloneAreQuarantine) {
    Lease lease = MakeClaimed();
    Crash(lease);
    for (int crash = 1; crash <= limits::kMaxCrashes; ++crash) {
        Advance(1min);
        lease = ClaimSuspect();
        ReclaimReply reply = Crash(lease);
        ASSERT_THAT(reply.tasks, SizeIs(1));
        EXPECT_EQ(reply.tasks[0].to, crash < limits::kMaxCrashes ? State::kOpen : State::kDead);
    }
    TaskRecord task = Get(lease.task);
    EXPECT_EQ(task.state, State::kDead);
    EXPECT_THAT(task.reason, testing::StartsWith("quarantined: "));
    EXPECT_EQ(task.crash_count, limits::kMaxCrashes);
    EXPECT_EQ(task.attempt, 1 + limits::kMaxCrashes);
    EXPECT_EQ(AuditOf(lease.task).back().event, Event::kQuarantine);
    EXPECT_EQ(AuditOf(lease.task).back().reason, task.reason);
}

TEST_P(Reclaims, OldCrashesAreForgotten) {
    Lease lease = MakeClaimed();
    Crash(lease);
    for (int crash = 1; crash < limits::kMaxCrashes; ++crash) {
        Advance(1min);
        lease = ClaimSuspect();
        Crash(lease);
    }
    EXPECT_EQ(Get(lease.task).crash_count, limits::kMaxCrashes - 1);
    Advance(limits::kCrashWindow + 1h);
    lease = ClaimSuspect();
    Crash(lease);
    EXPECT_EQ(StateOf(lease.task), State::kOpen);
    EXPECT_EQ(Get(lease.task).crash_count, 1);
}

TEST_P(Reclaims, ACrashIsAnAttemptAndAttemptsHaveAnEnd) {
    Lease lease = MakeClaimed({.retry = Fixed(2, 1min)});
    Crash(lease);
    EXPECT_EQ(StateOf(lease.task), State::kOpen);
    Advance(1min);
    lease = ClaimSuspect();
    EXPECT_EQ(lease.attempt, 2);
    ReclaimReply reply = Crash(lease);
    ASSERT_THAT(reply.tasks, SizeIs(1));
    EXPECT_EQ(reply.tasks[0].to, State::kDead);
    EXPECT_THAT(Get(lease.task).reason, HasSubstr("attempts"));
    EXPECT_EQ(AuditOf(lease.task).back().event, Event::kFailFinal);
}

TEST_P(Reclaims, APolicyWithoutRetriesIsStillRecoveredFromCrashes) {
    Lease lease = MakeClaimed({.retry = RetryPolicy::ErrorIsFinal()});
    Crash(lease);
    EXPECT_EQ(StateOf(lease.task), State::kOpen);
}

TEST_P(Reclaims, AnAttemptThatEndedWellClearsTheSuspicion) {
    for (Kind kind : {Kind::kRetry, Kind::kSnooze}) {
        Lease lease = MakeClaimed();
        Crash(lease);
        Advance(1min);
        SettleAs(ClaimSuspect(), kind);
        EXPECT_FALSE(Get(lease.task).suspect);
        Complete(ClaimOne());
    }
}

TEST_P(Reclaims, AReleasedSuspectStaysOne) {
    Lease lease = MakeClaimed();
    Crash(lease);
    Advance(1min);
    SettleAs(ClaimSuspect(), Kind::kRelease);
    EXPECT_TRUE(Get(lease.task).suspect);
    EXPECT_THAT(ClaimMany(5), IsEmpty());
    EXPECT_EQ(ClaimSuspect().task, lease.task);
}

// What it is asked to do now may be what crashed the process before.
TEST_P(Reclaims, ASuspectThatIsReplacedStaysOne) {
    NewTask unique{.unique_key = "k", .unique_policy = UniquePolicy::kReplaceIfNotStarted};
    NewTask burst{.debounce = Debounce{"k", 1min, {}}};
    for (NewTask ask : {unique, burst}) {
        ask.input = "1";
        TaskId id = Make(ask);
        Advance(2min);
        Crash(ClaimOne());
        Advance(1min);
        Crash(ClaimSuspect());
        ask.input = "2";
        ask.priority = 7;
        EXPECT_EQ(Submit(ask).kind, SubmitReply::Kind::kReplaced);
        Advance(5min);
        EXPECT_TRUE(Get(id).suspect);
        EXPECT_EQ(Get(id).crash_count, 1);
        EXPECT_THAT(ClaimMany(5), IsEmpty());
        Lease lease = ClaimSuspect();
        EXPECT_EQ(lease.task, id);
        EXPECT_EQ(lease.input, "2");
        Complete(lease);
    }
}

TEST_P(Reclaims, ALimitedCallSaysThereIsMore) {
    SessionId session = OpenSession(1min);
    MakeMany(5);
    EXPECT_THAT(ClaimMany(5, {.session = session}), SizeIs(5));
    Advance(2min);
    ReclaimReply first = store.Reclaim({.limit = 2});
    EXPECT_THAT(first.tasks, SizeIs(2));
    EXPECT_TRUE(first.more);
    std::set<TaskId> seen;
    for (const Reclaimed& reclaimed : first.tasks) seen.insert(reclaimed.task);
    for (const Reclaimed& reclaimed : ReclaimAll({.limit = 2}).tasks) seen.insert(reclaimed.task);
    EXPECT_THAT(seen, SizeIs(5));
    EXPECT_THAT(ListAll({.states = {State::kOpen}}), SizeIs(5));
}

TEST_P(Reclaims, AnExclusiveSessionEndsTheOthersAtOnce) {
    Lease lease = MakeClaimed();
    SessionId old = Worker();
    NewSession session{
        .id = random.MakeId<SessionId>(), .hostname = "host-a", .lease = 1h, .exclusive = true};
    store.OpenSession(session);
    EXPECT_FALSE(Claim({.session = old}).session_live);
    ReclaimReply reply = store.Reclaim({.by = session.id});
    EXPECT_THAT(reply.expired, ElementsAre(old));
    ASSERT_THAT(reply.tasks, SizeIs(1));
    EXPECT_EQ(reply.tasks[0].task, lease.task);
    EXPECT_EQ(StateOf(lease.task), State::kOpen);
    EXPECT_TRUE(Claim({.session = session.id}).session_live);
}

TEST_P(Reclaims, WhatAClosedSessionStillHeldIsRecovered) {
    SessionId session = OpenSession();
    Make();
    Lease lease = ClaimOne({.session = session});
    store.CloseSession(session);
    ReclaimReply reply = store.Reclaim({});
    ASSERT_THAT(reply.tasks, SizeIs(1));
    EXPECT_EQ(reply.tasks[0].task, lease.task);
    EXPECT_EQ(StateOf(lease.task), State::kOpen);
}

TEST_P(Reclaims, AnAttemptOverItsTimeAndGraceIsARetryableFailure) {
    Lease lease = MakeClaimed({.retry = Fixed(3, 7min), .timeout = 10min});
    Advance(11min);
    EXPECT_THAT(store.Reclaim({.timeout_grace = 5min}).tasks, IsEmpty());
    Advance(5min);
    ReclaimReply reply = store.Reclaim({.timeout_grace = 5min});
    ASSERT_THAT(reply.tasks, SizeIs(1));
    EXPECT_EQ(reply.tasks[0].end, AttemptEnd::kTimedOut);
    EXPECT_EQ(reply.tasks[0].to, State::kError);
    EXPECT_EQ(reply.tasks[0].from, Worker());
    EXPECT_THAT(reply.expired, IsEmpty());
    TaskRecord task = Get(lease.task);
    EXPECT_EQ(task.state, State::kError);
    EXPECT_FALSE(task.suspect);
    EXPECT_EQ(task.error.value().klass, "timeout");
    EXPECT_TRUE(task.error->retryable);
    EXPECT_TRUE(Near(task.due_at, store.Now() + 7min));
    EXPECT_EQ(store.Attempts(lease.task).back().end, AttemptEnd::kTimedOut);
    EXPECT_EQ(store.Attempts(lease.task).back().error.value().klass, "timeout");
    EXPECT_EQ(AuditOf(lease.task).back().event, Event::kFailRetryable);
    EXPECT_EQ(AuditOf(lease.task).back().actor, "sweeper");
    EXPECT_EQ(Settle(Outcome(lease, Kind::kComplete)).kind, SettleReply::Kind::kLost);
}

TEST_P(Reclaims, ATimeoutOnTheLastAttemptIsDeath) {
    Lease lease = MakeClaimed({.retry = Fixed(1, 1min), .timeout = 1min});
    Advance(10min);
    ReclaimReply reply = store.Reclaim({});
    ASSERT_THAT(reply.tasks, SizeIs(1));
    EXPECT_EQ(reply.tasks[0].to, State::kDead);
    TaskRecord task = Get(lease.task);
    EXPECT_EQ(task.state, State::kDead);
    EXPECT_THAT(task.reason, HasSubstr("attempts exhausted"));
    EXPECT_EQ(task.error.value().klass, "timeout");
}

TEST_P(Reclaims, WithoutATimeoutAnAttemptMayTakeForever) {
    SessionId session = OpenSession(limits::kLeaseMax);
    Make();
    Lease lease = ClaimOne({.session = session});
    for (int i = 0; i < 10; ++i) {
        Advance(20h);
        ASSERT_TRUE(store.Renew({.session = session, .lease = limits::kLeaseMax}).live);
        EXPECT_THAT(store.Reclaim({}).tasks, IsEmpty());
    }
    EXPECT_EQ(Complete(lease), State::kComplete);
}

TEST_P(Reclaims, TheTimeoutIsCountedAnewForEachAttempt) {
    Lease lease = MakeClaimed({.retry = Fixed(5, 1min), .timeout = 10min});
    Advance(8min);
    SettleAs(lease, Kind::kRelease);
    ClaimOne();
    Advance(8min);
    EXPECT_THAT(store.Reclaim({.timeout_grace = 1min}).tasks, IsEmpty());
    Advance(4min);
    EXPECT_THAT(store.Reclaim({.timeout_grace = 1min}).tasks, SizeIs(1));
}

TEST_P(Reclaims, ASettledTaskIsNotReclaimed) {
    SessionId session = OpenSession(1min);
    MakeMany(2);
    std::vector<Lease> leases = ClaimMany(2, {.session = session});
    ASSERT_THAT(leases, SizeIs(2));
    Complete(leases[0]);
    Advance(2min);
    ReclaimReply reply = store.Reclaim({});
    ASSERT_THAT(reply.tasks, SizeIs(1));
    EXPECT_EQ(reply.tasks[0].task, leases[1].task);
    EXPECT_EQ(StateOf(leases[0].task), State::kComplete);
}

}  // namespace
}  // namespace stint::conformance
