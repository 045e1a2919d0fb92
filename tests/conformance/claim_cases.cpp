// Claiming. By priority, higher first, then in the order of submission. Skipped are tasks that are
// not due, past their start-by deadline, in a paused queue, of another queue or type, cancelled, or
// suspects; a suspect is taken only by request.suspect, one at a time, to be run alone. A session
// that is not live claims nothing. Each claim has a fresh token; attempt and claim_no grow by one.
// The claim of a task in ERROR records two transitions.
#include <set>

#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

CONFORMANCE_SUITE(Claims);

TEST_P(Claims, ALeaseSaysAllThatAWorkerNeeds) {
    TaskId id = Make(
        {.tenant = TenantId(3),
         .type = "u",
         .input = "[1]",
         .queue = "q",
         .priority = 77,
         .retry = Fixed(4, 1min),
         .timeout = 90s,
         .parent = TaskId(99)}
    );
    SessionId session = OpenSession(1h, "host-b");
    ClaimReply reply = Claim({.session = session, .limit = 5});
    EXPECT_TRUE(reply.session_live);
    ASSERT_THAT(reply.leases, SizeIs(1));
    const Lease& lease = reply.leases[0];
    EXPECT_EQ(lease.task, id);
    EXPECT_TRUE(lease.token.valid());
    EXPECT_EQ(lease.tenant, TenantId(3));
    EXPECT_EQ(lease.parent, TaskId(99));
    EXPECT_EQ(lease.type, "u");
    EXPECT_EQ(lease.queue, "q");
    EXPECT_EQ(lease.priority, 77);
    EXPECT_EQ(lease.input, "[1]");
    EXPECT_EQ(lease.attempt, 1);
    EXPECT_EQ(lease.claim_no, 1);
    EXPECT_EQ(lease.generation, 1);
    EXPECT_EQ(lease.crash_count, 0);
    EXPECT_FALSE(lease.alone);
    EXPECT_EQ(lease.retry, Fixed(4, 1min));
    EXPECT_EQ(lease.timeout, 90s);
    EXPECT_EQ(lease.idempotency_key, "task-" + id.ToString());
    EXPECT_TRUE(Near(lease.claimed_at, store.Now()));

    TaskRecord task = Get(id);
    EXPECT_EQ(task.state, State::kInProgress);
    EXPECT_EQ(task.session, session);
    EXPECT_EQ(task.attempt, 1);
    EXPECT_EQ(task.claim_no, 1);
    EXPECT_EQ(task.claimed_at, lease.claimed_at);
    ASSERT_TRUE(task.expires_at.has_value());
    EXPECT_TRUE(Near(*task.expires_at, store.Now() + 1h));
    std::vector<NodeRecord> nodes = store.Nodes();
    ASSERT_THAT(nodes, SizeIs(1));
    EXPECT_EQ(task.node, nodes[0].id);

    AuditEntry claim = AuditOf(id).back();
    EXPECT_EQ(claim.event, Event::kClaim);
    EXPECT_EQ(claim.session, session);
    EXPECT_EQ(claim.attempt, 1);
    EXPECT_EQ(claim.actor, "worker");
}

TEST_P(Claims, HigherPriorityFirst) {
    TaskId low = Make({.priority = 0});
    TaskId high = Make({.priority = 255});
    TaskId middle = Make();
    std::vector<Lease> leases = ClaimMany(3);
    ASSERT_THAT(leases, SizeIs(3));
    EXPECT_EQ(leases[0].task, high);
    EXPECT_EQ(leases[1].task, middle);
    EXPECT_EQ(leases[2].task, low);
}

