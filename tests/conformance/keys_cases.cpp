// Keys. Idempotency: per tenant, for limits::kIdempotencyRetention, the same key and the same
// request stand for the same task whatever became of it; another request with the key is a
// conflict. Unique: at most one live task per (tenant, type, key). Debounce and throttle: per
// (tenant, type, key). Whatever answer an idempotency key got first, it gets again (I8).
#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = SubmitReply::Kind;

CONFORMANCE_SUITE(Keys);

TEST_P(Keys, SameIdempotencyKeyAndRequestIsTheSameTask) {
    NewTask ask{.input = "1", .idempotency_key = "k"};
    TaskId id = Make(ask);
    SubmitReply again = Submit(ask);
    EXPECT_EQ(again.kind, Kind::kExisting);
    EXPECT_TRUE(again.accepted());
    EXPECT_EQ(again.id, id);
    EXPECT_THAT(ListAll(), SizeIs(1));
    EXPECT_THAT(EventsOf(id), ElementsAre(Event::kSubmit));
}

TEST_P(Keys, SameIdempotencyKeyWithAnotherRequestIsAConflictAndStoresNothing) {
    TaskId id = Make({.input = "1", .idempotency_key = "k"});
    SubmitReply other = Submit({.input = "2", .idempotency_key = "k"});
    EXPECT_EQ(other.kind, Kind::kConflict);
    EXPECT_FALSE(other.accepted());
    EXPECT_EQ(other.id, id);
    EXPECT_THAT(other.message, HasSubstr("\"k\""));
    EXPECT_THAT(other.message, HasSubstr(id.ToString()));
    EXPECT_EQ(Submit({.input = "1", .priority = 3, .idempotency_key = "k"}).kind, Kind::kConflict);
    EXPECT_EQ(Get(id).input, "1");
    EXPECT_THAT(ListAll(), SizeIs(1));
}

TEST_P(Keys, IdempotencyIgnoresTheActorAndTheReservedId) {
    TaskId id = Make({.idempotency_key = "k", .actor = "ann"});
    EXPECT_EQ(Submit({.idempotency_key = "k", .actor = "bob"}).id, id);
    EXPECT_EQ(Submit({.id = store.ReserveIds(1), .idempotency_key = "k"}).id, id);
    EXPECT_THAT(ListAll(), SizeIs(1));
}

TEST_P(Keys, IdempotencyKeysBelongToTheirTenant) {
    TaskId one = Make({.tenant = TenantId(1), .idempotency_key = "k"});
    TaskId two = Make({.tenant = TenantId(2), .idempotency_key = "k"});
    EXPECT_NE(one, two);
    EXPECT_EQ(store.FindByIdempotencyKey(TenantId(1), "k"), one);
    EXPECT_EQ(store.FindByIdempotencyKey(TenantId(2), "k"), two);
    EXPECT_EQ(store.FindByIdempotencyKey(TenantId(3), "k"), std::nullopt);
    EXPECT_EQ(store.FindByIdempotencyKey(TenantId(1), "K"), std::nullopt);
}

TEST_P(Keys, IdempotencyHoldsWithinOneBatch) {
    std::vector<NewTask> batch = {
        {.type = "t", .input = "1", .idempotency_key = "k"},
        {.type = "t", .input = "1", .idempotency_key = "k"},
        {.type = "t", .input = "2", .idempotency_key = "k"},
    };
    std::vector<SubmitReply> replies = store.Submit(batch);
    EXPECT_EQ(replies[0].kind, Kind::kCreated);
    EXPECT_EQ(replies[1].kind, Kind::kExisting);
    EXPECT_EQ(replies[1].id, replies[0].id);
    EXPECT_EQ(replies[2].kind, Kind::kConflict);
}

TEST_P(Keys, IdempotencyOutlivesTheTask) {
    NewTask ask{.idempotency_key = "k"};
    TaskId id = Make(ask);
    Complete(ClaimOne());
    EXPECT_EQ(Submit(ask).id, id);
    EXPECT_EQ(Submit(ask).kind, Kind::kExisting);
    EXPECT_EQ(store.FindByIdempotencyKey(kDefaultTenant, "k"), id);
}

