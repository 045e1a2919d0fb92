// What many schedules cost: claims and settlements per second beside them, a look for what is due,
// and firing all of them when their time comes at once.
//
//   schedules_bench [POSTGRES-URL] [COUNT]     (a schema of its own, dropped at the end; without an
//   address, or with -: SQLite only)
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "base/random.h"
#include "base/thread.h"
#include "services/scheduler.h"
#include "store/postgres/drop.h"
#include "store/postgres/postgres_store.h"
#include "store/schedules.h"
#include "store/sqlite/sqlite_store.h"
#include "wake/local.h"

namespace stint::store {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
constexpr int kTasks = 20'000;
constexpr int kBatch = 100;
constexpr int kWriters = 16;

double Since(Clock::time_point from) {
    return std::chrono::duration<double>(Clock::now() - from).count();
}

// Claimed and settled per second, in batches.
double Drain(Store& store) {
    SessionId session = base::SystemRandom().MakeId<SessionId>();
    store.OpenSession({.id = session, .hostname = "bench", .lease = 1h, .types = {"t"}});
    for (int done = 0; done < kTasks; done += 1'000) {
        store.Submit(std::vector<NewTask>(1'000, NewTask{.type = "t"}));
    }
    auto from = Clock::now();
    for (int done = 0; done < kTasks;) {
        std::vector<Settlement> outcomes;
        for (const Lease& lease :
             store.Claim({.session = session, .limit = kBatch, .types = {"t"}}).leases) {
            outcomes.push_back({.task = lease.task, .token = lease.token, .session = session});
        }
        store.Settle(outcomes);
        done += static_cast<int>(outcomes.size());
    }
    double rate = kTasks / Since(from);
    store.CloseSession(session);
    return rate;
}

void PutMany(Store& store, int count, Time next_at) {
    std::atomic<int> next = 0;
    std::vector<std::jthread> writers;
    for (int i = 0; i < kWriters; ++i) {
        writers.push_back(base::StartThread([&] {
            for (int n = next++; n < count; n = next++) {
                SchedulePut put{
                    .spec = {}, .expected_revision = {}, .next_at = next_at, .actor = {}};
                put.spec.name = fmt::format("s{}", n);
                put.spec.timing = {
                    .kind = TimingSpec::Kind::kEvery, .every = 1h, .start = next_at - 1h};
                put.spec.task.type = "fired";
                if (!store.Schedules().Put(put)) std::abort();
            }
        }));
    }
}

// What a node does with what is due, without the planning.
int FireAll(Store& store) {
    int fired = 0;
    for (;;) {
        DueReply due = store.Schedules().Due(kBatch, 1);
        if (due.schedules.empty()) return fired;
        std::vector<Firing> firings;
        for (const Schedule& schedule : due.schedules) {
            Firing& firing = firings.emplace_back();
            firing.schedule = schedule.id;
            firing.runs.push_back({.instant = due.now, .task = schedule.spec.task, .keep = 48h});
            firing.advance = FiringAdvance{
                .revision = schedule.revision,
                .turn = schedule.turn,
                .considered_at = due.now,
                .next_at = due.now + 1h,
                .queued_at = {},
                .running = {}};
        }
        for (const FiringReply& reply : store.Schedules().Fire(firings)) {
            fired += reply.kind == FiringReply::Kind::kFired ? 1 : 0;
        }
    }
}

void Measure(const char* name, Store& store, int count) {
    wake::LocalWake wake;
    services::Scheduler scheduler(
        {store, wake, base::SystemClock(), base::Logger(), services::SystemZones()},
        {.look_every = 100ms}
    );
    scheduler.Start();
    Drain(store);
    double without = Drain(store);
    scheduler.Stop();
    Time due = store.Now() + 10min;
    auto from = Clock::now();
    PutMany(store, count, due);
    double put = count / Since(from);
    scheduler.Start();
    double with = Drain(store);
    scheduler.Stop();
    std::vector<double> looks;
    for (int i = 0; i < 500; ++i) {
        auto begin = Clock::now();
        store.Schedules().Due(200, 1'000);
        looks.push_back(Since(begin) * 1e6);
    }
    std::sort(looks.begin(), looks.end());
    fmt::print(
        "{:9} {} schedules: {:.0f} put/s; claims/s without {:.0f}, with {:.0f} ({:.2f}); a look "
        "p50 "
        "{:.0f} µs, p99 {:.0f} µs\n",
        name,
        count,
        put,
        without,
        with,
        with / without,
        looks[250],
        looks[495]
    );
    // Another timing begins anew: this one is due at once.
    PutMany(store, count, store.Now());
    from = Clock::now();
    int fired = FireAll(store);
    fmt::print(
        "{:9} all due at once: {} tasks in {:.1f} s by one node, {:.0f}/s\n",
        name,
        fired,
        Since(from),
        fired / Since(from)
    );
}

int Main(int argc, char** argv) {
    int count = argc > 2 ? std::atoi(argv[2]) : 100'000;
    auto path =
        std::filesystem::temp_directory_path() / fmt::format("schedules_bench.{}", getpid());
    std::filesystem::create_directory(path);
    Measure("sqlite", *OpenSqliteStore({.path = path / "bench.db"}), count);
    std::filesystem::remove_all(path);
    if (argc < 2 || std::string_view(argv[1]) == "-") return 0;
    PostgresOptions options;
    options.url = argv[1];
    options.schema = fmt::format("stint_bench_{}", getpid());
    Measure("postgres", *OpenPostgresStore(options), count);
    DropPostgres(options.url, options.schema);
    return 0;
}

}  // namespace
}  // namespace stint::store

int main(int argc, char** argv) {
    return stint::store::Main(argc, argv);
}
