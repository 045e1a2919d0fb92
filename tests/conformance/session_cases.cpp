// Sessions, heartbeats and nodes. A session lives as long as its lease; a renewal moves the lease,
// tells which held tasks are to be cancelled and which are lost, and stores progress under the
// current token. A session whose lease is over is never brought back.
#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

CONFORMANCE_SUITE(Sessions);

TEST_P(Sessions, AnOpenedSessionIsListedWithAllItSaid) {
    NewSession session{
        .id = random.MakeId<SessionId>(),
        .hostname = "host-c",
        .pid = 321,
        .lease = 10min,
        .slots = 16,
        .queues = {"a", "b"},
        .types = {"t", "u"},
        .labels = {"eu", "gpu"},
        .version = "1.2.3",
    };
    NodeId node = store.OpenSession(session);
    std::vector<SessionRecord> sessions = store.Sessions();
    ASSERT_THAT(sessions, SizeIs(1));
    const SessionRecord& record = sessions[0];
    EXPECT_EQ(record.id, session.id);
    EXPECT_EQ(record.node, node);
    EXPECT_EQ(record.hostname, "host-c");
    EXPECT_EQ(record.pid, 321);
    EXPECT_EQ(record.state, SessionState::kLive);
    EXPECT_EQ(record.slots, 16);
    EXPECT_EQ(record.running, 0);
    EXPECT_THAT(record.queues, UnorderedElementsAre("a", "b"));
    EXPECT_THAT(record.types, UnorderedElementsAre("t", "u"));
    EXPECT_THAT(record.labels, UnorderedElementsAre("eu", "gpu"));
    EXPECT_EQ(record.version, "1.2.3");
    EXPECT_TRUE(Near(record.started_at, store.Now()));
    EXPECT_TRUE(Near(record.lease_until, store.Now() + 10min));
}

TEST_P(Sessions, ANodeIsItsHostnameAndKeepsItsId) {
    NodeId a = store.OpenSession({.id = random.MakeId<SessionId>(), .hostname = "a", .lease = 1h});
    NodeId b = store.OpenSession({.id = random.MakeId<SessionId>(), .hostname = "b", .lease = 1h});
    EXPECT_NE(a, b);
    Advance(1h);
    EXPECT_EQ(
        store.OpenSession({.id = random.MakeId<SessionId>(), .hostname = "a", .lease = 1h}), a
    );
    std::vector<NodeRecord> nodes = store.Nodes();
    ASSERT_THAT(nodes, SizeIs(2));
    for (const NodeRecord& node : nodes) {
        EXPECT_TRUE(node.hostname == "a" ? node.id == a : node.id == b);
        EXPECT_TRUE(Near(node.last_seen, store.Now() - (node.hostname == "a" ? 0h : 1h)));
    }
}

TEST_P(Sessions, OpeningAnIdAgainChangesNothing) {
    NewSession session{.id = random.MakeId<SessionId>(), .hostname = "a", .lease = 10min};
    NodeId node = store.OpenSession(session);
    Make();
    Lease lease = ClaimOne({.session = session.id});
    Advance(5min);
    session.hostname = "b";
    EXPECT_EQ(store.OpenSession(session), node);
    EXPECT_TRUE(Near(store.Sessions().at(0).lease_until, store.Now() + 5min));
    Advance(6min);
    store.OpenSession(session);
    EXPECT_FALSE(store.Renew({.session = session.id, .lease = 1h}).live);
    EXPECT_FALSE(Claim({.session = session.id}).session_live);
    EXPECT_THAT(ReclaimAll().expired, ElementsAre(session.id));
    store.OpenSession(session);
    EXPECT_FALSE(store.Renew({.session = session.id, .lease = 1h}).live);
    EXPECT_NE(StateOf(lease.task), State::kInProgress);
}

TEST_P(Sessions, ARenewalMovesTheLeaseAndStoresTheWorkersState) {
    SessionId session = OpenSession(10min);
    Advance(5min);
    RenewReply reply = store.Renew(
        {.session = session,
         .lease = 10min,
         .worker_state = "polling",
         .running = 3,
         .draining = true}
    );
    EXPECT_TRUE(reply.live);
    EXPECT_TRUE(Near(reply.store_time, store.Now()));
    SessionRecord record = store.Sessions().at(0);
    EXPECT_EQ(record.worker_state, "polling");
    EXPECT_EQ(record.running, 3);
    EXPECT_EQ(record.state, SessionState::kDraining);
    EXPECT_TRUE(Near(record.renewed_at, store.Now()));
    EXPECT_TRUE(Near(record.lease_until, store.Now() + 10min));
    EXPECT_TRUE(Near(store.Nodes().at(0).last_seen, store.Now()));
    Advance(9min);
    EXPECT_TRUE(store.Renew({.session = session, .lease = 10min}).live);
    EXPECT_EQ(store.Sessions().at(0).state, SessionState::kLive);
}

TEST_P(Sessions, AnEndedSessionIsNeverBroughtBack) {
    SessionId session = OpenSession(10min);
    Make();
    Lease lease = ClaimOne({.session = session});
    Advance(11min);
    for (int i = 0; i < 2; ++i) {
        RenewReply reply =
            store.Renew({.session = session, .lease = 10min, .held = {{lease.task, lease.token}}});
        EXPECT_FALSE(reply.live);
        EXPECT_THAT(reply.lost, ElementsAre(Held{lease.task, lease.token}));
        ReclaimAll();
    }
    EXPECT_EQ(store.Sessions().at(0).state, SessionState::kExpired);
}

