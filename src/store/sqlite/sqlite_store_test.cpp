// What only this store promises: its file, its writer, its tables. What every store promises is in
// the conformance suite.
#include "store/sqlite/sqlite_store.h"
#include "store/events.h"
#include "store/resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <semaphore>
#include <set>
#include <thread>

#include "base/test_point.h"
#include "sqlite/error.h"
#include "sqlite/transaction.h"
#include "store/sqlite/direct_store.h"
#include "store/sqlite/migrate.h"
#include "store/sqlite/queries.h"

namespace stint::store {
namespace {

using namespace std::chrono_literals;
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
    static void MakeOrders(Store& store) {
        auto made = store.Write([](Transaction& transaction) -> Result<void> {
            auto* db = static_cast<sqlite3*>(transaction.native());
            sqlite::Statement(db, "CREATE TABLE orders (id INTEGER PRIMARY KEY)", false).Run();
            return {};
        });
        ASSERT_TRUE(made) << made.error().message;
    }
    static constexpr std::string_view kEndlessInsert =
        "WITH RECURSIVE n (x) AS (SELECT 10 UNION ALL SELECT x + 1 FROM n) INSERT INTO orders "
        "SELECT x FROM n";

    // Runs the members, in this order, in one group: they gather behind a commit that waits for
    // them.
    static void InOneGroup(
        lite::DirectStore& store, const std::vector<std::function<void()>>& members
    ) {
        std::binary_semaphore at_commit{0};
        std::binary_semaphore go_on{0};
        std::atomic<bool> first = true;
        base::SetTestPointListener([&](std::string_view point) {
            if (point != "sqlite.before_commit" || !first.exchange(false)) return;
            at_commit.release();
            go_on.acquire();
        });
        std::vector<std::jthread> threads;
        threads.emplace_back([&store] { store.ReserveIds(1); });
        at_commit.acquire();
        for (std::size_t i = 0; i < members.size(); ++i) {
            threads.emplace_back(members[i]);
            while (store.queued() <= i) std::this_thread::yield();
        }
        go_on.release();
        threads.clear();
        base::SetTestPointListener({});
    }
    base::ManualClock clock_;
    std::string directory_;
    SqliteOptions options_;
};

// ---- group commit ----

TEST_F(SqliteStoreTest, MembersQueuedBehindACommitShareTheNextOne) {
    lite::DirectStore store(options_, {});
    auto groups_before = store.totals().groups;
    auto submit = [&store] {
        NewTask task = Task();
        EXPECT_EQ(store.Submit({&task, 1}).at(0).kind, SubmitReply::Kind::kCreated);
    };
    // One of them fails: a commit of its own would not matter, a shared one would.
    auto fail = [&store] {
        auto work = [](Transaction& transaction) -> Result<void> {
            NewTask task = Task();
            transaction.Submit({&task, 1});
            throw std::runtime_error("the host has a bug");
        };
        EXPECT_THROW((void)store.Write(work), std::runtime_error);
    };
    std::vector<std::function<void()>> members(15, submit);
    members.emplace_back(fail);
    InOneGroup(store, members);
    EXPECT_EQ(store.totals().groups - groups_before, 2);
    EXPECT_EQ((store.Counts({})[{State::kOpen, "default", "t"}]), 15);
    ExpectSound(store);
}

// What members leave to be written is gathered; whoever may look at it finds it written.
TEST_F(SqliteStoreTest, WhoLooksFindsWhatOthersOfItsGroupHaveGathered) {
    lite::DirectStore store(options_, {});
    SessionId session = OpenSession(store);
    std::int64_t seen = 0;
    auto submit = [&store](const std::string& host) {
        NewTask task = Task();
        task.needs = Needs{{host, 1}};
        EXPECT_TRUE(store.Submit({&task, 1}).at(0).accepted());
    };
    InOneGroup(
        store,
        {[&] { submit("host:1"); },
         [&] { submit("host:2"); },
         // Lanes of no task are forgotten: by the tallies.
         [&] { store.Housekeep({}); },
         [&] {
             auto look = [&](Transaction& transaction) -> Result<void> {
                 sqlite::Statement audit(
                     static_cast<sqlite3*>(transaction.native()),
                     "SELECT count(*) FROM audit_logs",
                     false
                 );
                 seen = audit.Scalar().value();
                 return {};
             };
             EXPECT_TRUE(store.Write(look));
         }}
    );
    EXPECT_EQ(seen, 2);
    EXPECT_EQ(store.Claim({.session = session, .limit = 9, .types = {"t"}}).leases.size(), 2u);
    ExpectSound(store);
}

// A member that fails takes only its own with it.
TEST_F(SqliteStoreTest, WhatOthersHaveGatheredOutlivesAMemberThatFails) {
    lite::DirectStore store(options_, {});
    std::vector<TaskId> made;
    std::mutex mutex;
    auto submit = [&] {
        NewTask task = Task();
        TaskId id = store.Submit({&task, 1}).at(0).id;
        std::lock_guard guard(mutex);
        made.push_back(id);
    };
    auto fail = [&store] {
        auto work = [](Transaction& transaction) -> Result<void> {
            NewTask task = Task();
            transaction.Submit({&task, 1});
            return Error{Code::kConflict, "changed my mind"};
        };
        EXPECT_FALSE(store.Write(work));
    };
    InOneGroup(store, {submit, fail, submit});
    for (TaskId task : made) EXPECT_EQ(store.Audit({.task = task}).size(), 1u);
    EXPECT_EQ((store.Counts({})[{State::kOpen, "default", "t"}]), 2);
    ExpectSound(store);
}

// A plain submit leaves its row to be written with those of others.
TEST_F(SqliteStoreTest, ClaimFindsWhatSubmitsOfItsGroupHaveLeft) {
    lite::DirectStore store(options_, {});
    SessionId session = OpenSession(store);
    std::size_t taken = 0;
    auto submit = [&store] {
        NewTask task = Task();
        EXPECT_TRUE(store.Submit({&task, 1}).at(0).accepted());
    };
    auto claim = [&] {
        ClaimReply reply = store.Claim({.session = session, .limit = 9, .types = {"t"}});
        taken = reply.leases.size();
    };
    InOneGroup(store, {submit, submit, claim, submit});
    EXPECT_EQ(taken, 2u);
    EXPECT_EQ((store.Counts({})[{State::kOpen, "default", "t"}]), 1);
    ExpectSound(store);
}

TEST_F(SqliteStoreTest, OneIdTwiceInAGroupIsOneTask) {
    lite::DirectStore store(options_, {});
    const TaskId id = store.ReserveIds(1);
    std::atomic<int> created = 0;
    std::atomic<int> existing = 0;
    auto submit = [&] {
        NewTask task = Task();
        task.id = id;
        auto kind = store.Submit({&task, 1}).at(0).kind;
        ++(kind == SubmitReply::Kind::kCreated ? created : existing);
    };
    InOneGroup(store, {submit, submit});
    EXPECT_EQ(created, 1);
    EXPECT_EQ(existing, 1);
    ExpectSound(store);
}

TEST_F(SqliteStoreTest, ManyOfABatchAreStoredBesideOnesWithKeys) {
    lite::DirectStore store(options_, {});
    std::vector<NewTask> tasks(200, Task());
    for (std::size_t i = 0; i < tasks.size(); i += 50) tasks[i].unique_key = std::to_string(i);
    tasks[199].unique_key = "0";  // of the first
    auto replies = store.Submit(tasks);
    EXPECT_EQ(replies[199].kind, SubmitReply::Kind::kExisting);
    EXPECT_EQ(replies[199].id, replies[0].id);
    EXPECT_EQ((store.Counts({})[{State::kOpen, "default", "t"}]), 199);
    ExpectSound(store);
}

// A host that watches its own tables takes the place of what tells which rows have changed.
TEST_F(SqliteStoreTest, AHostsHookDoesNotLeaveUsWithOldRows) {
    lite::DirectStore store(options_, {});
    SessionId session = OpenSession(store);
    NewTask task = Task();
    TaskId id = store.Submit({&task, 1}).at(0).id;
    Lease lease = store.Claim({.session = session, .limit = 1, .types = {"t"}}).leases.at(0);
    ASSERT_TRUE(store.Write([](Transaction& transaction) -> Result<void> {
        auto nothing = [](void*, int, const char*, const char*, sqlite3_int64) {};
        sqlite3_update_hook(static_cast<sqlite3*>(transaction.native()), nothing, nullptr);
        return {};
    }));
    store.Cancel({&id, 1}, "ann", "not wanted");
    Settlement again{.task = id, .token = lease.token, .session = session};
    again.kind = Settlement::Kind::kRetry;
    again.end = AttemptEnd::kFailed;
    again.error = TaskError{.message = "no", .retryable = true};
    EXPECT_EQ(store.Settle({&again, 1}).at(0).state, State::kCancelled);
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
        other.Exec("CREATE UNIQUE INDEX only_one ON stint_session ((1))");
    }
    OpenSession(*owner);
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

// Our own statements do without.
TEST_F(SqliteStoreTest, HostsForeignKeysAreChecked) {
    auto store = OpenSqliteStore(options_);
    MakeOrders(*store);
    auto write = [](Transaction& transaction) -> Result<void> {
        auto* db = static_cast<sqlite3*>(transaction.native());
        sqlite::Statement(db, "CREATE TABLE items (o INTEGER REFERENCES orders (id))", false).Run();
        sqlite::Statement insert(db, "INSERT INTO items VALUES (1)", false);
        EXPECT_THROW(insert.Run(), sqlite::Error);
        return {};
    };
    EXPECT_TRUE(store->Write(write));
}

// SQLite looks at deferred ones when the group is committed, and that would fail for all of it.
TEST_F(SqliteStoreTest, ABrokenDeferredForeignKeyFailsItsHostAlone) {
    lite::DirectStore store(options_, {});
    MakeOrders(store);
    auto submit = [&store] {
        NewTask task = Task();
        EXPECT_EQ(store.Submit({&task, 1}).at(0).kind, SubmitReply::Kind::kCreated);
    };
    auto write = [&store] {
        auto result = store.Write([](Transaction& transaction) -> Result<void> {
            auto* db = static_cast<sqlite3*>(transaction.native());
            for (const char* text :
                 {"CREATE TABLE items (o INTEGER REFERENCES orders (id) DEFERRABLE INITIALLY "
                  "DEFERRED)",
                  "INSERT INTO items VALUES (1)"}) {
                sqlite::Statement(db, text, false).Run();
            }
            return {};
        });
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().code, Code::kInvalid);
        EXPECT_THAT(result.error().message, ::testing::HasSubstr("deferred foreign key"));
    };
    InOneGroup(store, {submit, write, submit});
    EXPECT_EQ(store.List({}).tasks.size(), 2u);
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

// SQLite undoes the whole transaction when it interrupts a statement that writes. What the host
// does after that, deaf to the error, must not be stored statement by statement.
TEST_F(SqliteStoreTest, NothingIsStoredOfAHostWhoseEndlessWriteWasInterrupted) {
    options_.write_limit = 50ms;
    auto store = OpenSqliteStore(options_);
    MakeOrders(*store);
    auto result = store->Write([](Transaction& transaction) -> Result<void> {
        auto* db = static_cast<sqlite3*>(transaction.native());
        NewTask task = Task();
        transaction.Submit({&task, 1});
        sqlite::Statement prepared(db, "INSERT INTO orders VALUES (1)", false);
        try {
            sqlite::Statement(db, kEndlessInsert, false).Run();
        } catch (const sqlite::Error& error) {
            EXPECT_TRUE(error.is_interrupted());
        }
        EXPECT_THROW(transaction.Submit({&task, 1}), Unavailable);
        EXPECT_THROW(transaction.Settle({}), Unavailable);
        EXPECT_THROW(prepared.Run(), sqlite::Error);
        return {};
    });
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kTimeout);
    EXPECT_TRUE(store->List({}).tasks.empty());
    sqlite::Connection reader(options_.path, {});
    EXPECT_EQ(reader.Prepare("SELECT count(*) FROM orders").Scalar(), 0);
    ExpectSound(*store);
}

