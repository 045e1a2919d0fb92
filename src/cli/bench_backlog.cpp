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

constexpr int kRounds = 2;  // before what is not due, beside it, and after it

void FillFuture(BenchRig& rig, int count) {
    auto batch = rig.Requests("bench.noop", BenchRig::kFillBatch);
    for (auto& task : batch) task.delay = std::chrono::hours{24};
    rig.Fill(batch, count, "tasks that are due tomorrow");
}

// The first of a backlog; the rest, if any, goes away with the store.
BenchFacts DrainFirst(BenchRig& rig, int backlog, int first) {
    rig.SetPaused(true);
    auto ids = rig.Fill(rig.Requests("bench.noop", BenchRig::kFillBatch), backlog, "tasks");
    ids.resize(static_cast<std::size_t>(first));
    rig.Reconnect();
    rig.StartWorkers();
    rig.BeginMeasured();
    rig.SetPaused(false);
    rig.AwaitHandled(first, first < backlog ? "draining the first of them" : "draining them");
    rig.AwaitFinished(ids);
    return rig.EndMeasured(first);
}

// Whole backlogs: what makes no difference takes long enough to be told from one that does.
struct BesideFuture {
    BenchArm alone{"without_future"}, beside{"beside_future"};

    void Measure(BenchRig& rig, int count, int backlog) {
        rig.Renew();
        Drain(rig, backlog, alone);
        rig.Renew();
        FillFuture(rig, count);
        Drain(rig, backlog, beside);
        rig.Renew();
        Drain(rig, backlog, alone);
    }

private:
    static void Drain(BenchRig& rig, int backlog, BenchArm& arm) {
        for (int i = 0; i < kRounds; ++i) arm.Add(DrainFirst(rig, backlog, backlog));
    }
};

}  // namespace

int BenchBacklog(Invocation& invocation, const BenchOptions& options) {
    Sizes sizes = SizesFor(Or(options.tasks, 1'000'000));
    BenchRig rig(invocation, options, "backlog", Or(options.seconds, BenchRig::kWholeRun));
    BenchArm small{"small"}, large{"large"};
    // Small before and after: a disk that others use is not the same for long.
    small.Add(DrainFirst(rig, sizes.small, sizes.first));
    rig.Renew();
    large.Add(DrainFirst(rig, sizes.large, sizes.first));
    rig.Renew();
    small.Add(DrainFirst(rig, sizes.small, sizes.first));
    BesideFuture future;
    if (options.future > 0) future.Measure(rig, options.future, std::min(sizes.large, 3 * kSmall));

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
        result["without_future_tasks_per_s"] = future.alone.sum.rate();
        result["future_tasks_per_s"] = future.beside.sum.rate();
        result["future_ratio"] = future.beside.sum.rate() / future.alone.sum.rate();
        arms.insert(arms.end(), {&future.alone, &future.beside});
    }
    PrintArms(rig, result, arms, large.sum);
    rig.Finish();
    return kOk;
}

}  // namespace stint::cli
