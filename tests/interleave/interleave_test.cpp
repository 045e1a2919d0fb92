// The races that matter, in every order, with the store's own statements: claim × claim,
// claim × expire, settle × reclaim, fold × drop, submit × submit with one key. Beside each the
// naive variant, which must still fail: a test that cannot fail proves nothing.
#include "interleave/fixture.h"

namespace stint::interleave {
namespace {

// ---- claim × claim -----------------------------------------------------------------------------

TEST_F(Interleave, TwoClaimsNeverTakeTheSameTask) {
    Scenario scenario;
    scenario.prepare = [&] {
        Fresh();
        Submit();
    };
    scenario.scripts = [&] {
        return std::vector<Script>{
            {"A", {Begin(), ClaimStep(sql_->claim.sql), Commit()}},
            {"B", {Begin(), ClaimStep(sql_->claim.sql), Commit()}}};
    };
    scenario.check = [&]() -> std::string {
        std::int64_t held = Ask("SELECT count(*) FROM $s.lease, unnest(ids)");
        if (held != 1) return fmt::format("held {} times", held);
        return Sound();
    };
    Outcome outcome = RunAllOrders(stint::testing::TestPostgresUrl(), scenario);
    EXPECT_EQ(outcome.orders, 20);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_EQ(outcome.waits, 0) << "a claim must never wait for another";
}

TEST_F(Interleave, NaiveClaimsDoTakeTheSameTask) {
    Scenario scenario;
    scenario.prepare = [&] {
        Fresh();
        Submit();
    };
    scenario.scripts = [&] {
        auto found = [&](std::int64_t key) {
            auto task = std::make_shared<std::int64_t>(0);
            return std::vector<Step>{
                Begin(),
                {"look",
                 [this, task](Connection& connection) {
                     Statement look{"", In("SELECT task FROM $s.ready ORDER BY pos LIMIT 1")};
                     Rows rows = connection.Query(look, {}, Commits::kNo);
                     if (!rows.empty()) *task = rows.Int(0, 0);
                 }},
                {"take",
                 [this, task, key](Connection& connection) {
                     if (*task == 0) return;
                     Statement take{
                         "",
                         In("WITH d AS (DELETE FROM $s.ready WHERE task = $1) INSERT INTO $s.lease "
                            "SELECT $2, $s.now_(), NULL, $3, ARRAY[$1], ARRAY[1::bigint], "
                            "ARRAY[0::smallint]")};
                     connection.Query(
                         take, Params().Int(*task).Int(key).Uuid(session_), Commits::kNo
                     );
                 }},
                Commit()};
        };
        return std::vector<Script>{{"A", found(1)}, {"B", found(2)}};
    };
    scenario.check = [&]() -> std::string {
        std::int64_t held = Ask("SELECT count(*) FROM $s.lease, unnest(ids)");
        return held == 1 ? "" : fmt::format("held {} times", held);
    };
    Outcome outcome = RunAllOrders(stint::testing::TestPostgresUrl(), scenario);
    EXPECT_THAT(outcome.violations, Not(IsEmpty()));
}

// ---- claim × expire ----------------------------------------------------------------------------

class ClaimAndExpire : public Interleave {
protected:
    Outcome Run(const std::string& claim, std::function<Step()> reclaim) {
        Scenario scenario;
        scenario.prepare = [&] {
            Fresh();
            Submit();
        };
        scenario.scripts = [&] {
            return std::vector<Script>{
                {"A", {Begin(), ClaimStep(claim), Commit()}}, {"B", {AdvanceStep(), reclaim()}}};
        };
        scenario.check = [&]() -> std::string {
            // Held under a session that a sweeper has declared dead and left: a lease that nobody
            // may renew or settle in time.
            std::int64_t orphans =
                Ask("SELECT count(*) FROM $s.lease e JOIN $s.session s ON s.id = e.session WHERE "
                    "s.state >= 2");
            if (orphans > 0) return "held under an expired session";
            // A sweep that came too early for it is made up for by the next.
            store_->Reclaim({});
            if (Ask("SELECT count(*) FROM $s.lease") > 0) return "held after the next sweep";
            return Sound();
        };
        return RunAllOrders(stint::testing::TestPostgresUrl(), scenario);
    }
};

TEST_F(ClaimAndExpire, AClaimNeverOutlivesTheExpiryOfItsSession) {
    Outcome outcome = Run(sql_->claim.sql, [&] { return ReclaimStep("B"); });
    EXPECT_EQ(outcome.orders, 10);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_EQ(
        outcome.waits, 0
    ) << "a sweeper leaves a session with a claim in flight to the next sweep";
}

TEST_F(ClaimAndExpire, WithoutTheLockOnItsSessionItDoes) {
    std::string naive = sql_->claim.sql;
    std::size_t lock = naive.find("FOR KEY SHARE");
    ASSERT_NE(lock, std::string::npos);
    naive.erase(lock, std::string_view("FOR KEY SHARE").size());
    Outcome outcome = Run(naive, [&] { return ReclaimStep("B"); });
    EXPECT_THAT(outcome.violations, Not(IsEmpty()));
}

TEST_F(ClaimAndExpire, ExpiryAndReclaimInOneStatementMissIt) {
    // The snapshot is older than the lock: the lease that the claim committed meanwhile is not in
    // it.
    std::string one_statement =
        In("WITH s AS MATERIALIZED (SELECT id FROM $s.session WHERE state <= 1 AND lease_until <= "
           "(SELECT $s.now_()) FOR UPDATE),"
           "u AS (UPDATE $s.session z SET state = 3 FROM s WHERE z.id = s.id),"
           "l AS (DELETE FROM $s.lease e USING s WHERE e.session = s.id RETURNING e.ids)"
           "INSERT INTO $s.ready(lane, pos, task, flags) SELECT v.lane, v.pos, v.id, 0 FROM l, "
           "unnest(l.ids) i JOIN $s.live v ON v.id = i");
    Outcome outcome = Run(sql_->claim.sql, [&] { return Sql("reclaim", one_statement); });
    EXPECT_THAT(outcome.violations, Not(IsEmpty()));
}

// ---- settle × reclaim --------------------------------------------------------------------------

class SettleAndReclaim : public Interleave {
protected:
    Outcome Run(std::function<std::vector<Step>()> sweeper) {
        Scenario scenario;
        scenario.prepare = [&] {
            Fresh();
            Submit();
            leases_ = {Claim()};
        };
        scenario.scripts = [&] {
            return std::vector<Script>{
                {"A", {Begin(), SettleStep("A"), Commit()}}, {"B", sweeper()}};
        };
        scenario.check = [&]() -> std::string {
            std::int64_t places =
                Ask("SELECT (SELECT count(*) FROM $s.ready) + (SELECT count(*) FROM $s.later) + "
                    "(SELECT count(*) FROM $s.history)"
                    " + (SELECT count(*) FROM $s.lease)");
            if (places != 1) return fmt::format("the task is in {} places", places);
            return Sound();
        };
        return RunAllOrders(stint::testing::TestPostgresUrl(), scenario);
    }
};

TEST_F(SettleAndReclaim, ExactlyOneOfThemDecides) {
    Outcome outcome = Run([&] { return std::vector<Step>{AdvanceStep(), ReclaimStep("B")}; });
    EXPECT_EQ(outcome.orders, 10);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
}

TEST_F(SettleAndReclaim, ASweeperThatDoesNotCheckTheLeaseUndoesAnOutcome) {
    Outcome outcome = Run([&] {
        auto task = std::make_shared<std::int64_t>(0);
        return std::vector<Step>{
            {"look",
             [this, task](Connection& connection) {
                 Rows rows = connection.Query(
                     Statement{"", In("SELECT ids[1] FROM $s.lease")}, {}, Commits::kNo
                 );
                 if (!rows.empty()) *task = rows.Int(0, 0);
             }},
            {"move", [this, task](Connection& connection) {
                 if (*task == 0) return;
                 Statement move{
                     "",
                     In("WITH d AS (DELETE FROM $s.lease) INSERT INTO $s.ready(lane, pos, task, "
                        "flags) VALUES (1, 1, $1, 0)")};
                 connection.Query(move, Params().Int(*task), Commits::kYes);
             }}};
    });
    EXPECT_THAT(outcome.violations, Not(IsEmpty()));
}

// ---- promote × edit ----------------------------------------------------------------------------

TEST_F(Interleave, ATaskThatIsJustBecomingDueCanBeEdited) {
    TaskId task;
    std::string refusal;
    Scenario scenario;
    scenario.prepare = [&] {
        Fresh();
        task = Submit({.delay = std::chrono::seconds{10}});
        schema_->AdvanceTime(std::chrono::seconds{20});
        refusal.clear();
    };
    scenario.scripts = [&] {
        Step promote{"promote", [this](Connection& connection) {
                         Params params = pg::PromoteParams({.types = {"t"}}, 10);
                         connection.Query(Statement{"", sql_->promote.sql}, params, Commits::kNo);
                     }};
        Step edit{"edit", [&](Connection&) {
                      Result<void> done = stores_.at("B")->Edit(task, {.input = "7"}, "me");
                      if (!done) refusal = done.error().message;
                  }};
        return std::vector<Script>{{"A", {Begin(), promote, Commit()}}, {"B", {edit}}};
    };
    scenario.check = [&] { return refusal.empty() ? Sound() : refusal; };
    Outcome outcome = RunAllOrders(stint::testing::TestPostgresUrl(), scenario);
    EXPECT_EQ(outcome.orders, 4);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0);
}

// ---- fold × drop -------------------------------------------------------------------------------

class FoldAndDrop : public Interleave {
protected:
    // B drops the table whose counts A is folding into the sums.
    Outcome Run(std::function<std::vector<Step>()> dropper) {
        Scenario scenario;
        scenario.prepare = [&] {
            schema_->Empty();
            store_ = Open("setup");
            Fresh();
            Submit();
            leases_ = {Claim()};
            Settlement done{
                .task = leases_[0].task, .token = leases_[0].token, .session = session_};
            done.output = "1";
            store_->Settle({&done, 1});
            schema_->AdvanceTime(std::chrono::hours{24} * 100);
        };
        scenario.scripts = [&] {
            Step fold{"fold", [this](Connection& connection) {
                          connection.Query(
                              Statement{"", sql_->fold_tally.sql}, Params().Int4(10), Commits::kNo
                          );
                      }};
            return std::vector<Script>{{"A", {Begin(), fold, Commit()}}, {"B", dropper()}};
        };
        scenario.check = [&]() -> std::string {
            if (Ask("SELECT count(*) FROM $s.leaf WHERE name = 'history_1_0'") != 0) {
                return "the table is not dropped";
            }
            std::int64_t counted = Ask("SELECT count(*) FROM $s.history_tally");
            return counted == 0 ? Sound() : "counted though it is gone";
        };
        return RunAllOrders(stint::testing::TestPostgresUrl(), scenario);
    }
};

TEST_F(FoldAndDrop, NothingIsCountedOfATableThatIsGone) {
    std::string drop = In("SELECT $s.drop_leaf_('history_1_0', 90::bigint * 86400000)");
    Outcome outcome = Run([&] { return std::vector<Step>{Begin(), Sql("drop", drop), Commit()}; });
    EXPECT_EQ(outcome.orders, 20);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0);
}