TEST_F(SqliteStoreTest, HostThatRollsBackByItselfIsToldSo) {
    auto store = OpenSqliteStore(options_);
    MakeOrders(*store);
    auto result = store->Write([](Transaction& transaction) -> Result<void> {
        auto* db = static_cast<sqlite3*>(transaction.native());
        NewTask task = Task();
        transaction.Submit({&task, 1});
        sqlite::Statement(db, "INSERT INTO orders VALUES (1)", false).Run();
        sqlite::Statement again(db, "INSERT OR ROLLBACK INTO orders VALUES (1)", false);
        EXPECT_THROW(again.Run(), sqlite::Error);
        return {};
    });
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message, HasSubstr("rolled the whole transaction back"));
    EXPECT_TRUE(store->List({}).tasks.empty());
    ExpectSound(*store);
}

TEST_F(SqliteStoreTest, MembersOfAGroupThatAHostUndoesAreRunAgainWithoutIt) {
    options_.write_limit = 50ms;
    lite::DirectStore store(options_, {});
    MakeOrders(store);
    std::atomic<int> calls = 0;
    auto submit = [&store] {
        NewTask task = Task();
        EXPECT_TRUE(store.Submit({&task, 1}).at(0).accepted());
    };
    auto write = [&store, &calls](std::string sql) {
        return store.Write([&](Transaction& transaction) -> Result<void> {
            ++calls;
            NewTask task = Task("host");
            transaction.Submit({&task, 1});
            try {
                sqlite::Statement(static_cast<sqlite3*>(transaction.native()), sql, false).Run();
            } catch (const sqlite::Error& error) {
                return Error{Code::kInvalid, error.what()};
            }
            return {};
        });
    };
    InOneGroup(
        store,
        {submit,
         // Its code has run and cannot be run again behind its back.
         [&] { EXPECT_THROW((void)write("INSERT INTO orders VALUES (1)"), Unavailable); },
         [&] { EXPECT_FALSE(write(std::string(kEndlessInsert))); },
         [&] { EXPECT_TRUE(write("INSERT INTO orders VALUES (2)")); },
         submit}
    );
    EXPECT_EQ(calls, 3);
    std::map<CountKey, std::int64_t> counts = store.Counts({});
    EXPECT_EQ((counts[{State::kOpen, "default", "t"}]), 2);
    EXPECT_EQ((counts[{State::kOpen, "default", "host"}]), 1);
    sqlite::Connection reader(options_.path, {});
    EXPECT_EQ(reader.Prepare("SELECT sum(id) FROM orders").Scalar(), 2);
    ExpectSound(store);
}

