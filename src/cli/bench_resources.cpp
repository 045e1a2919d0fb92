// stint bench resources: what it costs that every task needs a unit of one resource.
#include "cli/bench_arm.h"
#include "cli/bench_rig.h"
#include "node/resource_client.h"

namespace stint::cli {

namespace {

constexpr const char* kResource = "bench";

BenchFacts DrainAll(BenchRig& rig, int tasks, bool with_resource) {
    rig.SetPaused(true);
    auto batch = rig.Requests("bench.noop", BenchRig::kFillBatch);
    if (with_resource) {
        for (auto& task : batch) task.needs = model::Needs{{kResource, 1}};
    }
    rig.Fill(batch, tasks, with_resource ? "tasks with a resource" : "tasks without");
    rig.Reconnect();
    rig.StartWorkers();
    rig.BeginMeasured();
    rig.SetPaused(false);
    rig.AwaitHandled(tasks, "draining");
    rig.AwaitAllDone();
    return rig.EndMeasured(tasks);
}

}  // namespace

int BenchResources(Invocation& invocation, const BenchOptions& options) {
    int tasks = Or(options.tasks, 10'000);
    BenchRig rig(invocation, options, "resources", Or(options.seconds, BenchRig::kWholeRun));
    Need(rig.client().Resources().Change(
        {.name = kResource, .capacity = options.capacity, .rate = {}, .breaker = {}}, "bench"
    ));
    BenchArm with{"with"}, without{"without"};
    // In an order in which both are early and late as often.
    for (bool resource : {false, true, true, false}) {
        (resource ? with : without).Add(DrainAll(rig, tasks, resource));
    }
    std::int64_t complete = rig.Count({model::State::kComplete});
    base::OrderedJson result = rig.Header(tasks);
    rig.AddPrefetch(result);
    result["capacity"] = options.capacity;
    result["complete"] = complete;
    result["with_tasks_per_s"] = with.sum.rate();
    result["without_tasks_per_s"] = without.sum.rate();
    result["ratio"] = with.sum.rate() / without.sum.rate();
    PrintArms(rig, result, {&with, &without}, with.sum);
    rig.Finish();
    return complete == 4LL * tasks ? kOk : kFailed;
}

}  // namespace stint::cli