TEST_P(Keys, IdempotencyEndsAfterItsRetention) {
    NewTask ask{.input = "1", .idempotency_key = "k"};
    TaskId id = Make(ask);
    Advance(limits::kIdempotencyRetention - 1h);
    EXPECT_EQ(Submit(ask).id, id);
    Advance(2h);
    EXPECT_EQ(store.FindByIdempotencyKey(kDefaultTenant, "k"), std::nullopt);
    SubmitReply reply = Submit({.input = "2", .idempotency_key = "k"});
    EXPECT_EQ(reply.kind, Kind::kCreated);
    EXPECT_EQ(store.FindByIdempotencyKey(kDefaultTenant, "k"), reply.id);
}

TEST_P(Keys, UniqueReturnsTheLiveTaskInEveryLiveState) {
    NewTask ask{.input = "1", .retry = Fixed(5, 1h), .unique_key = "k"};
    NewTask again = ask;
    again.input = "2";
    TaskId id = Make(ask);
    auto expect_existing = [&] {
        SubmitReply reply = Submit(again);
        EXPECT_EQ(reply.kind, Kind::kExisting);
        EXPECT_EQ(reply.id, id);
    };
    expect_existing();
    Lease lease = ClaimOne();
    expect_existing();
    SettleAs(lease, Settlement::Kind::kRetry, 1min);
    expect_existing();
    Advance(2min);
    SettleAs(ClaimOne(), Settlement::Kind::kBackground);
    EXPECT_EQ(StateOf(id), State::kBackground);
    expect_existing();
    EXPECT_EQ(Get(id).input, "1");
    EXPECT_THAT(ListAll(), SizeIs(1));
}

TEST_P(Keys, UniqueIsFreedByEveryTerminalState) {
    NewTask ask{.unique_key = "k"};
    std::vector<TaskId> ids;
    for (auto kind :
         {Settlement::Kind::kComplete, Settlement::Kind::kDead, Settlement::Kind::kCancelled}) {
        ids.push_back(Make(ask));
        SettleAs(ClaimOne(), kind);
        EXPECT_TRUE(IsTerminal(StateOf(ids.back())));
    }
    ids.push_back(Make(ask));
    Cancel(ids.back());
    ids.push_back(Make(ask));
    EXPECT_THAT(ListAll(), SizeIs(5));
}

TEST_P(Keys, UniqueWithPolicyErrorNamesTheLiveTask) {
    TaskId id = Make({.unique_key = "k"});
    SubmitReply reply = Submit({.unique_key = "k", .unique_policy = UniquePolicy::kError});
    EXPECT_EQ(reply.kind, Kind::kConflict);
    EXPECT_EQ(reply.id, id);
    EXPECT_THAT(reply.message, HasSubstr(id.ToString()));
}

TEST_P(Keys, ReplaceGivesAWaitingTaskTheNewRequest) {
    TaskId id = Make({.input = "1", .queue = "a", .delay = 1h, .tags = {"old"}, .unique_key = "k"});
    NewTask ask{
        .input = "2",
        .queue = "b",
        .priority = 9,
        .retry = Fixed(3, 1min),
        .timeout = 30s,
        .tags = {"new"},
        .unique_key = "k",
        .unique_policy = UniquePolicy::kReplaceIfNotStarted,
        .actor = "ann",
    };
    SubmitReply reply = Submit(ask);
    EXPECT_EQ(reply.kind, Kind::kReplaced);
    EXPECT_TRUE(reply.accepted());
    EXPECT_EQ(reply.id, id);
    EXPECT_EQ(reply.queue, "b");
    EXPECT_TRUE(reply.due_now);
    TaskRecord task = Get(id);
    EXPECT_EQ(task.input, "2");
    EXPECT_EQ(task.queue, "b");
    EXPECT_EQ(task.priority, 9);
    EXPECT_EQ(task.retry, Fixed(3, 1min));
    EXPECT_EQ(task.max_attempts, 3);
    EXPECT_EQ(task.timeout, 30s);
    EXPECT_THAT(task.tags, ElementsAre("new"));
    EXPECT_THAT(EventsOf(id), ElementsAre(Event::kSubmit, Event::kEdit));
    EXPECT_EQ(AuditOf(id)[1].actor, "ann");
    EXPECT_EQ(ClaimOne({.queues = {"b"}}).input, "2");
}

