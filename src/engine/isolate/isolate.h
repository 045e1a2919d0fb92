// Process isolation, seen from the parent: runs one attempt in a child made by running the program
// again. Only the parent touches the store.
#pragma once

#include <stint/time.h>

#include "engine/attempts.h"
#include "engine/context.h"
#include "engine/outcome.h"

namespace stint::engine::isolate {

// This program's main() has the line of <stint/isolate.h>: children know what to do.
bool Prepared();

// Blocks until the child and all of its process group are gone. A stop request reaches the child's
// stop token first; after `grace` its group is terminated, and killed if that does not help. Never
// throws for what the child does.
AttemptResult RunChild(const Attempt& attempt, AttemptContext& context, Duration grace);

}  // namespace stint::engine::isolate
