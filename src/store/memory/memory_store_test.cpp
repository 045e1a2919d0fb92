// What only the memory store has: its commit log and its planted bugs. Everything else is the
// conformance suite's.
#include "store/memory/memory_store.h"

#include <gtest/gtest.h>

#include "base/planted_bug.h"
#include "base/test_point.h"

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using base::Bug;

class MemoryStoreTest : public testing::Test {
protected:
    ~MemoryStoreTest() override { Plant(Bug::kNone); }

    static void Plant([[maybe_unused]] Bug bug) {
#ifdef STINT_PLANTED_BUGS
        base::PlantBug(bug);
#endif
    }
    static bool CanPlant() {
        Plant(Bug::kNoFence);
        bool can = base::Planted(Bug::kNoFence);
        Plant(Bug::kNone);
        return can;
    }

    TaskId Submit(NewTask task = {}) {
        task.type = "t";
        return store.Submit({&task, 1})[0].id;
    }
    SessionId Open(Duration lease = 30s) {
        NewSession session{.id = random.MakeId<SessionId>(), .hostname = "here", .lease = lease};
        store.OpenSession(session);
        return session.id;
    }
    std::vector<Lease> Claim(SessionId session, bool suspect = false) {
        return store.Claim({.session = session, .limit = 10, .types = {"t"}, .suspect = suspect})
            .leases;
    }
    SettleReply Settle(const Lease& lease, Settlement::Kind kind, SessionId session = {}) {
        Settlement settlement{
            .task = lease.task, .token = lease.token, .session = session, .kind = kind};
        return store.Settle({&settlement, 1})[0];
    }
    State StateOf(TaskId task) {
        return store.Get(task).value().state;
    }

    base::ManualClock clock;
    base::SeededRandom random{1};
    MemoryStore store{clock, random};
};

TEST_F(MemoryStoreTest, ListenerHearsEachTransitionInCommitOrderWithItsToken) {
    std::vector<CommittedTransition> heard;
    store.SetCommitListener([&](const CommittedTransition& t) { heard.push_back(t); });
    TaskId task = Submit();
    Lease lease = Claim(Open()).at(0);
    Settle(lease, Settlement::Kind::kRetry);
    lease = Claim(Open()).at(0);
    std::vector<Event> events;
    for (const auto& t : heard) events.push_back(t.entry.event);
    EXPECT_EQ(
        events,
        (std::vector{
            Event::kSubmit, Event::kClaim, Event::kFailRetryable, Event::kRetryDue, Event::kClaim})
    );
    EXPECT_EQ(heard.back().token, lease.token);
    EXPECT_EQ(heard.back().entry.task, task);
    EXPECT_TRUE(heard.back().audited);
}

TEST_F(MemoryStoreTest, ListenerHearsNothingOfAWriteThatFailed) {
    int heard = 0;
    store.SetCommitListener([&](const CommittedTransition&) { ++heard; });
    NewTask task{.type = "t"};
    EXPECT_FALSE(store.Write([&](Transaction& tx) -> Result<void> {
        tx.Submit({&task, 1});
        return Error{Code::kFailed, "no"};
    }));
    EXPECT_THROW(
        (void)store.Write([&](Transaction& tx) -> Result<void> {
            tx.Submit({&task, 1});
            throw std::runtime_error("no");
        }),
        std::runtime_error
    );
    EXPECT_EQ(heard, 0);
    EXPECT_TRUE(store.List({}).tasks.empty());
    EXPECT_TRUE(store.Write([&](Transaction& tx) -> Result<void> {
        EXPECT_EQ(heard, 0);  // not before the commit
        tx.Submit({&task, 1});
        return {};
    }));
    EXPECT_EQ(heard, 1);
}

// ---- each planted bug is there when planted; the conformance suite shows that it is not otherwise
// ----

class PlantedBugs : public MemoryStoreTest {
protected:
    void SetUp() override {
        if (!CanPlant()) GTEST_SKIP() << "this build has no planted bugs";
    }
    // A lease that was taken away, and whose task somebody else holds now.
    Lease StaleLease() {
        SessionId old = Open(1s);
        Submit();
        Lease stale = Claim(old).at(0);
        clock.Advance(2s);
        store.Reclaim({});
        clock.Advance(1min);
        holder_ = Open(1h);
        EXPECT_EQ(Claim(holder_, true).size(), 1u);
        return stale;
    }
    SessionId holder_;
};

TEST_F(PlantedBugs, NoFenceAcceptsAStaleToken) {
    Lease stale = StaleLease();
    Plant(Bug::kNoFence);
    EXPECT_EQ(Settle(stale, Settlement::Kind::kComplete).kind, SettleReply::Kind::kAccepted);
}