TEST_P(Claims, PriorityHoldsAcrossQueuesTypesAndTenants) {
    std::vector<TaskId> expected(12);
    for (int i = 0; i < 12; ++i) {
        int priority = (i * 5) % 12;
        expected[11 - priority] = Make(
            {.tenant = TenantId(1 + i % 3),
             .type = i % 2 == 0 ? "t" : "u",
             .queue = "q" + std::to_string(i % 4),
             .priority = priority}
        );
    }
    std::vector<TaskId> claimed;
    for (int i = 0; i < 4; ++i) {
        for (const Lease& lease : ClaimMany(3)) claimed.push_back(lease.task);
    }
    EXPECT_EQ(claimed, expected);
}

TEST_P(Claims, FirstInFirstOutWithinAPriority) {
    std::vector<TaskId> expected;
    for (int i = 0; i < 10; ++i) expected.push_back(Make());
    std::vector<TaskId> claimed;
    for (int i = 0; i < 10; ++i) claimed.push_back(ClaimOne().task);
    EXPECT_EQ(claimed, expected);
}

TEST_P(Claims, OrderIsOfSubmissionNotOfIds) {
    TaskId first_id = store.ReserveIds(2);
    TaskId second_id(first_id.value() + 1);
    Make({.id = second_id});
    Make({.id = first_id});
    EXPECT_EQ(ClaimOne().task, second_id);
    EXPECT_EQ(ClaimOne().task, first_id);
}

TEST_P(Claims, AtMostTheLimitAndNothingTwice) {
    MakeMany(7);
    std::set<TaskId> tasks;
    std::set<LeaseToken> tokens;
    for (std::size_t expected : {3u, 3u, 1u, 0u}) {
        std::vector<Lease> leases = ClaimMany(3);
        EXPECT_THAT(leases, SizeIs(expected));
        for (const Lease& lease : leases) {
            EXPECT_TRUE(tasks.insert(lease.task).second);
            EXPECT_TRUE(tokens.insert(lease.token).second);
        }
    }
}

TEST_P(Claims, ALimitOfZeroClaimsNothing) {
    Make();
    ClaimReply reply = Claim({.limit = 0});
    EXPECT_TRUE(reply.session_live);
    EXPECT_THAT(reply.leases, IsEmpty());
}

TEST_P(Claims, OnlyHandledTypes) {
    TaskId t = Make({.type = "t"});
    TaskId u = Make({.type = "u"});
    EXPECT_THAT(ClaimMany(5, {.types = {"x"}}), IsEmpty());
    EXPECT_EQ(ClaimOne({.types = {"x", "u"}}).task, u);
    EXPECT_EQ(ClaimOne({.types = {"t"}}).task, t);
}

TEST_P(Claims, WithoutTypesThereIsNothingToClaim) {
    Make();
    EXPECT_THAT(store.Claim({.session = Worker(), .limit = 5}).leases, IsEmpty());
}

TEST_P(Claims, OnlyServedQueuesAndNoneNamedIsEveryQueue) {
    TaskId a = Make({.queue = "a"});
    TaskId b = Make({.queue = "b"});
    TaskId c = Make({.queue = "c"});
    EXPECT_THAT(ClaimMany(5, {.queues = {"d"}}), IsEmpty());
    EXPECT_EQ(ClaimOne({.queues = {"c", "d"}}).task, c);
    std::vector<Lease> rest = ClaimMany(5);
    ASSERT_THAT(rest, SizeIs(2));
    EXPECT_EQ(rest[0].task, a);
    EXPECT_EQ(rest[1].task, b);
}

TEST_P(Claims, NothingStartsBeforeItsDueTime) {
    TaskId later = Make({.priority = 255, .delay = 10min});
    TaskId now = Make();
    std::vector<Lease> leases = ClaimMany(5);
    ASSERT_THAT(leases, SizeIs(1));
    EXPECT_EQ(leases[0].task, now);
    Advance(9min);
    EXPECT_THAT(ClaimMany(5), IsEmpty());
    Advance(2min);
    EXPECT_EQ(ClaimOne().task, later);
}

