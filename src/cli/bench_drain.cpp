// stint bench drain: how fast workers finish what waits.
#include <fmt/format.h>

#include "cli/bench_rig.h"

namespace stint::cli {

namespace {

// Answers how many are complete. The first of many is as much as some have time for: counting what
// is left then takes longer than the drain.
std::int64_t AwaitDrained(BenchRig& rig, int tasks, int first, std::int64_t before) {
    rig.AwaitHandled(first, "draining");
    if (first < tasks) return rig.AwaitComplete(before + first) - before;
    rig.AwaitAllDone();
    return tasks;
}

}  // namespace

int BenchDrain(Invocation& invocation, const BenchOptions& options) {
    int tasks = Or(options.tasks, 10'000), first = Or(options.first, tasks);
    if (first > tasks) {
        throw CommandError(kUsage, fmt::format("--first is {}, and --tasks only {}", first, tasks));
    }
    if (options.in_place && first < tasks) {
        throw CommandError(
            kUsage,
            "--first leaves tasks behind, and with --in-place they would all have to be cancelled "
            "in "
            "the end: leave one of the two out"
        );
    }
    BenchRig rig(invocation, options, "drain", Or(options.seconds, BenchRig::kWholeRun));
    std::int64_t before = rig.Count({model::State::kComplete});
    // The queue is held back until all workers are there, so that only the drain is measured.
    rig.SetPaused(true);
    rig.Fill(rig.Requests("bench.noop", BenchRig::kFillBatch), tasks, "tasks");
    rig.Reconnect();
    rig.StartWorkers();
    rig.BeginMeasured();
    rig.SetPaused(false);
    std::int64_t complete = AwaitDrained(rig, tasks, first, before);
    BenchFacts facts = rig.EndMeasured(complete);
    if (first == tasks) complete = rig.Count({model::State::kComplete}) - before;
    base::OrderedJson result = rig.Header(tasks);
    rig.AddPrefetch(result);
    result["first"] = first;
    result["complete"] = complete;
    result["seconds"] = facts.seconds;
    result["tasks_per_s"] = static_cast<double>(complete) / facts.seconds;
    result["submit_tasks_per_s"] = rig.fill_rate();
    rig.Conclude(result, facts);
    rig.Print(result);
    rig.Finish();
    return complete >= first ? kOk : kFailed;
}

}  // namespace stint::cli
