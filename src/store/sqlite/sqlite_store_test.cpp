// What only this store promises: its file, its writer, its tables. What every store promises is in
// the conformance suite.
#include "store/sqlite/sqlite_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <semaphore>
#include <thread>

#include "base/test_point.h"
#include "sqlite/error.h"
#include "sqlite/transaction.h"
#include "store/sqlite/direct_store.h"
#include "store/sqlite/migrate.h"

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

class SqliteStoreTest : public ::testing::Test {
protected:
    SqliteStoreTest() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "stint-store-XXXXXX").string();
        directory_ = mkdtemp(pattern.data());
        options_.path = directory_ + "/a.db";
        options_.clock = &clock_;
        options_.sync = false;
    }
    ~SqliteStoreTest() override {
        base::SetTestPointListener({});
        std::filesystem::remove_all(directory_);
    }

    static NewTask Task(const std::string& type = "t") {
        NewTask task;
        task.type = type;
        return task;
    }
    static SessionId OpenSession(Store& store) {
        NewSession session;
        session.id = base::SystemRandom().MakeId<SessionId>();
        session.hostname = "here";
        session.lease = 24h;
        store.OpenSession(session);
        return session.id;
    }
    static TaskId Finish(Store& store, SessionId session) {
        ClaimRequest claim;
        claim.session = session;
        claim.types = {"t"};
        auto leases = store.Claim(claim).leases;
        EXPECT_EQ(leases.size(), 1u);
        Settlement outcome;
        outcome.task = leases.at(0).task;
        outcome.token = leases.at(0).token;
        outcome.session = session;
        outcome.output = "1";
        EXPECT_EQ(store.Settle({&outcome, 1}).at(0).kind, SettleReply::Kind::kAccepted);
        return outcome.task;
    }
    static void ExpectSound(Store& store) {
        for (const CheckFinding& finding : store.Check()) {
            EXPECT_TRUE(finding.ok) << finding.what << ": " << finding.detail;
        }
    }
    std::vector<std::string> Columns(const std::string& view) {
        sqlite::Connection reader(options_.path, {});
        sqlite::Statement statement = reader.Prepare("SELECT * FROM " + view);
        std::vector<std::string> names;
        for (int i = 0; i < statement.columns(); ++i) names.push_back(statement.column_name(i));
        return names;
    }

    base::ManualClock clock_;
    std::string directory_;
    SqliteOptions options_;
};

// ---- group commit ----

TEST_F(SqliteStoreTest, MembersQueuedBehindACommitShareTheNextOne) {
    lite::DirectStore store(options_, {});
    constexpr int kThreads = 16;
    std::binary_semaphore at_commit{0};
    std::binary_semaphore go_on{0};
    std::atomic<bool> first = true;
    base::SetTestPointListener([&](std::string_view point) {
        if (point != "sqlite.before_commit" || !first.exchange(false)) return;
        at_commit.release();
        go_on.acquire();
    });
    auto groups_before = store.totals().groups;
    std::vector<std::future<std::vector<SubmitReply>>> submits;
    auto submit = [&store](std::string type) {
        NewTask task = Task(type);
        return store.Submit({&task, 1});
    };
    submits.push_back(std::async(std::launch::async, submit, "t"));
    at_commit.acquire();  // the writer waits for the disk, as it were
    for (int i = 1; i < kThreads; ++i)
        submits.push_back(std::async(std::launch::async, submit, "t"));
    // One of those behind it fails: a commit of its own would not matter, a shared one would.
    auto bad = std::async(std::launch::async, [&store] {
        return store.Write([](Transaction& transaction) -> Result<void> {
            NewTask task = Task("t");
            transaction.Submit({&task, 1});
            throw std::runtime_error("the host has a bug");
        });
    });
    while (store.queued() < kThreads) std::this_thread::yield();
    go_on.release();
    for (auto& one : submits) EXPECT_EQ(one.get().at(0).kind, SubmitReply::Kind::kCreated);
    EXPECT_THROW(bad.get(), std::runtime_error);
    EXPECT_EQ(store.totals().groups - groups_before, 2);
    std::map<CountKey, std::int64_t> counts = store.Counts({});
    EXPECT_EQ((counts[{State::kOpen, "default", "t"}]), kThreads);
    ExpectSound(store);
}

TEST_F(SqliteStoreTest, FailingMemberFailsAlone) {
    lite::DirectStore store(options_, {});
    auto refused = store.Write([](Transaction& transaction) -> Result<void> {
        NewTask task = Task("new-lane");
        transaction.Submit({&task, 1});
        return Error{Code::kConflict, "changed my mind"};
    });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "changed my mind");
    // What the writer remembered of it is gone too: the lane must be made again.
    NewTask task = Task("new-lane");
    EXPECT_TRUE(store.Submit({&task, 1}).at(0).accepted());
    EXPECT_EQ((store.Counts({})[{State::kOpen, "default", "new-lane"}]), 1);
    ExpectSound(store);
}

