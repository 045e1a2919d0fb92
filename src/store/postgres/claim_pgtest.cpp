// Claims on this store: late commits and marks, claims beside others, what has become due, and what
// an idle one sees by the way.
#include <algorithm>
#include <latch>

#include "model/results.h"
#include "model/schedule.h"
#include "store/postgres/store_suite.h"
#include "store/resources.h"
#include "store/results.h"
#include "store/schedules.h"

namespace stint::store {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// ---- late commits and marks --------------------------------------------------------------------

TEST_F(PostgresStoreTest, ASubmitThatCommitsLateBelowTheMarkIsStillClaimed) {
    options_.rescan_every = std::chrono::milliseconds{50};
    store_ = OpenPostgresStore(options_);
    auto mine = Connect();
    mine->Script("BEGIN");
    NewTask task{.type = "t"};
    TaskId late = store_->Borrow(mine->native()).value()->Submit({&task, 1}).at(0).id;
    std::vector<TaskId> later;
    for (int i = 0; i < 5; ++i) later.push_back(Make());
    EXPECT_THAT(Claim(*store_, 5), SizeIs(5));  // the marks are now above the open submit
    mine->Script("COMMIT");
    Make();
    // The lane is so busy that no claim comes back short: only the time for looking everywhere
    // finds it.
    bool found = false;
    base::Instant deadline = base::SystemClock().Now() + std::chrono::seconds{20};
    while (!found && base::SystemClock().Now() < deadline) {
        Make();
        std::vector<Lease> leases = Claim(*store_);
        ASSERT_THAT(leases, SizeIs(1));
        found = leases.at(0).task == late;
    }
    EXPECT_TRUE(found);
}

// Lanes that are never empty, and it is never time to look everywhere.
class LateCommitTest : public PostgresStoreTest {
protected:
    void SetUp() override {
        PostgresStoreTest::SetUp();
        if (IsSkipped()) return;
        options_.rescan_every = std::chrono::hours{1};
        store_ = OpenPostgresStore(options_);
    }
    // Claims until one of them has it, or for so long. False: none had.
    bool Work(std::chrono::seconds time, std::optional<TaskId> wanted = {}) {
        base::Clock& clock = base::SystemClock();
        for (base::Instant end = clock.Now() + time; clock.Now() < end;) {
            Make();
            Make();
            std::vector<Lease> leases = Claim(*store_, 2);
            EXPECT_THAT(leases, SizeIs(2));
            auto is_wanted = [&](const Lease& lease) { return lease.task == wanted; };
            if (std::ranges::any_of(leases, is_wanted)) return true;
        }
        return false;
    }
    void SubmitsLate() {
        Work(std::chrono::seconds{1});
        auto mine = Connect();
        mine->Script("BEGIN");
        NewTask task{.type = "t"};
        TaskId late = store_->Borrow(mine->native()).value()->Submit({&task, 1}).at(0).id;
        Work(std::chrono::seconds{1});
        mine->Script("COMMIT");
        EXPECT_TRUE(Work(std::chrono::seconds{10}, late));
    }
};

TEST_F(LateCommitTest, OnABusyLaneItIsFoundWithinTenSeconds) {
    SubmitsLate();
}

TEST_F(LateCommitTest, AlsoWhereClaimsNeedAPlan) {
    ResourceChange limit{.name = "type:t", .capacity = 100000};
    ASSERT_TRUE(store_->Resources().Change(limit, "ann").has_value());
    SubmitsLate();
}

TEST_F(LateCommitTest, SoIsWhatAClaimHeldThatWasRolledBack) {
    Work(std::chrono::seconds{1});
    TaskId held = Make();
    auto other = Connect();
    other->Script(
        "BEGIN; DELETE FROM " + schema_->name() + ".ready WHERE task = " + held.ToString()
    );
    Work(std::chrono::seconds{1});
    other->Script("ROLLBACK");
    EXPECT_TRUE(Work(std::chrono::seconds{10}, held));
}

TEST_F(LateCommitTest, AnIdleLaneIsLookedAtAtOnce) {
    Work(std::chrono::seconds{1});
    auto mine = Connect();
    mine->Script("BEGIN");
    NewTask task{.type = "t"};
    TaskId late = store_->Borrow(mine->native()).value()->Submit({&task, 1}).at(0).id;
    Work(std::chrono::seconds{1});
    ASSERT_THAT(Claim(*store_, 2), IsEmpty());
    mine->Script("COMMIT");
    base::Clock& clock = base::SystemClock();
    std::vector<Lease> leases;
    base::Instant end = clock.Now() + std::chrono::seconds{2};
    while (leases.empty() && clock.Now() < end) leases = Claim(*store_, 2);
    ASSERT_THAT(leases, SizeIs(1));
    EXPECT_EQ(leases[0].task, late);
}

TEST_F(PostgresStoreTest, AReleasedTaskIsNotHiddenByAClaimMadeWhileItsReleaseWasCommitted) {
    options_.rescan_every = std::chrono::hours{1};
    store_ = OpenPostgresStore(options_);
    TaskId first = Make(), second = Make();
    Make();
    Lease lease = Claim(*store_).at(0);
    ASSERT_EQ(lease.task, first);
    Settlement release = Done(lease);
    release.kind = Settlement::Kind::kRelease;
    release.end = AttemptEnd::kReleased;
    release.output.clear();
    bool claimed = false;
    Listen([&](std::string_view point) {
        if (point != "store_postgres.before_commit" || std::exchange(claimed, true)) return;
        EXPECT_EQ(Claim(*store_).at(0).task, second);
    });
    EXPECT_EQ(store_->Settle({&release, 1}).at(0).kind, SettleReply::Kind::kAccepted);
    EXPECT_TRUE(claimed);
    EXPECT_EQ(Claim(*store_).at(0).task, first);
}

// ---- what a claim sees by the way ---------------------------------------------------------------

TEST_F(PostgresStoreTest, AClaimThatFindsNothingSeesWhetherTheServicesWouldFindSomething) {
    EXPECT_FALSE(store_->LastQuiet()) << "nobody has looked";
    auto look = [&] {
        EXPECT_THAT(Claim(*store_), IsEmpty());
        EXPECT_THAT(Claim(*store_), IsEmpty());  // the first finds nothing, the next only looks
        return store_->LastQuiet().value();
    };
    EXPECT_TRUE(look().all());
    auto in = [&](std::string text) {
        for (std::size_t at; (at = text.find("$s.")) != std::string::npos;)
            text.replace(at, 3, schema_->name() + ".");
        schema_->connection().Script(text);
    };
    // What is due in a minute is not due soon; what is due in some seconds is.
    const std::string publish =
        "INSERT INTO $s.published(tenant, source, type, data, time, depth, state, tries, "
        "published_at, due_at) VALUES (1, 's', 't', '{}', now(), 0, 0, 0, now(), now() + interval ";
    in(publish + "'1 minute')");
    EXPECT_TRUE(look().all());
    in(publish + "'5 seconds')");
    EXPECT_FALSE(look().events);
    EXPECT_TRUE(look().schedules);
    in("DELETE FROM $s.published");

    auto spec = model::ScheduleFromJson(
        R"({"name": "n", "every": "1s", "task": {"type": "t"}})", store_->Now()
    );
    ASSERT_TRUE(spec);
    Time soon = store_->Now() + std::chrono::seconds{5};
    ASSERT_TRUE(store_->Schedules().Put({.spec = spec.value(), .next_at = soon, .actor = "ann"}));
    EXPECT_FALSE(look().schedules);
    EXPECT_TRUE(look().events);

    model::NewDeletion wanted{
        .tenant = kDefaultTenant,
        .kind = "k",
        .key = "x",
        .initiator = "ann",
        .steps = "[]",
        .grace = Duration{0}};
    store_->Results().MarkDeletion(wanted);
    EXPECT_FALSE(look().deletions);
    EXPECT_TRUE(look().leases);

    NewTask waits;
    waits.run_at = store_->Now() + std::chrono::hours{1};
    waits.start_by = store_->Now() + std::chrono::hours{2};
    Make(waits);
    EXPECT_TRUE(look().deadlines);
    in("UPDATE $s.live SET start_by = now() + interval '1 second'");
    EXPECT_FALSE(look().deadlines);

    in("INSERT INTO $s.cancel_due VALUES (1, 2)");
    EXPECT_FALSE(look().leases) << "somebody did not get to cancel it";
    in("DELETE FROM $s.cancel_due");
    EXPECT_TRUE(look().leases);
    in("UPDATE $s.session SET lease_until = now() + interval '5 seconds'");
    EXPECT_FALSE(look().leases) << "a session may end soon";
    in("UPDATE $s.session SET lease_until = now() + interval '1 hour'");
    EXPECT_TRUE(look().leases);
    Make();
    EXPECT_THAT(Claim(*store_), SizeIs(1));
    EXPECT_FALSE(store_->LastQuiet()) << "who works looks for himself";
}

// ---- claims ------------------------------------------------------------------------------------

TEST_F(PostgresStoreTest, LeasesReachTheCallerWhenTheServerGoesAwayAfterTheirCommit) {
    stint::testing::CutProxy proxy(ServerPort());
    PostgresOptions through = options_;
    through.url = Through(proxy);
    through.rescan_every = std::chrono::hours{1};
    auto remote = OpenPostgresStore(through);
    // The claim is to come back short and to look again, below the marks: so there must be some,
    // and looking everywhere must have been long enough ago for what it costs.
    base::Clock& clock = base::SystemClock();
    base::Instant begun = clock.Now();
    Make();
    ASSERT_THAT(Claim(*remote), SizeIs(1));
    base::Instant due = clock.Now() + 50 * (clock.Now() - begun);
    while (clock.Now() < due) {
        Make();
        ASSERT_THAT(Claim(*remote), SizeIs(1));
    }
    TaskId task = Make({.queue = "elsewhere", .retry = RetryPolicy{.max_attempts = 7}});
    Listen([&](std::string_view point) {
        if (point == "store_postgres.claimed") proxy.GoDown();
    });
    std::vector<Lease> leases = Claim(*remote, 10);
    ASSERT_THAT(leases, SizeIs(1));
    EXPECT_EQ(leases[0].task, task);
    EXPECT_EQ(leases[0].queue, "elsewhere");
    EXPECT_EQ(leases[0].type, "t");
    EXPECT_EQ(leases[0].retry.max_attempts, 7);
    EXPECT_THROW(Claim(*remote), Unavailable);
}

TEST_F(PostgresStoreTest, AClaimDoesNotWadeThroughWhatIsOverItsDeadline) {
    NewTask brief{.type = "t"};
    brief.start_by = store_->Now() + std::chrono::minutes{1};
    std::vector<NewTask> many(5000, brief);
    store_->Submit(many);
    TaskId fresh = Make();
    schema_->AdvanceTime(std::chrono::minutes{5});
    // What one statement looks at.
    auto mine = Connect();
    mine->Script("SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN");
    ClaimRequest request{.session = session_, .limit = 1, .types = {"t"}};
    pg::Sql sql(schema_->name());
    Rows plan = mine->Query(
        Statement{"", "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) " + sql.claim.sql},
        ClaimOf(request, 1),
        Commits::kNo
    );
    mine->Script("ROLLBACK");
    constexpr std::string_view kRemoved = "Rows Removed by Filter: ";
    int removed = 0;
    for (int i = 0; i < plan.size(); ++i) {
        std::string line = plan.Text(i, 0);
        std::size_t at = line.find(kRemoved);
        if (at != std::string::npos) removed += std::stoi(line.substr(at + kRemoved.size()));
    }
    EXPECT_GE(removed, 501);
    EXPECT_LE(removed, 2000);
    // The next call goes on where the last one stopped, and is asked for at once.
    std::vector<Lease> leases;
    int calls = 0;
    for (; leases.empty() && calls < 12; ++calls) {
        ClaimReply reply = store_->Claim(request);
        leases = reply.leases;
        EXPECT_EQ(leases.empty(), reply.next_due == Duration::zero());
    }
    ASSERT_THAT(leases, SizeIs(1)) << calls << " calls";
    EXPECT_EQ(leases[0].task, fresh);
    // Nothing is left: nobody asks again and again.
    for (int i = 0; i < 3; ++i) {
        ClaimReply reply = store_->Claim(request);
        EXPECT_THAT(reply.leases, IsEmpty());
        EXPECT_NE(reply.next_due, Duration::zero());
    }
}

// A claim that is not committed yet keeps from others what it takes, and no more.
class OpenClaim : public PostgresStoreTest {
protected:
    void Begin(int limit) {
        claimer_ = Connect();
        claimer_->Script("BEGIN");
        pg::Sql sql(schema_->name());
        ClaimRequest request{.session = session_, .limit = limit, .types = {"t"}};
        claimer_->Query(Statement{"", sql.claim.sql}, ClaimOf(request, limit), Commits::kNo);
    }
    std::unique_ptr<Connection> claimer_;
};

TEST_F(OpenClaim, KeepsNothingFromOthersBeyondWhatItTakes) {
    for (int i = 0; i < 3; ++i) {
        for (const char* queue : {"a", "b", "c"}) Make({.queue = queue});
    }
    Begin(2);
    EXPECT_THAT(Claim(*store_, 100), SizeIs(7));
}

TEST_F(OpenClaim, LeavesTheNextOfTheSameLinesToOthers) {
    for (const char* queue : {"a", "b", "a", "b", "a", "b"}) Make({.queue = queue});
    Begin(2);
    EXPECT_THAT(Claim(*store_, 2), SizeIs(2));
    EXPECT_THAT(Claim(*store_, 2), SizeIs(2));
}

TEST_F(OpenClaim, OfAllThatIsUrgentDoesNotKeepOthersFromTheRest) {
    Make({.priority = 200});
    TaskId ordinary = Make({.priority = 100});
    Begin(1);
    std::vector<Lease> leases = Claim(*store_);
    ASSERT_THAT(leases, SizeIs(1));
    EXPECT_EQ(leases[0].task, ordinary);
}

// More than one look passes over: whoever comes looks behind what they are taking.
TEST_F(OpenClaim, OfAllThatALookPassesOverDoesNotKeepOthersFromTheRest) {
    std::vector<NewTask> many(700, NewTask{.type = "t"});
    store_->Submit(many);
    TaskId last = Make();
    Begin(700);
    std::vector<Lease> leases = Claim(*store_);
    ASSERT_THAT(leases, SizeIs(1));
    EXPECT_EQ(leases[0].task, last);
}

// Positions are drawn for all lanes together.
TEST_F(PostgresStoreTest, GapsInALineDoNotEndAClaim) {
    std::vector<TaskId> wanted;
    for (int i = 0; i < 3; ++i) {
        wanted.push_back(Make());
        std::vector<NewTask> others(700, NewTask{.type = "other"});
        store_->Submit(others);
    }
    std::vector<TaskId> claimed;
    for (const Lease& lease : Claim(*store_, 10)) claimed.push_back(lease.task);
    EXPECT_EQ(claimed, wanted);
}

TEST_F(PostgresStoreTest, WhatHasBecomeDueIsNotPassedOverByWhatWasTakenBesideIt) {
    TaskId due = Make({.delay = std::chrono::minutes{1}});
    Make();
    ASSERT_THAT(Claim(*store_), SizeIs(1));
    Make();
    schema_->AdvanceTime(std::chrono::minutes{2});
    ASSERT_THAT(Claim(*store_), SizeIs(1));
    int looks = 0;
    Listen([&](std::string_view point) { looks += point == "store_postgres.claimed" ? 1 : 0; });
    std::vector<Lease> leases = Claim(*store_);
    ASSERT_THAT(leases, SizeIs(1));
    EXPECT_EQ(leases[0].task, due);
    EXPECT_EQ(looks, 1) << "found only by looking everywhere, which is not done each time";
}

TEST_F(PostgresStoreTest, WhatIsUrgentIsPromotedBeforeABacklogThatIsNot) {
    std::vector<NewTask> backlog(
        300, NewTask{.type = "t", .priority = 10, .delay = std::chrono::minutes{1}}
    );
    store_->Submit(backlog);
    TaskId urgent = Make({.priority = 20, .delay = std::chrono::minutes{2}});
    schema_->AdvanceTime(std::chrono::minutes{30});
    EXPECT_EQ(Claim(*store_).at(0).task, urgent);
}

TEST_F(PostgresStoreTest, OfEqualsTheLineThatHasWaitedLongerIsPromotedFirst) {
    std::vector<NewTask> backlog(
        300, NewTask{.type = "t", .queue = "a", .delay = std::chrono::minutes{2}}
    );
    store_->Submit(backlog);
    TaskId early = Make({.queue = "b", .delay = std::chrono::minutes{1}});
    schema_->AdvanceTime(std::chrono::minutes{30});
    bool found = false;
    for (const Lease& lease : Claim(*store_, 100)) found |= lease.task == early;
    EXPECT_TRUE(found);
}

TEST_F(PostgresStoreTest, WhatIsDueInAPausedQueueDoesNotHoldUpTheOthers) {
    std::vector<NewTask> paused(
        300, NewTask{.type = "t", .queue = "paused", .delay = std::chrono::minutes{1}}
    );
    store_->Submit(paused);
    QueueSettings settings;
    settings.name = "paused";
    settings.paused = true;
    store_->SetQueue(settings, "test");
    TaskId other = Make({.delay = std::chrono::minutes{2}});
    schema_->AdvanceTime(std::chrono::minutes{30});
    EXPECT_EQ(Claim(*store_).at(0).task, other);
}

}  // namespace
}  // namespace stint::store
