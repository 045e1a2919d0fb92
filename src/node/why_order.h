// A task that waits keeps its turn among those of its order key. If what it waits for waits, in the
// end, for a later one of that key, none of them can ever run: the claim has no condition for that,
// each of them waits for a good reason of its own.
#pragma once

#include <optional>

#include "node/why.h"

namespace stint::node {

// Of a task that waits for others, or behind one that does. Looks at a bounded number of tasks.
std::optional<WhyReason> OrderDeadlock(store::Store& store, const model::TaskRecord& task);

}  // namespace stint::node
