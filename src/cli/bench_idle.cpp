// stint bench idle: what a worker costs that has nothing to do.
#include "cli/bench_rig.h"

namespace stint::cli {

namespace {

void WaitIdle(BenchRig& rig, int seconds) {
    rig.invocation().Say("bench idle: {} s in which nothing happens", seconds);
    ProgressBar bar(rig.invocation().progress(), static_cast<std::size_t>(seconds));
    base::Clock& clock = base::SystemClock();
    base::Instant begun = clock.Now(), until = begun + std::chrono::seconds{seconds};
    for (base::Instant now = begun; now < until; now = clock.Now()) {
        rig.Check();
        bar.Update(static_cast<std::size_t>(SecondsBetween(begun, now)));
        auto left = std::chrono::ceil<Duration>(until - now);
        Pause(rig.signals(), std::min<Duration>(left, std::chrono::seconds{1}));
    }
}

}  // namespace

int BenchIdle(Invocation& invocation, const BenchOptions& options) {
    // Seconds after which a worker that has just started is quiet, and its server has been told
    // what the start took.
    constexpr int kSettle = 12;
    int seconds = Or(options.seconds, 60);
    BenchRig rig(invocation, options, "idle", seconds + 120);
    // The worker alone: a SQLite file is then its own, and nobody else counts.
    rig.CloseClient();
    rig.StartWorkers();
    rig.CloseClient();
    WaitIdle(rig, std::min(kSettle, seconds));
    rig.BeginMeasured();
    WaitIdle(rig, seconds);
    BenchFacts facts = rig.EndMeasured(0);
    double each = facts.seconds * options.processes;
    base::OrderedJson result = rig.Header(0);
    result["seconds"] = facts.seconds;
    result["statements_per_minute"] = static_cast<double>(facts.statements) / each * 60;
    result["cpu_share"] = facts.worker_cpu / each;
    result["cpu_percent"] = facts.worker_cpu / each * 100;
    rig.Conclude(result, facts);
    for (const char* name : {"commits", "fsyncs", "wal_bytes", "statements"}) {
        result.erase(std::string(name) + "_per_task");  // there were none
    }
    rig.Print(result);
    rig.Finish();
    return kOk;
}

}  // namespace stint::cli
