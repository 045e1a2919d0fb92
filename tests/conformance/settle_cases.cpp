// Settling. Only the current token is accepted (I3), whatever the session's lease says meanwhile;
// the first outcome stands. Release and snooze refund the attempt; claim_no stays. The engine
// decides between retry and dead, the store applies it; a crash of an isolated child counts as one
// while alone, and one too many quarantines instead. An accepted outcome other than a release or a
// crash clears the suspicion.
#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;
using Reply = SettleReply::Kind;

CONFORMANCE_SUITE(Settles);

TEST_P(Settles, SuccessKeepsTheOutput) {
    Lease lease = MakeClaimed();
    Settlement outcome = Outcome(lease, Kind::kComplete);
    outcome.output = R"({"n": 1})";
    outcome.warning = true;
    SettleReply reply = Settle(outcome);
    EXPECT_EQ(reply.kind, Reply::kAccepted);
    EXPECT_EQ(reply.state, State::kComplete);
    TaskRecord task = Get(lease.task);
    EXPECT_EQ(task.state, State::kComplete);
    EXPECT_EQ(task.output, R"({"n": 1})");
    EXPECT_TRUE(task.warning);
    EXPECT_EQ(task.error, std::nullopt);
    EXPECT_EQ(task.attempt, 1);
    ASSERT_TRUE(task.finished_at.has_value());
    EXPECT_TRUE(Near(*task.finished_at, store.Now()));
    EXPECT_EQ(task.expires_at, std::nullopt);
    AuditEntry entry = AuditOf(lease.task).back();
    EXPECT_EQ(entry.event, Event::kComplete);
    EXPECT_EQ(entry.actor, "worker");
    EXPECT_EQ(entry.session, Worker());
    EXPECT_EQ(entry.attempt, 1);
}

TEST_P(Settles, AnOutputOfTheLargestSizeIsKept) {
    Lease lease = MakeClaimed();
    Settlement outcome = Outcome(lease, Kind::kComplete);
    outcome.output = '"' + std::string(limits::kOutput - 2, 'y') + '"';
    Settle(outcome);
    EXPECT_EQ(Get(lease.task).output, outcome.output);
}

TEST_P(Settles, AFailureWithTriesLeftRestsInError) {
    Lease lease = MakeClaimed();
    EXPECT_EQ(SettleAs(lease, Kind::kRetry, 5min), State::kError);
    TaskRecord task = Get(lease.task);
    EXPECT_EQ(task.error, Failure());
    EXPECT_EQ(task.attempt, 1);
    EXPECT_TRUE(Near(task.due_at, store.Now() + 5min));
    EXPECT_EQ(task.finished_at, std::nullopt);
    EXPECT_EQ(task.output, "");
}

TEST_P(Settles, AFinalFailureIsDeadWithItsReason) {
    Lease lease = MakeClaimed();
    EXPECT_EQ(SettleAs(lease, Kind::kDead), State::kDead);
    TaskRecord task = Get(lease.task);
    EXPECT_EQ(task.reason, "given up");
    EXPECT_EQ(task.error, Failure(false));
    EXPECT_TRUE(task.finished_at.has_value());
    EXPECT_EQ(AuditOf(lease.task).back().reason, "given up");
}

TEST_P(Settles, TheLastErrorStaysWhileRetryingAndGoesWithSuccess) {
    Lease first = MakeClaimed();
    SettleAs(first, Kind::kRetry);
    EXPECT_TRUE(Get(first.task).error.has_value());
    Lease second = ClaimOne();
    EXPECT_EQ(Get(first.task).error, Failure());
    Complete(second);
    EXPECT_EQ(Get(first.task).error, std::nullopt);
}

TEST_P(Settles, SnoozeRefundsTheAttempt) {
    Lease lease = MakeClaimed();
    EXPECT_EQ(SettleAs(lease, Kind::kSnooze, 5min), State::kOpen);
    TaskRecord task = Get(lease.task);
    EXPECT_EQ(task.attempt, 0);
    EXPECT_EQ(task.claim_no, 1);
    EXPECT_TRUE(Near(task.due_at, store.Now() + 5min));
    EXPECT_THAT(ClaimMany(5), IsEmpty());
    Advance(6min);
    Lease again = ClaimOne();
    EXPECT_EQ(again.attempt, 1);
    EXPECT_EQ(again.claim_no, 2);
}

