// stint bench drain: how fast workers finish what waits.
#include "cli/bench_rig.h"

namespace stint::cli {

int BenchDrain(Invocation& invocation, const BenchOptions& options) {
    int tasks = Or(options.tasks, 10'000);
    BenchRig rig(invocation, options, "drain", Or(options.seconds, BenchRig::kWholeRun));
    std::int64_t before = rig.Count({model::State::kComplete});
    // The queue is held back until all workers are there, so that only the drain is measured.
    rig.SetPaused(true);
    rig.Fill(rig.Requests("bench.noop", BenchRig::kFillBatch), tasks, "tasks");
    rig.Reconnect();
    rig.StartWorkers();
    rig.BeginMeasured();
    rig.SetPaused(false);
    rig.AwaitHandled(tasks, "draining");
    rig.AwaitAllDone();
    BenchFacts facts = rig.EndMeasured(tasks);
    std::int64_t complete = rig.Count({model::State::kComplete}) - before;
    base::OrderedJson result = rig.Header(tasks);
    rig.AddPrefetch(result);
    result["complete"] = complete;
    result["seconds"] = facts.seconds;
    result["tasks_per_s"] = static_cast<double>(complete) / facts.seconds;
    rig.Conclude(result, facts);
    rig.Print(result);
    rig.Finish();
    return complete == tasks ? kOk : kFailed;
}

}  // namespace stint::cli
