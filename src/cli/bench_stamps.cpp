#include "cli/bench_stamps.h"

#include <charconv>
#include <unordered_map>

namespace stint::cli {

namespace {

constexpr Duration kPatience = std::chrono::seconds{30};

base::Instant StampIn(const node::FinishedTask& task) {
    std::int64_t stamp = 0;
    const std::string& text = task.output;
    std::from_chars(text.data(), text.data() + text.size(), stamp);
    if (stamp == 0) throw CommandError(kFailed, "a task of the benchmark ended without success");
    return base::Instant(base::Instant::duration(stamp));
}

void RequireNone(BenchRig& rig, const std::vector<TaskId>& left) {
    rig.Check();
    if (!left.empty()) throw CommandError(kFailed, "a task was not run within 30 s");
}

}  // namespace

double OneLatency(BenchRig& rig) {
    auto request = rig.Requests("bench.stamp", 1);
    std::uint64_t before = node::HandledTogether();
    base::Instant begun = base::SystemClock().Now();
    node::SubmitReply reply = Need(rig.client().Submit(request).at(0));
    // The store is not asked while its answer to the worker is on the way.
    while (node::HandledTogether() == before && base::SystemClock().Now() < begun + kPatience) {
        rig.Check();
        Pause(rig.signals(), Duration{1});
    }
    base::Instant started;
    auto left = rig.client().Wait(
        {reply.id},
        kPatience,
        [&](const node::FinishedTask& task) { started = StampIn(task); },
        rig.signals().token()
    );
    RequireNone(rig, left);
    return SecondsBetween(begun, started) * 1000;
}

void WarmUp(BenchRig& rig) {
    constexpr int kTimes = 20;
    for (int i = 0; i < kTimes; ++i) {
        rig.Check();
        OneLatency(rig);
    }
}

std::vector<double> ReadLatencies(BenchRig& rig, const std::vector<StampedTask>& tasks) {
    constexpr std::size_t kPage = model::limits::kListPage;
    std::vector<double> samples;
    samples.reserve(tasks.size());
    for (std::size_t begin = 0; begin < tasks.size(); begin += kPage) {
        std::unordered_map<std::int64_t, base::Instant> due;
        std::vector<TaskId> page;
        for (std::size_t i = begin; i < std::min(begin + kPage, tasks.size()); ++i) {
            page.push_back(tasks[i].task);
            due[tasks[i].task.value()] = tasks[i].due;
        }
        auto left = rig.client().Wait(
            page,
            kPatience,
            [&](const node::FinishedTask& task) {
                samples.push_back(SecondsBetween(due.at(task.id.value()), StampIn(task)) * 1000);
            },
            rig.signals().token()
        );
        RequireNone(rig, left);
    }
    return samples;
}

}  // namespace stint::cli
