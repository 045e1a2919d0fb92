// What a resource on every task costs: tasks claimed and settled per second when each needs one,
// against the same tasks that need nothing.
//
//   resources_bench [POSTGRES-URL]     (a schema of its own, dropped at the end; without: SQLite
//   only)
//
// Prints rates and their ratio: absolute figures are the machine's.
#include <algorithm>
#include <array>

#include "rig.h"
#include "store/resources.h"

namespace stint::store::bench {
namespace {

constexpr int kTasks = 10'000;  // as many as one call may submit
constexpr int kRounds = 3;
constexpr int kNames = 50;

enum class Kind : std::uint8_t { kNone, kWide, kTight, kHosts, kRate };
constexpr std::array kKinds = {
    std::pair{Kind::kNone, "needs nothing"},
    std::pair{Kind::kWide, "one resource that is never full"},
    std::pair{Kind::kTight, "one resource, full with two batches"},
    std::pair{Kind::kHosts, "one of 50 by a pattern"},
    std::pair{Kind::kRate, "one with a rate that is never reached"},
};

void SetUp(Store& store) {
    auto set = [&](const ResourceChange& change) {
        if (auto done = store.Resources().Change(change, "bench"); !done) {
            throw std::runtime_error(done.error().message);
        }
    };
    set({.name = "wide", .capacity = 100'000});
    set({.name = "tight", .capacity = 2 * kBatch});
    set({.name = "host:*", .capacity = 1'000});
    set({.name = "rated", .rate = Rate{.count = 1'000'000, .period = std::chrono::seconds(1)}});
}

std::vector<NewTask> TasksOf(Kind kind) {
    std::vector<NewTask> tasks(kTasks, NewTask{.type = "t"});
    int n = 0;
    for (NewTask& task : tasks) {
        if (kind == Kind::kWide) task.needs = Needs{{"wide", 1}};
        if (kind == Kind::kTight) task.needs = Needs{{"tight", 1}};
        if (kind == Kind::kHosts) task.needs = Needs{{fmt::format("host:{}", n++ % kNames), 1}};
        if (kind == Kind::kRate) task.needs = Needs{{"rated", 1}};
    }
    return tasks;
}

double PerSecond(Store& store, Kind kind) {
    store.Submit(TasksOf(kind));
    auto from = Clock::now();
    DrainTogether(store, kTasks);
    return kTasks / Since(from);
}

double Median(std::vector<double> of) {
    std::sort(of.begin(), of.end());
    return of[of.size() / 2];
}

void Measure(const char* name, Store& store) {
    SetUp(store);
    PerSecond(store, Kind::kNone);  // warm
    std::vector<std::vector<double>> rates(kKinds.size());
    for (int round = 0; round < kRounds; ++round) {
        for (std::size_t i = 0; i < kKinds.size(); ++i) {
            rates[i].push_back(PerSecond(store, kKinds[i].first));
        }
    }
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
        std::vector<double> ratios;
        for (int round = 0; round < kRounds; ++round) {
            ratios.push_back(rates[i][round] / rates[0][round]);
        }
        auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
        fmt::print(
            "{:9} {:40} {:6.0f} tasks/s, ratio {:.2f} ({:.2f} to {:.2f})\n",
            name,
            kKinds[i].second,
            Median(rates[i]),
            Median(ratios),
            *least,
            *most
        );
    }
}

}  // namespace
}  // namespace stint::store::bench

int main(int argc, char** argv) {
    stint::store::bench::OnEachStore(argc, argv, stint::store::bench::Measure);
}
