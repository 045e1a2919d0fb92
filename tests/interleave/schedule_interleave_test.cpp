// Two nodes fire the same schedule at the same time, in every order, with the store's own
// statements: one task. Beside it the variants that leave out a guard: either of the two suffices,
// and without both of them there are two tasks.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

#include "interleave/interleave.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/sql.h"
#include "store/schedules.h"
#include "support/postgres_schema.h"

namespace stint::interleave {
namespace {

using namespace stint::store;
using postgres::ArrayOf;
using postgres::Commits;
using postgres::Connection;
using postgres::Params;
using postgres::Rows;
using postgres::Statement;
using ::testing::IsEmpty;
using ::testing::Not;
namespace oid = postgres::oid;

const Time kInstant{std::chrono::seconds{1'700'000'000}};

// What a node looks at before it fires.
struct Guards {
    bool lock = true;  // the schedule's row, and whether it still is as it was looked at
    bool mark = true;  // of the instant
};

class FireTwice : public ::testing::Test {
protected:
    void SetUp() override {
        SKIP_WITHOUT_POSTGRES();
        static stint::testing::PostgresSchema one("fire_twice");
        schema_ = &one;
        schema_->Empty();
        sql_ = std::make_unique<pg::Sql>(schema_->name());
        for (const char* who : {"A", "B"}) stores_[who] = Open(who);
    }
    std::shared_ptr<Store> Open(const std::string& name) {
        PostgresOptions options;
        options.url = stint::testing::WithParameter(
            stint::testing::TestPostgresUrl(), "application_name=" + name
        );
        options.schema = schema_->name();
        options.migrate = false;
        return OpenPostgresStore(options);
    }

    // A schedule that both nodes have looked at.
    void Fresh() {
        schema_->Clear();
        ScheduleSpec spec;
        spec.name = "n";
        spec.timing = {.kind = TimingSpec::Kind::kEvery, .every = std::chrono::minutes{1}};
        spec.task.type = "t";
        look_ = stores_.at("A")->Schedules().Put({.spec = spec}).value();
    }

    // Whether the schedule is still as it was looked at; others wait from here on.
    bool Lock(Connection& connection) {
        Params params;
        AddInts(params, std::vector<std::int64_t>{look_.id.value()});
        Rows rows = connection.Query(sql_->schedule_lock, params, Commits::kNo);
        return rows.Int(0, 3) == look_.turn;
    }
    bool Mark(Connection& connection) {
        ArrayOf schedule(oid::kInt8), instant(oid::kTimestamptz), entity(oid::kText),
            cause(oid::kInt2), task(oid::kInt8), skipped(oid::kText), keep(oid::kInt8);
        schedule.Int(look_.id.value());
        instant.At(kInstant);
        entity.Text("");
        cause.Int(0);
        task.Int(1);
        skipped.Text("");
        keep.Int(1'000'000);
        Params params;
        for (ArrayOf* column : {&schedule, &instant, &entity, &cause, &task, &skipped, &keep}) {
            column->AddTo(params);
        }
        return connection.Query(sql_->runs_mark, params, Commits::kNo).Bool(0, 1);
    }
    void Submit(const std::string& who, Connection& connection) {
        NewTask task{.type = "t"};
        stores_.at(who)->Borrow(connection.native()).value()->Submit({&task, 1});
        Statement turn{"", fmt::format("UPDATE {}.schedule SET turn = turn + 1", schema_->name())};
        connection.Query(turn, {}, Commits::kNo);
    }

    Script Node(const std::string& who, Guards guards) {
        auto mine = std::make_shared<bool>(true);
        auto sql = [](std::string text) {
            return Step{text, [text](Connection& connection) {
                            connection.Query(Statement{"", text}, {}, Commits::kNo);
                        }};
        };
        Step look{"look", [this, guards, mine](Connection& connection) {
                      connection.Script("BEGIN");
                      if (guards.lock) *mine = Lock(connection);
                  }};
        Step fire{"fire", [this, who, guards, mine](Connection& connection) {
                      if (*mine && guards.mark) *mine = Mark(connection);
                      if (*mine) Submit(who, connection);
                  }};
        return {who, {look, fire, sql("COMMIT")}};
    }
    Outcome Run(Guards guards) {
        Scenario scenario;
        scenario.prepare = [&] { Fresh(); };
        scenario.scripts = [&] {
            return std::vector<Script>{Node("A", guards), Node("B", guards)};
        };
        scenario.check = [&]() -> std::string {
            Statement count{"", fmt::format("SELECT count(*) FROM {}.live", schema_->name())};
            auto tasks = schema_->connection().Query(count, {}, Commits::kNo).Int(0, 0);
            return tasks == 1 ? "" : fmt::format("{} tasks", tasks);
        };
        return RunAllOrders(stint::testing::TestPostgresUrl(), scenario);
    }

    stint::testing::PostgresSchema* schema_ = nullptr;
    std::unique_ptr<pg::Sql> sql_;
    std::map<std::string, std::shared_ptr<Store>> stores_;
    Schedule look_;
};

TEST_F(FireTwice, OneOfTwoNodesMakesTheTask) {
    Outcome outcome = Run({});
    EXPECT_EQ(outcome.orders, 20);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0) << "the second must wait for the first to decide";
}

TEST_F(FireTwice, TheMarkAloneWouldDo) {
    EXPECT_THAT(Run({.lock = false}).violations, IsEmpty());
}

TEST_F(FireTwice, TheLockAndTheTurnAloneWouldDo) {
    EXPECT_THAT(Run({.mark = false}).violations, IsEmpty());
}

TEST_F(FireTwice, WithNeitherThereAreTwoTasks) {
    EXPECT_THAT(Run({.lock = false, .mark = false}).violations, Not(IsEmpty()));
}

// A calendar changes while a schedule that names it is put, and a node plans the schedule as soon
// as it is there: no plan may stay that was made of the days before.
class CalendarChange : public FireTwice {
protected:
    struct Plan {
        std::int64_t turn = 0;
        std::string dates;
    };

    void FreshCalendar() {
        schema_->Clear();
        stores_.at("A")->Schedules().PutCalendar({.name = "h", .dates = {"2026-12-25"}});
    }
    Rows Ask(Connection& connection, std::string_view text, const Params& params = {}) {
        Statement statement{"", fmt::format(fmt::runtime(text), fmt::arg("s", schema_->name()))};
        return connection.Query(statement, params, Commits::kNo);
    }

    void Hold(Connection& connection) {
        Params params;
        params.Number(kDefaultTenant);
        AddTexts(params, std::vector<std::string>{"h"});
        connection.Query(sql_->calendars_hold, params, Commits::kNo);
    }
    void Insert(Connection& connection) {
        Params params;
        params.Number(kDefaultTenant)
            .Text("n")
            .Text(R"({"name":"n","every":"1m","except":["h"],"task":{"type":"t"}})")
            .Bool(false)
            .Bool(false)
            .At(kInstant)
            .At(kInstant)
            .Text("");
        connection.Query(sql_->schedule_insert, params, Commits::kNo);
    }
    Script PutAndPlan(bool hold) {
        auto plan = std::make_shared<Plan>();
        Step begin{"begin", [this, hold](Connection& connection) {
                       connection.Script("BEGIN");
                       if (hold) Hold(connection);
                   }};
        Step put{"put", [this](Connection& connection) { Insert(connection); }};
        Step commit{"commit", [](Connection& connection) { connection.Script("COMMIT"); }};
        Step look{"look", [this, plan](Connection& connection) {
                      Rows rows =
                          Ask(connection,
                              "SELECT s.turn, c.dates FROM {s}.schedule s, {s}.calendar c");
                      *plan = {rows.Int(0, 0), rows.Text(0, 1)};
                  }};
        Step keep{
            "keep", [this, plan](Connection& connection) {
                Ask(connection,
                    "UPDATE {s}.schedule SET changed_by = $1, next_at = now() + interval '9 days' "
                    "WHERE turn = $2",
                    Params().Text(plan->dates).Int(plan->turn));
            }};
        return {"A", {begin, put, commit, look, keep}};
    }
    Script Change() {
        Step put{"put", [this](Connection& connection) {
                     connection.Script("BEGIN");
                     Params params = Params().Number(kDefaultTenant).Text("h").Text("[]");
                     connection.Query(sql_->calendar_put, params, Commits::kNo);
                 }};
        Step tell{"tell", [this](Connection& connection) {
                      Params params = Params().Number(kDefaultTenant).Text("h");
                      connection.Query(sql_->calendar_changed, params, Commits::kNo);
                  }};
        Step commit{"commit", [](Connection& connection) { connection.Script("COMMIT"); }};
        return {"B", {put, tell, commit}};
    }
    Outcome Run(bool hold) {
        Scenario scenario;
        scenario.prepare = [&] { FreshCalendar(); };
        scenario.scripts = [&] { return std::vector<Script>{PutAndPlan(hold), Change()}; };
        scenario.check = [&]() -> std::string {
            Rows rows =
                Ask(schema_->connection(),
                    "SELECT s.changed_by FROM {s}.schedule s, {s}.calendar c "
                    "WHERE s.changed_by <> c.dates AND s.next_at > now()");
            return rows.empty() ? "" : "planned with " + rows.Text(0, 0);
        };
        return RunAllOrders(stint::testing::TestPostgresUrl(), scenario);
    }
};

TEST_F(CalendarChange, LeavesNoPlanOfTheDaysBefore) {
    Outcome outcome = Run(true);
    EXPECT_EQ(outcome.orders, 56);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0) << "who changes it must wait for who names it";
}

TEST_F(CalendarChange, DoesWhenNobodyHoldsTheCalendar) {
    EXPECT_THAT(Run(false).violations, Not(IsEmpty()));
}

}  // namespace
}  // namespace stint::interleave