TEST_F(SqliteStoreTest, BorrowIsRefusedWithTheReason) {
    auto store = OpenSqliteStore(options_);
    auto refused = store->Borrow(nullptr);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("second writer"));
}

// ---- the disk ----

TEST_F(SqliteStoreTest, AfterAFailedSyncNothingIsAnsweredDefinitely) {
    auto store = OpenSqliteStore(options_);
    base::SetTestPointListener([](std::string_view point) {
        if (point == "sqlite.before_commit") throw sqlite::Error(SQLITE_IOERR_FSYNC, "no sync");
    });
    NewTask task = Task();
    task.id = TaskId(5);
    EXPECT_THROW(store->Submit({&task, 1}), CommitUnknown);
    base::SetTestPointListener({});
    // Recovery may still find it in the log: "not there" would be a guess.
    EXPECT_THROW(store->Get(task.id), Unavailable);
    EXPECT_THROW(store->Submit({&task, 1}), Unavailable);
    try {
        store->List({});
        FAIL() << "a list was made of what the disk may not hold";
    } catch (const Unavailable& error) {
        EXPECT_THAT(error.what(), HasSubstr("the disk failed (no sync): restart"));
    }
}

// ---- what a newer program wrote ----

TEST_F(SqliteStoreTest, AWorkflowThatCannotBeReadSaysSo) {
    auto store = OpenSqliteStore(options_);
    WorkflowDefinition definition;
    definition.name = "w";
    Trigger trigger;
    trigger.name = "a";
    trigger.on = "e";
    trigger.action = TaskTemplate{.type = "t"};
    definition.triggers.push_back(trigger);
    ASSERT_TRUE(store->Events().PutWorkflow(definition, "ann"));
    sqlite::Connection(options_.path, {.role = sqlite::OpenOptions::Role::kWriter})
        .Exec(R"(UPDATE stint_workflow SET definition = '{"name":"w","tomorrow":1}')");
    std::vector<WorkflowRecord> all = store->Events().Workflows();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].definition.name, "w");
    EXPECT_THAT(all[0].unreadable, HasSubstr("tomorrow"));
    // What is known of it is not what it is: nothing less than a definition replaces it.
    WorkflowDefinition empty;
    empty.name = "w";
    EXPECT_EQ(store->Events().PutWorkflow(empty, "ann")->version, 2);
    EXPECT_EQ(store->Events().Workflows().at(0).unreadable, "");
}

