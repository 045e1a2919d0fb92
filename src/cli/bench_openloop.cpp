// stint bench openloop: submits come when they are due, whether or not the last one was accepted.
// Latency counts from when a submit was due, so that one that had to wait for others is not
// mistaken for a fast one.
#include <condition_variable>
#include <mutex>

#include "cli/bench_rig.h"
#include "cli/bench_stamps.h"
#include "cli/bench_threads.h"

namespace stint::cli {

namespace {

struct Load {
    std::vector<StampedTask> tasks;
    double late_max = 0;  // seconds: how long after it was due a submit began
    double seconds = 0;   // until the last was accepted
};

// Submits of all threads together are `rate` per second: thread i takes the i-th, the (i+n)-th, …
class OpenLoop {
public:
    OpenLoop(BenchRig& rig, int rate, int seconds, int clients)
        : rig_(rig),
          rate_(rate),
          total_(static_cast<std::int64_t>(rate) * seconds),
          clients_(clients),
          give_up_(std::chrono::seconds{2 * seconds + 10}) {}

    std::int64_t total() const { return total_; }

    Load Run() {
        ProgressBar bar(rig_.invocation().progress(), static_cast<std::size_t>(total_));
        begun_ = base::SystemClock().Now();
        BenchThreads threads(rig_, clients_, [this](int number) { Submit(number); });
        threads.Await([&] { bar.Update(static_cast<std::size_t>(submitted_.load())); });
        load_.seconds = SecondsBetween(begun_, base::SystemClock().Now());
        return std::move(load_);
    }

private:
    base::Instant Due(std::int64_t number) const {
        return begun_ + std::chrono::nanoseconds{number * std::nano::den / rate_};
    }

    void Submit(int number) {
        std::mutex mutex;
        std::condition_variable_any nobody;
        std::unique_lock lock(mutex);
        base::Clock& clock = base::SystemClock();
        auto request = rig_.Requests("bench.stamp", 1);
        Load own;
        std::stop_token stop = rig_.signals().token();
        for (std::int64_t i = number; i < total_ && !stop.stop_requested(); i += clients_) {
            base::Instant due = Due(i);
            while (clock.Now() < due && !stop.stop_requested()) {
                clock.WaitUntil(lock, nobody, stop, due);
            }
            base::Instant now = clock.Now();
            if (now > begun_ + give_up_) break;  // hopelessly behind
            own.late_max = std::max(own.late_max, SecondsBetween(due, now));
            own.tasks.push_back({Need(rig_.client().Submit(request).at(0)).id, due});
            ++submitted_;
        }
        std::lock_guard guard(mutex_);
        load_.late_max = std::max(load_.late_max, own.late_max);
        load_.tasks.insert(load_.tasks.end(), own.tasks.begin(), own.tasks.end());
    }

    BenchRig& rig_;
    const std::int64_t rate_;
    const std::int64_t total_;
    const int clients_;
    const std::chrono::seconds give_up_;
    base::Instant begun_;
    std::atomic<std::int64_t> submitted_{0};
    std::mutex mutex_;
    Load load_;  // guarded by mutex_ while threads run
};

}  // namespace

int BenchOpenLoop(Invocation& invocation, const BenchOptions& options) {
    int rate = Or(options.rate, 500), seconds = Or(options.seconds, 10);
    // Many, so that what waits for the disk does not keep others from being submitted in time.
    int clients = Or(options.clients, 64);
    BenchRig rig(invocation, options, "openloop", 4 * seconds + 120);
    rig.Reconnect();
    rig.StartWorkers();
    WarmUp(rig);
    OpenLoop loop(rig, rate, seconds, clients);
    rig.BeginMeasured();
    Load load = loop.Run();
    std::int64_t backlog = rig.Unfinished();
    auto tasks = static_cast<std::int64_t>(load.tasks.size());
    rig.AwaitHandled(tasks, "waiting for what is left");
    rig.AwaitAllDone();
    BenchFacts facts = rig.EndMeasured(tasks);
    std::vector<double> samples = ReadLatencies(rig, load.tasks);
    // Less than a second's work is left, and the submits were not that late either.
    bool kept_up = tasks == loop.total() && backlog <= rate && load.late_max < 1;
    base::OrderedJson result = rig.Header(static_cast<int>(tasks));
    rig.AddPrefetch(result);
    result["clients"] = clients;
    result["rate"] = rate;
    result["seconds"] = load.seconds;
    result["tasks_per_s"] = static_cast<double>(tasks) / load.seconds;
    AddPercentiles(result, std::move(samples));
    result["late_max_ms"] = load.late_max * 1000;
    result["backlog_end"] = backlog;
    result["not_submitted"] = loop.total() - tasks;
    result["kept_up"] = kept_up;
    rig.Conclude(result, facts);
    rig.Print(result);
    rig.Finish();
    return kOk;
}

}  // namespace stint::cli