TEST_F(SqliteStoreTest, AValueThatCannotBeStoredIsNamedAsTheCauseAlsoThroughTheSocket) {
    std::unique_ptr<Store> owner = OpenSqliteStore(options_);
    std::unique_ptr<Store> client = OpenSqliteStore(options_);
    {
        sqlite::Connection other(options_.path, {.role = sqlite::OpenOptions::Role::kWriter});
        other.Exec(
            "CREATE TRIGGER no_such_thing BEFORE INSERT ON stint_session BEGIN "
            "SELECT RAISE(ABORT, 'not here'); END"
        );
    }
    EXPECT_THROW(OpenSession(*owner), Unstorable);
    EXPECT_THROW(OpenSession(*client), Unstorable);
}

// ---- the host's own writes ----

TEST_F(SqliteStoreTest, HostWritesItsOwnTablesWithTheSubmit) {
    auto store = OpenSqliteStore(options_);
    auto written = store->Write([](Transaction& transaction) -> Result<void> {
        auto* db = static_cast<sqlite3*>(transaction.native());
        sqlite::Statement(db, "CREATE TABLE orders (id INTEGER)", false).Run();
        sqlite::Statement(db, "INSERT INTO orders VALUES (7)", false).Run();
        NewTask task = Task();
        transaction.Submit({&task, 1});
        return {};
    });
    ASSERT_TRUE(written) << written.error().message;
    sqlite::Connection reader(options_.path, {});
    EXPECT_EQ(reader.Prepare("SELECT id FROM orders").Scalar(), 7);
    EXPECT_EQ(reader.Prepare("SELECT count(*) FROM task").Scalar(), 1);
}

TEST_F(SqliteStoreTest, HostMayNotEndTheTransactionNorTouchOurTables) {
    auto store = OpenSqliteStore(options_);
    for (std::string sql :
         {"COMMIT",
          "ROLLBACK",
          "SAVEPOINT a",
          "RELEASE stint_member",
          "DELETE FROM stint_task",
          "UPDATE stint_counter SET next = 1",
          "DROP TABLE stint_lane",
          "CREATE TRIGGER x AFTER INSERT ON stint_task BEGIN SELECT 1; END",
          "PRAGMA synchronous=OFF",
          "ATTACH ':memory:' AS other"}) {
        auto result = store->Write([&sql](Transaction& transaction) -> Result<void> {
            try {
                sqlite::Statement(static_cast<sqlite3*>(transaction.native()), sql, false).Run();
            } catch (const sqlite::Error& error) {
                return Error{Code::kInvalid, error.what()};
            }
            return {};
        });
        EXPECT_FALSE(result) << sql;
    }
    NewTask task = Task();
    EXPECT_TRUE(store->Submit({&task, 1}).at(0).accepted());
}

TEST_F(SqliteStoreTest, HostsEndlessStatementIsInterrupted) {
    options_.write_limit = 50ms;
    auto store = OpenSqliteStore(options_);
    auto result = store->Write([](Transaction& transaction) -> Result<void> {
        NewTask task = Task();
        transaction.Submit({&task, 1});
        try {
            sqlite::Statement(
                static_cast<sqlite3*>(transaction.native()),
                "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) "
                "FROM n",
                false
            )
                .Run();
        } catch (const sqlite::Error& error) {
            EXPECT_TRUE(error.is_interrupted());
        }
        return {};
    });
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kTimeout);
    EXPECT_TRUE(store->List({}).tasks.empty());
}

TEST_F(SqliteStoreTest, BorrowIsRefusedWithTheReason) {
    auto store = OpenSqliteStore(options_);
    auto refused = store->Borrow(nullptr);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("second writer"));
}

// ---- schema ----

TEST_F(SqliteStoreTest, MigrationIsPrintedThenRunThenDone) {
    SqliteMigration planned = MigrateSqlite(options_, true);
    EXPECT_EQ(planned.from, 0);
    EXPECT_THAT(planned.sql, HasSubstr("CREATE TABLE stint_task"));
    EXPECT_FALSE(std::filesystem::exists(options_.path));
    SqliteMigration done = MigrateSqlite(options_, false);
    EXPECT_EQ(done.sql, planned.sql);
    EXPECT_EQ(MigrateSqlite(options_, false).sql, "");
    auto store = OpenSqliteStore(options_);
    EXPECT_EQ(store->Info().schema, done.to);
    EXPECT_THROW(MigrateSqlite(options_, false), Unavailable);  // in use
}