TEST_F(SqliteStoreTest, ATaskWhosePolicyCannotBeReadIsLeftAloneAndStopsNobody) {
    std::vector<std::string> logged;
    options_.log = base::Logger(
        [&](const LogRecord& record) { logged.emplace_back(record.message); }, "sqlite"
    );
    auto store = OpenSqliteStore(options_);
    std::vector<NewTask> tasks(2, Task());
    tasks[0].retry = RetryPolicy{.max_attempts = 3};
    TaskId odd = store->Submit(tasks).at(0).id;
    auto set_policy = [&](const std::string& json) {
        sqlite::Connection(options_.path, {.role = sqlite::OpenOptions::Role::kWriter})
            .Exec("UPDATE stint_task SET retry = '" + json + "' WHERE retry <> ''");
    };
    set_policy(R"({"kind":"of tomorrow"})");
    NewSession session{.id = base::SystemRandom().MakeId<SessionId>(), .hostname = "here"};
    session.lease = 1min;
    store->OpenSession(session);
    auto leases = store->Claim({.session = session.id, .limit = 5, .types = {"t"}}).leases;
    ASSERT_EQ(leases.size(), 2u);
    EXPECT_EQ(leases[0].retry.on, RetryPolicy::On::kNone) << "nobody knows whether it may";
    clock_.Advance(5min);
    // The first sweep meets it, the second does not even look; the plain one is recovered.
    ReclaimReply first = store->Reclaim({.limit = 1}), second = store->Reclaim({.limit = 1});
    EXPECT_EQ(first.skipped, std::vector{odd});
    EXPECT_TRUE(first.tasks.empty());
    ASSERT_EQ(second.tasks.size(), 1u);
    EXPECT_EQ(second.tasks[0].task, leases[1].task);
    EXPECT_FALSE(store->Reclaim({}).more);
    EXPECT_EQ(store->Get(odd)->state, State::kInProgress);
    EXPECT_EQ(logged.size(), 1u);
    auto found = [&] {
        std::string details;
        for (const CheckFinding& finding : store->Check()) {
            if (!finding.ok) details += finding.detail;
        }
        return details;
    };
    EXPECT_THAT(found(), HasSubstr("of tomorrow"));
    store.reset();  // what others write, its owner does not see
    set_policy(R"({"max_attempts":5})");
    store = OpenSqliteStore(options_);
    EXPECT_EQ(store->Reclaim({}).tasks.size(), 1u);
    EXPECT_EQ(found(), "");
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

TEST_F(SqliteStoreTest, TheIdentityIsMadeOnceAndOutlivesItsOwners) {
    // A file from before there were identities.
    std::string first = lite::PlanFrom(0).sql;
    first.resize(first.find("-- schema 2\n"));
    sqlite::Connection(options_.path, {.role = sqlite::OpenOptions::Role::kWriter})
        .Exec(first + "PRAGMA user_version = 1");
    std::string identity = OpenSqliteStore(options_)->Info().identity;
    EXPECT_EQ(identity.size(), 32u);
    MigrateSqlite(options_, false);
    EXPECT_EQ(OpenSqliteStore(options_)->Info().identity, identity);
}

// The sessions of other processes go on when the owner of the file is another.
TEST_F(SqliteStoreTest, WhoIsBehindWhomOutlivesTheOwner) {
    auto store = OpenSqliteStore(options_);
    SessionId session = OpenSession(*store);
    ResourceChange gpu{.name = "gpu"};
    gpu.capacity = 4;
    ASSERT_TRUE(store->Resources().Change(gpu, "ann"));
    std::vector<NewTask> tasks(6, Task());
    for (NewTask& task : tasks) task.needs = Needs{{"gpu", 1}};
    store->Submit(tasks);
    ClaimRequest claim{.session = session, .limit = 6, .types = {"t"}, .at_once = 2};
    std::vector<Lease> leases = store->Claim(claim).leases;
    ASSERT_EQ(leases.size(), 6u);
    store.reset();
    store = OpenSqliteStore(options_);
    for (std::size_t left = leases.size(); left > 0; --left) {
        EXPECT_EQ(store->Resources().Find("gpu")->held, left >= 2 ? 2 : 1);
        ExpectSound(*store);
        const Lease& lease = leases[left - 1];
        Settlement outcome{.task = lease.task, .token = lease.token, .session = session};
        EXPECT_EQ(store->Settle({&outcome, 1}).at(0).kind, SettleReply::Kind::kAccepted);
    }
    EXPECT_EQ(store->Resources().Find("gpu")->held, 0);
}

TEST_F(SqliteStoreTest, AScheduleOfANewerProgramHoldsNobodyUp) {
    auto put = [](Store& store, const std::string& name) {
        ScheduleSpec spec;
        spec.name = name;
        spec.timing = {.kind = TimingSpec::Kind::kEvery, .every = std::chrono::hours{1}};
        spec.task.type = "t";
        ASSERT_TRUE(store.Schedules().Put({.spec = spec}));
    };
    {
        auto store = OpenSqliteStore(options_);
        put(*store, "ours");
        put(*store, "theirs");
    }
    sqlite::Connection(options_.path, {.role = sqlite::OpenOptions::Role::kWriter})
        .Exec("UPDATE stint_schedule SET spec = '{\"moon\":1}' WHERE name = 'theirs'");
    auto store = OpenSqliteStore(options_);
    std::vector<Schedule> due = store->Schedules().Due(10, 10).schedules;
    ASSERT_EQ(due.size(), 1u);
    EXPECT_EQ(due[0].spec.name, "ours");
    // However few are asked for, and however many of theirs come first.
    for (int i = 0; i < 9; ++i) put(*store, "more" + std::to_string(i));
    sqlite::Connection(options_.path, {.role = sqlite::OpenOptions::Role::kWriter})
        .Exec(
            "UPDATE stint_schedule SET spec = '{\"moon\":1}' WHERE name LIKE 'more%';"
            "UPDATE stint_schedule SET next_at = next_at + 1000000 WHERE name = 'ours'"
        );
    clock_.Advance(5s);
    due = store->Schedules().Due(2, 2).schedules;
    ASSERT_EQ(due.size(), 1u);
    EXPECT_EQ(due[0].spec.name, "ours");
    try {
        store->Schedules().Get(kDefaultTenant, "theirs");
        FAIL() << "it cannot be read";
    } catch (const WrongSchema& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("theirs"));
    }
}

