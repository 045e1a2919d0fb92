// The schema as others see it: views, the audit log's lock, submitting from SQL.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <climits>
#include <thread>

#include "conformance/view_columns.h"
#include "postgres/connection.h"
#include "store/events.h"
#include "store/postgres/postgres_store.h"
#include "store/schedules.h"
#include "support/postgres_schema.h"

namespace stint::store {
namespace {

using postgres::Commits;
using postgres::Connection;
using postgres::Params;
using postgres::Rows;
using postgres::SqlError;
using postgres::Statement;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SchemaTest : public ::testing::Test {
protected:
    void SetUp() override {
        SKIP_WITHOUT_POSTGRES();
        static stint::testing::PostgresSchema one("schema");
        schema_ = &one;
        schema_->Empty();
        options_.url = stint::testing::TestPostgresUrl();
        options_.schema = schema_->name();
        options_.migrate = false;
    }
    std::string In(std::string text) {
        for (std::size_t at; (at = text.find("$s.")) != std::string::npos;)
            text.replace(at, 3, schema_->name() + ".");
        return text;
    }
    Rows Ask(const std::string& text, const Params& params = {}) {
        return schema_->connection().Query(Statement{"", In(text)}, params, Commits::kNo);
    }
    std::vector<std::string> ColumnsOf(const std::string& view) {
        return Ask("SELECT array_agg(column_name || ' ' || udt_name ORDER BY ordinal_position) "
                   "FROM "
                   "information_schema.columns WHERE table_schema = $1 AND table_name = $2",
                   Params().Text(schema_->name()).Text(view))
            .Texts(0, 0);
    }
    std::string Refusal(const std::string& text) {
        try {
            Ask(text);
        } catch (const SqlError& error) {
            return error.what();
        }
        return "";
    }
    int BlocksOfCounting();  // of a queue with a cap of 10
    // One task that was claimed, failed, claimed again and completed.
    TaskId Lived(Store& store) {
        NewTask task{.type = "t", .input = R"({"a":1})"};
        TaskId id = store.Submit({&task, 1}).at(0).id;
        SessionId session = base::SystemRandom().MakeId<SessionId>();
        store.OpenSession(
            {.id = session, .hostname = "Host-1", .lease = std::chrono::hours{1}, .types = {"t"}}
        );
        for (auto kind : {Settlement::Kind::kRetry, Settlement::Kind::kComplete}) {
            Lease lease =
                store.Claim({.session = session, .limit = 1, .types = {"t"}}).leases.at(0);
            Settlement outcome{.task = id, .token = lease.token, .session = session, .kind = kind};
            outcome.output = kind == Settlement::Kind::kComplete ? R"({"b":2})" : "";
            if (kind == Settlement::Kind::kRetry) {
                outcome.error = TaskError{"broke", "io", "", true};
                outcome.end = AttemptEnd::kFailed;
            }
            EXPECT_EQ(store.Settle({&outcome, 1}).at(0).kind, SettleReply::Kind::kAccepted);
        }
        return id;
    }

    stint::testing::PostgresSchema* schema_ = nullptr;
    PostgresOptions options_;
};

// ---- views -------------------------------------------------------------------------------------

TEST_F(SchemaTest, TheViewsHaveTheColumnsOfTheContract) {
    for (const conformance::ViewContract& view : conformance::ViewContracts()) {
        std::vector<std::string> columns;
        for (const auto& [name, type] : view.columns)
            columns.push_back(fmt::format("{} {}", name, type));
        EXPECT_EQ(ColumnsOf(view.name), columns) << view.name;
    }
}

TEST_F(SchemaTest, TheStatusCodesAreThoseOfTheModel) {
    Rows rows = Ask("SELECT id, code FROM $s.task_status ORDER BY id");
    ASSERT_EQ(rows.size(), kStateCount);
    for (int i = 0; i < kStateCount; ++i) {
        EXPECT_EQ(rows.Int(i, 0), i);
        EXPECT_EQ(rows.View(i, 1), StateCode(static_cast<State>(i)));
    }
    Rows events = Ask("SELECT id, name FROM $s.event_name ORDER BY id");
    ASSERT_EQ(events.size(), kEventCount);
    for (int i = 0; i < kEventCount; ++i)
        EXPECT_EQ(events.View(i, 1), EventName(static_cast<Event>(i)));
}

TEST_F(SchemaTest, TheTaskViewTellsTheSameStoryAsTheStore) {
    auto store = OpenPostgresStore(options_);
    TaskId id = Lived(*store);
    Rows rows =
        Ask("SELECT status, input ->> 'a', output ->> 'b', retry_count, worker_status, executor IS "
            "NOT NULL, "
            "completed_at IS NOT NULL, try_count FROM $s.task WHERE id = $1",
            Params().Number(id));
    ASSERT_EQ(rows.size(), 1);
    EXPECT_EQ(rows.Int(0, 0), static_cast<int>(State::kComplete));
    EXPECT_EQ(rows.View(0, 1), "1");
    EXPECT_EQ(rows.View(0, 2), "2");
    EXPECT_EQ(rows.Int(0, 3), 1);
    EXPECT_EQ(rows.View(0, 4), "done");
    EXPECT_TRUE(rows.Bool(0, 5));
    EXPECT_TRUE(rows.Bool(0, 6));
    EXPECT_EQ(rows.Int(0, 7), 2);
    Rows audit =
        Ask("SELECT array_agg(event || ' ' || coalesce(from_status, '-') || ' ' || to_status ORDER "
            "BY id) FROM $s.audit_logs WHERE task_id = $1",
            Params().Number(id));
    EXPECT_THAT(
        audit.Texts(0, 0),
        ElementsAre(
            "submit - OPEN",
            "claim OPEN IN_PROGRESS",
            "fail_retryable IN_PROGRESS ERROR",
            "retry_due ERROR OPEN",
            "claim OPEN IN_PROGRESS",
            "complete IN_PROGRESS COMPLETE"
        )
    );
}

TEST_F(SchemaTest, TheAuditLogRefusesToBeChanged) {
    auto store = OpenPostgresStore(options_);
    Lived(*store);
    std::string leaf = Ask("SELECT tableoid::regclass::text FROM $s.audit LIMIT 1").Text(0, 0);
    for (const std::string& table : {In("$s.audit"), leaf}) {
        EXPECT_THAT(Refusal("UPDATE " + table + " SET actor = 'nobody'"), HasSubstr("append-only"));
        EXPECT_THAT(Refusal("DELETE FROM " + table), HasSubstr("append-only"));
        EXPECT_THAT(Refusal("TRUNCATE " + table), HasSubstr("append-only"));
    }
    EXPECT_GT(Ask("SELECT count(*) FROM $s.audit").Int(0, 0), 0);
}

// ---- retention ---------------------------------------------------------------------------------

TEST_F(SchemaTest, ATaskThatFinishesWhileItsPeriodIsDroppedIsKept) {
    auto store = OpenPostgresStore(options_);
    TaskId id = Lived(*store);
    std::string leaf = Ask("SELECT name FROM $s.leaf WHERE parent = 'history'").Text(0, 0);
    schema_->AdvanceTime(std::chrono::hours{24} * 100);
    postgres::ConnectOptions connect;
    connect.url = options_.url;
    auto settler = Connection::Open(connect), dropper = Connection::Open(connect);
    Statement pid{"", "SELECT pg_backend_pid()"};
    std::int64_t dropping = dropper->Query(pid, {}, Commits::kNo).Int(0, 0);
    settler->Script(In("BEGIN; UPDATE $s.history SET finished_at = $s.now_()"));
    bool dropped = false;
    std::jthread drop([&] {
        Statement statement{"", In("SELECT $s.drop_leaf_($1, $2)")};
        Params params;
        params.Text(leaf).Int(std::int64_t{90} * 24 * 3600 * 1000);
        dropped = dropper->Query(statement, params, Commits::kNo).Bool(0, 0);
    });
    while (Ask("SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'",
               Params().Int(dropping))
               .Int(0, 0) == 0) {
        std::this_thread::yield();
    }
    settler->Script("COMMIT");
    drop.join();
    EXPECT_FALSE(dropped);
    EXPECT_TRUE(store->Get(id).has_value());
}

TEST_F(SchemaTest, AttemptsOutliveTheirPeriodWhileATaskOfTheNextIsThere) {
    auto store = OpenPostgresStore(options_);
    auto age = [&](int days) {
        for (int i = 0; i < days; ++i) {
            schema_->AdvanceTime(std::chrono::hours{25});
            Ask("SELECT $s.begin_period_()");
        }
    };
    age(1);
    // A process that had not yet heard of period 2 wrote the attempts of its tasks to period 1.
    TaskId id = Lived(*store);
    Ask("UPDATE $s.attempt SET part = 1 WHERE task = $1", Params().Number(id));
    ASSERT_THAT(store->Attempts(id), ::testing::SizeIs(2));
    age(4);
    // Nothing of period 1 itself is left.
    ASSERT_TRUE(Ask("SELECT $s.drop_leaf_('history_1_0', 1)").Bool(0, 0));
    EXPECT_FALSE(Ask("SELECT $s.drop_leaf_('attempt_1', 1)").Bool(0, 0));
    EXPECT_THAT(store->Attempts(id), ::testing::SizeIs(2));
}

TEST_F(SchemaTest, AWorkflowThatCannotBeReadSaysSo) {
    auto store = OpenPostgresStore(options_);
    WorkflowDefinition definition;
    definition.name = "w";
    Trigger trigger;
    trigger.name = "a";
    trigger.on = "e";
    trigger.action = TaskTemplate{.type = "t"};
    definition.triggers.push_back(trigger);
    ASSERT_TRUE(store->Events().PutWorkflow(definition, "ann"));
    Ask(R"(UPDATE $s.workflow SET definition = '{"name":"w","tomorrow":1}')");
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

// Written by a newer program, say: its tasks are left to that one, and stop nobody else's.
TEST_F(SchemaTest, ATaskWhosePolicyCannotBeReadIsLeftAloneAndStopsNobody) {
    std::vector<std::string> logged;
    options_.log = base::Logger(
        [&](const LogRecord& record) { logged.emplace_back(record.message); }, "postgres"
    );
    auto store = OpenPostgresStore(options_);
    auto submit = [&](const std::string& more) {
        return TaskId(
            std::stoll(Ask("SELECT $s.submit('{\"type\": \"t\"" + more + "}') ->> 'id'").Text(0, 0))
        );
    };
    TaskId odd = submit(R"(, "retry": {"max_attempts": 3})"), plain = submit("");
    Ask(R"(UPDATE $s.policy SET retry = '{"kind":"of tomorrow"}' WHERE retry <> '{}')");
    SessionId session = base::SystemRandom().MakeId<SessionId>();
    store->OpenSession({.id = session, .hostname = "h", .lease = std::chrono::minutes{1}});
    std::vector<Lease> leases =
        store->Claim({.session = session, .limit = 5, .types = {"t"}}).leases;
    ASSERT_EQ(leases.size(), 2u);
    EXPECT_EQ(leases[0].task, odd);
    EXPECT_EQ(leases[0].retry.on, RetryPolicy::On::kNone) << "nobody knows whether it may";
    schema_->AdvanceTime(std::chrono::minutes{5});
    // The first sweep meets it, the second does not even look; the plain one is recovered.
    auto sweeper = OpenPostgresStore(options_);
    ReclaimReply first = sweeper->Reclaim({.limit = 1}), second = sweeper->Reclaim({.limit = 1});
    EXPECT_THAT(first.skipped, ElementsAre(odd));
    EXPECT_THAT(first.tasks, IsEmpty());
    ASSERT_EQ(second.tasks.size(), 1u);
    EXPECT_EQ(second.tasks[0].task, plain);
    EXPECT_FALSE(store->Reclaim({}).more);
    EXPECT_EQ(store->Get(odd)->state, State::kInProgress);
    EXPECT_EQ(store->List({}).tasks.size(), 2u);
    EXPECT_THAT(logged, ::testing::Contains(HasSubstr("retry policy cannot be read")));
    auto found = [&] {
        std::string details;
        for (const CheckFinding& finding : store->Check()) {
            if (!finding.ok) details += finding.detail;
        }
        return details;
    };
    EXPECT_THAT(found(), HasSubstr("of tomorrow"));
    // Somebody mended it.
    Ask(R"(UPDATE $s.policy SET retry = '{"max_attempts":5}' WHERE retry LIKE '%tomorrow%')");
    store->Housekeep({});
    EXPECT_EQ(store->Reclaim({}).tasks.size(), 1u);
    EXPECT_EQ(found(), "");
}

TEST_F(SchemaTest, SchedulesOfANewerProgramHoldNobodyUp) {
    auto store = OpenPostgresStore(options_);
    for (int i = 0; i < 10; ++i) {
        ScheduleSpec spec;
        spec.name = "s" + std::to_string(i);
        spec.timing = {.kind = TimingSpec::Kind::kEvery, .every = std::chrono::hours{1}};
        spec.task.type = "t";
        ASSERT_TRUE(store->Schedules().Put({.spec = spec}));
    }
    Ask(R"(UPDATE $s.schedule SET spec = '{"moon":1}' WHERE name < 's8')");
    Ask("UPDATE $s.schedule SET next_at = next_at + interval '1 minute' WHERE name >= 's8'");
    schema_->AdvanceTime(std::chrono::minutes{5});
    std::vector<Schedule> due = store->Schedules().Due(1, 1).schedules;
    ASSERT_EQ(due.size(), 1u);
    EXPECT_EQ(due[0].spec.name, "s8");
    EXPECT_EQ(store->Schedules().Due(5, 1).schedules.size(), 2u);
}

TEST_F(SchemaTest, IdsTakenAheadAreNotUsedForPeriodsToCome) {
    options_.ids_kept = Duration::zero();
    auto store = OpenPostgresStore(options_);
    NewTask task{.type = "t"};
    store->Submit({&task, 1});
    schema_->AdvanceTime(std::chrono::hours{25});
    Ask("SELECT $s.begin_period_()");
    TaskId id = store->Submit({&task, 1}).at(0).id;
    EXPECT_GE(id.value(), Ask("SELECT max(first_id) FROM $s.period").Int(0, 0));
}

// ---- counts ------------------------------------------------------------------------------------

TEST_F(SchemaTest, FinishedTasksAreCountedWithoutLookingAtThem) {
    auto store = OpenPostgresStore(options_);
    Lived(*store);
    Lived(*store);
    CountKey complete{State::kComplete, "default", "t"};
    schema_->connection().Script(In("BEGIN; LOCK TABLE $s.history IN ACCESS EXCLUSIVE MODE"));
    EXPECT_EQ(store->Counts({})[complete], 2);
    schema_->connection().Script("ROLLBACK");
    EXPECT_EQ(Ask("SELECT count(*) FROM $s.history_change").Int(0, 0), 2);
    store->Housekeep({});
    EXPECT_EQ(Ask("SELECT count(*) FROM $s.history_change").Int(0, 0), 0);
    Lived(*store);
    EXPECT_EQ(store->Counts({})[complete], 3);
}

TEST_F(SchemaTest, ACountThatIsWrongIsFound) {
    auto store = OpenPostgresStore(options_);
    Lived(*store);
    auto wrong = [&] {
        std::string details;
        for (const CheckFinding& finding : store->Check()) {
            if (!finding.ok) details += finding.detail;
        }
        return details;
    };
    EXPECT_EQ(wrong(), "");
    Ask("UPDATE $s.history_change SET n = 5");
    EXPECT_THAT(wrong(), HasSubstr("complete: counted 5, there are 1"));
    Ask("UPDATE $s.history_change SET n = 1");
    EXPECT_EQ(wrong(), "");
    // Of a table that is gone.
    Ask("INSERT INTO $s.history_tally(part, lane, state, n) SELECT part + 160, lane, state, 3 FROM "
        "$s.history_change");
    EXPECT_THAT(wrong(), HasSubstr("history table 11_0"));
    EXPECT_THAT(wrong(), HasSubstr("complete: counted 3, there are 0"));
}

int SchemaTest::BlocksOfCounting() {
    Rows plan =
        Ask("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF, COSTS OFF) SELECT $s.waiting_(id, "
            "10) FROM $s.queue WHERE name = 'q'");
    for (int i = 0; i < plan.size(); ++i) {
        std::string line = plan.Text(i, 0);
        std::size_t at = line.find("hit=");
        if (at != std::string::npos) return std::stoi(line.substr(at + 4));
    }
    return -1;
}

TEST_F(SchemaTest, ACapIsCheckedByCountingNoFurther) {
    auto store = OpenPostgresStore(options_);
    store->SetQueue({.name = "q", .cap = 10}, "me");
    NewTask task{.type = "t", .queue = "q"}, later = task;
    later.delay = std::chrono::hours{1};
    store->Submit({&task, 1});
    store->Submit({&later, 1});
    EXPECT_EQ(Ask("SELECT $s.waiting_(id, 10) FROM $s.queue WHERE name = 'q'").Int(0, 0), 2);
    Ask("INSERT INTO $s.ready SELECT r.pos + n, r.task + n, r.lane, 0 FROM $s.ready r, "
        "generate_series(1, 50000) n");
    // The least of some tries: what a server has to look up in its catalogs again, because somebody
    // analysed a table meanwhile, counts as well.
    int blocks = INT_MAX;
    for (int i = 0; i < 5; ++i) blocks = std::min(blocks, BlocksOfCounting());
    EXPECT_EQ(store->Submit({&task, 1}).at(0).kind, SubmitReply::Kind::kQueueFull);
    EXPECT_GE(blocks, 1);
    EXPECT_LE(blocks, 100);
}

// ---- plans -------------------------------------------------------------------------------------

// The server counts sequential scans of each table; a connection tells its own when it closes.
TEST_F(SchemaTest, TheHotAndTheListStatementsNeverScanATable) {
    options_.url =
        stint::testing::WithParameter(options_.url, "application_name=" + schema_->name());
    {
        auto store = OpenPostgresStore(options_);
        Lived(*store);
        NewTask task{.type = "t", .queue = "q"};
        store->Submit({&task, 1});
    }
    // Another 50 000 live ones and as many finished, like those two.
    Ask("INSERT INTO $s.live SELECT v.id + n * 64, v.pos + n, v.created_at, v.due_at, v.lane, "
        "v.policy, v.flags, v.explicit, v.timeout_ms, v.parent, v.start_by, CASE WHEN n % 100 = 0 "
        "THEN '{rare}'::text[] END, NULL, NULL, NULL, v.input FROM $s.live v, "
        "generate_series(10, 50000) n");
    Ask("INSERT INTO $s.ready SELECT v.pos, v.id, v.lane, v.flags FROM $s.live v WHERE NOT EXISTS "
        "(SELECT FROM $s.ready r WHERE r.task = v.id)");
    Ask("INSERT INTO $s.history SELECT (x.h).* FROM (SELECT jsonb_populate_record(h, "
        "jsonb_build_object('id', h.id + n * 64)) AS h FROM $s.history h, "
        "generate_series(10, 50000) n) x");
    schema_->connection().Script(In("ANALYZE $s.live; ANALYZE $s.ready; ANALYZE $s.history"));
    auto scans = [&] {
        while (Ask("SELECT count(*) FROM pg_stat_activity WHERE application_name = $1",
                   Params().Text(schema_->name()))
                   .Int(0, 0) > 0) {
            std::this_thread::yield();
        }
        Ask("SELECT pg_stat_clear_snapshot()");
        return Ask("SELECT coalesce(sum(seq_scan), 0)::bigint FROM pg_stat_all_tables WHERE "
                   "schemaname = $1 AND (relname IN ('live', 'ready') OR relname LIKE 'history%')",
                   Params().Text(schema_->name()))
            .Int(0, 0);
    };
    Ask("SELECT pg_stat_force_next_flush()");
    std::int64_t before = scans();
    {
        auto store = OpenPostgresStore(options_);
        SessionId session = base::SystemRandom().MakeId<SessionId>();
        store->OpenSession({.id = session, .hostname = "h", .lease = std::chrono::hours{1}});
        EXPECT_EQ(
            store->Claim({.session = session, .limit = 10, .types = {"t"}}).leases.size(), 10u
        );
        for (const TaskFilter& filter : std::vector<TaskFilter>{
                 {},
                 {.states = {State::kOpen}},
                 {.states = {State::kComplete}},
                 {.types = {"t"}},
                 {.queues = {"q"}},
                 {.tags = {"rare"}},
                 {.types = {"nobody"}}}) {
            TaskPage page = store->List({.filter = filter, .limit = 20});
            EXPECT_EQ(page.tasks.empty(), filter.types == std::vector<std::string>{"nobody"});
            for (const TaskRecord& task : page.tasks) EXPECT_TRUE(store->Get(task.id).has_value());
        }
    }
    EXPECT_EQ(scans(), before);
}

// ---- submitting from SQL -----------------------------------------------------------------------

TEST_F(SchemaTest, ATaskFromSqlIsLikeAnyOther) {
    auto store = OpenPostgresStore(options_);
    TypeDefaults type{
        .type = "mail", .queue = "post", .priority = 7, .timeout = std::chrono::minutes{3}};
    store->PublishTypes({&type, 1});
    Rows rows = Ask(
        R"(SELECT $s.submit('{"type": "mail", "input": {"to": "ann"}, "tags": ["b", "a"],
            "tenant": 5, "delay": "5m", "unique_key": "u", "actor": "user:ann"}') ->> 'id')"
    );
    TaskId id = TaskId::Parse(rows.View(0, 0)).value();
    TaskRecord task = store->Get(id).value();
    EXPECT_EQ(task.type, "mail");
    EXPECT_EQ(task.queue, "post");
    EXPECT_EQ(task.priority, 7);
    EXPECT_EQ(task.timeout, std::chrono::minutes{3});
    EXPECT_EQ(task.tenant, TenantId(5));
    EXPECT_EQ(task.input, R"({"to": "ann"})");
    EXPECT_EQ(task.unique_key, "u");
    EXPECT_TRUE(task.type_known);
    EXPECT_EQ(task.due_at - task.created_at, std::chrono::minutes{5});
    EXPECT_EQ(
        store->Audit({.task = id}).at(0).actor,
        "sql:" + Ask("SELECT session_user").Text(0, 0) + " user:ann"
    );
    for (const CheckFinding& finding : store->Check()) EXPECT_TRUE(finding.ok) << finding.detail;
}

TEST_F(SchemaTest, AnUnknownTypeFromSqlGetsTheGlobalDefaults) {
    auto store = OpenPostgresStore(options_);
    TaskId id =
        TaskId::Parse(Ask(R"(SELECT $s.submit('{"type": "x"}') ->> 'id')").View(0, 0)).value();
    TaskRecord task = store->Get(id).value();
    EXPECT_EQ(task.queue, "default");
    EXPECT_EQ(task.priority, limits::kPriorityDefault);
    EXPECT_EQ(task.retry, RetryPolicy{});
    EXPECT_FALSE(task.type_known);
    EXPECT_EQ(task.input, "null");
}

TEST_F(SchemaTest, AKeyMeansTheSameThroughSqlAndThroughTheStore) {
    auto store = OpenPostgresStore(options_);
    store->SetQueue({.name = "q"}, "ann");
    NewTask task{.type = "t", .queue = "q", .priority = 3};
    task.tags = {"z", "a"};
    task.delay = std::chrono::seconds{90};
    task.retry = RetryPolicy{.kind = RetryPolicy::Kind::kFixed, .max_attempts = 7, .factor = 1.5};
    task.throttle = Throttle{"k", std::chrono::seconds{2}};
    // As programs write it: no spaces, members in their own order, numbers of every kind.
    const std::string input = R"({"z":{"b":[],"a":{}},"n":[1,-2,0.1,2.50,1e-7,12345678901234567,)"
                              R"(1e3,1000.0,-0.0,-0,2.5e1,1e20,-1E+2,1e15,18446744073709551615],)"
                              R"("s":"é\"\\\n\u0001","bb":null,"a":true})";
    auto through_sql = [&](const std::string& key) {
        return Ask(
            R"(SELECT r ->> 'id', r ->> 'kind' FROM (SELECT $s.submit(jsonb_build_object(
                    'type', 't', 'input', $1::jsonb, 'queue', 'q', 'priority', 3, 'delay', '90s',
                    'tags', '["a", "z"]'::jsonb, 'idempotency_key', $2::text,
                    'retry', '{"kind": "fixed", "max_attempts": 7, "factor": 1.5}'::jsonb,
                    'throttle', jsonb_build_object('key', $2::text, 'period', '2s'))) AS r) x)",
            Params().Text(input).Text(key)
        );
    };
    for (bool sql_first : {false, true}) {
        task.input = input;
        task.idempotency_key = sql_first ? "sql first" : "store first";
        task.throttle->key = task.idempotency_key;
        Rows first, again;
        SubmitReply reply;
        if (sql_first) first = through_sql(task.idempotency_key);
        reply = store->Submit({&task, 1}).at(0);
        again = through_sql(task.idempotency_key);
        EXPECT_EQ(
            reply.kind, sql_first ? SubmitReply::Kind::kExisting : SubmitReply::Kind::kCreated
        ) << reply.message;
        EXPECT_TRUE(!sql_first || first.Text(0, 0) == reply.id.ToString());
        EXPECT_EQ(again.Text(0, 0), reply.id.ToString());
        EXPECT_EQ(again.View(0, 1), "existing");
    }
    EXPECT_THAT(
        Refusal(R"(SELECT $s.submit('{"type": "t", "idempotency_key": "sql first"}'))"),
        HasSubstr("idempotency_key \"sql first\"")
    );
}

