// Submitting. A request is validated, then known by a key or an id it had before, then refused if
// its queue is full, then stored. Each member of a batch is answered for itself, in order.
#include <set>

#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = SubmitReply::Kind;

CONFORMANCE_SUITE(Submits);

TEST_P(Submits, APlainTaskGetsTheGlobalDefaults) {
    Time before = store.Now();
    SubmitReply reply = Submit({.type = "t"});
    EXPECT_EQ(reply.kind, Kind::kCreated);
    EXPECT_TRUE(reply.accepted());
    EXPECT_TRUE(reply.id.valid());
    EXPECT_EQ(reply.queue, "default");
    EXPECT_TRUE(reply.due_now);

    TaskRecord task = Get(reply.id);
    EXPECT_EQ(task.id, reply.id);
    EXPECT_EQ(task.tenant, kDefaultTenant);
    EXPECT_EQ(task.type, "t");
    EXPECT_EQ(task.queue, "default");
    EXPECT_EQ(task.state, State::kOpen);
    EXPECT_EQ(task.priority, limits::kPriorityDefault);
    EXPECT_EQ(task.input, "null");
    EXPECT_EQ(task.output, "");
    EXPECT_EQ(task.error, std::nullopt);
    EXPECT_EQ(task.reason, "");
    EXPECT_FALSE(task.warning);
    EXPECT_FALSE(task.type_known);
    EXPECT_FALSE(task.cancel_requested);
    EXPECT_FALSE(task.suspect);
    EXPECT_EQ(task.attempt, 0);
    EXPECT_EQ(task.max_attempts, RetryPolicy{}.max_attempts);
    EXPECT_EQ(task.claim_no, 0);
    EXPECT_EQ(task.generation, 1);
    EXPECT_EQ(task.crash_count, 0);
    EXPECT_EQ(task.retry, RetryPolicy{});
    EXPECT_EQ(task.timeout, 0ms);
    EXPECT_EQ(task.progress, std::nullopt);
    EXPECT_FALSE(task.session.valid());
    EXPECT_TRUE(Near(task.created_at, before));
    EXPECT_EQ(task.due_at, task.created_at);
    EXPECT_EQ(task.claimed_at, std::nullopt);
    EXPECT_EQ(task.finished_at, std::nullopt);
    EXPECT_EQ(task.expires_at, std::nullopt);
    EXPECT_EQ(task.start_by, std::nullopt);
}

TEST_P(Submits, EverythingThatWasAskedIsKept) {
    Time start_by = std::chrono::floor<std::chrono::seconds>(store.Now()) + 2h;
    NewTask ask{
        .tenant = TenantId(7),
        .type = "mail.send",
        .input = R"({"to":"ann"})",
        .queue = "mail/out",
        .priority = 200,
        .retry = Fixed(5, 3min),
        .timeout = 90s,
        .delay = 10min,
        .start_by = start_by,
        .tags = {"a", "customer=12", "grün"},
        .idempotency_key = "order 77",
        .unique_key = "ann",
        .parent = TaskId(123),
        .actor = "user:ann",
    };
    TaskId id = Make(ask);
    TaskRecord task = Get(id);
    EXPECT_EQ(task.tenant, TenantId(7));
    EXPECT_EQ(task.type, "mail.send");
    EXPECT_EQ(task.input, ask.input);
    EXPECT_EQ(task.queue, "mail/out");
    EXPECT_EQ(task.priority, 200);
    EXPECT_EQ(task.retry, *ask.retry);
    EXPECT_EQ(task.max_attempts, 5);
    EXPECT_EQ(task.timeout, 90s);
    EXPECT_TRUE(Near(task.due_at, store.Now() + 10min));
    EXPECT_EQ(task.start_by, start_by);
    EXPECT_THAT(task.tags, UnorderedElementsAre("a", "customer=12", "grün"));
    EXPECT_EQ(task.idempotency_key, "order 77");
    EXPECT_EQ(task.unique_key, "ann");
    EXPECT_EQ(task.parent, TaskId(123));

    std::vector<AuditEntry> audit = AuditOf(id);
    ASSERT_THAT(audit, SizeIs(1));
    EXPECT_EQ(audit[0].from, std::nullopt);
    EXPECT_EQ(audit[0].to, State::kOpen);
    EXPECT_EQ(audit[0].event, Event::kSubmit);
    EXPECT_EQ(audit[0].actor, "user:ann");
    EXPECT_EQ(audit[0].tenant, TenantId(7));
    EXPECT_EQ(audit[0].attempt, 0);
    EXPECT_EQ(audit[0].generation, 1);
    EXPECT_FALSE(audit[0].session.valid());
}

