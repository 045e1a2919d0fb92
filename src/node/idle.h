// Whether a worker has anything left to do without the help of others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/store.h"

namespace stint::node {

// Tasks of the worker's queues and types that it leaves, and why.
struct LeftOver {
    std::string condition, text, detail;
    std::int64_t tasks = 0;
    TaskId example;
};

struct IdleLook {
    bool idle = false;
    std::vector<LeftOver> left;  // only when idle; most first
};

// Idle is who runs nothing and has nothing due that it could start, now or once what keeps it has
// passed by itself: a free slot, a unit that a running task holds, the next start that a rate
// allows. Left are tasks that are not due yet (a retry's pause and a resource that is closed for a
// while are the same), that wait for other tasks or for the outside, and those that somebody has to
// help: a paused queue, a label that `worker` does not carry, more units than a resource has.
//
// Of `worker` the queues, types (none = all) and labels count, and of what it has no room at all.
// Throws what the store throws.
IdleLook LookIdle(store::Store& store, const store::ClaimRequest& worker);

}  // namespace stint::node