TEST_F(SchemaTest, ATaskFromSqlHasItsOwnRetryPolicyAndThrottle) {
    auto store = OpenPostgresStore(options_);
    auto submit = [&] {
        return Ask(R"(SELECT r ->> 'id', r ->> 'kind' FROM (SELECT $s.submit('{"type": "t",
            "retry": {"kind": "list", "delays_ms": [10, 20], "on": "all"},
            "throttle": {"key": "hourly", "period": "1h"}}') AS r) x)");
    };
    Rows first = submit(), second = submit();
    EXPECT_EQ(first.View(0, 1), "created");
    EXPECT_EQ(second.View(0, 1), "throttled");
    EXPECT_EQ(second.Text(0, 0), first.Text(0, 0));
    RetryPolicy expected{.kind = RetryPolicy::Kind::kList, .on = RetryPolicy::On::kAll};
    expected.delays = {Duration{10}, Duration{20}};
    TaskRecord task = store->Get(TaskId::Parse(first.View(0, 0)).value()).value();
    EXPECT_EQ(task.retry, expected);
    schema_->AdvanceTime(std::chrono::hours{2});
    EXPECT_EQ(submit().View(0, 1), "created");
}

TEST_F(SchemaTest, ASubmitFromSqlReplacesWhatWaitsUnderItsKey) {
    auto store = OpenPostgresStore(options_);
    auto submit = [&](const std::string& rest) {
        return Ask(
            R"(SELECT r ->> 'id', r ->> 'kind' FROM (SELECT $s.submit('{"type": "t", "actor": "bob",
                "unique_key": "k", "unique_policy": "replace_if_not_started", )" +
            rest + "}') AS r) x"
        );
    };
    Rows first = submit(R"("input": 1, "delay": "1h")");
    EXPECT_EQ(first.View(0, 1), "created");
    TaskId id = TaskId::Parse(first.View(0, 0)).value();
    // From later to ready, and from one lane to another.
    Rows second = submit(R"("input": 2, "priority": 7, "tags": ["x"], "timeout": "5s")");
    EXPECT_EQ(second.View(0, 1), "replaced");
    EXPECT_EQ(second.Text(0, 0), first.Text(0, 0));
    TaskRecord task = store->Get(id).value();
    EXPECT_EQ(task.input, "2");
    EXPECT_EQ(task.priority, 7);
    EXPECT_THAT(task.tags, ElementsAre("x"));
    EXPECT_EQ(task.timeout, std::chrono::seconds{5});
    AuditEntry entry = store->Audit({.task = id}).back();
    EXPECT_EQ(EventName(entry.event), "edit");
    EXPECT_EQ(entry.reason, "replaced by a new request");
    EXPECT_THAT(entry.actor, HasSubstr("bob"));

    SessionId session = base::SystemRandom().MakeId<SessionId>();
    store->OpenSession({.id = session, .hostname = "h", .lease = std::chrono::hours{1}});
    std::vector<Lease> leases =
        store->Claim({.session = session, .limit = 9, .types = {"t"}}).leases;
    ASSERT_EQ(leases.size(), 1U);
    EXPECT_EQ(leases[0].input, "2");
    EXPECT_EQ(submit(R"("input": 3)").View(0, 1), "existing");
    EXPECT_EQ(store->Get(id)->input, "2");
    for (const CheckFinding& finding : store->Check()) EXPECT_TRUE(finding.ok) << finding.detail;
}