TEST_P(Keys, ReplaceLeavesAStartedTaskAlone) {
    Lease lease = MakeClaimed({.input = "1", .unique_key = "k"});
    NewTask ask{
        .input = "2", .unique_key = "k", .unique_policy = UniquePolicy::kReplaceIfNotStarted};
    SubmitReply reply = Submit(ask);
    EXPECT_EQ(reply.kind, Kind::kExisting);
    EXPECT_EQ(reply.id, lease.task);
    EXPECT_EQ(Get(lease.task).input, "1");
    Complete(lease);
    EXPECT_EQ(Submit(ask).kind, Kind::kCreated);
}

TEST_P(Keys, ReplaceTakesATaskThatWaitsForItsNextTry) {
    Lease lease = MakeClaimed({.input = "1", .unique_key = "k"});
    SettleAs(lease, Settlement::Kind::kRetry, 1h);
    SubmitReply reply = Submit(
        {.input = "2", .unique_key = "k", .unique_policy = UniquePolicy::kReplaceIfNotStarted}
    );
    EXPECT_EQ(reply.kind, Kind::kReplaced);
    EXPECT_EQ(StateOf(lease.task), State::kError);
    Lease next = ClaimOne();
    EXPECT_EQ(next.task, lease.task);
    EXPECT_EQ(next.input, "2");
    EXPECT_EQ(next.attempt, 2);
}

TEST_P(Keys, UniqueKeysBelongToTypeAndTenant) {
    TaskId id = Make({.type = "t", .unique_key = "k"});
    Make({.type = "u", .unique_key = "k"});
    Make({.tenant = TenantId(2), .type = "t", .unique_key = "k"});
    Make({.type = "t", .unique_key = "K"});
    Make({.type = "t"});
    EXPECT_EQ(Submit({.type = "t", .unique_key = "k"}).id, id);
}

TEST_P(Keys, UniqueHoldsWithinOneBatch) {
    std::vector<NewTask> batch(3, NewTask{.type = "t", .unique_key = "k"});
    std::vector<SubmitReply> replies = store.Submit(batch);
    EXPECT_EQ(replies[0].kind, Kind::kCreated);
    EXPECT_EQ(replies[1].kind, Kind::kExisting);
    EXPECT_EQ(replies[2].id, replies[0].id);
}

TEST_P(Keys, DebounceMakesABurstOneTaskWithTheLastInput) {
    NewTask ask{.input = "1", .debounce = Debounce{"k", 10min, {}}};
    SubmitReply first = Submit(ask);
    EXPECT_EQ(first.kind, Kind::kCreated);
    EXPECT_FALSE(first.due_now);
    Advance(9min);
    EXPECT_THAT(Claim().leases, IsEmpty());
    ask.input = "2";
    SubmitReply second = Submit(ask);
    EXPECT_EQ(second.kind, Kind::kReplaced);
    EXPECT_EQ(second.id, first.id);
    EXPECT_TRUE(Near(Get(first.id).due_at, store.Now() + 10min));
    Advance(9min);
    EXPECT_THAT(Claim().leases, IsEmpty());
    Advance(2min);
    EXPECT_EQ(ClaimOne().input, "2");
    EXPECT_THAT(ListAll(), SizeIs(1));
}

TEST_P(Keys, DebounceNeverWaitsPastItsBound) {
    NewTask ask{.debounce = Debounce{"k", 10min, 25min}};
    TaskId id = Make(ask);
    Time created = Get(id).created_at;
    for (int i = 0; i < 2; ++i) {
        Advance(9min);
        EXPECT_EQ(Submit(ask).id, id);
    }
    EXPECT_TRUE(Near(Get(id).due_at, created + 25min));
    Advance(8min);
    EXPECT_EQ(ClaimOne().task, id);
}