TEST_F(SqliteStoreTest, NewerSchemaIsRefusedClearly) {
    MigrateSqlite(options_, false);
    {
        sqlite::Connection(options_.path, {.role = sqlite::OpenOptions::Role::kWriter})
            .Exec("PRAGMA user_version=7");
    }
    try {
        OpenSqliteStore(options_);
        FAIL() << "a newer schema was opened";
    } catch (const WrongSchema& error) {
        EXPECT_STREQ(
            error.what(),
            "this file was written by a newer stint (schema 7, this program knows 1): upgrade the "
            "program"
        );
    }
}

TEST_F(SqliteStoreTest, OlderSchemaIsRefusedWhenMigratingIsOff) {
    options_.migrate = false;
    EXPECT_THROW(OpenSqliteStore(options_), WrongSchema);
}

TEST_F(SqliteStoreTest, SeveralMigratorsAtOnceAreSafe) {
    std::vector<std::future<void>> openers;
    for (int i = 0; i < 4; ++i) {
        openers.push_back(std::async(std::launch::async, [this] {
            auto store = OpenSqliteStore(options_);
            NewTask task = Task();
            EXPECT_TRUE(store->Submit({&task, 1}).at(0).accepted());
        }));
    }
    for (auto& opener : openers) opener.get();
    EXPECT_EQ((OpenSqliteStore(options_)->Counts({})[{State::kOpen, "default", "t"}]), 4);
}

TEST_F(SqliteStoreTest, ViewsHaveTheColumnsOfTheSourceDocuments) {
    auto store = OpenSqliteStore(options_);
    SessionId session = OpenSession(*store);
    std::vector<NewTask> two(2, Task());
    store->Submit(two);
    Finish(*store, session);
    using testing::IsSupersetOf;
    EXPECT_THAT(
        Columns("task"),
        IsSupersetOf({"id",          "tenant_id",     "parent_id",  "type",         "status",
                      "priority",    "input",         "output",     "retryable",    "retry_count",
                      "executor",    "created_at",    "claimed_at", "completed_at", "expires_at",
                      "lease_owner", "lease_timeout", "try_count",  "max_tries",    "updated_at",
                      "exception"})
    );
    EXPECT_THAT(Columns("task_status"), ElementsAre("id", "code"));
    EXPECT_THAT(Columns("task_task_dep"), ElementsAre("task_id", "depends_on"));
    EXPECT_THAT(Columns("task_resource"), ElementsAre("id", "name", "max_concurrency"));
    EXPECT_THAT(Columns("task_resource_dep"), ElementsAre("task_id", "depends_on"));
    EXPECT_THAT(Columns("node"), ElementsAre("id", "hostname", "last_seen"));
    EXPECT_THAT(
        Columns("task_joins"),
        ElementsAre("join_key", "workflow_id", "task_type", "task_id", "completed_at")
    );
    EXPECT_THAT(
        Columns("audit_logs"),
        IsSupersetOf({"task_id", "from_status", "to_status", "actor", "reason", "created_at"})
    );
    sqlite::Connection reader(options_.path, {});
    EXPECT_EQ(reader.Prepare("SELECT count(*) FROM task WHERE status = 0").Scalar(), 1);
    EXPECT_EQ(reader.Prepare("SELECT count(*) FROM task WHERE status = 4").Scalar(), 1);
    EXPECT_EQ(reader.Prepare("SELECT count(*) FROM audit_logs").Scalar(), 4);
    EXPECT_EQ(reader.Prepare("SELECT max_tries FROM task WHERE status = 0").Scalar(), 20);
}

TEST_F(SqliteStoreTest, ViewShowsRetriesOfAFailedTask) {
    auto store = OpenSqliteStore(options_);
    NewTask task = Task();
    task.retry = RetryPolicy{.max_attempts = 7};
    store->Submit({&task, 1});
    SessionId session = OpenSession(*store);
    auto leases = store->Claim({.session = session, .limit = 1, .types = {"t"}}).leases;
    Settlement outcome;
    outcome.task = leases.at(0).task;
    outcome.token = leases.at(0).token;
    outcome.kind = Settlement::Kind::kRetry;
    outcome.error = TaskError{.message = "x", .klass = "y", .stack = {}, .retryable = true};
    store->Settle({&outcome, 1});
    sqlite::Connection reader(options_.path, {});
    EXPECT_EQ(reader.Prepare("SELECT max_tries FROM task WHERE status = 5").Scalar(), 7);
    EXPECT_EQ(reader.Prepare("SELECT retryable FROM task WHERE status = 5").Scalar(), 1);
    EXPECT_EQ(reader.Prepare("SELECT try_count FROM task WHERE status = 5").Scalar(), 1);
}

