// Tasks of type bench.stamp: their output is the instant at which their handler began.
#pragma once

#include <vector>

#include "cli/bench_rig.h"

namespace stint::cli {

// Milliseconds from just before the submit to the start of the handler, in another process.
double OneLatency(BenchRig& rig);

// A few of them, so that connections are there and plans are made.
void WarmUp(BenchRig& rig);

struct StampedTask {
    TaskId task;
    base::Instant due;  // when it should have been submitted
};
// Milliseconds from when each was due to when its handler began, as the store has it.
std::vector<double> ReadLatencies(BenchRig& rig, const std::vector<StampedTask>& tasks);

}  // namespace stint::cli
