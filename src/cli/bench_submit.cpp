// stint bench submit: how fast tasks are accepted, durably, from several threads.
#include <atomic>
#include <mutex>
#include <thread>

#include "cli/bench_rig.h"
#include "cli/bench_threads.h"

namespace stint::cli {

namespace {

std::vector<double> SubmitFromThreads(BenchRig& rig, int tasks, int batch, int clients) {
    std::atomic<int> next{0};
    std::mutex mutex;
    std::vector<double> milliseconds;  // guarded by mutex
    base::Clock& clock = base::SystemClock();
    ProgressBar bar(rig.invocation().progress(), static_cast<std::size_t>(tasks));
    BenchThreads threads(rig, clients, [&](int) {
        auto requests = rig.Requests("bench.noop", batch);
        std::vector<double> own;
        while (rig.signals().signal() == 0) {
            int sent = next.fetch_add(batch);
            if (sent >= tasks) break;
            auto count = static_cast<std::size_t>(std::min(batch, tasks - sent));
            base::Instant begun = clock.Now();
            for (auto& reply : rig.client().Submit({requests.data(), count})) {
                Need(std::move(reply));
            }
            own.push_back(SecondsBetween(begun, clock.Now()) * 1000);
        }
        std::lock_guard guard(mutex);
        milliseconds.insert(milliseconds.end(), own.begin(), own.end());
    });
    threads.Await([&] { bar.Update(static_cast<std::size_t>(std::min(next.load(), tasks))); });
    return milliseconds;
}

}  // namespace

int BenchSubmit(Invocation& invocation, const BenchOptions& options) {
    int tasks = Or(options.tasks, 10'000);
    int batch = Or(options.batch, 1), clients = Or(options.clients, 16);
    BenchRig rig(invocation, options, "submit", Or(options.seconds, BenchRig::kWholeRun));
    std::int64_t before = rig.Count({model::State::kOpen});
    rig.Reconnect();
    rig.BeginMeasured();
    std::vector<double> times = SubmitFromThreads(rig, tasks, batch, clients);
    BenchFacts facts = rig.EndMeasured(tasks);
    std::int64_t stored = rig.Count({model::State::kOpen}) - before;
    base::OrderedJson result = rig.Header(tasks);
    result.erase("processes");
    result.erase("slots");
    result["clients"] = clients;
    result["batch"] = batch;
    result["stored"] = stored;
    result["seconds"] = facts.seconds;
    result["tasks_per_s"] = static_cast<double>(stored) / facts.seconds;
    AddPercentiles(result, std::move(times));
    rig.Conclude(result, facts);
    rig.Print(result);
    rig.Finish();
    return stored == tasks ? kOk : kFailed;
}

}  // namespace stint::cli