TEST_F(FoldAndDrop, WithTheSumsBeforeTheChangesItIs) {
    Outcome outcome = Run([&] {
        Step table{"table", [this](Connection& connection) {
                       connection.Script(
                           In("DELETE FROM $s.leaf WHERE name = 'history_1_0'; DROP "
                              "TABLE $s.history_1_0; COMMIT")
                       );
                   }};
        Step sums{"sums", [this](Connection& connection) {
                      connection.Script(In("BEGIN; DELETE FROM $s.history_tally"));
                  }};
        return std::vector<Step>{sums, Sql("changes", In("DELETE FROM $s.history_change")), table};
    });
    EXPECT_THAT(outcome.violations, Not(IsEmpty()));
}

// ---- submit × submit ---------------------------------------------------------------------------

class SubmitTwice : public Interleave {
protected:
    Outcome Run(std::function<std::vector<Step>(const std::string&)> submitter) {
        Scenario scenario;
        scenario.prepare = [&] { Fresh(); };
        scenario.scripts = [&] {
            return std::vector<Script>{{"A", submitter("A")}, {"B", submitter("B")}};
        };
        scenario.check = [&]() -> std::string {
            std::int64_t tasks = Ask("SELECT count(*) FROM $s.live");
            if (tasks != 1) return fmt::format("{} tasks", tasks);
            std::lock_guard guard(mutex_);
            if (replies_.size() != 2 || replies_[0] != replies_[1]) return "two answers";
            return {};
        };
        return RunAllOrders(stint::testing::TestPostgresUrl(), scenario);
    }
    void ExpectOneTask(const NewTask& task) {
        Outcome outcome = Run([&](const std::string& who) {
            return std::vector<Step>{Begin(), SubmitStep(who, task), Commit()};
        });
        EXPECT_EQ(outcome.orders, 20);
        EXPECT_THAT(outcome.violations, IsEmpty());
        EXPECT_THAT(outcome.errors, IsEmpty());
        EXPECT_GT(outcome.waits, 0) << "the second must wait for the first to decide";
    }
};