TEST_F(SchemaTest, ASuspectThatIsReplacedFromSqlStaysOne) {
    auto store = OpenPostgresStore(options_);
    auto submit = [&](int input) {
        return Ask(
            R"(SELECT $s.submit(jsonb_build_object('type', 't', 'input', $1::int, 'unique_key', 'k',
                'unique_policy', 'replace_if_not_started')) ->> 'kind')",
            Params().Int(input)
        );
    };
    submit(1);
    auto claim = [&](bool suspect) {
        SessionId session = base::SystemRandom().MakeId<SessionId>();
        store->OpenSession({.id = session, .hostname = "h", .lease = std::chrono::minutes{1}});
        ClaimRequest request{.session = session, .limit = 9, .types = {"t"}, .suspect = suspect};
        return store->Claim(request).leases;
    };
    ASSERT_EQ(claim(false).size(), 1U);
    schema_->AdvanceTime(std::chrono::minutes{5});
    ASSERT_EQ(store->Reclaim({}).tasks.size(), 1U);
    EXPECT_EQ(submit(2).View(0, 0), "replaced");
    EXPECT_THAT(claim(false), IsEmpty());
    std::vector<Lease> leases = claim(true);
    ASSERT_EQ(leases.size(), 1U);
    EXPECT_EQ(leases[0].input, "2");
}

