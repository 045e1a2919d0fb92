// Get by id with every period of a retention present, against one period alone.
//
//   periods_bench [POSTGRES-URL]     (a schema of its own, dropped at the end; without: SQLite
//   only)
//
// Prints p50 and p99 in microseconds and their ratios: absolute figures are the machine's.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/clock.h"
#include "base/random.h"
#include "postgres/connection.h"
#include "sqlite/connection.h"
#include "store/postgres/drop.h"
#include "store/postgres/postgres_store.h"
#include "store/sqlite/sqlite_store.h"

namespace stint::store {
namespace {

using namespace std::chrono_literals;
constexpr Duration kDay = 24h;
constexpr int kTasks = 100;
constexpr int kSamples = 3000;

std::vector<TaskId> Finish(Store& store, int count) {
    SessionId session = base::SystemRandom().MakeId<SessionId>();
    store.OpenSession({.id = session, .hostname = "bench", .lease = 1h, .types = {"t"}});
    std::vector<NewTask> tasks(static_cast<std::size_t>(count), NewTask{.type = "t"});
    store.Submit(tasks);
    std::vector<TaskId> ids;
    for (const Lease& lease :
         store.Claim({.session = session, .limit = count, .types = {"t"}}).leases) {
        Settlement done{.task = lease.task, .token = lease.token, .session = session};
        done.output = "1";
        store.Settle({&done, 1});
        ids.push_back(lease.task);
    }
    store.CloseSession(session);
    return ids;
}

struct Figures {
    double p50, p99;
};

Figures Measure(Store& store, const std::vector<TaskId>& ids) {
    std::vector<double> times;
    for (int i = -200; i < kSamples; ++i) {
        TaskId id = ids[static_cast<std::size_t>(i + 200) % ids.size()];
        auto from = std::chrono::steady_clock::now();
        if (!store.Get(id)) throw std::runtime_error("task " + id.ToString() + " is gone");
        auto took = std::chrono::steady_clock::now() - from;
        if (i >= 0) times.push_back(std::chrono::duration<double, std::micro>(took).count());
    }
    std::sort(times.begin(), times.end());
    return {times[times.size() / 2], times[times.size() * 99 / 100]};
}

void Print(const char* store, const char* kept, std::int64_t tables, Figures one, Figures all) {
    fmt::print(
        "{:9} {:9} {:6} tables  one p50 {:6.0f} p99 {:6.0f}  all p50 {:6.0f} p99 {:6.0f}  ratio "
        "p50 "
        "{:.2f} p99 {:.2f}\n",
        store,
        kept,
        tables,
        one.p50,
        one.p99,
        all.p50,
        all.p99,
        all.p50 / one.p50,
        all.p99 / one.p99
    );
}

void OnSqlite(const char* name, Duration keep) {
    std::string directory =
        (std::filesystem::temp_directory_path() / "stint-periods-XXXXXX").string();
    if (mkdtemp(directory.data()) == nullptr) throw std::runtime_error("no directory");
    base::ManualClock clock;
    SqliteOptions options;
    options.path = directory + "/stint.db";
    options.clock = &clock;
    options.sync = false;
    auto store = OpenSqliteStore(options);
    store->SetQueue({.name = "default", .keep_complete = keep}, "bench");
    std::vector<TaskId> ids = Finish(*store, kTasks);
    Figures one = Measure(*store, ids);
    for (Duration past = kDay; past < keep; past += kDay) {
        clock.Advance(kDay);
        Finish(*store, 1);
    }
    Figures all = Measure(*store, ids);
    std::int64_t tables = sqlite::Connection(options.path, {})
                              .Prepare("SELECT count(*) FROM stint_period")
                              .Scalar()
                              .value_or(0);
    Print("sqlite", name, tables, one, all);
    store.reset();
    std::filesystem::remove_all(directory);
}

void OnPostgres(const std::string& url, const char* name, int days) {
    PostgresOptions options;
    options.url = url;
    options.schema = fmt::format("stint_bench_periods_{}", getpid());
    DropPostgres(url, options.schema);
    MigratePostgres(options);
    auto store = OpenPostgresStore(options);
    std::vector<TaskId> ids = Finish(*store, kTasks);
    Figures one = Measure(*store, ids);
    auto connection = postgres::Connection::Open({.url = url});
    for (int day = 2; day <= days; ++day) {
        connection->Script(fmt::format(
            "INSERT INTO {0}.period VALUES ({1}, nextval('{0}.task_id_seq'), now());"
            "SELECT {0}.make_leaf_('history', {1} * 16), {0}.make_leaf_('attempt', {1}), "
            "{0}.make_leaf_('audit', {1})",
            options.schema,
            day
        ));
    }
    connection->Script("ANALYZE " + options.schema + ".leaf");
    store = OpenPostgresStore(options);
    Figures all = Measure(*store, ids);
    postgres::Statement count{"", "SELECT count(*) FROM " + options.schema + ".leaf"};
    std::int64_t tables = connection->Query(count, {}, postgres::Commits::kNo).Int(0, 0);
    Print("postgres", name, tables, one, all);
    store.reset();
    // One by one: a single transaction would need a lock for each of them.
    postgres::Statement leaves{"", "SELECT name FROM " + options.schema + ".leaf"};
    postgres::Rows rows = connection->Query(leaves, {}, postgres::Commits::kNo);
    for (int i = 0; i < rows.size(); ++i)
        connection->Script(fmt::format("DROP TABLE {}.{}", options.schema, rows.Text(i, 0)));
    DropPostgres(url, options.schema);
}

}  // namespace
}  // namespace stint::store

int main(int argc, char** argv) {
    using namespace stint::store;
    OnSqlite("90 days", 90 * kDay);
    OnSqlite("10 years", 3652 * kDay);
    if (argc < 2) return 0;
    OnPostgres(argv[1], "90 days", 90);
    OnPostgres(argv[1], "10 years", 3652);
}
