// What a measured part cost: of the store, of the processors, of memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "node/measure.h"

namespace stint::cli {

struct BenchFacts {
    double seconds = 0;
    std::int64_t tasks = 0;
    std::int64_t statements = 0;
    std::int64_t log_bytes = 0;
    double client_cpu = 0;  // seconds, of this process and the workers
    double worker_cpu = 0;  // of those, the workers'
    std::optional<double> server_cpu;
    std::int64_t worker_rss = 0;  // bytes, of the largest
    std::int64_t client_rss = 0;
    // A server knows these only when all who took part have ended; they may have done more by then.
    std::int64_t settled_tasks = 0;
    std::int64_t commits = 0;
    std::optional<std::int64_t> syncs;

    double rate() const { return seconds > 0 ? static_cast<double>(tasks) / seconds : 0; }
    BenchFacts& operator+=(const BenchFacts& other);
};

// Takes the facts of one part at a time: Begin, End, and Settle when the workers are gone.
class FactsTaker {
public:
    explicit FactsTaker(node::StoreMeter& meter) : meter_(meter) {}

    void Begin(const std::vector<pid_t>& workers);
    void End(const std::vector<pid_t>& workers, std::int64_t tasks);
    BenchFacts Settle();

private:
    struct Look {
        base::Instant at;
        node::StoreWork work;
        std::int64_t statements = 0;
        std::uint64_t handled = 0;
        double worker_cpu = 0, own_cpu = 0;
        std::optional<double> server_cpu;
    };
    Look LookNow(const std::vector<pid_t>& workers);
    void SetStoreWork(const node::StoreWork& work);

    node::StoreMeter& meter_;
    Look begin_;
    BenchFacts facts_;
};

// Adds tasks, seconds, tasks_per_s and what each task cost.
void AddFacts(base::OrderedJson& json, const BenchFacts& facts, const node::StoreMeter& meter);

}  // namespace stint::cli