TEST_P(Settles, ReleaseRefundsTheAttemptAndIsClaimableAtOnce) {
    Lease lease = MakeClaimed({.retry = Fixed(1, 1min)});
    for (int claim_no = 2; claim_no < 6; ++claim_no) {
        EXPECT_EQ(SettleAs(lease, Kind::kRelease), State::kOpen);
        EXPECT_EQ(Get(lease.task).attempt, 0);
        lease = ClaimOne();
        EXPECT_EQ(lease.attempt, 1);
        EXPECT_EQ(lease.claim_no, claim_no);
    }
    EXPECT_EQ(AuditOf(lease.task)[2].event, Event::kRelease);
    EXPECT_EQ(AuditOf(lease.task)[2].attempt, 1);
}

TEST_P(Settles, CancelledNeedsNothingButTheToken) {
    Lease lease = MakeClaimed();
    Settlement outcome = Outcome(lease, Kind::kCancelled);
    outcome.reason = "stopped itself";
    EXPECT_EQ(Settle(outcome).state, State::kCancelled);
    EXPECT_EQ(Get(lease.task).reason, "stopped itself");
}

TEST_P(Settles, AWrongTokenChangesNothing) {
    Lease lease = MakeClaimed();
    for (Kind kind :
         {Kind::kComplete,
          Kind::kRetry,
          Kind::kDead,
          Kind::kSnooze,
          Kind::kRelease,
          Kind::kBackground,
          Kind::kCancelled}) {
        Settlement outcome = Outcome(lease, kind);
        outcome.token = random.MakeId<LeaseToken>();
        EXPECT_EQ(Settle(outcome).kind, Reply::kLost);
        outcome.token = {};
        EXPECT_EQ(Settle(outcome).kind, Reply::kLost);
    }
    EXPECT_EQ(StateOf(lease.task), State::kInProgress);
    EXPECT_THAT(EventsOf(lease.task), ElementsAre(Event::kSubmit, Event::kClaim));
    EXPECT_EQ(Complete(lease), State::kComplete);
}

TEST_P(Settles, TheTokenOfOneTaskSettlesNoOther) {
    Lease one = MakeClaimed();
    Lease two = MakeClaimed();
    Settlement outcome = Outcome(one, Kind::kComplete);
    outcome.task = two.task;
    EXPECT_EQ(Settle(outcome).kind, Reply::kLost);
    EXPECT_EQ(StateOf(two.task), State::kInProgress);
}

TEST_P(Settles, ATaskThatIsNotThereIsLost) {
    Lease lease = MakeClaimed();
    Settlement outcome = Outcome(lease, Kind::kComplete);
    outcome.task = store.ReserveIds(1);
    EXPECT_EQ(Settle(outcome).kind, Reply::kLost);
}

TEST_P(Settles, TheSecondOutcomeIsLostWhateverTheFirstWas) {
    for (Kind first :
         {Kind::kComplete,
          Kind::kRetry,
          Kind::kDead,
          Kind::kSnooze,
          Kind::kRelease,
          Kind::kBackground,
          Kind::kCancelled}) {
        Lease lease = MakeClaimed();
        State state = SettleAs(lease, first, 1h);
        EXPECT_EQ(Settle(Outcome(lease, Kind::kComplete)).kind, Reply::kLost);
        EXPECT_EQ(StateOf(lease.task), state);
        if (!IsTerminal(state)) Cancel(lease.task);
    }
}

TEST_P(Settles, AnEarlierTokenIsLostUnderTheNextLease) {
    Lease first = MakeClaimed();
    SettleAs(first, Kind::kRelease);
    Lease second = ClaimOne();
    EXPECT_EQ(Settle(Outcome(first, Kind::kComplete)).kind, Reply::kLost);
    EXPECT_EQ(Complete(second), State::kComplete);
}

