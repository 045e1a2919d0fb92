// Work that goes on outside. Settling as background keeps the token as the completion token and
// frees the worker. Whoever has the token finishes it; an operator may finish it without, which the
// audit log says. A failure from outside follows the task's retry policy. A background timeout is
// OPEN while attempts remain, else DEAD.
#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

CONFORMANCE_SUITE(Background);

TEST_P(Background, TheHolderIsFreeAndTheTokenStays) {
    Lease lease = MakeClaimed();
    Settlement outcome = Outcome(lease, Kind::kBackground, 30min);
    outcome.reason = "sent to the printer";
    EXPECT_EQ(Settle(outcome).state, State::kBackground);
    TaskRecord task = Get(lease.task);
    EXPECT_EQ(task.state, State::kBackground);
    EXPECT_EQ(task.reason, "sent to the printer");
    EXPECT_FALSE(task.session.valid());
    ASSERT_TRUE(task.expires_at.has_value());
    EXPECT_TRUE(Near(*task.expires_at, store.Now() + 30min));
    EXPECT_EQ(task.attempt, 1);
    store.CloseSession(Worker());
    EXPECT_THAT(ReclaimAll().tasks, IsEmpty());
    Result<State> done = store.FinishBackground(
        {.task = lease.task, .token = lease.token, .actor = "printer", .output = "[3]"}
    );
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(*done, State::kComplete);
    task = Get(lease.task);
    EXPECT_EQ(task.state, State::kComplete);
    EXPECT_EQ(task.output, "[3]");
    AuditEntry entry = AuditOf(lease.task).back();
    EXPECT_EQ(entry.from, State::kBackground);
    EXPECT_EQ(entry.event, Event::kComplete);
    EXPECT_EQ(entry.actor, "printer");
}

TEST_P(Background, AWrongTokenIsRefused) {
    Lease lease = MakeClaimed();
    SettleAs(lease, Kind::kBackground);
    Result<State> done = store.FinishBackground(
        {.task = lease.task, .token = random.MakeId<LeaseToken>(), .actor = "x"}
    );
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::kLeaseLost);
    EXPECT_EQ(StateOf(lease.task), State::kBackground);
}

TEST_P(Background, ATokenOfAnEarlierRoundIsRefused) {
    Lease first = MakeClaimed();
    SettleAs(first, Kind::kBackground, 1min);
    Advance(2min);
    ReclaimAll();
    Lease second = ClaimOne();
    SettleAs(second, Kind::kBackground);
    EXPECT_EQ(
        store.FinishBackground({.task = first.task, .token = first.token}).error().code,
        Code::kLeaseLost
    );
    EXPECT_TRUE(store.FinishBackground({.task = first.task, .token = second.token}));
}

TEST_P(Background, AnOperatorMayFinishItAndTheAuditLogSaysSo) {
    Lease lease = MakeClaimed();
    SettleAs(lease, Kind::kBackground);
    Result<State> done = store.FinishBackground({.task = lease.task, .actor = "operator:ann"});
    ASSERT_TRUE(done);
    AuditEntry entry = AuditOf(lease.task).back();
    EXPECT_EQ(entry.actor, "operator:ann");
    EXPECT_THAT(entry.reason, HasSubstr("override"));
}

TEST_P(Background, OnlyABackgroundTaskCanBeFinished) {
    TaskId open = Make();
    EXPECT_EQ(store.FinishBackground({.task = open}).error().code, Code::kConflict);
    Lease lease = ClaimOne();
    EXPECT_EQ(store.FinishBackground({.task = open}).error().code, Code::kConflict);
    SettleAs(lease, Kind::kBackground);
    ASSERT_TRUE(store.FinishBackground({.task = open, .token = lease.token}));
    EXPECT_EQ(
        store.FinishBackground({.task = open, .token = lease.token}).error().code, Code::kConflict
    );
    EXPECT_EQ(store.FinishBackground({.task = store.ReserveIds(1)}).error().code, Code::kNotFound);
    EXPECT_THAT(EventsOf(open), SizeIs(4));
}

TEST_P(Background, AFailureFollowsTheRetryPolicy) {
    Lease lease = MakeClaimed({.retry = Fixed(2, 10min)});
    SettleAs(lease, Kind::kBackground);
    BackgroundFinish failed{
        .task = lease.task,
        .token = lease.token,
        .actor = "printer",
        .success = false,
        .error = Failure()};
    Result<State> done = store.FinishBackground(failed);
    ASSERT_TRUE(done);
    EXPECT_EQ(*done, State::kError);
    TaskRecord task = Get(lease.task);
    EXPECT_EQ(task.state, State::kError);
    EXPECT_EQ(task.error, Failure());
    EXPECT_TRUE(Near(task.due_at, store.Now() + 10min));
    EXPECT_EQ(task.expires_at, std::nullopt);
    Advance(11min);
    Lease second = ClaimOne();
    EXPECT_EQ(second.attempt, 2);
    SettleAs(second, Kind::kBackground);
    failed.token = second.token;
    EXPECT_EQ(store.FinishBackground(failed).value(), State::kDead);
    EXPECT_THAT(Get(lease.task).reason, HasSubstr("attempts exhausted"));
}

TEST_P(Background, AFailureThatIsNotRetryableIsFinal) {
    Lease lease = MakeClaimed();
    SettleAs(lease, Kind::kBackground);
    Result<State> done = store.FinishBackground(
        {.task = lease.task, .token = lease.token, .success = false, .error = Failure(false)}
    );
    EXPECT_EQ(done.value(), State::kDead);
    EXPECT_EQ(Get(lease.task).error, Failure(false));
}

TEST_P(Background, ATimeoutOpensItAgainWhileAttemptsRemain) {
    Lease lease = MakeClaimed({.retry = Fixed(2, 1h)});
    SettleAs(lease, Kind::kBackground, 10min);
    Advance(9min);
    EXPECT_THAT(ReclaimAll().tasks, IsEmpty());
    Advance(2min);
    ReclaimReply reply = ReclaimAll();
    ASSERT_THAT(reply.tasks, SizeIs(1));
    EXPECT_EQ(reply.tasks[0].task, lease.task);
    EXPECT_EQ(reply.tasks[0].to, State::kOpen);
    EXPECT_FALSE(reply.tasks[0].suspect);
    EXPECT_EQ(AuditOf(lease.task).back().event, Event::kBackgroundTimeout);
    EXPECT_EQ(AuditOf(lease.task).back().actor, "sweeper");
    EXPECT_EQ(Get(lease.task).expires_at, std::nullopt);

    Lease second = ClaimOne();
    EXPECT_EQ(second.attempt, 2);
    SettleAs(second, Kind::kBackground, 10min);
    Advance(11min);
    reply = ReclaimAll();
    ASSERT_THAT(reply.tasks, SizeIs(1));
    EXPECT_EQ(reply.tasks[0].to, State::kDead);
    EXPECT_EQ(AuditOf(lease.task).back().event, Event::kFailFinal);
    EXPECT_NE(Get(lease.task).reason, "");
}

TEST_P(Background, WithoutATimeoutItWaitsForever) {
    Lease lease = MakeClaimed();
    SettleAs(lease, Kind::kBackground);
    EXPECT_EQ(Get(lease.task).expires_at, std::nullopt);
    Advance(24h * 60);
    EXPECT_THAT(ReclaimAll().tasks, IsEmpty());
    EXPECT_EQ(StateOf(lease.task), State::kBackground);
    EXPECT_TRUE(store.FinishBackground({.task = lease.task, .token = lease.token}));
}

}  // namespace
}  // namespace stint::conformance
