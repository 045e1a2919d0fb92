// What only this store promises: borrowed transactions, unknown commits, large batches,
// connections.
#include <libpq-fe.h>

#include <array>
#include <future>
#include <latch>

#include "postgres/listener.h"
#include "store/postgres/store_suite.h"
#include "store/results.h"

namespace stint::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

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

// ---- who is told of a submit -------------------------------------------------------------------

class TellingTest : public PostgresStoreTest {
protected:
    void SetUp() override {
        PostgresStoreTest::SetUp();
        if (!store_) return;
        postgres::ConnectOptions connect;
        connect.url = options_.url;
        listener_.emplace(connect, std::vector{options_.schema + "_task_available"});
        ASSERT_TRUE(listener_->Open());
    }
    static NewTask In(const std::string& queue) { return {.type = "t", .queue = queue}; }
    // As soon as it is its turn.
    std::vector<SubmitReply> Announced(std::vector<NewTask> tasks) {
        for (;;) {
            std::vector<SubmitReply> replies = store_->Submit(tasks);
            EXPECT_TRUE(std::ranges::all_of(replies, &SubmitReply::accepted));
            if (HasFailure() || std::ranges::any_of(replies, &SubmitReply::announced)) {
                return replies;
            }
            std::this_thread::yield();
        }
    }
    std::vector<std::string> HeardUntil(const std::string& queue) {
        std::vector<std::string> heard;
        while (heard.empty() || heard.back() != queue) {
            auto more = listener_->Wait(std::chrono::seconds{20});
            EXPECT_THAT(more, Not(IsEmpty()));
            if (more.empty()) break;
            for (const postgres::Notification& each : more) heard.push_back(each.payload);
        }
        return heard;
    }
    std::optional<postgres::Listener> listener_;
};

TEST_F(TellingTest, ARareSubmitTellsOfItselfWithItsCommit) {
    Announced({In("first")});
    NewTask later = In("later");
    later.delay = std::chrono::hours{1};
    EXPECT_FALSE(store_->Submit({&later, 1}).at(0).announced) << "nobody has anything to do yet";
    Announced({In("last")});
    EXPECT_THAT(HeardUntil("last"), ElementsAre("first", "last"));
}

TEST_F(TellingTest, OfWhatIsNotToldTheReplySaysSo) {
    NewTask now = In("now"), due = In("due");
    now.delay = Duration::zero();
    due.run_at = store_->Now() - std::chrono::hours{1};
    auto replies = Announced({In("plain"), now, due});
    EXPECT_TRUE(replies[0].announced && replies[1].announced);
    EXPECT_FALSE(replies[2].announced) << "its caller tells of it";
    EXPECT_TRUE(replies[2].due_now);
    Announced({In("last")});
    EXPECT_THAT(HeardUntil("last"), ElementsAre("plain", "now", "last"));
}

TEST_F(TellingTest, AServerThatTakesNoNotificationTakesTheTask) {
    const std::string shadow = schema_->name() + "_shadow";
    auto connection = Connect();
    connection->Script(fmt::format(
        "DROP SCHEMA IF EXISTS {0} CASCADE; CREATE SCHEMA {0};"
        "CREATE FUNCTION {0}.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE 'too many notifications in the NOTIFY queue' USING ERRCODE = '54000'; END "
        "$$",
        shadow
    ));
    options_.url = stint::testing::WithParameter(
        options_.url, "options=-csearch_path%3D" + shadow + "%2Cpg_catalog"
    );
    auto store = OpenPostgresStore(options_);
    for (int i = 0; i < 3; ++i) {
        NewTask task = In("q");
        SubmitReply reply = store->Submit({&task, 1}).at(0);
        EXPECT_EQ(reply.kind, SubmitReply::Kind::kCreated);
        EXPECT_FALSE(reply.announced);
    }
    EXPECT_THAT(Claim(*store_, 10), SizeIs(3));
    connection->Script(fmt::format("DROP SCHEMA {} CASCADE", shadow));
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
    for (const char* moment : {"pg_class", "max(number)"}) {
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