TEST_P(Settles, ABatchIsAnsweredInOrderAndAStaleMemberFailsAlone) {
    MakeMany(3);
    std::vector<Lease> leases = ClaimMany(3);
    ASSERT_THAT(leases, SizeIs(3));
    Settlement stale = Outcome(leases[1], Kind::kComplete);
    stale.token = random.MakeId<LeaseToken>();
    std::vector<Settlement> batch = {
        Outcome(leases[0], Kind::kComplete),
        stale,
        Outcome(leases[2], Kind::kRetry, 1min),
        Outcome(leases[0], Kind::kDead),
    };
    std::vector<SettleReply> replies = store.Settle(batch);
    ASSERT_THAT(replies, SizeIs(4));
    EXPECT_EQ(replies[0].kind, Reply::kAccepted);
    EXPECT_EQ(replies[0].state, State::kComplete);
    EXPECT_EQ(replies[1].kind, Reply::kLost);
    EXPECT_EQ(replies[2].state, State::kError);
    EXPECT_EQ(replies[3].kind, Reply::kLost);
    EXPECT_EQ(StateOf(leases[0].task), State::kComplete);
    EXPECT_EQ(StateOf(leases[1].task), State::kInProgress);
    EXPECT_THAT(store.Settle({}), IsEmpty());
}

// More than any store writes with one statement, and some of them said twice.
TEST_P(Settles, OfALargeBatchEachIsHeardOnce) {
    constexpr int kTasks = 70;
    for (int i = 0; i < kTasks; ++i) Make();
    std::vector<Settlement> batch;
    for (const Lease& lease : ClaimMany(kTasks)) {
        batch.push_back(Outcome(lease, Kind::kComplete));
        if (batch.size() % 5 == 0) batch.push_back(batch.back());
    }
    std::vector<SettleReply> replies = store.Settle(batch);
    std::set<TaskId> heard;
    for (std::size_t i = 0; i < batch.size(); ++i) {
        const bool first = heard.insert(batch[i].task).second;
        EXPECT_EQ(replies[i].kind, first ? Reply::kAccepted : Reply::kLost) << i;
    }
    EXPECT_EQ(heard.size(), static_cast<std::size_t>(kTasks));
    for (TaskId task : heard) {
        EXPECT_EQ(store.Get(task)->state, State::kComplete);
        EXPECT_EQ(store.Attempts(task).size(), 1u);
    }
}

TEST_P(Settles, ALeaseThatRanOutIsGoodUntilItIsTaken) {
    Make();
    SessionId session = OpenSession(1min);
    Lease lease = ClaimOne({.session = session});
    Advance(5min);
    EXPECT_EQ(Complete(lease), State::kComplete);
    EXPECT_THAT(ReclaimAll().tasks, IsEmpty());
}

TEST_P(Settles, ALeaseThatWasTakenIsLost) {
    Lease lease = MakeClaimed();
    EXPECT_THAT(Crash(lease).tasks, SizeIs(1));
    EXPECT_EQ(Settle(Outcome(lease, Kind::kComplete)).kind, Reply::kLost);
    Advance(1min);
    Lease next = ClaimSuspect();
    EXPECT_EQ(Settle(Outcome(lease, Kind::kComplete)).kind, Reply::kLost);
    EXPECT_EQ(Complete(next), State::kComplete);
}

TEST_P(Settles, TheAttemptsRowKeepsTheEvidence) {
    Lease lease = MakeClaimed();
    Settlement outcome = Outcome(lease, Kind::kRetry);
    outcome.exit_code = 3;
    outcome.exit_signal = 11;
    outcome.stderr_tail = "oops\nsegfault at 0";
    Settle(outcome);
    Complete(ClaimOne());
    std::vector<AttemptRecord> attempts = store.Attempts(lease.task);
    ASSERT_THAT(attempts, SizeIs(2));
    EXPECT_EQ(attempts[0].task, lease.task);
    EXPECT_EQ(attempts[0].attempt, 1);
    EXPECT_EQ(attempts[0].generation, 1);
    EXPECT_EQ(attempts[0].session, Worker());
    EXPECT_TRUE(attempts[0].node.valid());
    EXPECT_EQ(attempts[0].end, AttemptEnd::kFailed);
    EXPECT_EQ(attempts[0].error, Failure());
    EXPECT_EQ(attempts[0].exit_code, 3);
    EXPECT_EQ(attempts[0].exit_signal, 11);
    EXPECT_EQ(attempts[0].stderr_tail, "oops\nsegfault at 0");
    EXPECT_FALSE(attempts[0].alone);
    EXPECT_TRUE(Near(attempts[0].started_at, store.Now()));
    EXPECT_EQ(attempts[1].end, AttemptEnd::kComplete);
    EXPECT_EQ(attempts[1].error, std::nullopt);
    EXPECT_EQ(attempts[1].exit_code, std::nullopt);
    EXPECT_EQ(attempts[1].attempt, 2);
}

