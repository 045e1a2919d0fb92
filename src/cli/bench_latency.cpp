// stint bench latency: how long from a submit to the start of its handler in another process.
#include "cli/bench_rig.h"
#include "cli/bench_stamps.h"

namespace stint::cli {

int BenchLatency(Invocation& invocation, const BenchOptions& options) {
    int tasks = Or(options.tasks, 300);
    BenchRig rig(invocation, options, "latency", Or(options.seconds, BenchRig::kWholeRun));
    rig.Reconnect();
    rig.StartWorkers();
    WarmUp(rig);
    std::vector<double> samples;
    ProgressBar bar(invocation.progress(), static_cast<std::size_t>(tasks));
    rig.BeginMeasured();
    for (int i = 0; i < tasks; ++i) {
        rig.Check();
        samples.push_back(OneLatency(rig));
        bar.Update(samples.size());
    }
    BenchFacts facts = rig.EndMeasured(tasks);
    bar.Finish();
    base::OrderedJson result = rig.Header(tasks);
    result["seconds"] = facts.seconds;
    AddPercentiles(result, std::move(samples));
    rig.Conclude(result, facts);
    rig.Print(result);
    rig.Finish();
    return kOk;
}

}  // namespace stint::cli