TEST_F(SchemaTest, ABurstFromSqlIsOneTask) {
    auto store = OpenPostgresStore(options_);
    auto submit = [&](int input) {
        return Ask(
            R"(SELECT r ->> 'id', r ->> 'kind' FROM (SELECT $s.submit(jsonb_build_object(
                'type', 't', 'input', $1::int, 'debounce',
                '{"key": "k", "wait": "60s", "max_wait": "90s"}'::jsonb)) AS r) x)",
            Params().Int(input)
        );
    };
    Rows first = submit(1);
    TaskId id = TaskId::Parse(first.View(0, 0)).value();
    TaskRecord before = store->Get(id).value();
    schema_->AdvanceTime(std::chrono::seconds{50});
    Rows second = submit(2);
    EXPECT_EQ(second.View(0, 1), "replaced");
    EXPECT_EQ(second.Text(0, 0), first.Text(0, 0));
    TaskRecord after = store->Get(id).value();
    EXPECT_EQ(after.input, "2");
    EXPECT_EQ(after.due_at, before.created_at + std::chrono::seconds{90});  // and not 110
    // The other door knows the key, and the request.
    NewTask task{.type = "t", .input = "3"};
    task.debounce = Debounce{
        .key = "k", .wait = std::chrono::seconds{60}, .max_wait = std::chrono::seconds{90}};
    EXPECT_EQ(store->Submit({&task, 1}).at(0).id, id);

    schema_->AdvanceTime(std::chrono::minutes{5});
    SessionId session = base::SystemRandom().MakeId<SessionId>();
    store->OpenSession({.id = session, .hostname = "h", .lease = std::chrono::hours{1}});
    ASSERT_EQ(store->Claim({.session = session, .limit = 9, .types = {"t"}}).leases.size(), 1U);
    Rows third = submit(4);
    EXPECT_EQ(third.View(0, 1), "created");
    EXPECT_NE(third.Text(0, 0), first.Text(0, 0));
    EXPECT_EQ(submit(5).Text(0, 0), third.Text(0, 0));
    for (const CheckFinding& finding : store->Check()) EXPECT_TRUE(finding.ok) << finding.detail;
}