TEST_P(Settles, EveryKindLeavesItsEndInTheAttemptsRow) {
    for (auto [kind, end] :
         {std::pair{Kind::kComplete, AttemptEnd::kComplete},
          std::pair{Kind::kRetry, AttemptEnd::kFailed},
          std::pair{Kind::kDead, AttemptEnd::kFailed},
          std::pair{Kind::kSnooze, AttemptEnd::kSnoozed},
          std::pair{Kind::kRelease, AttemptEnd::kReleased},
          std::pair{Kind::kBackground, AttemptEnd::kBackground},
          std::pair{Kind::kCancelled, AttemptEnd::kCancelled}}) {
        Lease lease = MakeClaimed();
        EXPECT_EQ(store.Attempts(lease.task).at(0).end, AttemptEnd::kRunning);
        SettleAs(lease, kind, 1h);
        EXPECT_EQ(store.Attempts(lease.task).at(0).end, end);
        Cancel(lease.task);
    }
}

TEST_P(Settles, SettledByTellsAcceptedHeldAndLost) {
    Lease lease = MakeClaimed();
    EXPECT_EQ(store.SettledBy(lease.task, lease.token), std::nullopt);
    EXPECT_EQ(store.SettledBy(lease.task, random.MakeId<LeaseToken>())->kind, Reply::kLost);
    EXPECT_EQ(store.SettledBy(store.ReserveIds(1), lease.token)->kind, Reply::kLost);
    SettleAs(lease, Kind::kRetry);
    std::optional<SettleReply> settled = store.SettledBy(lease.task, lease.token);
    ASSERT_TRUE(settled.has_value());
    EXPECT_EQ(settled->kind, Reply::kAccepted);
    EXPECT_EQ(settled->state, State::kError);

    Lease second = ClaimOne();
    Complete(second);
    EXPECT_EQ(store.SettledBy(lease.task, lease.token)->kind, Reply::kAccepted);
    settled = store.SettledBy(lease.task, second.token);
    ASSERT_TRUE(settled.has_value());
    EXPECT_EQ(settled->kind, Reply::kAccepted);
    EXPECT_EQ(settled->state, State::kComplete);
}

TEST_P(Settles, SettledByIsLostForALeaseThatWasTaken) {
    Lease lease = MakeClaimed();
    Crash(lease);
    EXPECT_EQ(store.SettledBy(lease.task, lease.token)->kind, Reply::kLost);
}

TEST_P(Settles, ABackgroundOutcomeIsKnownByItsToken) {
    Lease lease = MakeClaimed();
    SettleAs(lease, Kind::kBackground);
    std::optional<SettleReply> settled = store.SettledBy(lease.task, lease.token);
    ASSERT_TRUE(settled.has_value());
    EXPECT_EQ(settled->kind, Reply::kAccepted);
    EXPECT_EQ(settled->state, State::kBackground);
}

