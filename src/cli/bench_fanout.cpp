// stint bench fanout: one task that waits for many, against as many that know nothing of each
// other.
#include <fmt/format.h>

#include <algorithm>

#include "cli/bench_arm.h"
#include "cli/bench_rig.h"

namespace stint::cli {

namespace {

constexpr int kRounds = 3;

// Both from the submit until the store says that all is done.
BenchFacts Independent(BenchRig& rig, int tasks) {
    rig.Reconnect();
    rig.StartWorkers();
    rig.BeginMeasured();
    auto ids = rig.Fill(rig.Requests("bench.noop", tasks), tasks, "tasks");
    rig.AwaitHandled(tasks, "waiting for them");
    rig.AwaitFinished(ids);
    return rig.EndMeasured(tasks);
}

BenchFacts WithParent(BenchRig& rig, int children) {
    rig.Reconnect();
    rig.StartWorkers();
    rig.BeginMeasured();
    auto parent = rig.Requests("bench.fanout", 1);
    parent[0].input = fmt::format(R"({{"children":{},"queue":"{}"}})", children, BenchRig::kQueue);
    auto ids = rig.Fill(parent, 1, "task that makes the others");
    rig.AwaitHandled(children, "waiting for its children");
    rig.AwaitFinished(ids);
    return rig.EndMeasured(children);
}

double MedianSeconds(const BenchArm& arm) {
    std::vector<double> seconds;
    for (const BenchFacts& round : arm.rounds) seconds.push_back(round.seconds);
    std::ranges::sort(seconds);
    return seconds[seconds.size() / 2];
}

}  // namespace

int BenchFanout(Invocation& invocation, const BenchOptions& options) {
    int children = Or(options.tasks, 1'000);
    BenchRig rig(invocation, options, "fanout", Or(options.seconds, BenchRig::kWholeRun));
    BenchArm fanout{"fanout"}, independent{"independent"};
    for (int i = 0; i < kRounds; ++i) {
        independent.Add(Independent(rig, children));
        fanout.Add(WithParent(rig, children));
    }
    std::int64_t complete = rig.Count({model::State::kComplete});
    base::OrderedJson result = rig.Header(children);
    rig.AddPrefetch(result);
    result["complete"] = complete;
    result["fanout_s"] = MedianSeconds(fanout);
    result["independent_s"] = MedianSeconds(independent);
    result["ratio"] = MedianSeconds(independent) / MedianSeconds(fanout);
    PrintArms(rig, result, {&fanout, &independent}, fanout.sum);
    rig.Finish();
    return complete == kRounds * (2LL * children + 1) ? kOk : kFailed;
}

}  // namespace stint::cli
