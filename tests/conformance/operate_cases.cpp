// Operators: retry, discard, edit. A retry of a finished task is a new generation with fresh
// attempts and no deadline, due now; of a task in ERROR it is a try now in the same generation.
// Discard gives up a task in ERROR. An edit changes a task that waits and nothing else.
#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

CONFORMANCE_SUITE(Operators);

TEST_P(Operators, RetryOfADeadOrCancelledTaskIsANewGeneration) {
    for (Kind kind : {Kind::kDead, Kind::kCancelled}) {
        Lease lease = MakeClaimed({.retry = Fixed(1, 1min)});
        SettleAs(lease, kind);
        RetryReply reply = Retry(lease.task);
        EXPECT_EQ(reply.kind, RetryReply::Kind::kRequeued);
        EXPECT_EQ(reply.state, State::kOpen);
        TaskRecord task = Get(lease.task);
        EXPECT_EQ(task.state, State::kOpen);
        EXPECT_EQ(task.generation, 2);
        EXPECT_EQ(task.attempt, 0);
        EXPECT_EQ(task.claim_no, 1);
        EXPECT_EQ(task.reason, "");
        EXPECT_EQ(task.finished_at, std::nullopt);
        AuditEntry entry = AuditOf(lease.task).back();
        EXPECT_EQ(entry.event, Event::kOperatorRetry);
        EXPECT_EQ(entry.actor, "operator:ann");
        EXPECT_EQ(entry.generation, 2);

        Lease again = ClaimOne();
        EXPECT_EQ(again.task, lease.task);
        EXPECT_EQ(again.attempt, 1);
        EXPECT_EQ(again.claim_no, 2);
        EXPECT_EQ(again.generation, 2);
        EXPECT_EQ(Complete(again), State::kComplete);
        EXPECT_EQ(store.Attempts(lease.task).at(0).generation, 1);
        EXPECT_EQ(store.Attempts(lease.task).at(1).generation, 2);
    }
}

TEST_P(Operators, RetryOfAQuarantinedTaskForgetsItsCrashes) {
    Lease lease = MakeClaimed();
    for (int crash = 1; crash <= limits::kMaxCrashes; ++crash) {
        Settlement outcome = Outcome(lease, Kind::kRetry);
        outcome.crashed = true;
        Settle(outcome);
        if (crash < limits::kMaxCrashes) lease = ClaimOne();
    }
    EXPECT_EQ(StateOf(lease.task), State::kDead);
    Retry(lease.task);
    TaskRecord task = Get(lease.task);
    EXPECT_EQ(task.crash_count, 0);
    EXPECT_FALSE(task.suspect);
    Settlement outcome = Outcome(ClaimOne(), Kind::kRetry);
    outcome.crashed = true;
    EXPECT_EQ(Settle(outcome).state, State::kError);
    EXPECT_EQ(Get(lease.task).crash_count, 1);
}

TEST_P(Operators, RetryOfAFailedTaskIsATryNow) {
    Lease lease = MakeClaimed();
    SettleAs(lease, Kind::kRetry, 10h);
    EXPECT_EQ(Retry(lease.task).kind, RetryReply::Kind::kRequeued);
    TaskRecord task = Get(lease.task);
    EXPECT_EQ(task.state, State::kOpen);
    EXPECT_EQ(task.generation, 1);
    EXPECT_EQ(task.attempt, 1);
    EXPECT_LE(task.due_at, store.Now());
    EXPECT_EQ(ClaimOne().attempt, 2);
    EXPECT_THAT(
        EventsOf(lease.task),
        ElementsAre(
            Event::kSubmit,
            Event::kClaim,
            Event::kFailRetryable,
            Event::kOperatorRetry,
            Event::kClaim
        )
    );
}

TEST_P(Operators, RetryOfATaskThatMissedItsDeadlineDropsTheDeadline) {
    TaskId id = Make({.start_by = store.Now() + 1min});
    Advance(2min);
    Housekeep();
    ASSERT_EQ(StateOf(id), State::kDead);
    Retry(id);
    EXPECT_EQ(Get(id).start_by, std::nullopt);
    EXPECT_EQ(ClaimOne().task, id);
}