TEST_P(Settles, CrashesOfAnIsolatedChildQuarantineItInTheEnd) {
    Lease lease = MakeClaimed();
    for (int crash = 1; crash < limits::kMaxCrashes; ++crash) {
        Settlement outcome = Outcome(lease, Kind::kRetry);
        outcome.crashed = true;
        outcome.exit_signal = 11;
        EXPECT_EQ(Settle(outcome).state, State::kError);
        EXPECT_EQ(Get(lease.task).crash_count, crash);
        EXPECT_EQ(store.Attempts(lease.task).back().end, AttemptEnd::kCrashed);
        lease = ClaimOne();
        EXPECT_EQ(lease.crash_count, crash);
    }
    Settlement last = Outcome(lease, Kind::kRetry);
    last.crashed = true;
    last.exit_signal = 6;
    EXPECT_EQ(Settle(last).state, State::kDead);
    TaskRecord task = Get(lease.task);
    EXPECT_EQ(task.crash_count, limits::kMaxCrashes);
    EXPECT_THAT(task.reason, testing::StartsWith("quarantined: "));
    EXPECT_EQ(AuditOf(lease.task).back().event, Event::kQuarantine);
    EXPECT_EQ(store.Attempts(lease.task).back().exit_signal, 6);
}

TEST_P(Settles, ProgressEndsWithTheAttempt) {
    Lease lease = MakeClaimed();
    store.Renew(
        {.session = Worker(),
         .lease = 1h,
         .progress = {{lease.task, lease.token, {.step = "copy", .done = 1, .total = 2}}}}
    );
    SettleAs(lease, Kind::kRetry);
    EXPECT_EQ(Get(lease.task).progress, std::nullopt);
    ClaimOne();
    EXPECT_EQ(Get(lease.task).progress, std::nullopt);
}

TEST_P(Settles, FinishedTellsTheTerminalOnesAmongThoseAsked) {
    Lease good = MakeClaimed();
    Settlement outcome = Outcome(good, Kind::kComplete);
    outcome.output = "7";
    outcome.warning = true;
    Settle(outcome);
    Lease bad = MakeClaimed();
    SettleAs(bad, Kind::kDead);
    TaskId open = Make();
    std::vector<TaskId> asked = {open, bad.task, good.task, store.ReserveIds(1)};
    std::vector<FinishedTask> finished = store.Finished(asked);
    ASSERT_THAT(finished, SizeIs(2));
    if (finished[0].id != good.task) std::swap(finished[0], finished[1]);
    EXPECT_EQ(finished[0].id, good.task);
    EXPECT_EQ(finished[0].state, State::kComplete);
    EXPECT_EQ(finished[0].output, "7");
    EXPECT_TRUE(finished[0].warning);
    EXPECT_EQ(finished[1].id, bad.task);
    EXPECT_EQ(finished[1].state, State::kDead);
    EXPECT_EQ(finished[1].error, Failure(false));
    EXPECT_EQ(finished[1].reason, "given up");
}

TEST_P(Settles, OfTwoHoldersInOneBatchTheOneWhoHasTheTaskIsHeard) {
    for (bool lost_first : {true, false}) {
        TaskId task = Make();
        Lease lost = ClaimOne({.session = OpenSession(1min)});
        Advance(2min);
        ReclaimAll();
        Advance(1h);
        Lease current = ClaimSuspect();
        ASSERT_EQ(current.task, task);
        std::vector<Settlement> batch = {
            Outcome(lost, Kind::kComplete), Outcome(current, Kind::kComplete)};
        if (!lost_first) std::swap(batch[0], batch[1]);
        std::vector<SettleReply> replies = store.Settle(batch);
        EXPECT_EQ(replies[lost_first ? 0 : 1].kind, SettleReply::Kind::kLost);
        EXPECT_EQ(replies[lost_first ? 1 : 0].kind, SettleReply::Kind::kAccepted);
        EXPECT_EQ(StateOf(task), State::kComplete);
        // The same where it is no plain success.
        task = Make();
        lost = ClaimOne({.session = OpenSession(1min)});
        Advance(2min);
        ReclaimAll();
        Advance(1h);
        current = ClaimSuspect();
        batch = {Outcome(lost, Kind::kDead), Outcome(current, Kind::kDead)};
        if (!lost_first) std::swap(batch[0], batch[1]);
        replies = store.Settle(batch);
        EXPECT_EQ(replies[lost_first ? 0 : 1].kind, SettleReply::Kind::kLost);
        EXPECT_EQ(replies[lost_first ? 1 : 0].kind, SettleReply::Kind::kAccepted);
    }
}

}  // namespace
}  // namespace stint::conformance