TEST_P(Claims, TheReplySaysWhenTheNextOneIsDue) {
    EXPECT_EQ(Claim().next_due, std::nullopt);
    Make({.delay = 30min});
    Make({.delay = 10min});
    Make({.queue = "other", .delay = 1min});
    Make({.type = "x", .delay = 2min});
    ClaimReply reply = Claim({.limit = 5, .queues = {"default"}});
    ASSERT_TRUE(reply.next_due.has_value());
    EXPECT_LE(*reply.next_due, 10min);
    EXPECT_GT(*reply.next_due, 9min);
}

TEST_P(Claims, ATaskWaitingForItsNextTryIsAmongThoseDueLater) {
    SettleAs(MakeClaimed(), Settlement::Kind::kRetry, 7min);
    ClaimReply reply = Claim();
    EXPECT_THAT(reply.leases, IsEmpty());
    ASSERT_TRUE(reply.next_due.has_value());
    EXPECT_LE(*reply.next_due, 7min);
    EXPECT_GT(*reply.next_due, 6min);
}

TEST_P(Claims, AFailedTaskIsClaimedWhenDueWithTwoTransitions) {
    Lease first = MakeClaimed();
    EXPECT_EQ(SettleAs(first, Settlement::Kind::kRetry, 5min), State::kError);
    EXPECT_THAT(ClaimMany(5), IsEmpty());
    Advance(6min);
    Lease second = ClaimOne();
    EXPECT_EQ(second.task, first.task);
    EXPECT_NE(second.token, first.token);
    EXPECT_EQ(second.attempt, 2);
    EXPECT_EQ(second.claim_no, 2);
    EXPECT_THAT(
        EventsOf(first.task),
        ElementsAre(
            Event::kSubmit, Event::kClaim, Event::kFailRetryable, Event::kRetryDue, Event::kClaim
        )
    );
    std::vector<AuditEntry> audit = AuditOf(first.task);
    EXPECT_EQ(audit[3].from, State::kError);
    EXPECT_EQ(audit[3].to, State::kOpen);
    EXPECT_EQ(audit[3].attempt, 1);
    EXPECT_EQ(audit[4].from, State::kOpen);
    EXPECT_EQ(audit[4].attempt, 2);
}

TEST_P(Claims, NothingStartsAfterItsStartByDeadline) {
    Make({.start_by = store.Now() + 10min});
    TaskId later = Make({.start_by = store.Now() + 60min});
    Advance(11min);
    std::vector<Lease> leases = ClaimMany(5);
    ASSERT_THAT(leases, SizeIs(1));
    EXPECT_EQ(leases[0].task, later);
}

TEST_P(Claims, APausedQueueGivesNothingUntilItIsResumed) {
    TaskId paused = Make({.queue = "a"});
    TaskId open = Make({.queue = "b"});
    store.SetQueue({.name = "a", .paused = true}, "ann");
    std::vector<Lease> leases = ClaimMany(5);
    ASSERT_THAT(leases, SizeIs(1));
    EXPECT_EQ(leases[0].task, open);
    EXPECT_THAT(ClaimMany(5, {.queues = {"a"}}), IsEmpty());
    store.SetQueue({.name = "a", .paused = false}, "ann");
    EXPECT_EQ(ClaimOne().task, paused);
}

TEST_P(Claims, AnUnknownSessionClaimsNothing) {
    Make();
    ClaimReply reply = Claim({.session = random.MakeId<SessionId>(), .limit = 5});
    EXPECT_FALSE(reply.session_live);
    EXPECT_THAT(reply.leases, IsEmpty());
}

TEST_P(Claims, AnExpiredSessionClaimsNothingEvenBeforeASweep) {
    Make();
    SessionId session = OpenSession(1min);
    Advance(2min);
    ClaimReply reply = Claim({.session = session, .limit = 5});
    EXPECT_FALSE(reply.session_live);
    EXPECT_THAT(reply.leases, IsEmpty());
    ReclaimAll();
    EXPECT_FALSE(Claim({.session = session}).session_live);
}