TEST_P(Operators, RetryIsRefusedElsewhere) {
    EXPECT_EQ(Retry(store.ReserveIds(1)).kind, RetryReply::Kind::kNotFound);
    TaskId open = Make();
    EXPECT_EQ(Retry(open).kind, RetryReply::Kind::kRefused);
    EXPECT_EQ(Retry(open).state, State::kOpen);
    Lease lease = ClaimOne();
    EXPECT_EQ(Retry(open).state, State::kInProgress);
    SettleAs(lease, Kind::kBackground);
    EXPECT_EQ(Retry(open).state, State::kBackground);
    ASSERT_TRUE(store.FinishBackground({.task = open, .actor = "ann"}));
    RetryReply reply = Retry(open);
    EXPECT_EQ(reply.kind, RetryReply::Kind::kRefused);
    EXPECT_EQ(reply.state, State::kComplete);
}

TEST_P(Operators, GenerationsCountUp) {
    TaskId id = Make();
    for (int generation = 2; generation < 5; ++generation) {
        Cancel(id);
        Retry(id);
        EXPECT_EQ(Get(id).generation, generation);
    }
}

TEST_P(Operators, AnOldGenerationsTokenIsLost) {
    Lease lease = MakeClaimed();
    SettleAs(lease, Kind::kDead);
    Retry(lease.task);
    EXPECT_EQ(Settle(Outcome(lease, Kind::kComplete)).kind, SettleReply::Kind::kLost);
    ClaimOne();
    EXPECT_EQ(Settle(Outcome(lease, Kind::kComplete)).kind, SettleReply::Kind::kLost);
}

TEST_P(Operators, DiscardGivesUpAFailedTask) {
    Lease lease = MakeClaimed();
    SettleAs(lease, Kind::kRetry, 1h);
    RetryReply reply = Discard(lease.task);
    EXPECT_EQ(reply.kind, RetryReply::Kind::kRequeued);
    EXPECT_EQ(reply.state, State::kDead);
    TaskRecord task = Get(lease.task);
    EXPECT_EQ(task.state, State::kDead);
    EXPECT_THAT(task.reason, HasSubstr("operator:ann"));
    EXPECT_EQ(task.error, Failure());
    EXPECT_EQ(AuditOf(lease.task).back().event, Event::kFailFinal);
    EXPECT_EQ(AuditOf(lease.task).back().actor, "operator:ann");
}

TEST_P(Operators, DiscardIsRefusedElsewhere) {
    EXPECT_EQ(Discard(store.ReserveIds(1)).kind, RetryReply::Kind::kNotFound);
    TaskId id = Make();
    EXPECT_EQ(Discard(id).kind, RetryReply::Kind::kRefused);
    EXPECT_EQ(Discard(id).state, State::kOpen);
    Lease lease = ClaimOne();
    EXPECT_EQ(Discard(id).state, State::kInProgress);
    SettleAs(lease, Kind::kDead);
    EXPECT_EQ(Discard(id).kind, RetryReply::Kind::kRefused);
    EXPECT_EQ(Discard(id).state, State::kDead);
}

TEST_P(Operators, AnEditChangesWhatItNamesAndNothingElse) {
    TaskId id = Make({.input = "1", .queue = "a", .priority = 5, .tags = {"x"}});
    ASSERT_TRUE(store.Edit(id, {.priority = 6}, "operator:bob"));
    TaskRecord task = Get(id);
    EXPECT_EQ(task.priority, 6);
    EXPECT_EQ(task.queue, "a");
    EXPECT_EQ(task.input, "1");
    EXPECT_THAT(task.tags, ElementsAre("x"));
    EXPECT_EQ(task.state, State::kOpen);
    AuditEntry entry = AuditOf(id).back();
    EXPECT_EQ(entry.event, Event::kEdit);
    EXPECT_EQ(entry.from, State::kOpen);
    EXPECT_EQ(entry.to, State::kOpen);
    EXPECT_EQ(entry.actor, "operator:bob");
}