// Somebody submits inside a transaction and then does other things for an hour.
class OpenTransaction : public SchemaTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(
    Door,
    OpenTransaction,
    ::testing::Values("Sql", "Borrow"),
    [](const auto& door) { return std::string(door.param); }
);

TEST_P(OpenTransaction, WithASubmitKeepsNobodyWaiting) {
    options_.acquire_timeout = std::chrono::seconds{5};
    auto store = OpenPostgresStore(options_);
    Connection& host = schema_->connection();
    host.Script("BEGIN");
    if (GetParam() == std::string("Sql")) {
        host.Script(In(R"(SELECT $s.submit('{"type": "t", "retry": {"max_attempts": 3}}'))"));
    } else {
        NewTask first{.type = "t", .retry = RetryPolicy{.max_attempts = 3}};
        store->Borrow(host.native()).value()->Submit({&first, 1});
    }
    auto other = Connection::Open({.url = options_.url});
    other->Script(In(R"(SET lock_timeout = '2s'; SELECT $s.submit('{"type": "t"}'))"));
    NewTask task{.type = "t", .retry = RetryPolicy{.max_attempts = 3}};
    // Whoever waited for the transaction would wait until the server breaks it off.
    auto use_the_same = [&] {
        EXPECT_EQ(store->Submit({&task, 1}).at(0).kind, SubmitReply::Kind::kCreated);
        TypeDefaults type{.type = "t", .queue = "other"};
        store->PublishTypes({&type, 1});
        store->SetQueue({.name = "default", .paused = true}, "ann");
        store->Housekeep({});
    };
    EXPECT_NO_THROW(use_the_same());
    host.Script("COMMIT");
    EXPECT_EQ((store->Counts({})[{State::kOpen, "default", "t"}]), 1);
    // It was accepted before its type was known.
    store->Housekeep({});
    EXPECT_EQ((store->Counts({})[{State::kOpen, "other", "t"}]), 3);
}