TEST_F(PlantedBugs, OwnerFenceAcceptsAStaleTokenOfTheSameSession) {
    Lease stale = StaleLease();
    Plant(Bug::kOwnerFence);
    EXPECT_EQ(Settle(stale, Settlement::Kind::kComplete, Open()).kind, SettleReply::Kind::kLost);
    EXPECT_EQ(
        Settle(stale, Settlement::Kind::kComplete, holder_).kind, SettleReply::Kind::kAccepted
    );
}

TEST_F(PlantedBugs, UnguardedReclaimTakesBackAFinishedTask) {
    TaskId task = Submit();
    Lease lease = Claim(Open(1s)).at(0);
    clock.Advance(2s);
    Plant(Bug::kUnguardedReclaim);
    base::SetTestPointListener([&](std::string_view name) {
        if (name != "memory.reclaim_between") return;
        EXPECT_EQ(Settle(lease, Settlement::Kind::kComplete).kind, SettleReply::Kind::kAccepted);
    });
    store.Reclaim({});
    base::SetTestPointListener({});
    EXPECT_EQ(StateOf(task), State::kOpen);
}

TEST_F(PlantedBugs, CrashNotCountedNeverQuarantines) {
    Plant(Bug::kCrashNotCounted);
    TaskId task = Submit();
    Claim(Open(1s));
    for (int i = 0; i < limits::kMaxCrashes + 2; ++i) {
        clock.Advance(1min);
        store.Reclaim({});
        clock.Advance(1min);
        ASSERT_EQ(Claim(Open(1s), true).size(), 1u);
    }
    EXPECT_EQ(StateOf(task), State::kInProgress);
}

TEST_F(PlantedBugs, DrainBurnsAttempt) {
    Plant(Bug::kDrainBurnsAttempt);
    TaskId task = Submit();
    Settle(Claim(Open()).at(0), Settlement::Kind::kRelease);
    EXPECT_EQ(store.Get(task)->attempt, 1);
}

TEST_F(PlantedBugs, ClaimIgnoresDue) {
    Submit({.delay = 1h});
    Plant(Bug::kClaimIgnoresDue);
    EXPECT_EQ(Claim(Open()).size(), 1u);
}

TEST_F(PlantedBugs, ClaimIgnoresSession) {
    Submit();
    SessionId session = Open(1s);
    clock.Advance(2s);
    Plant(Bug::kClaimIgnoresSession);
    EXPECT_EQ(Claim(session).size(), 1u);
}

TEST_F(PlantedBugs, CancelForgottenStartsAgain) {
    TaskId task = Submit();
    Lease lease = Claim(Open()).at(0);
    store.Cancel({&task, 1}, "ann", "");
    Plant(Bug::kCancelForgotten);
    EXPECT_EQ(Settle(lease, Settlement::Kind::kRetry).state, State::kError);
    EXPECT_EQ(Claim(Open()).size(), 1u);
}

TEST_F(PlantedBugs, IdempotencyWithoutHashReturnsTheOldTask) {
    TaskId task = Submit({.input = "1", .idempotency_key = "k"});
    Plant(Bug::kIdempotencyWithoutHash);
    EXPECT_EQ(Submit({.input = "2", .idempotency_key = "k"}), task);
}

TEST_F(PlantedBugs, UniqueKeyNotReleasedBlocksTheNext) {
    Plant(Bug::kUniqueKeyNotReleased);
    TaskId task = Submit({.unique_key = "k"});
    Settle(Claim(Open()).at(0), Settlement::Kind::kComplete);
    EXPECT_EQ(Submit({.unique_key = "k"}), task);
}

TEST_F(PlantedBugs, AuditOutsideTransactionLosesEntriesAndCheckSees) {
    Plant(Bug::kAuditOutsideTransaction);
    int lost = 0;
    store.SetCommitListener([&](const CommittedTransition& t) { lost += t.audited ? 0 : 1; });
    for (int i = 0; i < 200; ++i) Submit();
    EXPECT_GT(lost, 0);
    EXPECT_LT(lost, 200);
    EXPECT_FALSE(store.Check().front().ok);
}

TEST_F(PlantedBugs, ReclaimLosesTask) {
    TaskId task = Submit();
    Claim(Open(1s));
    clock.Advance(2s);
    Plant(Bug::kReclaimLosesTask);
    store.Reclaim({});
    clock.Advance(24h);
    EXPECT_EQ(StateOf(task), State::kOpen);
    EXPECT_TRUE(Claim(Open(), true).empty());
    EXPECT_TRUE(Claim(Open(), false).empty());
}

}  // namespace
}  // namespace stint::store
