// What a parent costs: 10 000 children of one, made, worked off and waited for, against as many
// tasks that nobody waits for.
//
//   fanout_bench [POSTGRES-URL]     (a schema of its own, dropped at the end; without: SQLite only)
//
// Prints seconds and their ratio: absolute figures are the machine's.
#include <algorithm>

#include "rig.h"

namespace stint::store::bench {
namespace {

constexpr int kTasks = 10'000;
constexpr int kRounds = 5;  // of each, in turn: the machine is not the same from one to the next

double Independent(Store& store) {
    auto from = Clock::now();
    store.Submit(std::vector<NewTask>(kTasks, NewTask{.type = "t"}));
    DrainTogether(store, kTasks);
    return Since(from);
}

double Children(Store& store) {
    Worker worker(store);
    NewTask parent{.type = "p"};
    store.Submit({&parent, 1});
    Lease lease = worker.Claim("p", 1).at(0);
    auto from = Clock::now();
    Settlement blocked{.task = lease.task, .token = lease.token, .session = worker.session()};
    blocked.kind = Settlement::Kind::kBlocked;
    blocked.end = AttemptEnd::kBlocked;
    TaskId first = store.ReserveIds(kTasks);
    for (int i = 0; i < kTasks; ++i) {
        blocked.children.push_back({.id = TaskId(first.value() + i), .type = "t"});
    }
    store.Settle({&blocked, 1});
    DrainTogether(store, kTasks);
    Lease resumed = worker.Claim("p", 1).at(0);
    Settlement done = worker.Done(resumed);
    store.Settle({&done, 1});
    return Since(from);
}

void Compare(const char* name, Store& store) {
    Independent(store);  // warm
    std::vector<double> alone, together, ratios;
    for (int i = 0; i < kRounds; ++i) {
        alone.push_back(Independent(store));
        together.push_back(Children(store));
        ratios.push_back(together.back() / alone.back());
    }
    for (auto* figures : {&alone, &together, &ratios}) std::sort(figures->begin(), figures->end());
    fmt::print(
        "{:9} {} independent {:.2f} s, children of one {:.2f} s (medians of {}); ratio {:.2f} "
        "({:.2f} to {:.2f})\n",
        name,
        kTasks,
        alone[kRounds / 2],
        together[kRounds / 2],
        kRounds,
        ratios[kRounds / 2],
        ratios.front(),
        ratios.back()
    );
}

}  // namespace
}  // namespace stint::store::bench

int main(int argc, char** argv) {
    stint::store::bench::OnEachStore(argc, argv, stint::store::bench::Compare);
}
