// What the benchmarks of the stores share: a worker that settles whatever it claims, and each store
// in a place of its own that is gone afterwards.
#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>

#include "base/random.h"
#include "base/thread.h"
#include "store/postgres/drop.h"
#include "store/postgres/postgres_store.h"
#include "store/sqlite/sqlite_store.h"

namespace stint::store::bench {

using Clock = std::chrono::steady_clock;
constexpr int kBatch = 100;
constexpr int kWorkers = 4;  // that work at the same time

inline double Since(Clock::time_point from) {
    return std::chrono::duration<double>(Clock::now() - from).count();
}

class Worker {
public:
    explicit Worker(Store& store)
        : store_(store), session_(base::SystemRandom().MakeId<SessionId>()) {
        store_.OpenSession(
            {.id = session_,
             .hostname = "bench",
             .lease = std::chrono::hours(1),
             .types = {"t", "p"}}
        );
    }
    std::vector<Lease> Claim(const std::string& type, int limit) {
        return store_.Claim({.session = session_, .limit = limit, .types = {type}}).leases;
    }
    Settlement Done(const Lease& lease) const {
        Settlement done{.task = lease.task, .token = lease.token, .session = session_};
        done.output = "1";
        return done;
    }
    // Until it finds nothing; how many it was.
    int Drain() {
        for (int count = 0;;) {
            std::vector<Settlement> outcomes;
            for (const Lease& lease : Claim("t", kBatch)) outcomes.push_back(Done(lease));
            if (outcomes.empty()) return count;
            store_.Settle(outcomes);
            count += static_cast<int>(outcomes.size());
        }
    }
    SessionId session() const { return session_; }

private:
    Store& store_;
    const SessionId session_;
};

// A worker may find nothing while the others hold all of a resource: until all are done.
inline void DrainTogether(Store& store, int tasks) {
    std::atomic<int> done = 0;
    std::vector<std::jthread> workers;
    for (int i = 0; i < kWorkers; ++i) {
        workers.push_back(base::StartThread([&] {
            Worker worker(store);
            while (done < tasks) done += worker.Drain();
        }));
    }
}

// measure(name, store) with SQLite and, when there is an address, with PostgreSQL.
template <class Measure>
void OnEachStore(int argc, char** argv, Measure measure) {
    std::string directory =
        (std::filesystem::temp_directory_path() / "stint-bench-XXXXXX").string();
    if (mkdtemp(directory.data()) == nullptr) throw std::runtime_error("no directory");
    SqliteOptions file;
    file.path = directory + "/stint.db";
    measure("sqlite", *OpenSqliteStore(file));
    std::filesystem::remove_all(directory);
    if (argc < 2 || std::string_view(argv[1]) == "-") return;
    PostgresOptions options;
    options.url = argv[1];
    options.schema = fmt::format("stint_bench_{}", getpid());
    DropPostgres(options.url, options.schema);
    MigratePostgres(options);
    measure("postgres", *OpenPostgresStore(options));
    DropPostgres(options.url, options.schema);
}

}  // namespace stint::store::bench