TEST_P(Operators, AnEditReachesEveryField) {
    TaskId id = Make();
    Time start_by = std::chrono::floor<std::chrono::seconds>(store.Now()) + 5h;
    TaskEdit edit{
        .queue = "b",
        .priority = 250,
        .input = "[2]",
        .delay = 10min,
        .start_by = start_by,
        .retry = Fixed(2, 1min),
        .timeout = 3min,
        .tags = std::vector<std::string>{"y", "z"},
    };
    ASSERT_TRUE(store.Edit(id, edit, "ann"));
    TaskRecord task = Get(id);
    EXPECT_EQ(task.queue, "b");
    EXPECT_EQ(task.priority, 250);
    EXPECT_EQ(task.input, "[2]");
    EXPECT_TRUE(Near(task.due_at, store.Now() + 10min));
    EXPECT_EQ(task.start_by, start_by);
    EXPECT_EQ(task.retry, Fixed(2, 1min));
    EXPECT_EQ(task.max_attempts, 2);
    EXPECT_EQ(task.timeout, 3min);
    EXPECT_THAT(task.tags, UnorderedElementsAre("y", "z"));
    EXPECT_THAT(ClaimMany(5), IsEmpty());
    Advance(11min);
    EXPECT_THAT(ClaimMany(5, {.queues = {"default"}}), IsEmpty());
    Lease lease = ClaimOne({.queues = {"b"}});
    EXPECT_EQ(lease.input, "[2]");
    EXPECT_EQ(lease.timeout, 3min);
}

TEST_P(Operators, AnEditMayBringATaskForwardOrPutItOff) {
    TaskId later = Make({.delay = 10h});
    EXPECT_THAT(ClaimMany(5), IsEmpty());
    ASSERT_TRUE(store.Edit(later, {.delay = 0ms}, "ann"));
    EXPECT_EQ(ClaimOne().task, later);

    TaskId now = Make();
    Time future = std::chrono::floor<std::chrono::seconds>(store.Now()) + 1h;
    ASSERT_TRUE(store.Edit(now, {.run_at = future}, "ann"));
    EXPECT_EQ(Get(now).due_at, future);
    EXPECT_THAT(ClaimMany(5), IsEmpty());
}

TEST_P(Operators, AnEditOfThePriorityMovesTheTaskInItsLine) {
    TaskId first = Make();
    TaskId second = Make();
    ASSERT_TRUE(store.Edit(second, {.priority = 200}, "ann"));
    EXPECT_EQ(ClaimOne().task, second);
    EXPECT_EQ(ClaimOne().task, first);
}

TEST_P(Operators, ATaskThatWaitsForItsNextTryCanBeEdited) {
    Lease lease = MakeClaimed();
    SettleAs(lease, Kind::kRetry, 10h);
    ASSERT_TRUE(store.Edit(lease.task, {.input = "2", .delay = 0ms}, "ann"));
    EXPECT_EQ(StateOf(lease.task), State::kError);
    Lease next = ClaimOne();
    EXPECT_EQ(next.input, "2");
    EXPECT_EQ(next.attempt, 2);
}

TEST_P(Operators, AnEditIsRefusedOnceStartedAndSaysWhy) {
    Lease lease = MakeClaimed({.input = "1"});
    Result<void> running = store.Edit(lease.task, {.input = "2"}, "ann");
    ASSERT_FALSE(running);
    EXPECT_EQ(running.error().code, Code::kConflict);
    EXPECT_THAT(running.error().message, HasSubstr("in_progress"));
    Complete(lease);
    Result<void> finished = store.Edit(lease.task, {.input = "2"}, "ann");
    ASSERT_FALSE(finished);
    EXPECT_EQ(finished.error().code, Code::kConflict);
    EXPECT_EQ(Get(lease.task).input, "1");
    EXPECT_THAT(EventsOf(lease.task), SizeIs(3));
}

TEST_P(Operators, AnEditThatIsWrongChangesNothing) {
    TaskId id = Make({.priority = 5});
    Result<void> wrong = store.Edit(id, {.queue = "q", .priority = 300}, "ann");
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().code, Code::kInvalid);
    EXPECT_EQ(wrong.error().message, "priority is 300; it must be between 0 and 255");
    EXPECT_EQ(Get(id).queue, "default");
    EXPECT_FALSE(store.Edit(id, {}, "ann"));
    Result<void> nobody = store.Edit(store.ReserveIds(1), {.priority = 3}, "ann");
    ASSERT_FALSE(nobody);
    EXPECT_EQ(nobody.error().code, Code::kNotFound);
    EXPECT_THAT(EventsOf(id), SizeIs(1));
}

}  // namespace
}  // namespace stint::conformance