TEST_P(Keys, DebounceStartsAnewOnceTheTaskHasStarted) {
    NewTask ask{.debounce = Debounce{"k", 1min, {}}};
    TaskId first = Make(ask);
    Advance(2min);
    Lease lease = ClaimOne();
    TaskId second = Make(ask);
    EXPECT_NE(first, second);
    Complete(lease);
    EXPECT_EQ(Submit(ask).id, second);
}

TEST_P(Keys, ThrottleAnswersWithTheAcceptedTaskUntilThePeriodIsOver) {
    NewTask ask{.input = "1", .throttle = Throttle{"k", 10min}};
    TaskId first = Make(ask);
    ask.input = "2";
    SubmitReply second = Submit(ask);
    EXPECT_EQ(second.kind, Kind::kThrottled);
    EXPECT_TRUE(second.accepted());
    EXPECT_EQ(second.id, first);
    Complete(ClaimOne());
    EXPECT_EQ(Submit(ask).kind, Kind::kThrottled);
    Advance(11min);
    SubmitReply third = Submit(ask);
    EXPECT_EQ(third.kind, Kind::kCreated);
    // Counted from the accepted one.
    EXPECT_EQ(Submit(ask).id, third.id);
    EXPECT_EQ(Get(third.id).input, "2");
}

TEST_P(Keys, ThrottleIsPerTenantTypeAndKey) {
    Make({.throttle = Throttle{"k", 1h}});
    Make({.throttle = Throttle{"j", 1h}});
    Make({.type = "u", .throttle = Throttle{"k", 1h}});
    Make({.tenant = TenantId(2), .throttle = Throttle{"k", 1h}});
    EXPECT_EQ(Submit({.throttle = Throttle{"k", 1h}}).kind, Kind::kThrottled);
}

TEST_P(Keys, AnIdempotencyKeyGetsTheSameAnswerEvenWhereAnotherKeyAnsweredFirst) {
    TaskId throttled = Make({.throttle = Throttle{"k", 10min}});
    NewTask ask{.idempotency_key = "i", .throttle = Throttle{"k", 10min}};
    EXPECT_EQ(Submit(ask).id, throttled);
    Advance(11min);
    EXPECT_EQ(Submit(ask).id, throttled);
    EXPECT_EQ(store.FindByIdempotencyKey(kDefaultTenant, "i"), throttled);

    TaskId unique = Make({.type = "u", .unique_key = "k"});
    NewTask other{.type = "u", .idempotency_key = "j", .unique_key = "k"};
    EXPECT_EQ(Submit(other).id, unique);
    Complete(ClaimOne({.types = {"u"}}));
    EXPECT_EQ(Submit(other).id, unique);
}

TEST_P(Keys, RefusedRequestsLeaveNoKeysBehind) {
    Make({.unique_key = "k"});
    NewTask refused{
        .idempotency_key = "i", .unique_key = "k", .unique_policy = UniquePolicy::kError};
    EXPECT_EQ(Submit(refused).kind, Kind::kConflict);
    EXPECT_EQ(store.FindByIdempotencyKey(kDefaultTenant, "i"), std::nullopt);
    Complete(ClaimOne());
    EXPECT_EQ(Submit(refused).kind, Kind::kCreated);
}

TEST_P(Keys, AnOperatorCannotBringBackATaskWhoseKeyStandsForAnother) {
    TaskId dead = Make({.unique_key = "k"});
    SettleAs(ClaimOne(), Settlement::Kind::kDead);
    TaskId live = Make({.unique_key = "k"});
    RetryReply reply = Retry(dead);
    EXPECT_EQ(reply.kind, RetryReply::Kind::kRefused);
    EXPECT_EQ(reply.state, State::kDead);
    Cancel(live);
    EXPECT_EQ(Retry(dead).kind, RetryReply::Kind::kRequeued);
    EXPECT_EQ(Submit({.unique_key = "k"}).id, dead);
}

}  // namespace
}  // namespace stint::conformance