TEST_P(Claims, AClosedSessionClaimsNothing) {
    Make();
    SessionId session = OpenSession();
    store.CloseSession(session);
    EXPECT_FALSE(Claim({.session = session}).session_live);
}

TEST_P(Claims, TerminalAndRunningTasksAreNotClaimed) {
    for (auto kind :
         {Settlement::Kind::kComplete,
          Settlement::Kind::kDead,
          Settlement::Kind::kCancelled,
          Settlement::Kind::kBackground}) {
        SettleAs(MakeClaimed(), kind);
    }
    MakeClaimed();
    EXPECT_THAT(ClaimMany(5), IsEmpty());
}

TEST_P(Claims, SuspectsAreTakenOneAtATimeAndOnlyOnRequest) {
    MakeMany(3);
    SessionId session = OpenSession(1min);
    EXPECT_THAT(ClaimMany(3, {.session = session}), SizeIs(3));
    TaskId fresh = Make({.priority = 0});
    Advance(2min);
    ReclaimAll();
    Advance(1min);

    ClaimReply ordinary = Claim({.limit = 5});
    ASSERT_THAT(ordinary.leases, SizeIs(1));
    EXPECT_EQ(ordinary.leases[0].task, fresh);
    EXPECT_FALSE(ordinary.leases[0].alone);
    EXPECT_TRUE(Claim({.limit = 5}).suspects_waiting);

    for (int i = 0; i < 3; ++i) {
        ClaimReply alone = Claim({.limit = 5, .suspect = true});
        ASSERT_THAT(alone.leases, SizeIs(1));
        EXPECT_TRUE(alone.leases[0].alone);
        EXPECT_EQ(alone.leases[0].attempt, 2);
        EXPECT_TRUE(store.Attempts(alone.leases[0].task).back().alone);
    }
    EXPECT_THAT(Claim({.limit = 5, .suspect = true}).leases, IsEmpty());
    EXPECT_FALSE(Claim({.limit = 5}).suspects_waiting);
}

TEST_P(Claims, TheSuspectRequestTakesNoOrdinaryTask) {
    Make();
    EXPECT_THAT(Claim({.limit = 5, .suspect = true}).leases, IsEmpty());
    EXPECT_FALSE(Claim({.limit = 0}).suspects_waiting);
}

TEST_P(Claims, SuspectsOfOtherTypesAndQueuesAreNotAnnounced) {
    Crash(MakeClaimed({.type = "u", .queue = "q"}));
    Advance(1min);
    EXPECT_TRUE(Claim({.types = {"u"}}).suspects_waiting);
    EXPECT_FALSE(Claim({.types = {"t"}}).suspects_waiting);
    EXPECT_FALSE(Claim({.queues = {"default"}}).suspects_waiting);
    EXPECT_THAT(Claim({.types = {"t"}, .suspect = true}).leases, IsEmpty());
}

TEST_P(Claims, ALargeBatchIsOneCall) {
    MakeMany(limits::kClaimBatch + 50);
    EXPECT_THAT(ClaimMany(limits::kClaimBatch + 50), SizeIs(limits::kClaimBatch));
    EXPECT_THAT(ClaimMany(limits::kClaimBatch), SizeIs(50));
}

TEST_P(Claims, AnotherHandleSeesTheSameQueue) {
    TaskId first = Make();
    TaskId second = Make();
    std::shared_ptr<Store> other = OpenAgain();
    SessionId session = Worker();
    ClaimReply reply = other->Claim({.session = session, .limit = 1, .types = {"t"}});
    ASSERT_THAT(reply.leases, SizeIs(1));
    EXPECT_EQ(reply.leases[0].task, first);
    EXPECT_EQ(ClaimOne().task, second);
    EXPECT_EQ(Complete(reply.leases[0]), State::kComplete);
    EXPECT_EQ(other->Get(first)->state, State::kComplete);
}

}  // namespace
}  // namespace stint::conformance