TEST_F(SqliteStoreTest, NewerSchemaIsRefusedClearly) {
    MigrateSqlite(options_, false);
    {
        sqlite::Connection(options_.path, {.role = sqlite::OpenOptions::Role::kWriter})
            .Exec("PRAGMA user_version=99");
    }
    try {
        OpenSqliteStore(options_);
        FAIL() << "a newer schema was opened";
    } catch (const WrongSchema& error) {
        EXPECT_EQ(
            std::string(error.what()),
            "this file was written by a newer stint (schema 99, this program knows " +
                std::to_string(lite::KnownSchema()) + "): upgrade the program"
        );
    }
}

TEST_F(SqliteStoreTest, NamesTakenByTheHostAreNamedWithTheCure) {
    for (std::string sql :
         {"CREATE TABLE Task (id INTEGER)",
          "CREATE VIEW audit_logs AS SELECT 1",
          "CREATE TABLE own (id INTEGER); CREATE INDEX node ON own (id)",
          "CREATE TABLE stint_lane (id INTEGER)"}) {
        std::filesystem::remove(options_.path);
        sqlite::Connection(options_.path, {.role = sqlite::OpenOptions::Role::kWriter}).Exec(sql);
        for (bool dry_run : {true, false}) {
            try {
                MigrateSqlite(options_, dry_run);
                FAIL() << sql;
            } catch (const WrongSchema& error) {
                EXPECT_THAT(
                    error.what(),
                    testing::MatchesRegex(
                        "the (table|view|index) \"(Task|audit_logs|node|stint_lane)\" in this file "
                        "is not "
                        "Stint's, and Stint needs that name: rename it, or give Stint a file to "
                        "itself"
                    )
                );
            }
        }
        EXPECT_THROW(OpenSqliteStore(options_), WrongSchema);
        // Nothing was touched.
        sqlite::Connection reader(options_.path, {});
        EXPECT_LE(reader.Prepare("SELECT count(*) FROM sqlite_schema").Scalar(), 2);
    }
}

