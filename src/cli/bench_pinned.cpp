// stint bench pinned: whether work slows down while somebody keeps an old view of the store open,
// so that nothing that is dead can be cleaned away.
#include <fmt/format.h>

#include <atomic>

#include "cli/bench_rig.h"
#include "cli/bench_threads.h"

namespace stint::cli {

namespace {

constexpr int kFreeWindows = 3;  // the first warms up and counts for nothing
constexpr int kPinnedWindows = 10;

struct Window {
    bool pinned = false;
    std::int64_t tasks = 0;
    double seconds = 0;
    double rate() const { return static_cast<double>(tasks) / seconds; }
};

// Submits as fast as workers finish: a bounded number waits at any time.
class ClosedLoop {
public:
    ClosedLoop(BenchRig& rig, int clients, int batch)
        : rig_(rig),
          batch_(batch),
          most_(std::max<std::int64_t>(
              4LL * rig.options().processes * rig.options().slots, 2LL * clients * batch
          )),
          threads_(rig, clients, [this](int) { Submit(); }) {}
    ~ClosedLoop() { stop_ = true; }
    ClosedLoop(const ClosedLoop&) = delete;
    ClosedLoop& operator=(const ClosedLoop&) = delete;

    // Done is what the store says is done.
    std::int64_t Complete() { return rig_.Count({model::State::kComplete}); }
    void Check() {
        rig_.Check();
        if (threads_.failed()) Stop();
    }
    std::int64_t Stop() {
        stop_ = true;
        threads_.Await([] {});
        return submitted_;
    }

private:
    void Submit() {
        auto requests = rig_.Requests("bench.noop", batch_);
        while (!stop_ && rig_.signals().signal() == 0) {
            if (submitted_ - rig_.Handled() > most_) {
                Pause(rig_.signals(), Duration{1});
                continue;
            }
            for (auto& reply : rig_.client().Submit(requests)) Need(std::move(reply));
            submitted_ += batch_;
        }
    }

    BenchRig& rig_;
    const int batch_;
    const std::int64_t most_;  // that wait
    std::atomic<bool> stop_{false};
    std::atomic<std::int64_t> submitted_{0};
    BenchThreads threads_;
};

// What had been done at some instant.
struct Mark {
    std::int64_t complete = 0;
    base::Instant at;
};

Mark MarkNow(ClosedLoop& loop) {
    std::int64_t complete = loop.Complete();
    return {complete, base::SystemClock().Now()};
}

void LetRun(BenchRig& rig, ClosedLoop& loop, base::Instant until) {
    base::Clock& clock = base::SystemClock();
    while (clock.Now() < until) {
        loop.Check();
        Pause(rig.signals(), Duration{10});
    }
}

std::vector<Window> RunWindows(
    BenchRig& rig, ClosedLoop& loop, int seconds, const std::string& how
) {
    std::vector<Window> windows;
    std::optional<node::Pin> pin;
    ProgressBar bar(rig.invocation().progress(), kFreeWindows + kPinnedWindows);
    Mark begin = MarkNow(loop);
    for (int i = 0; i < kFreeWindows + kPinnedWindows; ++i) {
        if (i == kFreeWindows) pin.emplace(rig.url(), how);
        LetRun(rig, loop, begin.at + std::chrono::milliseconds{1000 * seconds / kPinnedWindows});
        Mark end = MarkNow(loop);
        windows.push_back(
            {pin.has_value(), end.complete - begin.complete, SecondsBetween(begin.at, end.at)}
        );
        begin = end;
        bar.Update(windows.size());
    }
    return windows;
}

void AddWindows(base::OrderedJson& result, const std::vector<Window>& windows) {
    double unpinned = (windows[1].rate() + windows[2].rate()) / 2;
    double first = windows[kFreeWindows].rate(), last = windows.back().rate();
    result["unpinned_tasks_per_s"] = unpinned;
    result["first_tasks_per_s"] = first;
    result["last_tasks_per_s"] = last;
    result["ratio"] = first > 0 ? last / first : 0;
    result["ratio_to_unpinned"] = unpinned > 0 ? last / unpinned : 0;
    result["windows"] = base::OrderedJson::array();
    for (const Window& window : windows) {
        result["windows"].push_back(
            {{"pinned", window.pinned},
             {"tasks", window.tasks},
             {"seconds", window.seconds},
             {"tasks_per_s", window.rate()}}
        );
    }
}

Listing Rows(const std::vector<Window>& windows) {
    Listing listing;
    listing.headers = {"WINDOW", "PINNED", "TASKS", "SECONDS", "TASKS/S"};
    for (const Window& window : windows) {
        listing.rows.push_back(
            {{std::to_string(listing.rows.size() + 1)},
             {window.pinned ? "yes" : "no"},
             {std::to_string(window.tasks)},
             {fmt::format("{:.2f}", window.seconds)},
             {fmt::format("{:.0f}", window.rate())}}
        );
    }
    return listing;
}

}  // namespace

int BenchPinned(Invocation& invocation, const BenchOptions& options) {
    int seconds = Or(options.seconds, 60), clients = Or(options.clients, 4);
    int batch = Or(options.batch, 100);
    std::string how =
        options.pin.empty() ? node::Pin::DefaultFor(invocation.store_url()) : options.pin;
    BenchOptions workers = options;
    workers.batch = 0;  // here it is that of the submits
    BenchRig rig(invocation, workers, "pinned", 3 * seconds + 120);
    {
        node::Pin probe(rig.url(), how);  // a way that this store does not know is told before
    }
    rig.Reconnect();
    rig.StartWorkers();
    rig.BeginMeasured();
    ClosedLoop loop(rig, clients, batch);
    std::vector<Window> windows = RunWindows(rig, loop, seconds, how);
    std::int64_t tasks = loop.Stop();
    rig.AwaitHandled(tasks, "waiting for what is left");
    rig.AwaitComplete(tasks);
    BenchFacts facts = rig.EndMeasured(tasks);
    base::OrderedJson result = rig.Header(static_cast<int>(tasks));
    result["pin"] = how;
    result["clients"] = clients;
    result["batch"] = batch;
    result["seconds"] = facts.seconds;
    result["tasks_per_s"] = facts.rate();
    AddWindows(result, windows);
    rig.Conclude(result, facts);
    Listing rows = Rows(windows);
    rig.Print(result, &rows);
    rig.Finish();
    return kOk;
}

}  // namespace stint::cli
