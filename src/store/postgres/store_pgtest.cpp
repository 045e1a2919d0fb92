// What only this store promises: borrowed transactions, unknown commits, late commits, connections.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <libpq-fe.h>

#include <thread>

#include "store/postgres/postgres_store.h"
#include "support/cut_proxy.h"
#include "support/postgres_schema.h"

namespace stint::store {
namespace {

using postgres::Commits;
using postgres::Connection;
using postgres::Params;
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
    std::vector<Lease> Claim(Store& store, int limit = 1) {
        return store.Claim({.session = session_, .limit = limit, .types = {"t"}}).leases;
    }
    Settlement Done(const Lease& lease) {
        Settlement done{.task = lease.task, .token = lease.token, .session = session_};
        done.output = "1";
        return done;
    }
    std::string Through(const stint::testing::CutProxy& proxy) {
        return stint::testing::WithParameter(
            options_.url, fmt::format("host=127.0.0.1&port={}&sslmode=disable", proxy.port())
        );
    }
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

TEST_F(PostgresStoreTest, AKilledIdleConnectionIsReplacedUnnoticed) {
    Make();
    schema_->connection().Script(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = "
        "'stint' "
        "AND pid <> pg_backend_pid() AND query LIKE '%" +
        schema_->name() + "%'"
    );
    EXPECT_THAT(Claim(*store_), SizeIs(1));
}

TEST_F(PostgresStoreTest, AnUnreachableServerIsUnavailable) {
    PostgresOptions nowhere;
    nowhere.url = "postgres://127.0.0.1:1/x";
    EXPECT_THROW(OpenPostgresStore(nowhere), Unavailable);
}

// ---- late commits and marks --------------------------------------------------------------------

TEST_F(PostgresStoreTest, ASubmitThatCommitsLateBelowTheMarkIsStillClaimed) {
    auto mine = Connect();
    mine->Script("BEGIN");
    NewTask task{.type = "t"};
    TaskId late = store_->Borrow(mine->native()).value()->Submit({&task, 1}).at(0).id;
    std::vector<TaskId> later;
    for (int i = 0; i < 5; ++i) later.push_back(Make());
    EXPECT_THAT(Claim(*store_, 5), SizeIs(5));  // the marks are now above the open submit
    mine->Script("COMMIT");
    Make();
    // However busy the lane is, it is found within the time for looking everywhere.
    bool found = false;
    for (int i = 0; i < 200 && !found; ++i) {
        Make();
        for (const Lease& lease : Claim(*store_)) found |= lease.task == late;
    }
    if (!found) {
        for (const Lease& lease : Claim(*store_, 1000)) found |= lease.task == late;
    }
    EXPECT_TRUE(found);
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