TEST_F(SubmitTwice, WithOneIdempotencyKeyItIsOneTask) {
    ExpectOneTask({.type = "t", .idempotency_key = "k"});
}

TEST_F(SubmitTwice, WithOneUniqueKeyItIsOneTask) {
    ExpectOneTask({.type = "t", .unique_key = "k"});
}

TEST_F(SubmitTwice, LookingFirstIsNotEnough) {
    auto next = std::make_shared<std::int64_t>(1000);
    Outcome outcome = Run([&](const std::string&) {
        auto known = std::make_shared<bool>(false);
        return std::vector<Step>{
            Begin(),
            {"look",
             [this, known](Connection& connection) {
                 Statement look{"", In("SELECT task FROM $s.idem_key WHERE key = 'k'")};
                 *known = !connection.Query(look, {}, Commits::kNo).empty();
             }},
            {"insert",
             [this, known, id = ++*next](Connection& connection) {
                 if (*known) return;
                 Statement insert{
                     "",
                     In("WITH v AS (INSERT INTO $s.live(id, pos, created_at, due_at, lane, policy, "
                        "flags, explicit, input) "
                        "VALUES ($1, $1, $s.now_(), $s.now_(), 1, 1, 0, 0, '1')) INSERT INTO "
                        "$s.idem_key "
                        "VALUES (1, 'k', $1, '', $s.now_() + interval '1 day') ON CONFLICT DO "
                        "NOTHING")};
                 connection.Query(insert, Params().Int(id), Commits::kNo);
             }},
            Commit()};
    });
    EXPECT_THAT(outcome.violations, Not(IsEmpty()));
}

}  // namespace
}  // namespace stint::interleave
