// What only this store promises: borrowed transactions, unknown commits, late commits, connections.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <libpq-fe.h>

#include <array>
#include <functional>
#include <future>
#include <latch>
#include <thread>

#include "base/test_point.h"
#include "model/schedule.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/sql.h"
#include "store/postgres/statements.h"
#include "store/results.h"
#include "store/schedules.h"
#include "support/cut_proxy.h"
#include "support/postgres_schema.h"

namespace stint::store {
namespace {

using postgres::Commits;
using postgres::Connection;
using postgres::Params;
using postgres::Rows;
using postgres::Statement;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PostgresStoreTest : public ::testing::Test {
protected:
    void SetUp() override {
        SKIP_WITHOUT_POSTGRES();
        static stint::testing::PostgresSchema one("store");
        schema_ = &one;
        schema_->Empty();
        options_.url = stint::testing::TestPostgresUrl();
        options_.schema = schema_->name();
        options_.migrate = false;
        store_ = OpenPostgresStore(options_);
        session_ = base::SystemRandom().MakeId<SessionId>();
        store_->OpenSession(
            {.id = session_, .hostname = "h", .lease = std::chrono::hours{1}, .types = {"t"}}
        );
    }
    std::unique_ptr<Connection> Connect() {
        postgres::ConnectOptions connect;
        connect.url = options_.url;
        return Connection::Open(connect);
    }
    TaskId Make(NewTask task = {}) {
        task.type = "t";
        return store_->Submit({&task, 1}).at(0).id;
    }
    static Params ClaimOf(const ClaimRequest& request, int limit) {
        Params params =
            pg::ClaimParams(request, limit, pg::LeaseTokens(limit, base::SystemRandom()));
        pg::AddMarks(params, {});
        return params;
    }
    std::vector<Lease> Claim(Store& store, int limit = 1) {
        return store.Claim({.session = session_, .limit = limit, .types = {"t"}}).leases;
    }
    Settlement Done(const Lease& lease) {
        Settlement done{.task = lease.task, .token = lease.token, .session = session_};
        done.output = "1";
        return done;
    }
    // Until some session of this schema waits for a lock that another holds.
    void WaitForALock(Connection& connection) {
        const Statement waiting{
            "",
            fmt::format(
                "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT "
                "l.granted AND a.query LIKE '%{}%'",
                schema_->name()
            )};
        while (connection.Query(waiting, {}, Commits::kNo).Int(0, 0) == 0)
            std::this_thread::yield();
    }
    std::string Through(const stint::testing::CutProxy& proxy) {
        return stint::testing::WithParameter(
            options_.url, fmt::format("host=127.0.0.1&port={}&sslmode=disable", proxy.port())
        );
    }
    // Acts at the store's test points until the test is over.
    void Listen(std::function<void(std::string_view)> act) {
        base::SetTestPointListener(std::move(act));
    }
    void TearDown() override { base::SetTestPointListener({}); }
    int ServerPort() { return std::atoi(PQport(schema_->connection().native())); }

    stint::testing::PostgresSchema* schema_ = nullptr;
    PostgresOptions options_;
    std::unique_ptr<Store> store_;
    SessionId session_;
};

// ---- the caller's own transaction --------------------------------------------------------------

TEST_F(PostgresStoreTest, ABorrowedSubmitLivesAndDiesWithTheCallersTransaction) {
    auto mine = Connect();
    for (bool commit : {false, true}) {
        mine->Script("BEGIN");
        auto joined = store_->Borrow(mine->native()).value();
        EXPECT_EQ(joined->native(), mine->native());
        NewTask task{.type = "t", .unique_key = "u"};
        TaskId id = joined->Submit({&task, 1}).at(0).id;
        EXPECT_EQ(store_->Get(id), std::nullopt) << "seen before the commit";
        mine->Script(commit ? "COMMIT" : "ROLLBACK");
        EXPECT_EQ(store_->Get(id).has_value(), commit);
    }
    EXPECT_THAT(Claim(*store_, 10), SizeIs(1));
}

TEST_F(PostgresStoreTest, ABorrowedCompletionLivesAndDiesWithTheCallersTransaction) {
    Make();
    Lease lease = Claim(*store_).at(0);
    auto mine = Connect();
    mine->Script("BEGIN");
    EXPECT_EQ(
        store_->Borrow(mine->native()).value()->Settle(Done(lease)).kind,
        SettleReply::Kind::kAccepted
    );
    mine->Script("ROLLBACK");
    EXPECT_EQ(store_->Get(lease.task)->state, State::kInProgress);
    mine->Script("BEGIN");
    EXPECT_EQ(
        store_->Borrow(mine->native()).value()->Settle(Done(lease)).kind,
        SettleReply::Kind::kAccepted
    );
    mine->Script("COMMIT");
    EXPECT_EQ(store_->Get(lease.task)->state, State::kComplete);
    mine->Script("BEGIN");
    EXPECT_EQ(
        store_->Borrow(mine->native()).value()->Settle(Done(lease)).kind, SettleReply::Kind::kLost
    );
}

TEST_F(PostgresStoreTest, AValueThatCannotBeStoredIsNamedAsTheCause) {
    Make();
    Lease lease = Claim(*store_).at(0);
    Settlement bad = Done(lease);
    bad.reason = "\xff";
    EXPECT_THROW(store_->Settle({&bad, 1}), Unstorable);
    EXPECT_EQ(store_->Get(lease.task)->state, State::kInProgress);
    Settlement good = Done(lease);
    EXPECT_EQ(store_->Settle({&good, 1}).at(0).kind, SettleReply::Kind::kAccepted);
}

TEST_F(PostgresStoreTest, OnlyAConnectionInATransactionCanBeBorrowed) {
    auto mine = Connect();
    EXPECT_THAT(store_->Borrow(mine->native()).error().message, HasSubstr("BEGIN first"));
    EXPECT_FALSE(store_->Borrow(nullptr));
    mine->Script("BEGIN");
    try {
        mine->Script("SELECT 1/0");
    } catch (const postgres::SqlError&) {
    }
    EXPECT_FALSE(store_->Borrow(mine->native())) << "the transaction has failed";
}

TEST_F(PostgresStoreTest, ATransactionWithAnOldSnapshotCannotBeBorrowed) {
    auto mine = Connect();
    for (const char* level : {"REPEATABLE READ", "SERIALIZABLE"}) {
        mine->Script(fmt::format("BEGIN ISOLATION LEVEL {}", level));
        auto joined = store_->Borrow(mine->native());
        ASSERT_FALSE(joined) << level;
        EXPECT_THAT(joined.error().message, HasSubstr("ISOLATION LEVEL READ COMMITTED"));
        mine->Script("ROLLBACK");
    }
}

TEST_F(PostgresStoreTest, AConnectionInAnotherEncodingCannotBeBorrowed) {
    auto mine = Connect();
    mine->Script("SET client_encoding = 'LATIN1'");
    mine->Script("BEGIN");
    auto joined = store_->Borrow(mine->native());
    ASSERT_FALSE(joined);
    EXPECT_THAT(joined.error().message, HasSubstr("LATIN1"));
}

TEST_F(PostgresStoreTest, ARefusedStepDoesNotSpoilTheCallersTransaction) {
    schema_->connection().Script(fmt::format(
        "CREATE FUNCTION {0}.refuse_42() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE 'refused' USING ERRCODE = '22023'; END $$; "
        "CREATE TRIGGER refuse BEFORE INSERT ON {0}.live FOR EACH ROW WHEN (new.input = '42') "
        "EXECUTE FUNCTION {0}.refuse_42()",
        schema_->name()
    ));
    auto mine = Connect();
    mine->Script("BEGIN");
    auto joined = store_->Borrow(mine->native()).value();
    NewTask bad{.type = "t", .input = "42"}, good{.type = "t"};
    EXPECT_THROW(joined->Submit({&bad, 1}), Unstorable);
    EXPECT_EQ(PQtransactionStatus(mine->native()), PQTRANS_INTRANS);
    EXPECT_EQ(joined->Submit({&good, 1}).at(0).kind, SubmitReply::Kind::kCreated);
    mine->Script("COMMIT");
    schema_->connection().Script(fmt::format(
        "DROP TRIGGER refuse ON {0}.live; DROP FUNCTION {0}.refuse_42()", schema_->name()
    ));
    EXPECT_THAT(Claim(*store_, 5), SizeIs(1));
}

TEST_F(PostgresStoreTest, ABorrowedConnectionStaysAsItWas) {
    auto mine = Connect();
    PQsetnonblocking(mine->native(), 0);
    mine->Script("BEGIN");
    {
        auto joined = store_->Borrow(mine->native()).value();
        NewTask task{.type = "t"};
        joined->Submit({&task, 1});
    }
    EXPECT_EQ(PQisnonblocking(mine->native()), 0);
    EXPECT_EQ(PQtransactionStatus(mine->native()), PQTRANS_INTRANS);
    Statement names{"", "SELECT count(*) FROM pg_prepared_statements"};
    EXPECT_EQ(mine->Query(names, {}, Commits::kNo).Int(0, 0), 0);
}

TEST_F(PostgresStoreTest, AMissingPeriodTableDoesNotSpoilTheCallersTransaction) {
    schema_->AdvanceTime(std::chrono::hours{24 * 9});
    auto mine = Connect();
    mine->Script("BEGIN; CREATE TEMP TABLE kept(n int)");
    NewTask task{.type = "t"};
    TaskId id = store_->Borrow(mine->native()).value()->Submit({&task, 1}).at(0).id;
    mine->Script("INSERT INTO kept VALUES (1); COMMIT");
    EXPECT_TRUE(store_->Get(id).has_value());
}

TEST_F(PostgresStoreTest, WriteJoinsTheHostsOwnStatements) {
    schema_->connection().Script(fmt::format("CREATE TABLE {}.effect(n int)", schema_->name()));
    Statement count{"", fmt::format("SELECT count(*) FROM {}.effect", schema_->name())};
    for (bool succeed : {false, true}) {
        Result<void> done = store_->Write([&](Transaction& transaction) -> Result<void> {
            auto* conn = static_cast<PGconn*>(transaction.native());
            PQclear(PQexec(
                conn, fmt::format("INSERT INTO {}.effect VALUES (1)", schema_->name()).c_str()
            ));
            NewTask task{.type = "t"};
            transaction.Submit({&task, 1});
            if (!succeed) return Error{Code::kFailed, "no"};
            return {};
        });
        EXPECT_EQ(done.has_value(), succeed);
        EXPECT_EQ(schema_->connection().Query(count, {}, Commits::kNo).Int(0, 0), succeed ? 1 : 0);
    }
    EXPECT_THAT(Claim(*store_, 5), SizeIs(1));
    schema_->connection().Script(fmt::format("DROP TABLE {}.effect", schema_->name()));
}

TEST_F(PostgresStoreTest, AFailedStatementOfTheHostIsNotACommit) {
    Result<void> done = store_->Write([&](Transaction& transaction) -> Result<void> {
        PQclear(PQexec(static_cast<PGconn*>(transaction.native()), "SELECT 1/0"));
        return {};
    });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::kConflict);
}

// A host that submits with a key, or into a queue with a cap, and leaves its transaction open.
TEST_F(PostgresStoreTest, TurnsOfFinishedTasksAreForgottenInTheEnd) {
    auto turns = [&] {
        const Statement count{"", fmt::format("SELECT count(*) FROM {}.ordered", schema_->name())};
        return schema_->connection().Query(count, {}, Commits::kNo).Int(0, 0);
    };
    Make({.order_key = "k"});
    Make({.order_key = "k"});
    Settlement done = Done(Claim(*store_).at(0));
    ASSERT_EQ(store_->Settle({&done, 1}).at(0).kind, SettleReply::Kind::kAccepted);
    store_->Housekeep({});
    EXPECT_EQ(turns(), 2) << "an operator may still want to try it again";
    schema_->AdvanceTime(limits::kRetention + std::chrono::hours{1});
    store_->Housekeep({});
    EXPECT_EQ(turns(), 1) << "the other one still waits for its turn";
}

// A host that completes one subtask in its own long transaction holds the counter of the wait.
TEST_F(PostgresStoreTest, OnlyWhatNeedsAHostsLockWaitsForTheHost) {
    Make();
    Lease parent = Claim(*store_).at(0);
    Settlement blocked{.task = parent.task, .token = parent.token, .session = session_};
    blocked.kind = Settlement::Kind::kBlocked;
    for (int i = 0; i < 2; ++i) {
        blocked.children.push_back({.id = store_->ReserveIds(1), .type = "t"});
    }
    ASSERT_EQ(store_->Settle({&blocked, 1}).at(0).kind, SettleReply::Kind::kAccepted);
    // Each with a lease of its own: those that were claimed together are locked together.
    std::vector<Lease> leases = {Claim(*store_).at(0), Claim(*store_).at(0)};
    Make();
    leases.push_back(Claim(*store_).at(0));
    auto host = Connect();
    host->Script("BEGIN");
    auto borrowed = store_->Borrow(host->native()).value();
    ASSERT_EQ(borrowed->Settle(Done(leases[0])).kind, SettleReply::Kind::kAccepted);

    std::vector<Settlement> others = {Done(leases[1]), Done(leases[2])};
    std::vector<SettleReply> replies = store_->Settle(others);
    EXPECT_EQ(replies[0].kind, SettleReply::Kind::kBusy) << "its wait is being counted";
    EXPECT_EQ(replies[1].kind, SettleReply::Kind::kAccepted);
    EXPECT_EQ(store_->Get(leases[1].task)->state, State::kInProgress);
    host->Script("COMMIT");
    EXPECT_EQ(store_->Settle({others.data(), 1}).at(0).kind, SettleReply::Kind::kAccepted);
    EXPECT_EQ(store_->Get(parent.task)->state, State::kOpen);
}

class HeldByAHost : public PostgresStoreTest, public ::testing::WithParamInterface<const char*> {
protected:
    NewTask Wanted() const {
        NewTask task{.type = "t"};
        std::string what = GetParam();
        if (what == "IdempotencyKey") task.idempotency_key = "k";
        if (what == "UniqueKey") task.unique_key = "k";
        if (what == "CappedQueue") task.queue = "capped";
        return task;
    }
    void Hold(Connection& host) {
        store_->SetQueue({.name = "capped", .cap = 100}, "me");
        host.Script("BEGIN");
        NewTask task = Wanted();
        store_->Borrow(host.native()).value()->Submit({&task, 1});
    }
};
INSTANTIATE_TEST_SUITE_P(
    What,
    HeldByAHost,
    ::testing::Values("IdempotencyKey", "UniqueKey", "CappedQueue"),
    [](const auto& what) { return std::string(what.param); }
);

TEST_P(HeldByAHost, HoldsUpNobodyElse) {
    Make();  // from now on a plain submit has nothing to look up beside its transaction
    auto host = Connect();
    Hold(*host);
    // The leader is kept until all others have lined up behind it: those share a transaction.
    constexpr int kLeaders = 1, kOthers = 15;
    std::latch leading(1), all_there(kLeaders + kOthers + 1);
    std::atomic<int> commits{0};
    Listen([&](std::string_view point) {
        if (point == "store_postgres.lined_up") all_there.count_down();
        if (point != "store_postgres.before_commit" || commits++ >= 1) return;
        leading.count_down();
        all_there.wait();
    });
    std::atomic<int> created{0};
    std::atomic<bool> answered{false};
    std::latch plain_done(kLeaders + kOthers);
    auto submit_plain = [&] {
        NewTask task{.type = "t"};
        try {
            if (store_->Submit({&task, 1}).at(0).kind == SubmitReply::Kind::kCreated) ++created;
        } catch (const std::exception& error) {
            ADD_FAILURE() << error.what();
        }
        plain_done.count_down();
    };
    std::vector<std::jthread> threads;
    for (int i = 0; i < kLeaders; ++i) threads.emplace_back(submit_plain);
    leading.wait();
    threads.emplace_back([&] {
        NewTask task = Wanted();
        try {
            answered = store_->Submit({&task, 1}).at(0).accepted();
        } catch (const std::exception& error) {
            ADD_FAILURE() << error.what();
        }
    });
    for (int i = 0; i < kOthers; ++i) threads.emplace_back(submit_plain);
    plain_done.wait();
    EXPECT_EQ(created, kLeaders + kOthers);
    EXPECT_FALSE(answered) << "what it wants is still held";
    host->Script("COMMIT");
    threads.clear();
    EXPECT_TRUE(answered);
}

TEST_P(HeldByAHost, IsNamedAsTheReasonInTheEnd) {
    options_.held_patience = std::chrono::milliseconds{300};
    store_ = OpenPostgresStore(options_);
    auto host = Connect();
    Hold(*host);
    NewTask task = Wanted();
    try {
        store_->Submit({&task, 1});
        FAIL();
    } catch (const Unavailable& held) {
        EXPECT_THAT(held.what(), HasSubstr("an open transaction holds"));
    }
    host->Script("COMMIT");
    EXPECT_TRUE(store_->Submit({&task, 1}).at(0).accepted());
}

// ---- unknown commits ---------------------------------------------------------------------------

TEST_F(PostgresStoreTest, ALostAnswerToASettleIsUnknownAndFoundOutByItsToken) {
    Make();
    Lease lease = Claim(*store_).at(0);
    stint::testing::CutProxy proxy(ServerPort());
    PostgresOptions through = options_;
    through.url = Through(proxy);
    auto remote = OpenPostgresStore(through);
    proxy.CutAt("COMMIT");
    Settlement done = Done(lease);
    EXPECT_THROW(remote->Settle({&done, 1}), CommitUnknown);
    EXPECT_EQ(proxy.cuts(), 1);
    std::optional<SettleReply> settled = remote->SettledBy(lease.task, lease.token);
    ASSERT_TRUE(settled.has_value());
    EXPECT_EQ(settled->kind, SettleReply::Kind::kAccepted);
    EXPECT_EQ(settled->state, State::kComplete);
}

TEST_F(PostgresStoreTest, ALostAnswerToASubmitIsUnknownAndRepeatedSafely) {
    stint::testing::CutProxy proxy(ServerPort());
    PostgresOptions through = options_;
    through.url = Through(proxy);
    auto remote = OpenPostgresStore(through);
    NewTask first{.type = "t"};
    remote->Submit({&first, 1});  // its lane is known from now on: the next COMMIT is the submit's
    for (bool delivered : {true, false}) {
        NewTask task{.id = remote->ReserveIds(1), .type = "t"};
        proxy.CutAt("COMMIT", delivered);
        EXPECT_THROW(remote->Submit({&task, 1}), CommitUnknown);
        SubmitReply again = remote->Submit({&task, 1}).at(0);
        EXPECT_EQ(
            again.kind, delivered ? SubmitReply::Kind::kExisting : SubmitReply::Kind::kCreated
        ) << delivered;
        EXPECT_TRUE(again.accepted());
        EXPECT_EQ(again.id, task.id);
    }
    EXPECT_THAT(Claim(*store_, 10), SizeIs(3));
}

TEST_F(PostgresStoreTest, ALostAnswerBeforeTheSubmitBeganIsNotItsUnknown) {
    stint::testing::CutProxy proxy(ServerPort());
    PostgresOptions through = options_;
    through.url = Through(proxy);
    auto remote = OpenPostgresStore(through);
    proxy.CutAt("COMMIT");  // of the lane, which nobody has used yet
    NewTask task{.type = "t", .queue = "new"};
    EXPECT_EQ(remote->Submit({&task, 1}).at(0).kind, SubmitReply::Kind::kCreated);
    EXPECT_EQ(proxy.cuts(), 1);
}

TEST_F(PostgresStoreTest, ALineThatBreaksBeforeTheCommitIsTriedAgain) {
    stint::testing::CutProxy proxy(ServerPort());
    PostgresOptions through = options_;
    through.url = Through(proxy);
    through.prepare = postgres::ConnectOptions::Prepare::kNever;
    auto remote = OpenPostgresStore(through);
    proxy.CutAt("renewed_at = n.t");  // in the text of the statement
    EXPECT_NO_THROW(remote->Renew({.session = session_, .lease = std::chrono::hours{1}}));
    EXPECT_EQ(proxy.cuts(), 1);
}

TEST_F(PostgresStoreTest, ALineThatBreaksWhileItIsOpenedMeansThatTheServerIsAway) {
    for (const char* moment : {"to_regclass", "max(number)"}) {
        stint::testing::CutProxy proxy(ServerPort());
        PostgresOptions through = options_;
        through.url = Through(proxy);
        through.prepare = postgres::ConnectOptions::Prepare::kNever;
        proxy.CutAt(moment);
        EXPECT_THROW(OpenPostgresStore(through), Unavailable) << moment;
    }
}

TEST_F(PostgresStoreTest, AKilledIdleConnectionIsReplacedUnnoticed) {
    PostgresOptions named = options_;
    std::string name = schema_->name() + "_killed";
    named.url = stint::testing::WithParameter(options_.url, "application_name=" + name);
    auto store = OpenPostgresStore(named);
    NewTask task{.type = "t"};
    store->Submit({&task, 1});
    EXPECT_THAT(Claim(*store), SizeIs(1));
    Statement kill{
        "",
        "WITH its AS MATERIALIZED (SELECT pid FROM pg_stat_activity WHERE application_name = $1) "
        "SELECT count(*) FROM its WHERE pg_terminate_backend(pid, 5000)"};
    Rows killed = schema_->connection().Query(kill, Params().Text(name), Commits::kNo);
    EXPECT_GE(killed.Int(0, 0), 3) << "the common, the vital and the reserved one";
    store->Submit({&task, 1});
    EXPECT_THAT(Claim(*store), SizeIs(1));
}

TEST_F(PostgresStoreTest, ATableThatChangedUnderAPreparedStatementIsReadAgain) {
    TypeDefaults defaults;
    defaults.type = "t";
    store_->PublishTypes({&defaults, 1});
    EXPECT_THAT(store_->Types(), SizeIs(1));
    for (const char* type : {"varchar", "text"}) {
        schema_->connection().Script(
            fmt::format("ALTER TABLE {}.task_type ALTER queue TYPE {}", schema_->name(), type)
        );
        EXPECT_THAT(store_->Types(), SizeIs(1));
    }
}

TEST_F(PostgresStoreTest, AnUnreachableServerIsUnavailable) {
    PostgresOptions nowhere;
    nowhere.url = "postgres://127.0.0.1:1/x";
    EXPECT_THROW(OpenPostgresStore(nowhere), Unavailable);
}

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

// ---- what is written while a settlement waits for its lease -------------------------------------

TEST_F(PostgresStoreTest, ACancelThatASettlementWaitsForKeepsItsReason) {
    Make();
    Lease lease = Claim(*store_).at(0);
    pg::Sql sql(schema_->name());
    auto canceller = Connect();
    canceller->Script("BEGIN");
    Params cancel;
    postgres::AddInts(cancel, std::array{lease.task.value()});
    cancel.Text("no longer wanted");
    canceller->Query(Statement{"", sql.cancel_running.sql}, cancel, Commits::kNo);
    Settlement failed = Done(lease);
    failed.kind = Settlement::Kind::kRetry;
    failed.end = AttemptEnd::kFailed;
    auto settling = std::async(std::launch::async, [&] { return store_->Settle({&failed, 1}); });
    WaitForALock(*canceller);
    canceller->Script("COMMIT");
    EXPECT_EQ(settling.get().at(0).state, State::kCancelled);
    EXPECT_EQ(store_->Get(lease.task)->reason, "no longer wanted");
}

TEST_F(PostgresStoreTest, ProgressThatASettlementWaitsForIsNotLeftBehind) {
    Make();
    Lease lease = Claim(*store_).at(0);
    pg::Sql sql(schema_->name());
    auto reporter = Connect();
    // What a heartbeat does, up to its commit.
    reporter->Script(fmt::format(
        "BEGIN; SELECT FROM {0}.lease FOR SHARE;"
        "INSERT INTO {0}.progress(task, secret, step, done, message) VALUES ({1}, 1, 's', 1, '')",
        schema_->name(),
        lease.task.value()
    ));
    Settlement done = Done(lease);
    auto settling = std::async(std::launch::async, [&] { return store_->Settle({&done, 1}); });
    WaitForALock(*reporter);
    reporter->Script("COMMIT");
    EXPECT_EQ(settling.get().at(0).kind, SettleReply::Kind::kAccepted);
    Rows left = reporter->Query(
        Statement{"", fmt::format("SELECT count(*) FROM {}.progress", schema_->name())},
        {},
        Commits::kNo
    );
    EXPECT_EQ(left.Int(0, 0), 0);
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

// Of two who begin to wait for each other at the same time the second sees what the first has
// committed while it waited for its turn to look.
TEST_F(PostgresStoreTest, WhoBeginsToWaitSeesWhoHasJustBegunToWaitForIt) {
    TaskId first = Make(), second = Make();
    std::vector<Lease> leases = Claim(*store_, 2);
    ASSERT_THAT(leases, SizeIs(2));
    auto other = Connect();
    other->Script("BEGIN");
    other->Script(pg::Sql(schema_->name()).wait_lock.sql);
    Settlement block = Done(leases.at(leases[0].task == first ? 0 : 1));
    block.output.clear();
    block.kind = Settlement::Kind::kBlocked;
    block.end = AttemptEnd::kBlocked;
    block.wait.on = {second};
    SettleReply reply;
    std::jthread settles([&] { reply = store_->Settle({&block, 1}).at(0); });
    WaitForALock(schema_->connection());
    other->Script(fmt::format(
        "INSERT INTO {0}.wait(task, pending, failed, total, on_failure, any_success, need_success, "
        "started, open) VALUES ({1}, 1, 0, 1, 0, false, true, true, true); INSERT INTO "
        "{0}.wait_member(waiter, no, asked, task) VALUES ({1}, 0, {2}, {2}); COMMIT",
        schema_->name(),
        second.value(),
        first.value()
    ));
    settles.join();
    EXPECT_EQ(reply.kind, SettleReply::Kind::kRefused);
    EXPECT_THAT(reply.message, HasSubstr("wait for itself"));
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

// The numbers of an entry's lines come from a block: more than it has would be somebody else's.
TEST_F(PostgresStoreTest, AnAuditEntryOfManyThatEndedHasItsShare) {
    std::vector<NewTask> both;
    for (int i = 0; i < 600; ++i) {
        both.push_back({.type = "t"});
        both.push_back({.type = "other"});
    }
    for (std::size_t at = 0; at < both.size(); at += 600) {
        store_->Submit(std::span(both).subspan(at, 600));
    }
    std::vector<Settlement> done;
    for (const Lease& lease : Claim(*store_, 600)) done.push_back(Done(lease));
    ASSERT_THAT(done, SizeIs(600));
    store_->Settle(done);
    Rows entries = Connect()->Query(
        Statement{
            "",
            fmt::format(
                "SELECT max(cardinality(ids)), sum(cardinality(ids)), count(DISTINCT seq), "
                "count(*) "
                "FROM {}.audit WHERE event = 3",
                schema_->name()
            )},
        {},
        Commits::kNo
    );
    EXPECT_LE(entries.Int(0, 0), 500);
    EXPECT_EQ(entries.Int(0, 1), 600);
    EXPECT_EQ(entries.Int(0, 2), entries.Int(0, 3));
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

TEST_F(PostgresStoreTest, AWorkerLivesAndWorksWhileHandlersHoldTheirTransactionsOpen) {
    options_.acquire_timeout = std::chrono::milliseconds{200};
    options_.connections = options_.for_hosts = 2;
    store_ = OpenPostgresStore(options_);
    Make();
    std::latch inside(2), seen(1);
    std::vector<std::jthread> handlers;
    std::shared_ptr<void> let_go(nullptr, [&](void*) { seen.count_down(); });  // whatever happens
    for (int i = 0; i < 2; ++i) {
        handlers.emplace_back([&] {
            Result<void> done = store_->Write([&](Transaction&) -> Result<void> {
                inside.count_down();
                seen.wait();
                return {};
            });
            EXPECT_TRUE(done.has_value());
        });
    }
    inside.wait();
    EXPECT_TRUE(store_->Renew({.session = session_, .lease = std::chrono::hours{1}}).live);
    std::vector<Lease> leases = Claim(*store_);
    EXPECT_THAT(leases, SizeIs(1));
    if (!leases.empty()) {
        Settlement done = Done(leases[0]);
        EXPECT_EQ(store_->Settle({&done, 1}).at(0).kind, SettleReply::Kind::kAccepted);
    }
    EXPECT_THROW((void)store_->Write([](Transaction&) -> Result<void> { return {}; }), Unavailable)
        << "their own connections are all in use";
}

// ---- large batches, moving tasks ---------------------------------------------------------------

TEST_F(PostgresStoreTest, WhatIsTooLargeForOneStatementGoesInSeveral) {
    std::string large = '"' + std::string(1'000'000, 'x') + '"';
    std::vector<NewTask> tasks(20, NewTask{.type = "t", .input = large});
    for (const SubmitReply& reply : store_->Submit(tasks)) {
        EXPECT_EQ(reply.kind, SubmitReply::Kind::kCreated);
    }
    std::vector<Settlement> outcomes;
    for (const Lease& lease : Claim(*store_, 20)) {
        outcomes.push_back(Done(lease));
        outcomes.back().output = large;
    }
    ASSERT_THAT(outcomes, SizeIs(20));
    for (const SettleReply& reply : store_->Settle(outcomes)) {
        EXPECT_EQ(reply.kind, SettleReply::Kind::kAccepted);
    }
    // Each statement writes its own row of the log.
    for (Event event : {Event::kSubmit, Event::kComplete}) {
        Statement rows{
            "",
            fmt::format(
                "SELECT count(*) FROM {}.audit WHERE event = {}",
                schema_->name(),
                static_cast<int>(event)
            )};
        EXPECT_EQ(schema_->connection().Query(rows, {}, Commits::kNo).Int(0, 0), 2);
    }
}

TEST_F(PostgresStoreTest, ALateAttemptIsFoundBehindLeasesWhoseShortOnesAreDone) {
    using std::chrono::seconds;
    Make({.timeout = seconds{1}});
    Make({.timeout = std::chrono::minutes{50}});
    Settlement done = Done(Claim(*store_, 2).at(0));
    ASSERT_EQ(store_->Settle({&done, 1}).at(0).kind, SettleReply::Kind::kAccepted);
    TaskId late = Make({.timeout = seconds{2}});
    ASSERT_THAT(Claim(*store_, 1), SizeIs(1));
    schema_->AdvanceTime(std::chrono::minutes{10});
    ReclaimReply reply = store_->Reclaim({.limit = 1});
    ASSERT_THAT(reply.tasks, SizeIs(1));
    EXPECT_EQ(reply.tasks[0].task, late);
}

TEST_F(PostgresStoreTest, ATaskSubmittedWhileItIsCancelledIsNotCalledFinished) {
    NewTask task{.id = store_->ReserveIds(1), .type = "t"};
    bool submitted = false;
    Listen([&](std::string_view point) {
        if (point != "store_postgres.cancelled_live" || std::exchange(submitted, true)) return;
        store_->Submit({&task, 1});
    });
    CancelReply reply = store_->Cancel({&task.id, 1}, "me", "").at(0);
    EXPECT_TRUE(submitted);
    EXPECT_EQ(reply.kind, CancelReply::Kind::kCancelled);
    EXPECT_EQ(store_->Get(task.id)->state, State::kCancelled);
}

TEST_F(PostgresStoreTest, AUniqueKeyThatStandsForALiveTaskCannotBeWrittenOver) {
    Make({.unique_key = "u"});
    pg::Sql sql(schema_->name());
    Params params;
    auto one = [&](unsigned type, auto add) {
        postgres::ArrayOf array(type);
        add(array);
        array.AddTo(params);
    };
    one(postgres::oid::kInt2, [](auto& array) { array.Int(0); });
    one(postgres::oid::kInt8, [](auto& array) { array.Int(kDefaultTenant.value()); });
    one(postgres::oid::kText, [](auto& array) { array.Text("t"); });
    one(postgres::oid::kText, [](auto& array) { array.Text("u"); });
    one(postgres::oid::kInt8, [](auto& array) { array.Int(999); });
    one(postgres::oid::kText, [](auto& array) { array.Text(""); });
    one(postgres::oid::kInt8, [](auto& array) { array.Int(0); });
    try {
        schema_->connection().Query(Statement{"", sql.keys_write.sql}, params, Commits::kNo);
        FAIL();
    } catch (const postgres::SqlError& error) {
        EXPECT_EQ(error.fault(), postgres::Fault::kUnique);
    }
}

TEST_F(PostgresStoreTest, ManyThreadsShareFewConnections) {
    std::atomic<int> claimed{0};
    constexpr int kTasks = 200;
    std::vector<NewTask> tasks(kTasks, NewTask{.type = "t"});
    store_->Submit(tasks);
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 8; ++i) {
            threads.emplace_back([&] {
                for (;;) {
                    std::vector<Lease> leases = Claim(*store_, 5);
                    if (leases.empty()) return;
                    std::vector<Settlement> outcomes;
                    for (const Lease& lease : leases) outcomes.push_back(Done(lease));
                    for (const SettleReply& reply : store_->Settle(outcomes)) {
                        claimed += reply.kind == SettleReply::Kind::kAccepted;
                    }
                }
            });
        }
    }
    EXPECT_EQ(claimed, kTasks);
    for (const CheckFinding& finding : store_->Check()) EXPECT_TRUE(finding.ok) << finding.detail;
}

}  // namespace
}  // namespace stint::store
