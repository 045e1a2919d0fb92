// stint bench backlog: whether what waits behind, or is not due yet, slows down what is in front.
#include "cli/bench_arm.h"
#include "cli/bench_rig.h"

namespace stint::cli {

namespace {

constexpr int kSmall = 30'000;

struct Sizes {
    int small, large, first;  // backlogs, and how many of each are measured
};

Sizes SizesFor(int tasks) {
    int small = std::min(kSmall, std::max(3, tasks / 3));
    return {small, tasks, small * 2 / 3};
}

void FillFuture(BenchRig& rig, int count) {
    auto batch = rig.Requests("bench.noop", BenchRig::kFillBatch);
    for (auto& task : batch) task.delay = std::chrono::hours{24};
    rig.Fill(batch, count, "tasks that are due tomorrow");
}

// The first of a backlog; the rest goes away with the store.
BenchFacts DrainFirst(BenchRig& rig, int backlog, int future, int first) {
    rig.SetPaused(true);
    if (future > 0) FillFuture(rig, future);
    auto ids = rig.Fill(rig.Requests("bench.noop", BenchRig::kFillBatch), backlog, "tasks");
    ids.resize(static_cast<std::size_t>(first));
    rig.Reconnect();
    rig.StartWorkers();
    rig.BeginMeasured();
    rig.SetPaused(false);
    rig.AwaitHandled(first, "draining the first of them");
    rig.AwaitFinished(ids);
    return rig.EndMeasured(first);
}

}  // namespace

int BenchBacklog(Invocation& invocation, const BenchOptions& options) {
    Sizes sizes = SizesFor(Or(options.tasks, 1'000'000));
    BenchRig rig(invocation, options, "backlog", Or(options.seconds, BenchRig::kWholeRun));
    BenchArm small{"small"}, large{"large"}, future{"small_beside_future"};
    // Small before and after: a disk that others use is not the same for long.
    small.Add(DrainFirst(rig, sizes.small, 0, sizes.first));
    rig.Renew();
    large.Add(DrainFirst(rig, sizes.large, 0, sizes.first));
    if (options.future > 0) {
        rig.Renew();
        future.Add(DrainFirst(rig, sizes.small, options.future, sizes.first));
    }
    rig.Renew();
    small.Add(DrainFirst(rig, sizes.small, 0, sizes.first));

    base::OrderedJson result = rig.Header(sizes.large);
    rig.AddPrefetch(result);
    result["first"] = sizes.first;
    result["small_backlog"] = sizes.small;
    result["large_backlog"] = sizes.large;
    result["small_tasks_per_s"] = small.sum.rate();
    result["large_tasks_per_s"] = large.sum.rate();
    result["ratio"] = large.sum.rate() / small.sum.rate();
    std::vector<const BenchArm*> arms = {&small, &large};
    if (options.future > 0) {
        result["future"] = options.future;
        result["future_tasks_per_s"] = future.sum.rate();
        result["future_ratio"] = future.sum.rate() / small.sum.rate();
        arms.push_back(&future);
    }
    PrintArms(rig, result, arms, large.sum);
    rig.Finish();
    return kOk;
}

}  // namespace stint::cli
