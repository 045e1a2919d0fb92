// What is asked of the system in a run. A workload sets itself up, runs on fibers of its own until
// it is told to end, and checks at the end what only it can know.
#pragma once

#include <memory>

#include "sim/plans.h"
#include "sim/setting.h"

namespace stint::sim {

class Workload {
public:
    virtual ~Workload() = default;
    virtual void Setup() = 0;   // spawns its fibers
    virtual void Finish() = 0;  // asks nothing new; what is under way may end
    virtual bool Finished() const = 0;
    virtual void Check() = 0;
};

// Generator A: what sensible programs and people do, in plausible proportions.
std::unique_ptr<Workload> StructuredWorkload(Setting& setting, PlanBook& plans);

// Generator B, written apart from A: any call of the store with any arguments, also as a worker
// without an engine that keeps stale tokens and uses them.
std::unique_ptr<Workload> RandomCalls(Setting& setting);

// The outside world: finishes background tasks with what it was handed, once, twice, late or never.
std::unique_ptr<Workload> OutsideWorld(Setting& setting, PlanBook& plans);

}  // namespace stint::sim
