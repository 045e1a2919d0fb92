#include "postgres/connection.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <libpq-fe.h>

#include <cstdlib>

#include "postgres/transaction.h"
#include "support/cut_proxy.h"
#include "support/postgres.h"

namespace stint::postgres {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ConnectionTest : public ::testing::Test {
protected:
    void SetUp() override {
        SKIP_WITHOUT_POSTGRES();
        options_.url = stint::testing::TestPostgresUrl();
        connection_ = Connection::Open(options_);
    }
    Rows Ask(const std::string& sql, const Params& params = {}) {
        return connection_->Query(Statement{"", sql}, params, Commits::kNo);
    }
    // The same server, through a relay.
    std::string UrlThrough(const stint::testing::CutProxy& proxy) {
        return stint::testing::WithParameter(
            options_.url, "host=127.0.0.1&port=" + std::to_string(proxy.port()) + "&sslmode=disable"
        );
    }
    int ServerPort() { return std::atoi(PQport(connection_->native())); }

    ConnectOptions options_;
    std::unique_ptr<Connection> connection_;
};

TEST_F(ConnectionTest, EveryKindOfValueMakesTheRoundTrip) {
    SessionId uuid(0x0123456789abcdefu, 0xfedcba9876543210u);
    Time at{std::chrono::microseconds{1'700'000'000'123'456}};
    Params params;
    params.Int(-5).Int4(7).Bool(true).Float(2.5).Text("O'Brien \\ \"x\"").At(at).Uuid(uuid);
    params.Null(oid::kText);
    Rows rows = Ask("SELECT $1, $2, $3, $4, $5, $6, $7, $8, $7::text", params);
    ASSERT_EQ(rows.size(), 1);
    EXPECT_EQ(rows.Int(0, 0), -5);
    EXPECT_EQ(rows.Int(0, 1), 7);
    EXPECT_TRUE(rows.Bool(0, 2));
    EXPECT_EQ(rows.Float(0, 3), 2.5);
    EXPECT_EQ(rows.Text(0, 4), "O'Brien \\ \"x\"");
    EXPECT_EQ(rows.At(0, 5), at);
    EXPECT_EQ(rows.Uuid<SessionId>(0, 6), uuid);
    EXPECT_TRUE(rows.IsNull(0, 7));
    EXPECT_EQ(rows.Text(0, 8), "01234567-89ab-cdef-fedc-ba9876543210");
}

TEST_F(ConnectionTest, ArraysAreUnnested) {
    Params params;
    AddInts(params, std::vector<std::int64_t>{1, -2, 3});
    ArrayOf texts(oid::kText);
    texts.Text("a,{}\"").TextOrNull("").Text("");
    texts.AddTo(params);
    ArrayOf small(oid::kInt2);
    small.Int(1).Int(2).Int(-3);
    small.AddTo(params);
    Rows rows =
        Ask("SELECT a, b, c FROM unnest($1, $2, $3) WITH ORDINALITY u(a, b, c, n) ORDER BY n",
            params);
    ASSERT_EQ(rows.size(), 3);
    EXPECT_EQ(rows.Int(1, 0), -2);
    EXPECT_EQ(rows.Text(0, 1), "a,{}\"");
    EXPECT_TRUE(rows.IsNull(1, 1));
    EXPECT_FALSE(rows.IsNull(2, 1));
    EXPECT_EQ(rows.Int(2, 2), -3);
}

TEST_F(ConnectionTest, AListOfNothingIsNotSentAndComesAsNulls) {
    Params params;
    AddInts(params, std::vector<std::int64_t>{1, 2});
    ArrayOf nothing(oid::kText), some(oid::kText);
    nothing.Null().Null();
    nothing.AddUnlessNothing(params);
    some.Null().Text("b");
    some.AddUnlessNothing(params);
    Rows rows =
        Ask("SELECT a, b, c, $2 IS NULL, $3 IS NULL FROM unnest($1, $2, $3) u(a, b, c) ORDER BY a",
            params);
    ASSERT_EQ(rows.size(), 2);
    EXPECT_TRUE(rows.IsNull(0, 1) && rows.IsNull(1, 1) && rows.IsNull(0, 2));
    EXPECT_EQ(rows.Text(1, 2), "b");
    EXPECT_TRUE(rows.Bool(0, 3));
    EXPECT_FALSE(rows.Bool(0, 4));
}

TEST_F(ConnectionTest, ArraysComeBack) {
    Params none;
    AddTexts(none, {});
    Rows rows = Ask("SELECT ARRAY['x', 'y z'], ARRAY[3, 4], $1, NULL::text[]", none);
    EXPECT_THAT(rows.Texts(0, 0), ElementsAre("x", "y z"));
    EXPECT_THAT(rows.Ints(0, 1), ElementsAre(3, 4));
    EXPECT_THAT(rows.Texts(0, 2), ElementsAre());
    EXPECT_THAT(rows.Texts(0, 3), ElementsAre());
}

TEST_F(ConnectionTest, ADirectConnectionIsKnownAsOne) {
    EXPECT_TRUE(connection_->direct());
}

TEST_F(ConnectionTest, SettingsApplyToTheSession) {
    options_.settings = {{"plan_cache_mode", "force_generic_plan"}};
    connection_ = Connection::Open(options_);
    EXPECT_EQ(Ask("SELECT current_setting('plan_cache_mode')").Text(0, 0), "force_generic_plan");
}

TEST_F(ConnectionTest, AnErrorNamesItsStateAndLeavesTheConnectionUsable) {
    try {
        Ask("SELECT 1/0");
        FAIL();
    } catch (const SqlError& error) {
        EXPECT_EQ(error.sqlstate(), "22012");
        EXPECT_EQ(error.fault(), Fault::kData);
        EXPECT_THAT(error.what(), HasSubstr("division by zero"));
    }
    EXPECT_EQ(Ask("SELECT 1").Int(0, 0), 1);
}

TEST_F(ConnectionTest, NamedStatementsArePreparedOncePerConnection) {
    Statement named{"t_named", "SELECT $1::int8 + 1"};
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(connection_->Query(named, Params().Int(i), Commits::kNo).Int(0, 0), i + 1);
    }
    EXPECT_EQ(
        Ask("SELECT count(*) FROM pg_prepared_statements WHERE name = 't_named'").Int(0, 0), 1
    );
}

TEST_F(ConnectionTest, NoNamesAreUsedWhereTheyAreForbidden) {
    options_.prepare = ConnectOptions::Prepare::kNever;
    connection_ = Connection::Open(options_);
    Statement named{"t_named", "SELECT 1"};
    connection_->Query(named, {}, Commits::kNo);
    EXPECT_EQ(Ask("SELECT count(*) FROM pg_prepared_statements").Int(0, 0), 0);
}

TEST_F(ConnectionTest, AFailedPipelineLeavesNoDoubtfulNames) {
    Statement bad{"", "SELECT 1/0"};
    Statement named{"t_late", "SELECT 5"};
    Params none;
    // Whether it comes before or behind what fails, or fails itself.
    Statement early{"t_early", "SELECT 6"};
    Statement fails{"t_fails", "SELECT 1/$1::int8"};
    Params zero, one;
    zero.Int(0);
    one.Int(1);
    std::vector<Command> commands = {{&early, &none}, {&bad, &none}, {&named, &none}};
    EXPECT_THROW(connection_->Pipeline(commands, Commits::kNo), SqlError);
    EXPECT_EQ(connection_->Query(named, none, Commits::kNo).Int(0, 0), 5);
    EXPECT_EQ(connection_->Query(early, none, Commits::kNo).Int(0, 0), 6);
    EXPECT_THROW(connection_->Query(fails, zero, Commits::kNo), SqlError);
    EXPECT_EQ(connection_->Query(fails, one, Commits::kNo).Int(0, 0), 1);
}

TEST_F(ConnectionTest, AnOutdatedPlanEndsTheConnection) {
    connection_->Script("CREATE TEMP TABLE t_outdated(a int)");
    Statement named{"t_all", "SELECT * FROM t_outdated"};
    connection_->Query(named, {}, Commits::kNo);
    connection_->Script("ALTER TABLE t_outdated ADD b int");
    try {
        connection_->Query(named, {}, Commits::kNo);
        FAIL();
    } catch (const SqlError& error) {
        EXPECT_EQ(error.fault(), Fault::kStalePlan);
    }
    EXPECT_FALSE(connection_->usable()) << "the server still has the old plan under that name";
}

TEST_F(ConnectionTest, AnUnreachableServerIsReportedWithoutThePassword) {
    ConnectOptions options;
    options.url = "postgres://u:secret@127.0.0.1:1/db";
    options.connect_timeout = std::chrono::seconds{1};
    try {
        Connection::Open(options);
        FAIL();
    } catch (const ConnectionLost& lost) {
        EXPECT_THAT(lost.what(), HasSubstr("127.0.0.1"));
        EXPECT_THAT(lost.what(), Not(HasSubstr("secret")));
    }
}

TEST_F(ConnectionTest, ASlowReplyIsALostConnection) {
    options_.reply_timeout = std::chrono::milliseconds{200};
    connection_ = Connection::Open(options_);
    EXPECT_THROW(Ask("SELECT pg_sleep(20)"), ConnectionLost);
    EXPECT_FALSE(connection_->usable());
}

TEST_F(ConnectionTest, AClosedIdleConnectionIsNoticed) {
    std::int64_t pid = Ask("SELECT pg_backend_pid()").Int(0, 0);
    EXPECT_TRUE(connection_->StillThere());
    auto other = Connection::Open(options_);
    other->Query(
        Statement{"", "SELECT pg_terminate_backend($1::int4, 10000)"},
        Params().Int4(static_cast<int>(pid)),
        Commits::kNo
    );
    EXPECT_FALSE(connection_->StillThere());
    EXPECT_THROW(Ask("SELECT 1"), ConnectionLost);
}

TEST_F(ConnectionTest, AServerThatSaysGoodbyeFirstHasCommittedNothing) {
    EXPECT_THROW(
        connection_->Query(
            Statement{"", "SELECT pg_terminate_backend(pg_backend_pid())"}, {}, Commits::kYes
        ),
        ConnectionLost
    );
}

// ---- transactions ------------------------------------------------------------------------------

class TransactionTest : public ConnectionTest {
protected:
    void SetUp() override {
        ConnectionTest::SetUp();
        if (!connection_) return;
        connection_->Script(
            "DROP TABLE IF EXISTS transaction_test; CREATE TABLE transaction_test(n int UNIQUE)"
        );
    }
    void TearDown() override {
        if (connection_)
            Connection::Open(options_)->Script("DROP TABLE IF EXISTS transaction_test");
    }
    std::int64_t Count() { return Ask("SELECT count(*) FROM transaction_test").Int(0, 0); }
    const Statement insert_{"", "INSERT INTO transaction_test VALUES (1)"};
};

TEST_F(TransactionTest, CommitsInOneTrip) {
    Transaction transaction(*connection_);
    EXPECT_EQ(transaction.QueryAndCommit(insert_).affected(), 1);
    EXPECT_EQ(Count(), 1);
}

TEST_F(TransactionTest, RollsBackUnlessCommitted) {
    { Transaction(*connection_).Query(insert_); }
    EXPECT_EQ(Count(), 0);
}

TEST_F(TransactionTest, AnErrorRollsBackAndTheConnectionGoesOn) {
    {
        Transaction transaction(*connection_);
        transaction.Query(insert_);
        EXPECT_THROW(transaction.QueryAndCommit(insert_), SqlError);
    }
    EXPECT_EQ(Count(), 0);
}

TEST_F(TransactionTest, StatementTimeoutEndsAtTheTransaction) {
    TransactionOptions options;
    options.statement_timeout = std::chrono::milliseconds{100};
    try {
        Transaction(*connection_, options).Query(Statement{"", "SELECT pg_sleep(20)"});
        FAIL();
    } catch (const SqlError& error) {
        EXPECT_EQ(error.fault(), Fault::kTimeout);
    }
    EXPECT_EQ(Ask("SELECT current_setting('statement_timeout')").Text(0, 0), "0");
}

TEST_F(TransactionTest, WhoFallsSilentInTheMiddleLosesItsLocks) {
    connection_->Script("INSERT INTO transaction_test DEFAULT VALUES");
    TransactionOptions options;
    options.idle_timeout = std::chrono::milliseconds{100};
    Transaction frozen(*connection_, options);
    frozen.Query(Statement{"", "LOCK TABLE transaction_test IN ACCESS EXCLUSIVE MODE"});

    // Waits for the lock, so for the server to give up on the other.
    auto other = Connection::Open(options_);
    EXPECT_EQ(
        other->Query(Statement{"", "SELECT count(*) FROM transaction_test"}, {}, Commits::kNo)
            .Int(0, 0),
        1
    );
    EXPECT_THROW(frozen.QueryAndCommit(insert_), ConnectionLost);
}

TEST_F(TransactionTest, SilenceIsLimitedWhereTheTransactionGoesOn) {
    const Statement seen{"", "SELECT current_setting('idle_in_transaction_session_timeout')"};
    EXPECT_EQ(Transaction(*connection_).Query(seen).Text(0, 0), "10s");
    EXPECT_EQ(Transaction(*connection_).QueryAndCommit(seen).Text(0, 0), "0");
}

TEST_F(TransactionTest, TheTimeoutIsLiftedBeforeCommit) {
    // A deferred trigger runs inside COMMIT and sees what is in force there.
    connection_->Script(R"(
        CREATE OR REPLACE FUNCTION transaction_test_seen() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF current_setting('statement_timeout') <> '0' THEN
                RAISE 'a timeout is in force';
            END IF;
            RETURN NULL;
        END $$;
        CREATE CONSTRAINT TRIGGER seen AFTER INSERT ON transaction_test
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION transaction_test_seen();)");
    Transaction transaction(*connection_);
    EXPECT_EQ(
        transaction.Query(Statement{"", "SELECT current_setting('statement_timeout')"}).Text(0, 0),
        "30s"
    );
    transaction.QueryAndCommit(insert_);
    EXPECT_EQ(Count(), 1);
}

TEST_F(TransactionTest, AnErrorOfTheConnectionInAnswerToCommitLeavesTheOutcomeUnknown) {
    // A deferred trigger speaks for a server or a pooler that lost sight of the commit.
    for (const char* state : {"08006", "08007", "40003"}) {
        connection_ = Connection::Open(options_);
        connection_->Script(fmt::format(
            R"(
            CREATE OR REPLACE FUNCTION transaction_test_lost() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE 'lost' USING ERRCODE = '{}'; END $$;
            DROP TRIGGER IF EXISTS lost ON transaction_test;
            CREATE CONSTRAINT TRIGGER lost AFTER INSERT ON transaction_test
                DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
                EXECUTE FUNCTION transaction_test_lost())",
            state
        ));
        Transaction transaction(*connection_);
        transaction.Query(insert_);
        EXPECT_THROW(transaction.Commit(), OutcomeUnknown) << state;
        EXPECT_FALSE(connection_->usable());
    }
}

TEST_F(TransactionTest, WhatIsToRunOnCommitRunsAfterItOnly) {
    int ran = 0;
    {
        Transaction transaction(*connection_);
        transaction.OnCommit([&] { ++ran; });
        transaction.Query(insert_);
    }
    EXPECT_EQ(ran, 0) << "rolled back";
    Transaction transaction(*connection_);
    Transaction part(*connection_, Transaction::Joined{&transaction});
    part.OnCommit([&] { ++ran; });
    transaction.Begin();
    part.Query(insert_);
    part.Commit();
    EXPECT_EQ(ran, 0) << "the whole is not committed yet";
    transaction.Commit();
    EXPECT_EQ(ran, 1);
}

TEST_F(TransactionTest, ReadsWhatWasCommittedBeforeEachStatementWhateverTheDefault) {
    connection_->Script("SET default_transaction_isolation = 'repeatable read'");
    Transaction transaction(*connection_);
    EXPECT_EQ(
        transaction.Query(Statement{"", "SHOW transaction_isolation"}).Text(0, 0), "read committed"
    );
}

TEST_F(TransactionTest, ALineCutAtCommitLeavesTheOutcomeUnknown) {
    stint::testing::CutProxy proxy(ServerPort());
    ConnectOptions through = options_;
    through.url = UrlThrough(proxy);
    auto remote = Connection::Open(through);
    EXPECT_TRUE(remote->direct());
    {
        Transaction transaction(*remote);
        transaction.Query(insert_);
        proxy.CutAt("COMMIT");
        EXPECT_THROW(transaction.Commit(), OutcomeUnknown);
    }
    EXPECT_FALSE(remote->usable());
    EXPECT_EQ(proxy.cuts(), 1);
    EXPECT_EQ(Count(), 1);  // it did happen; only nobody said so
}

TEST_F(TransactionTest, ALineCutBeforeCommitIsAPlainLoss) {
    stint::testing::CutProxy proxy(ServerPort());
    ConnectOptions through = options_;
    through.url = UrlThrough(proxy);
    auto remote = Connection::Open(through);
    {
        Transaction transaction(*remote);
        proxy.CutAt("INSERT");
        EXPECT_THROW(transaction.Query(insert_), ConnectionLost);
    }
    EXPECT_EQ(Count(), 0);
}

TEST_F(TransactionTest, ALineCutInAnAutocommittedWriteIsUnknownToo) {
    stint::testing::CutProxy proxy(ServerPort());
    ConnectOptions through = options_;
    through.url = UrlThrough(proxy);
    auto remote = Connection::Open(through);
    proxy.CutAt("INSERT", false);
    EXPECT_THROW(remote->Query(insert_, {}, Commits::kYes), OutcomeUnknown);
    EXPECT_EQ(Count(), 0);  // it did not happen; that is not known either
}

}  // namespace
}  // namespace stint::postgres
