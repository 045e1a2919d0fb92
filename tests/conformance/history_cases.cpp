// The audit log and the attempts. Exactly one entry per transition, in commit order within a task.
#include <functional>
#include <set>

#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

CONFORMANCE_SUITE(History);

TEST_P(History, OneEntryPerTransitionInOrder) {
    Lease lease = MakeClaimed({.retry = Fixed(9, 0ms)});
    SettleAs(lease, Kind::kRetry);
    SettleAs(ClaimOne(), Kind::kSnooze);
    SettleAs(ClaimOne(), Kind::kRelease);
    ASSERT_TRUE(store.Edit(lease.task, {.priority = 3}, "ann"));
    SettleAs(ClaimOne(), Kind::kDead);
    Retry(lease.task);
    Complete(ClaimOne());
    EXPECT_THAT(
        EventsOf(lease.task),
        ElementsAre(
            Event::kSubmit,
            Event::kClaim,
            Event::kFailRetryable,
            Event::kRetryDue,
            Event::kClaim,
            Event::kSnooze,
            Event::kClaim,
            Event::kRelease,
            Event::kEdit,
            Event::kClaim,
            Event::kFailFinal,
            Event::kOperatorRetry,
            Event::kClaim,
            Event::kComplete
        )
    );
    std::vector<int> attempts;
    for (const AuditEntry& entry : AuditOf(lease.task)) attempts.push_back(entry.attempt);
    EXPECT_THAT(attempts, ElementsAre(0, 1, 1, 1, 2, 2, 2, 2, 1, 2, 2, 0, 1, 1));
}

TEST_P(History, EntriesArePagedBySeq) {
    Lease lease = MakeClaimed();
    for (int i = 0; i < 5; ++i) {
        SettleAs(lease, Kind::kRelease);
        lease = ClaimOne();
    }
    std::vector<AuditEntry> all = AuditOf(lease.task);
    ASSERT_THAT(all, SizeIs(12));
    std::vector<AuditEntry> paged;
    for (std::int64_t after = 0;;) {
        std::vector<AuditEntry> page =
            store.Audit({.task = lease.task, .after = after, .limit = 5});
        if (page.empty()) break;
        EXPECT_LE(page.size(), 5u);
        paged.insert(paged.end(), page.begin(), page.end());
        after = page.back().seq;
    }
    ASSERT_EQ(paged.size(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(paged[i].seq, all[i].seq);
}

TEST_P(History, TheLogOfAllTasksHasEachEntryOnce) {
    MakeMany(5);
    for (const Lease& lease : ClaimMany(3)) Complete(lease);
    std::vector<AuditEntry> all;
    for (std::int64_t after = 0;;) {
        std::vector<AuditEntry> page = store.Audit({.after = after, .limit = 4});
        if (page.empty()) break;
        all.insert(all.end(), page.begin(), page.end());
        EXPECT_GT(page.back().seq, after);
        after = page.back().seq;
    }
    EXPECT_THAT(all, SizeIs(5 + 3 + 3));
    std::set<std::int64_t> seqs;
    for (const AuditEntry& entry : all) seqs.insert(entry.seq);
    EXPECT_EQ(seqs.size(), all.size());
}

TEST_P(History, NobodyHasNoHistory) {
    TaskId nobody = store.ReserveIds(1);
    EXPECT_THAT(AuditOf(nobody), IsEmpty());
    EXPECT_THAT(store.Attempts(nobody), IsEmpty());
    TaskId open = Make();
    EXPECT_THAT(store.Attempts(open), IsEmpty());
}

TEST_P(History, EntriesHaveTheStoresTime) {
    TaskId id = Make();
    Advance(1h);
    Lease lease = ClaimOne();
    Advance(1h);
    Complete(lease);
    std::vector<AuditEntry> audit = AuditOf(id);
    ASSERT_THAT(audit, SizeIs(3));
    EXPECT_TRUE(Near(audit[1].at, audit[0].at + 1h));
    EXPECT_TRUE(Near(audit[2].at, audit[0].at + 2h));
    std::vector<AttemptRecord> attempts = store.Attempts(id);
    ASSERT_THAT(attempts, SizeIs(1));
    EXPECT_TRUE(Near(attempts[0].started_at, audit[0].at + 1h));
    EXPECT_TRUE(Near(attempts[0].finished_at.value(), audit[0].at + 2h));
    EXPECT_TRUE(Near(Get(id).updated_at, audit[0].at + 2h));
}

// Every transition is a change: whoever polls for changes must see each.
TEST_P(History, EveryTransitionMovesTheTimeOfTheLastChange) {
    Lease lease;
    TaskId id;
    auto moves = [&](const char* what, const std::function<void()>& change) {
        SCOPED_TRACE(what);
        std::size_t entries = id.valid() ? AuditOf(id).size() : 0;
        Advance(1h);
        Time before = store.Now();
        change();
        EXPECT_GT(AuditOf(id).size(), entries);
        EXPECT_GE(Get(id).updated_at, before);
        EXPECT_TRUE(Near(Get(id).updated_at, AuditOf(id).back().at, 1s));
    };
    auto claim = [&] { lease = ClaimOne(); };
    auto settle = [&](Kind kind) { return [&, kind] { SettleAs(lease, kind); }; };
    moves("submit", [&] { id = Make({.retry = Fixed(99, 0ms)}); });
    moves("claim", claim);
    moves("retry", settle(Kind::kRetry));
    moves("claim of a retry", claim);
    moves("snooze", settle(Kind::kSnooze));
    moves("edit", [&] { ASSERT_TRUE(store.Edit(id, {.priority = 3}, "ann")); });
    moves("claim", claim);
    moves("release", settle(Kind::kRelease));
    moves("claim", claim);
    moves("background", settle(Kind::kBackground));
    moves("finished outside", [&] { ASSERT_TRUE(store.FinishBackground({.task = id})); });
    id = {};
    moves("submit of another", [&] { id = Make({.retry = Fixed(99, 0ms)}); });
    moves("claim", claim);
    moves("dead", settle(Kind::kDead));
    moves("operator's retry", [&] { Retry(id); });
    moves("claim", claim);
    moves("crash", [&] { Crash(lease); });
    moves("claim of a suspect", [&] { lease = ClaimSuspect(); });
    moves("retry", settle(Kind::kRetry));
    moves("discard", [&] { Discard(id); });
    moves("operator's retry", [&] { Retry(id); });
    moves("cancel", [&] { Cancel(id); });
}

TEST_P(History, AFinishedTaskKeepsItsWholeHistory) {
    Lease lease = MakeClaimed();
    SettleAs(lease, Kind::kRetry);
    SettleAs(ClaimOne(), Kind::kDead);
    EXPECT_THAT(EventsOf(lease.task), SizeIs(6));
    std::vector<AttemptRecord> attempts = store.Attempts(lease.task);
    ASSERT_THAT(attempts, SizeIs(2));
    EXPECT_EQ(attempts[0].error, Failure());
    EXPECT_EQ(attempts[1].error, Failure(false));
}

TEST_P(History, RefusedRequestsLeaveNoEntries) {
    TaskId id = Make({.unique_key = "k"});
    Submit({.unique_key = "k"});
    Retry(id);
    Discard(id);
    (void)store.FinishBackground({.task = id});
    (void)store.Edit(id, {.priority = 999}, "ann");
    ReclaimAll();
    Housekeep();
    EXPECT_THAT(EventsOf(id), ElementsAre(Event::kSubmit));
}

}  // namespace
}  // namespace stint::conformance