TEST_F(SchemaTest, ASubmitFromSqlTakesOneTransactionNumber) {
    Connection& connection = schema_->connection();
    connection.Script(In(R"(BEGIN; SELECT $s.submit('{"type": "t"}'))"));
    std::string xids = Ask("SELECT array_agg(DISTINCT xmin::text) FROM (SELECT xmin FROM $s.live "
                           "UNION ALL SELECT xmin FROM $s.audit) x")
                                   .Texts(0, 0)
                                   .size() == 1
                           ? "one"
                           : "several";
    connection.Script("COMMIT");
    EXPECT_EQ(xids, "one");
}

TEST_F(SchemaTest, WhatIsWrongNamesTheField) {
    auto refusal = [&](const std::string& body) {
        return Refusal("SELECT $s.submit('" + body + "')");
    };
    EXPECT_THAT(refusal(R"({"input": 1})"), HasSubstr("type is missing"));
    EXPECT_THAT(refusal(R"({"type": "a b"})"), HasSubstr("type is \"a b\""));
    EXPECT_THAT(refusal(R"({"type": "a", "prio": 1})"), HasSubstr("unknown field \"prio\""));
    EXPECT_THAT(refusal(R"({"type": "a", "priority": 256})"), HasSubstr("priority is 256"));
    EXPECT_THAT(refusal(R"({"type": "a", "queue": ""})"), HasSubstr("queue is empty"));
    EXPECT_THAT(refusal(R"({"type": "a", "delay": "soon"})"), HasSubstr("delay is \"soon\""));
    EXPECT_THAT(refusal(R"({"type": "a", "run_at": "x"})"), HasSubstr("run_at is \"x\""));
    EXPECT_THAT(refusal(R"({"type": "a", "tags": "x"})"), HasSubstr("tags is \"x\""));
    EXPECT_THAT(refusal(R"({"type": "a", "tenant": 0})"), HasSubstr("tenant is 0"));
    EXPECT_THAT(refusal(R"({"type": "a", "queue": "new"})"), HasSubstr("queue \"new\" does not"));
    EXPECT_THAT(refusal(R"({"type": "a", "queue": "new"})"), HasSubstr("stint queue cap new none"));
    EXPECT_THAT(refusal(R"({"type": "a", "debounce": {}})"), HasSubstr("debounce is {}"));
    EXPECT_THAT(
        refusal(R"({"type": "a", "debounce": {"key": "k", "wait": "9s", "max_wait": "1s"}})"),
        HasSubstr("debounce.max_wait is 1000 ms")
    );
    EXPECT_THAT(
        refusal(R"({"type": "a", "delay": 1, "debounce": {"key": "k", "wait": "9s"}})"),
        HasSubstr("sets the due time itself")
    );
    EXPECT_THAT(
        refusal(R"({"type": "a", "unique_policy": "replace"})"), HasSubstr("replace_if_not_started")
    );
    EXPECT_THAT(refusal(R"({"type": "a", "throttle": {}})"), HasSubstr("throttle is {}"));
    EXPECT_THAT(refusal(R"({"type": "a", "retry": 1})"), HasSubstr("retry is 1"));
    EXPECT_THAT(refusal(R"({"type": "a", "retry": {"x": 1}})"), HasSubstr("retry.x is unknown"));
    EXPECT_THAT(
        refusal(R"({"type": "a", "retry": {"factor": 0.5}})"), HasSubstr("retry.factor is 0.5")
    );
    EXPECT_THAT(refusal(R"([1])"), HasSubstr("not an object"));
    EXPECT_THAT(refusal(R"({"type": "a", "tenant": "x"})"), HasSubstr("tenant is \"x\""));
    EXPECT_THAT(refusal(R"({"type": "a", "parent": 1.5})"), HasSubstr("parent is 1.5"));
    EXPECT_THAT(refusal(R"({"type": "a", "priority": []})"), HasSubstr("priority is []"));
    EXPECT_THAT(
        refusal(R"({"type": "a", "parent": 9999999999999999999})"),
        HasSubstr("parent is 9999999999999999999")
    );
    EXPECT_THAT(refusal(R"({"type": "a", "tags": [null]})"), HasSubstr("tags has null"));
    EXPECT_THAT(refusal(R"({"type": "a", "tags": ["x", 1]})"), HasSubstr("tags has 1"));
    EXPECT_THAT(refusal(R"({"type": "a", "notify": "yes"})"), HasSubstr("notify is \"yes\""));
    EXPECT_THAT(
        refusal(R"({"type": "a", "throttle": {"key": "k", "period": "1s", "per": 1}})"),
        HasSubstr("throttle.per is unknown; the fields are key, period")
    );
    EXPECT_THAT(
        refusal(R"({"type": "a", "debounce": {"key": "k", "wait": "1s", "max": 1}})"),
        HasSubstr("debounce.max is unknown; the fields are key, wait, max_wait")
    );
    EXPECT_EQ(Ask("SELECT count(*) FROM $s.live").Int(0, 0), 0);
}

