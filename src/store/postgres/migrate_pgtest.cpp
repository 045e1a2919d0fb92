// Making and upgrading the schema.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "postgres/connection.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/sql.h"
#include "support/postgres.h"

namespace stint::store {
namespace {

using postgres::Commits;
using postgres::Connection;
using postgres::Params;
using postgres::Statement;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class MigrationTest : public ::testing::Test {
protected:
    void SetUp() override {
        SKIP_WITHOUT_POSTGRES();
        options_.url = stint::testing::TestPostgresUrl();
        options_.schema = fmt::format("test_migration_{}", getpid());
        connection_ = Connect();
        Drop();
    }
    void TearDown() override {
        if (connection_) Drop();
    }
    void Drop() { connection_->Script("DROP SCHEMA IF EXISTS " + options_.schema + " CASCADE"); }
    std::unique_ptr<Connection> Connect() {
        postgres::ConnectOptions connect;
        connect.url = options_.url;
        return Connection::Open(connect);
    }
    // The schema as it was before that migration.
    void MakeUpTo(const std::string& migration) {
        for (const std::string& text : PendingMigrations(options_)) {
            if (text.starts_with("-- " + migration)) return;
            connection_->Script(text);
        }
    }
    bool Exists() {
        Statement there{"", "SELECT to_regnamespace($1) IS NOT NULL"};
        return connection_->Query(there, Params().Text(options_.schema), Commits::kNo).Bool(0, 0);
    }

    PostgresOptions options_;
    std::unique_ptr<Connection> connection_;
};

TEST_F(MigrationTest, ADryRunTellsAndChangesNothing) {
    std::vector<std::string> pending = PendingMigrations(options_);
    EXPECT_EQ(pending.size(), pg::Migrations().size() + 1);
    EXPECT_THAT(pending.at(1), HasSubstr("CREATE TABLE \"" + options_.schema + "\".live("));
    EXPECT_THAT(pending.at(1), Not(HasSubstr("$schema$")));
    EXPECT_FALSE(Exists());
    MigratePostgres(options_);
    EXPECT_THAT(PendingMigrations(options_), IsEmpty());
}

TEST_F(MigrationTest, WhatTheDryRunPrintsIsWhatIsNeeded) {
    for (const std::string& text : PendingMigrations(options_)) connection_->Script(text);
    EXPECT_THAT(PendingMigrations(options_), IsEmpty());
    options_.migrate = false;
    EXPECT_EQ(OpenPostgresStore(options_)->Info().schema, PostgresSchemaVersion());
}

TEST_F(MigrationTest, SeveralNodesMayStartAtOnce) {
    std::vector<std::string> errors(4);
    {
        std::vector<std::jthread> nodes;
        for (std::string& error : errors) {
            nodes.emplace_back([this, &error] {
                try {
                    OpenPostgresStore(options_)->Now();
                } catch (const std::exception& broke) {
                    error = broke.what();
                }
            });
        }
    }
    EXPECT_THAT(errors, ::testing::Each(""));
    Statement count{"", "SELECT count(*) FROM " + options_.schema + ".migration"};
    EXPECT_EQ(
        connection_->Query(count, {}, Commits::kNo).Int(0, 0),
        static_cast<std::int64_t>(pg::Migrations().size())
    );
}

// A session of the server remembers names that were not there, also while it waits for the lock.
// The other node only says what it has done: the real thing makes so much noise that one of those
// who wait is told to forget.
TEST_F(MigrationTest, WhoWaitedForAnotherNodesMigrationSeesIt) {
    std::string preamble = PendingMigrations(options_).at(0);
    connection_->Script(fmt::format(
        "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('{}', 7000))", options_.schema
    ));
    connection_->Script(fmt::format(
        "{} INSERT INTO {}.migration(number, name) SELECT n, 'done' FROM generate_series(1, {}) n",
        preamble,
        options_.schema,
        PostgresSchemaVersion()
    ));
    auto waiting = std::async(std::launch::async, [this] { MigratePostgres(options_); });
    Statement waits{
        "",
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND "
        "(classid::bigint << "
        "32 | objid::bigint) = hashtextextended($1, 7000)"};
    while (connection_->Query(waits, Params().Text(options_.schema), Commits::kNo).Int(0, 0) == 0) {
        std::this_thread::yield();
    }
    connection_->Script("COMMIT");
    EXPECT_NO_THROW(waiting.get());
    EXPECT_THAT(PendingMigrations(options_), IsEmpty());
}

TEST_F(MigrationTest, WaitsForATableWithoutKeepingOthersFromIt) {
    MakeUpTo("006 queue_changed");
    std::future<void> migrating;  // outlives the reader: should this fail, it is not stuck
    auto reader = Connect();
    reader->Script("BEGIN; SELECT FROM " + options_.schema + ".queue");
    migrating = std::async(std::launch::async, [this] { MigratePostgres(options_); });
    Statement waiting{
        "", "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = to_regclass($1)"};
    Params queue = Params().Text(options_.schema + ".queue");
    while (connection_->Query(waiting, queue, Commits::kNo).Int(0, 0) == 0) {
        std::this_thread::yield();
    }
    // Behind who waits for all of a table, everybody waits; so it gives up now and then.
    connection_->Script("SET statement_timeout = '20s'; SELECT FROM " + options_.schema + ".queue");
    EXPECT_EQ(migrating.wait_for(std::chrono::seconds{0}), std::future_status::timeout);
    reader->Script("COMMIT");
    migrating.get();
    EXPECT_THAT(PendingMigrations(options_), IsEmpty());
}

TEST_F(MigrationTest, GivesUpAfterItsTimeAndSaysWhatToDo) {
    MakeUpTo("006 queue_changed");
    auto reader = Connect();
    reader->Script("BEGIN; SELECT FROM " + options_.schema + ".queue");
    options_.migrate_for = std::chrono::seconds{0};
    try {
        MigratePostgres(options_);
        FAIL() << "the table is held";
    } catch (const Unavailable& unavailable) {
        EXPECT_THAT(unavailable.what(), HasSubstr(options_.schema));
        EXPECT_THAT(unavailable.what(), HasSubstr("pg_stat_activity"));
        EXPECT_THAT(unavailable.what(), HasSubstr("stint store migrate"));
    }
    EXPECT_THAT(PendingMigrations(options_), Not(IsEmpty()));
}

TEST_F(MigrationTest, TheIdentityIsMadeOnceAndSurvivesMigrations) {
    // A schema from before there were identities.
    MakeUpTo("004 identity");
    std::string identity = OpenPostgresStore(options_)->Info().identity;
    EXPECT_EQ(identity.size(), 32u);
    MigratePostgres(options_);
    EXPECT_EQ(OpenPostgresStore(options_)->Info().identity, identity);
}

TEST_F(MigrationTest, ANewerSchemaIsRefusedClearly) {
    MigratePostgres(options_);
    connection_->Script(
        "INSERT INTO " + options_.schema + ".migration(number, name) VALUES (9999, 'future')"
    );
    try {
        OpenPostgresStore(options_);
        FAIL();
    } catch (const WrongSchema& wrong) {
        EXPECT_THAT(wrong.what(), HasSubstr("version 9999"));
        EXPECT_THAT(wrong.what(), HasSubstr("newer program"));
    }
}

TEST_F(MigrationTest, AMissingSchemaIsNotMadeUnasked) {
    options_.migrate = false;
    EXPECT_THROW(OpenPostgresStore(options_), WrongSchema);
    EXPECT_FALSE(Exists());
}

TEST_F(MigrationTest, ABadNameIsRefusedBeforeAnythingIsSent) {
    PostgresOptions bad = options_;
    bad.schema = "x\"; DROP SCHEMA public; --";
    EXPECT_THROW(OpenPostgresStore(bad), std::runtime_error);
}

}  // namespace
}  // namespace stint::store
