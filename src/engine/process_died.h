// How a simulator kills a worker in the middle of anything.
#pragma once

namespace stint::engine {

// Thrown by a simulator from a test point, a clock, a store or a handler: the process is gone from
// here on. It is no std::exception and nothing in this room catches it for good, so it unwinds to
// the simulator, which then throws the Worker away without stopping it.
struct ProcessDied {};

}  // namespace stint::engine