TEST_F(SchemaTest, AnIdIsTakenAsItWasAnswered) {
    auto store = OpenPostgresStore(options_);
    std::string parent = Ask(R"(SELECT $s.submit('{"type": "t"}') ->> 'id')").Text(0, 0);
    Rows child =
        Ask("SELECT $s.submit(jsonb_build_object('type', 't', 'parent', $1::text)) ->> 'id'",
            Params().Text(parent));
    EXPECT_EQ(store->Get(TaskId::Parse(child.View(0, 0)).value())->parent.ToString(), parent);
}

TEST_F(SchemaTest, ASubmitInATransactionWithAnOldSnapshotIsRefused) {
    for (const char* level : {"REPEATABLE READ", "SERIALIZABLE"}) {
        schema_->connection().Script(fmt::format("BEGIN ISOLATION LEVEL {}", level));
        EXPECT_THAT(
            Refusal(R"(SELECT $s.submit('{"type": "t"}'))"),
            HasSubstr("BEGIN it with ISOLATION LEVEL READ COMMITTED")
        ) << level;
        schema_->connection().Script("ROLLBACK");
    }
}

TEST_F(SchemaTest, ARollbackTakesTheTaskWithIt) {
    Connection& connection = schema_->connection();
    connection.Script("BEGIN");
    Ask(R"(SELECT $s.submit('{"type": "t"}'))");
    connection.Script("ROLLBACK");
    EXPECT_EQ(Ask("SELECT count(*) FROM $s.live").Int(0, 0), 0);
}

TEST_F(SchemaTest, AProducerNeedsNothingButTheFunction) {
    std::string role = fmt::format("producer_{}", getpid());
    Connection& connection = schema_->connection();
    connection.Script(In(fmt::format(
        "CREATE ROLE {0}; GRANT USAGE ON SCHEMA {1} TO {0}; GRANT EXECUTE ON FUNCTION "
        "$s.submit(jsonb) TO {0}",
        role,
        schema_->name()
    )));
    connection.Script("SET ROLE " + role);
    std::string created, refused;
    try {
        created = Ask(R"(SELECT $s.submit('{"type": "t"}') ->> 'kind')").Text(0, 0);
    } catch (const SqlError& error) {
        created = error.what();
    }
    refused = Refusal("SELECT * FROM $s.live");
    connection.Script("RESET ROLE");
    connection.Script(In(fmt::format("DROP OWNED BY {0}; DROP ROLE {0}", role)));
    EXPECT_EQ(created, "created");
    EXPECT_THAT(refused, HasSubstr("permission denied"));
}

}  // namespace
}  // namespace stint::store