TEST_F(SqliteStoreTest, HostsOwnTablesStayWhatTheyAre) {
    sqlite::Connection(options_.path, {.role = sqlite::OpenOptions::Role::kWriter})
        .Exec("CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (7)");
    auto store = OpenSqliteStore(options_);
    NewTask task = Task();
    store->Submit({&task, 1});
    sqlite::Connection reader(options_.path, {});
    EXPECT_EQ(reader.Prepare("SELECT id FROM orders").Scalar(), 7);
}

TEST_F(SqliteStoreTest, FileThatCountsItsOwnSchemaIsAnotherPrograms) {
    sqlite::Connection(options_.path, {.role = sqlite::OpenOptions::Role::kWriter})
        .Exec("CREATE TABLE orders (id INTEGER); PRAGMA user_version = 1");
    try {
        OpenSqliteStore(options_);
        FAIL() << "took another program's file for ours";
    } catch (const WrongSchema& error) {
        EXPECT_THAT(error.what(), HasSubstr("another program's"));
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
    EXPECT_THROW(
        outside.Exec("INSERT OR REPLACE INTO " + table + " SELECT * FROM " + table), sqlite::Error
    );
    outside.Exec("CREATE TABLE copy AS SELECT * FROM " + table + "; UPDATE copy SET actor = 'me'");
    EXPECT_THROW(outside.Exec("REPLACE INTO " + table + " SELECT * FROM copy"), sqlite::Error);
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

TEST_F(SqliteStoreTest, PeriodsAreDroppedInTurnsOfTheirOwn) {
    lite::DirectStore store(options_, {});
    for (int period = 0; period < 3; ++period) {
        NewTask task = Task();
        store.Submit({&task, 1});
        Finish(store, OpenSession(store));
        clock_.Advance(3 * 24h);
    }
    clock_.Advance(200 * 24h);
    auto before = store.totals().members;
    auto dropped = static_cast<std::int64_t>(store.Housekeep({}).dropped_periods.size());
    EXPECT_GE(dropped, 9);
    EXPECT_GE(store.totals().members - before, dropped);
    ExpectSound(store);
}

// ---- bounded turns ----

TEST_F(SqliteStoreTest, TasksOfANewlyKnownTypeAreResolvedInTurns) {
    lite::DirectStore store(options_, {});
    std::vector<NewTask> many(2500, Task());
    store.Submit(many);
    auto before = store.totals().members;
    TypeDefaults defaults{.type = "t", .queue = "own"};
    store.PublishTypes({&defaults, 1});
    EXPECT_GE(store.totals().members - before, 3);
    EXPECT_EQ((store.Counts({})[{State::kOpen, "own", "t"}]), 2500);
    ExpectSound(store);
}

TEST_F(SqliteStoreTest, ClaimMovesABoundedNumberOfDueTasksTheLongestDueFirst) {
    lite::DirectStore store(options_, {});
    for (int i = 0; i < 3; ++i) {
        NewTask later = Task("t" + std::to_string(i));
        later.delay = Duration(3min) - i * Duration(1min);
        std::vector<NewTask> many(1500, later);
        store.Submit(many);
    }
    clock_.Advance(1h);
    SessionId session = OpenSession(store);
    ClaimRequest claim{.session = session, .limit = 1, .types = {"t0", "t1", "t2"}};
    EXPECT_EQ(store.Claim(claim).leases.size(), 1u);
    auto ready = [this](int lane) {
        sqlite::Connection reader(options_.path, {});
        return reader
            .Prepare(
                "SELECT count(*) FROM stint_task t JOIN stint_lane l ON l.id = t.lane WHERE t.wait "
                "< 2 AND l.type = ?"
            )
            .Scalar("t" + std::to_string(lane))
            .value();
    };
    EXPECT_LE(ready(0) + ready(1) + ready(2), 1000);
    EXPECT_GT(ready(0), 0);
    // The rest follows, without waiting.
    EXPECT_EQ(store.Claim(claim).next_due, Duration::zero());
    for (int i = 0; i < 5; ++i) store.Claim(claim);
    EXPECT_EQ(ready(0) + ready(1) + ready(2), 4500);
    ExpectSound(store);
}

TEST_F(SqliteStoreTest, ClaimsForgetLinesOfPlacementsThatNobodyHas) {
    lite::DirectStore store(options_, {});
    SessionId session = OpenSession(store);
    auto run = [&](const std::string& host) {
        NewTask task = Task();
        task.needs = Needs{{host, 1}};
        store.Submit({&task, 1});
        Lease lease = store.Claim({.session = session, .limit = 1, .types = {"t"}}).leases.at(0);
        Settlement done{.task = lease.task, .token = lease.token, .session = session};
        done.output = "1";
        store.Settle({&done, 1});
    };
    auto lanes = [this](const std::string& which) {
        sqlite::Connection reader(options_.path, {});
        return reader.Prepare("SELECT count(*) FROM stint_lane" + which).Scalar().value();
    };
    for (int i = 0; i < 30; ++i) run("host:" + std::to_string(i));
    store.Housekeep({});
    EXPECT_EQ(lanes(" WHERE type <> ''"), 30) << "their tasks are kept";
    clock_.Advance(limits::kRetention + 3 * 24h);
    for (int i = 0; i < 3; ++i) store.Housekeep({});
    EXPECT_EQ(lanes(" WHERE type <> ''"), 1) << "by which the queue is known";
    session = OpenSession(store);
    for (int i = 0; i < 20; ++i) {
        NewTask task = Task();
        task.needs = Needs{{"new:" + std::to_string(i), 1}};
        store.Submit({&task, 1});
    }
    EXPECT_EQ(lanes(" WHERE type <> ''"), 21);
    EXPECT_EQ(store.Claim({.session = session, .limit = 100, .types = {"t"}}).leases.size(), 20u);
    ExpectSound(store);
}

// Neighbours are written with one statement: whose turn it is not stays as it is.
TEST_F(SqliteStoreTest, ClaimAndSettlementChangeOnlyTheirOwnBetweenOthers) {
    lite::DirectStore store(options_, {});
    SessionId session = OpenSession(store);
    std::vector<NewTask> tasks;
    for (const char* type : {"t", "t", "other", "t", "other", "t", "t"}) {
        tasks.push_back(Task(type));
    }
    tasks[1].timeout = 5s;
    store.Submit(tasks);
    auto leases = store.Claim({.session = session, .limit = 9, .types = {"t"}}).leases;
    ASSERT_EQ(leases.size(), 5u);
    std::set<LeaseToken> tokens;
    std::vector<Settlement> ends;
    for (const Lease& lease : leases) {
        tokens.insert(lease.token);
        Settlement& end = ends.emplace_back();
        end.task = lease.task;
        end.token = lease.token;
        end.session = session;
        end.output = "1";
    }
    EXPECT_EQ(tokens.size(), 5u);
    EXPECT_EQ((store.Counts({})[{State::kOpen, "default", "other"}]), 2);
    ExpectSound(store);
    std::swap(ends[1].token, ends[2].token);  // none speaks for its neighbour
    auto replies = store.Settle(ends);
    for (std::size_t i = 0; i < replies.size(); ++i) {
        bool own = i != 1 && i != 2;
        auto expected = own ? SettleReply::Kind::kAccepted : SettleReply::Kind::kLost;
        EXPECT_EQ(replies[i].kind, expected);
    }
    EXPECT_EQ((store.Counts({})[{State::kInProgress, "default", "t"}]), 2);
    clock_.Advance(20s);
    EXPECT_EQ(store.Reclaim({}).tasks.size(), 1u);  // the one with a timeout
    ExpectSound(store);
}

// What a claim has read is remembered until somebody changes it.
TEST_F(SqliteStoreTest, SettlementHearsWhatBecameOfItsTaskSinceTheClaim) {
    lite::DirectStore store(options_, {});
    SessionId session = OpenSession(store);
    std::vector<NewTask> tasks(2, Task());
    auto submitted = store.Submit(tasks);
    auto leases = store.Claim({.session = session, .limit = 2, .types = {"t"}}).leases;
    ASSERT_EQ(leases.size(), 2u);
    const TaskId cancelled = submitted[0].id;
    store.Cancel({&cancelled, 1}, "me", "no more");
    NewTask follower = Task("follower");
    follower.after = WaitOn{.on = {submitted[1].id}};
    const TaskId after = store.Submit({&follower, 1}).at(0).id;
    std::vector<Settlement> ends(2);
    for (std::size_t i = 0; i < 2; ++i) {
        ends[i].task = leases[i].task;
        ends[i].token = leases[i].token;
        ends[i].session = session;
        ends[i].kind = i == 0 ? Settlement::Kind::kRetry : Settlement::Kind::kComplete;
        ends[i].output = "1";
    }
    auto replies = store.Settle(ends);
    EXPECT_EQ(replies[0].state, State::kCancelled);
    EXPECT_EQ(replies[1].state, State::kComplete);
    EXPECT_EQ(store.Get(after)->state, State::kOpen);
    EXPECT_EQ(store.Get(cancelled)->reason, "no more");
    ExpectSound(store);
}

TEST_F(SqliteStoreTest, ClaimStopsAtItsBytes) {
    auto store = OpenSqliteStore(options_);
    NewTask large = Task();
    large.input = '"' + std::string(limits::kInput - 2, 'x') + '"';
    std::vector<NewTask> ten(10, large);
    for (int i = 0; i < 7; ++i) store->Submit(ten);
    options_.force_client = true;
    auto client = OpenSqliteStore(options_);
    ClaimRequest claim{.session = OpenSession(*client), .limit = 100, .types = {"t"}};
    EXPECT_EQ(client->Claim(claim).leases.size(), limits::kClaimBytes / limits::kInput);
    EXPECT_EQ(client->Claim(claim).leases.size(), 70 - limits::kClaimBytes / limits::kInput);
}

// A task may not start early, whatever put it among those that are ready.
TEST_F(SqliteStoreTest, ClaimAsksTheConditionsOfExplain) {
    lite::DirectStore store(options_, {});
    std::vector<NewTask> three(3, Task());
    auto ids = store.Submit(three);
    auto spoil = [&](const std::string& set, TaskId id) {
        sqlite::Connection outside(options_.path, {.role = sqlite::OpenOptions::Role::kWriter});
        outside.Exec("UPDATE stint_task SET " + set + " WHERE id = " + id.ToString());
    };
    spoil("due_at = due_at + 60000000", ids[0].id);
    spoil("flags = flags | 2", ids[1].id);
    ClaimRequest claim{.session = OpenSession(store), .limit = 1, .types = {"t"}};
    EXPECT_EQ(store.Explain(ids[0].id, claim).at(0).condition, Condition::kNotDue);
    EXPECT_EQ(store.Explain(ids[1].id, claim).at(0).condition, Condition::kCancelRequested);
    EXPECT_EQ(store.Explain(ids[2].id, claim).at(0).condition, Condition::kEligible);
    auto leases = store.Claim(claim).leases;
    ASSERT_EQ(leases.size(), 1u);
    EXPECT_EQ(leases[0].task, ids[2].id);
    EXPECT_TRUE(store.Claim(claim).leases.empty());
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
    std::string bytes(std::size_t{4096} * 8, '\xff');
    FILE* file = fopen(options_.path.c_str(), "r+b");
    ASSERT_NE(file, nullptr);
    fseek(file, 4096L * 120, SEEK_SET);  // behind the schema
    fwrite(bytes.data(), 1, bytes.size(), file);
    fclose(file);
    FILE* log = fopen((options_.path + "-wal").c_str(), "wb");
    ASSERT_NE(log, nullptr);
    fwrite("x", 1, 1, log);
    fclose(log);
    // The store works at once, and stops when the damage is found, whatever is asked of it.
    auto store = OpenSqliteStore(options_);
    std::string why;
    while (why.find("is damaged after an unclean end") == why.npos) {
        try {
            store->Queues();
        } catch (const Unavailable& error) {
            why = error.what();
        }
    }
    NewTask task = Task();
    EXPECT_THROW(store->Submit({&task, 1}), Unavailable);
}

TEST_F(SqliteStoreTest, StoreWorksWhileItsFileIsCheckedAfterAnUncleanEnd) {
    OpenSqliteStore(options_);
    {
        std::ofstream log(options_.path + "-wal");
        log << "x";
    }
    std::binary_semaphore checking{0};
    std::binary_semaphore go_on{0};
    base::SetTestPointListener([&](std::string_view point) {
        if (point != "sqlite.file_check") return;
        checking.release();
        go_on.acquire();
    });
    auto store = OpenSqliteStore(options_);
    checking.acquire();
    NewTask task = Task();
    EXPECT_TRUE(store->Submit({&task, 1}).at(0).accepted());
    EXPECT_EQ(store->List({}).tasks.size(), 1u);
    go_on.release();
    ExpectSound(*store);
}

// Only what is meant to see everything does: checks, views, the whole audit log. The plan of
// lane_add has a look at the tasks of the new lane that SQLite takes only where constraints are
// deferred.
bool SeesEverything(std::string_view name) {
    return name.starts_with("check_") || name.starts_with("view_") || name.starts_with("create_") ||
           name.ends_with("_carry") || name == "audit_all" || name == "lane_add" ||
           name == "event_counts" || name == "firing_all" || name == "round_list" ||
           name == "crowds";
}

TEST_F(SqliteStoreTest, TasksAndHistoryAreFoundByIndexesAlone) {
    auto store = OpenSqliteStore(options_);
    NewTask task = Task();
    store->Submit({&task, 1});
    Finish(*store, OpenSession(*store));
    sqlite::Connection db(options_.path, {});
    db.Define("stint_token", [](std::int64_t) { return std::nullopt; });
    auto newest = [&db](std::string_view kind) {
        return db.Prepare("SELECT max(id) FROM stint_period WHERE kind = ?").Scalar(kind).value();
    };
    auto period_of = [&](std::string_view text) -> std::int64_t {
        for (std::string kind : {"history", "attempt", "audit"}) {
            if (text.find("stint_" + kind + "_{p}") != std::string::npos) return newest(kind);
        }
        return 0;
    };
    int looked_at = 0;
    for (std::string_view name : lite::QueryNames()) {
        if (SeesEverything(name)) continue;
        std::string text = lite::QueryText(name, period_of(lite::QueryText(name)));
        std::replace(text.begin(), text.end(), '?', '1');  // nothing is bound to a plan
        sqlite::Statement plan = db.Prepare("EXPLAIN QUERY PLAN " + text);
        for (sqlite::Rows rows = plan.Query(); rows.Next();) {
            ++looked_at;
            std::string step = rows.String(3);
            for (const char* table :
                 {"stint_task",
                  "stint_history",
                  "stint_attempt",
                  "stint_audit",
                  "stint_published",
                  "stint_firing",
                  "stint_join_"}) {
                EXPECT_FALSE(step.starts_with(std::string("SCAN ") + table))
                    << name << ": " << step;
            }
        }
    }
    EXPECT_GT(looked_at, 40);
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