TEST_F(SqliteStoreTest, AuditCannotBeChanged) {
    auto store = OpenSqliteStore(options_);
    NewTask task = Task();
    store->Submit({&task, 1});
    std::int64_t period = 0;
    {
        sqlite::Connection reader(options_.path, {});
        period =
            reader.Prepare("SELECT id FROM stint_period WHERE kind = 'audit'").Scalar().value();
    }
    store.reset();
    sqlite::Connection outside(options_.path, {.role = sqlite::OpenOptions::Role::kWriter});
    std::string table = "stint_audit_" + std::to_string(period);
    EXPECT_THROW(outside.Exec("UPDATE " + table + " SET actor = 'me'"), sqlite::Error);
    EXPECT_THROW(outside.Exec("DELETE FROM " + table), sqlite::Error);
}

// ---- periods ----

TEST_F(SqliteStoreTest, PeriodsAreFewWhateverTheRetention) {
    for (Duration keep :
         {Duration(1min),
          Duration(24h),
          Duration(limits::kRetention),
          Duration(limits::kRetentionMax)}) {
        EXPECT_LE(keep / lite::PeriodLength(keep), 45) << keep.count();
    }
}

TEST_F(SqliteStoreTest, HistoryOfEveryPeriodIsFoundAndOldPeriodsAreDropped) {
    auto store = OpenSqliteStore(options_);
    std::vector<TaskId> finished;
    for (int period = 0; period < 40; ++period) {
        SessionId session = OpenSession(*store);
        NewTask task = Task();
        store->Submit({&task, 1});
        finished.push_back(Finish(*store, session));
        store->CloseSession(session);
        clock_.Advance(2 * 24h);
    }
    for (TaskId id : finished) EXPECT_EQ(store->Get(id).value().state, State::kComplete);
    EXPECT_EQ(store->List({.limit = 100}).tasks.size(), 40u);
    ExpectSound(*store);
    clock_.Advance(20 * 24h);
    HousekeepReply swept = store->Housekeep({});
    EXPECT_THAT(swept.dropped_periods, testing::Contains(HasSubstr("stint_history_")));
    EXPECT_FALSE(store->Get(finished.front()).has_value());
    EXPECT_TRUE(store->Get(finished.back()).has_value());
    EXPECT_TRUE(store->Attempts(finished.front()).empty());
    ExpectSound(*store);
}

TEST_F(SqliteStoreTest, WhatALiveParentMayReadIsKept) {
    auto store = OpenSqliteStore(options_);
    NewTask parent = Task("u");
    TaskId parent_id = store->Submit({&parent, 1}).at(0).id;
    NewTask child = Task();
    child.parent = parent_id;
    store->Submit({&child, 1});
    TaskId child_id = Finish(*store, OpenSession(*store));
    clock_.Advance(200 * 24h);
    store->Housekeep({});
    EXPECT_TRUE(store->Get(child_id).has_value());
    store->Cancel({&parent_id, 1}, "test", "done");
    store->Housekeep({});
    EXPECT_FALSE(store->Get(child_id).has_value());
}

// ---- opening ----

TEST_F(SqliteStoreTest, DamageAfterAnUncleanEndIsFound) {
    {
        auto store = OpenSqliteStore(options_);
        std::vector<NewTask> many(2000, Task());
        store->Submit(many);
    }
    // The pages of the largest table, overwritten; and a log that tells of an unclean end.
    {
        sqlite::Connection writer(options_.path, {.role = sqlite::OpenOptions::Role::kWriter});
        writer.Exec("CREATE TABLE filler (a INTEGER)");
    }
    std::string bytes(4096 * 8, '\xff');
    FILE* file = fopen(options_.path.c_str(), "r+b");
    ASSERT_NE(file, nullptr);
    fseek(file, 4096 * 60, SEEK_SET);
    fwrite(bytes.data(), 1, bytes.size(), file);
    fclose(file);
    FILE* log = fopen((options_.path + "-wal").c_str(), "wb");
    ASSERT_NE(log, nullptr);
    fwrite("x", 1, 1, log);
    fclose(log);
    try {
        OpenSqliteStore(options_);
        FAIL() << "a damaged file was opened";
    } catch (const Unavailable& error) {
        EXPECT_THAT(error.what(), HasSubstr("damaged"));
    }
}

TEST_F(SqliteStoreTest, NextOpenGoesOnWithTheSameTasks) {
    TaskId id;
    {
        auto store = OpenSqliteStore(options_);
        NewTask task = Task();
        id = store->Submit({&task, 1}).at(0).id;
    }
    auto store = OpenSqliteStore(options_);
    EXPECT_TRUE(store->Get(id).has_value());
    NewTask task = Task();
    EXPECT_GT(store->Submit({&task, 1}).at(0).id, id);
}

}  // namespace
}  // namespace stint::store
