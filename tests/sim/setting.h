// What everybody in one simulated run shares.
#pragma once

#include <string>
#include <vector>

#include "model/lease.h"
#include "sim/faults.h"
#include "sim/focus.h"
#include "sim/hints.h"
#include "sim/oracle.h"
#include "sim/world.h"
#include "store/store.h"

namespace stint::sim {

// Short leases, so that a run of a few virtual minutes sees many of them end.
inline constexpr model::LeasePolicy kLease{
    .lease = std::chrono::milliseconds{3'000},
    .heartbeat_every = std::chrono::milliseconds{900},
    .self_stop = std::chrono::milliseconds{2'200}};
inline constexpr Duration kTimeoutGrace = std::chrono::seconds{2};
inline constexpr Duration kSweepEvery = std::chrono::seconds{1};
inline constexpr Duration kHousekeepEvery = std::chrono::seconds{5};
inline constexpr Duration kPollMin = std::chrono::milliseconds{50};
inline constexpr Duration kPollMax = std::chrono::seconds{1};
inline constexpr Duration kErrorWait = std::chrono::seconds{1};
inline constexpr Duration kEventTaken = std::chrono::milliseconds{300};

struct Setting {
    World& world;
    Faults& faults;
    Oracle& oracle;
    store::Store& store;  // the true one
    Post& post;
    std::string state_dir;        // of all nodes, each in its own folder; empty = none in this run
    bool schedules = false;       // nodes fire them in this run
    Focus focus = Focus::kDrawn;  // of this run
    // Rung when a flow is about to ask for a signal.
    std::vector<Alarm*> bells = {};
    bool exclusive = false;  // one process at a time, which knows that it is alone
};

}  // namespace stint::sim