TEST_P(Submits, InputsAreOpaqueBytes) {
    for (const char* input :
         {"{\"b\" : 1,\n  \"a\":\t2, \"a\": 3}",
          "1.0",
          "1e2",
          "\"\\u00e9\"",
          "\"\xC3\xA9\"",
          " [ ] ",
          "\"\"",
          "123456789012345678901234567890",
          "\"'; DROP TABLE task; --\"",
          "\"\\\\ \\\" $1 ? :x\""}) {
        EXPECT_EQ(Get(Make({.input = input})).input, input);
        EXPECT_EQ(ClaimOne().input, input);
    }
}

TEST_P(Submits, AnInputOfTheLargestSizeIsAccepted) {
    std::string input = '"' + std::string(limits::kInput - 2, 'x') + '"';
    EXPECT_EQ(Get(Make({.input = input})).input, input);
    EXPECT_EQ(ClaimOne().input, input);
}

TEST_P(Submits, ReservedIdsAreNeverGivenOutAgain) {
    std::set<std::int64_t> ids;
    for (int round = 0; round < 3; ++round) {
        TaskId first = store.ReserveIds(10);
        ASSERT_TRUE(first.valid());
        for (int i = 0; i < 10; ++i) EXPECT_TRUE(ids.insert(first.value() + i).second);
        EXPECT_TRUE(ids.insert(Make().value()).second);
    }
}

TEST_P(Submits, AReservedIdIsTheTasksId) {
    TaskId first = store.ReserveIds(2);
    TaskId second(first.value() + 1);
    EXPECT_EQ(Make({.id = second}), second);
    EXPECT_EQ(Make({.id = first}), first);
    EXPECT_EQ(Get(first).id, first);
}

TEST_P(Submits, AReservedIdSentAgainIsTheSameTaskWhateverBecameOfIt) {
    NewTask ask{.id = store.ReserveIds(1)};
    Make(ask);
    EXPECT_EQ(Submit(ask).kind, Kind::kExisting);
    EXPECT_EQ(Submit(ask).id, ask.id);
    Lease lease = ClaimOne();
    EXPECT_EQ(Submit(ask).kind, Kind::kExisting);
    Complete(lease);
    EXPECT_EQ(Submit(ask).kind, Kind::kExisting);
    EXPECT_THAT(ListAll(), SizeIs(1));
}

TEST_P(Submits, ABatchIsAnsweredInOrderAndABadMemberFailsAlone) {
    std::vector<NewTask> batch = {
        {.type = "t", .input = "1"},
        {.type = "no spaces please"},
        {.type = "t", .input = "2"},
        {.type = "t", .priority = 300},
        {.type = "t", .input = "{"},
        {.type = "t", .input = "3"},
    };
    std::vector<SubmitReply> replies = store.Submit(batch);
    ASSERT_THAT(replies, SizeIs(6));
    for (int good : {0, 2, 5}) {
        EXPECT_EQ(replies[good].kind, Kind::kCreated);
        EXPECT_EQ(Get(replies[good].id).input, batch[good].input);
    }
    for (int bad : {1, 3, 4}) {
        EXPECT_EQ(replies[bad].kind, Kind::kInvalid);
        EXPECT_FALSE(replies[bad].accepted());
    }
    EXPECT_THAT(replies[1].message, HasSubstr("type is \"no spaces please\""));
    EXPECT_EQ(replies[3].message, "priority is 300; it must be between 0 and 255");
    EXPECT_THAT(replies[4].message, HasSubstr("input is not JSON"));
    EXPECT_THAT(ListAll(), SizeIs(3));
}

