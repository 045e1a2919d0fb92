// The task types that the binary itself can run.
#pragma once

#include <stint/engine.h>
#include <stint/isolate.h>

namespace stint::cli {

// echo, demo.sleep, demo.fail, demo.crash, demo.items, demo.order.
void HandleBuiltins(Engine& engine);
// bench.noop, bench.stamp: only in the worker processes of `stint bench`.
void HandleBench(Engine& engine);

}  // namespace stint::cli