TEST_P(Sessions, AnUnknownOrClosedSessionIsNotLive) {
    EXPECT_FALSE(store.Renew({.session = random.MakeId<SessionId>(), .lease = 1h}).live);
    SessionId session = OpenSession();
    store.CloseSession(session);
    EXPECT_FALSE(store.Renew({.session = session, .lease = 1h}).live);
    EXPECT_EQ(store.Sessions().at(0).state, SessionState::kClosed);
    store.CloseSession(session);
    store.CloseSession(random.MakeId<SessionId>());
    EXPECT_THAT(ReclaimAll().expired, IsEmpty());
}

TEST_P(Sessions, AClosedSessionDoesNotBecomeExpired) {
    SessionId session = OpenSession(1min);
    store.CloseSession(session);
    Advance(10min);
    ReclaimAll();
    EXPECT_EQ(store.Sessions().at(0).state, SessionState::kClosed);
}

TEST_P(Sessions, ARenewalTellsWhichTasksAreLostAndWhichToCancel) {
    MakeMany(4);
    std::vector<Lease> leases = ClaimMany(4);
    ASSERT_THAT(leases, SizeIs(4));
    Cancel(leases[1].task);
    Complete(leases[2]);
    Held stranger{store.ReserveIds(1), random.MakeId<LeaseToken>()};
    Held wrong{leases[3].task, random.MakeId<LeaseToken>()};
    RenewReply reply = store.Renew(
        {.session = Worker(),
         .lease = 1h,
         .held =
             {{leases[0].task, leases[0].token},
              {leases[1].task, leases[1].token},
              {leases[2].task, leases[2].token},
              stranger,
              wrong}}
    );
    EXPECT_TRUE(reply.live);
    EXPECT_THAT(reply.cancel_requested, ElementsAre(Held{leases[1].task, leases[1].token}));
    Held settled{leases[2].task, leases[2].token};
    EXPECT_THAT(reply.lost, UnorderedElementsAre(settled, stranger, wrong));
}

TEST_P(Sessions, ProgressIsStoredUnderTheCurrentTokenOnly) {
    Lease lease = MakeClaimed();
    Progress progress{.step = "copy", .done = 3, .total = 10, .message = "file 3 of 10"};
    store.Renew(
        {.session = Worker(), .lease = 1h, .progress = {{lease.task, lease.token, progress}}}
    );
    EXPECT_EQ(Get(lease.task).progress, progress);
    Progress stale{.step = "other", .done = 9};
    store.Renew(
        {.session = Worker(),
         .lease = 1h,
         .progress = {{lease.task, random.MakeId<LeaseToken>(), stale}}}
    );
    EXPECT_EQ(Get(lease.task).progress, progress);
    Progress open_ended{.step = "scan", .done = 1};
    store.Renew(
        {.session = Worker(), .lease = 1h, .progress = {{lease.task, lease.token, open_ended}}}
    );
    EXPECT_EQ(Get(lease.task).progress, open_ended);
}

TEST_P(Sessions, OfATaskThatWasLostAndClaimedAgainOnlyTheFirstLeaseIsLost) {
    TaskId task = Make();
    SessionId dead = OpenSession(1min);
    Lease first = ClaimOne({.session = dead});
    Advance(2min);
    ReclaimAll();
    Advance(1h);  // more than the delay before the retry
    Lease second = ClaimOne({.suspect = true});
    ASSERT_EQ(second.task, task);
    Cancel(task);
    RenewReply reply = store.Renew(
        {.session = Worker(), .lease = 1h, .held = {{task, first.token}, {task, second.token}}}
    );
    EXPECT_THAT(reply.lost, ElementsAre(Held{task, first.token}));
    EXPECT_THAT(reply.cancel_requested, ElementsAre(Held{task, second.token}));
}

TEST_P(Sessions, ADeadSessionsProgressIsNotStored) {
    SessionId session = OpenSession(1min);
    Make();
    Lease lease = ClaimOne({.session = session});
    Advance(2min);
    store.Renew(
        {.session = session, .lease = 1h, .progress = {{lease.task, lease.token, {.step = "late"}}}}
    );
    EXPECT_EQ(Get(lease.task).progress, std::nullopt);
}

TEST_P(Sessions, TheLeaseOfATaskIsItsSessions) {
    SessionId session = OpenSession(10min);
    Make();
    Lease lease = ClaimOne({.session = session});
    Advance(5min);
    store.Renew({.session = session, .lease = 1h});
    EXPECT_TRUE(Near(Get(lease.task).expires_at.value(), store.Now() + 1h));
}

TEST_P(Sessions, TwoSessionsOfOneHostAreTwoSessions) {
    SessionId dead = OpenSession(1min, "host-a");
    SessionId live = OpenSession(1h, "host-a");
    MakeMany(2);
    Lease lost = ClaimOne({.session = dead});
    Lease kept = ClaimOne({.session = live});
    Advance(2min);
    ReclaimReply reply = ReclaimAll();
    EXPECT_THAT(reply.expired, ElementsAre(dead));
    ASSERT_THAT(reply.tasks, SizeIs(1));
    EXPECT_EQ(reply.tasks[0].task, lost.task);
    EXPECT_EQ(Complete(kept), State::kComplete);
}

}  // namespace
}  // namespace stint::conformance