TEST_P(Submits, AnEmptyBatchIsNothing) {
    EXPECT_THAT(store.Submit({}), IsEmpty());
    EXPECT_THAT(ListAll(), IsEmpty());
}

TEST_P(Submits, ABatchOverTheLimitIsRefusedAsAWhole) {
    std::vector<NewTask> batch(limits::kSubmitBatch + 1, NewTask{.type = "t"});
    std::vector<SubmitReply> replies = store.Submit(batch);
    ASSERT_EQ(replies.size(), batch.size());
    EXPECT_EQ(replies.front().kind, Kind::kInvalid);
    EXPECT_EQ(replies.back().kind, Kind::kInvalid);
    EXPECT_THAT(ListAll(), IsEmpty());
}

TEST_P(Submits, ManyAtOnceKeepTheirOrder) {
    std::vector<NewTask> batch;
    for (int i = 0; i < 2000; ++i) batch.push_back({.type = "t", .input = std::to_string(i)});
    std::vector<SubmitReply> replies = store.Submit(batch);
    std::set<TaskId> ids;
    for (const SubmitReply& reply : replies) ids.insert(reply.id);
    EXPECT_EQ(ids.size(), batch.size());
    int next = 0;
    while (next < 2000) {
        std::vector<Lease> leases = ClaimMany(500);
        ASSERT_THAT(leases, SizeIs(500));
        std::vector<Settlement> outcomes;
        for (const Lease& lease : leases) {
            EXPECT_EQ(lease.input, std::to_string(next));
            EXPECT_EQ(lease.task, replies[next++].id);
            outcomes.push_back(Outcome(lease, Settlement::Kind::kComplete));
        }
        store.Settle(outcomes);
    }
    auto counts = store.Counts({});
    EXPECT_EQ((counts[{State::kComplete, "default", "t"}]), 2000);
}

TEST_P(Submits, ADelayIsCountedByTheStoresClock) {
    SubmitReply reply = Submit({.delay = 5min});
    EXPECT_FALSE(reply.due_now);
    TaskRecord task = Get(reply.id);
    EXPECT_EQ(task.due_at - task.created_at, 5min);
    EXPECT_EQ(task.state, State::kOpen);
}

TEST_P(Submits, AnInstantIsKeptAsGiven) {
    Time future = std::chrono::floor<std::chrono::seconds>(store.Now()) + 3h + 250us;
    SubmitReply later = Submit({.run_at = future});
    EXPECT_FALSE(later.due_now);
    EXPECT_EQ(Get(later.id).due_at, future);
    SubmitReply past = Submit({.run_at = store.Now() - 1h});
    EXPECT_TRUE(past.due_now);
    EXPECT_EQ(ClaimOne().task, past.id);
}

TEST_P(Submits, TenantsSeeTheirOwn) {
    TaskId one = Make({.tenant = TenantId(1)});
    TaskId two = Make({.tenant = TenantId(2)});
    EXPECT_THAT(Ids(ListAll({.tenant = TenantId(1)})), ElementsAre(one));
    EXPECT_THAT(Ids(ListAll({.tenant = TenantId(2)})), ElementsAre(two));
    std::vector<Lease> leases = ClaimMany(2);
    ASSERT_THAT(leases, SizeIs(2));
    EXPECT_EQ(leases[0].tenant, TenantId(1));
    EXPECT_EQ(leases[1].tenant, TenantId(2));
}

}  // namespace
}  // namespace stint::conformance
