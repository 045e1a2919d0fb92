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

// Schedules that all nodes fire, and somebody who changes and fills them in.
std::unique_ptr<Workload> ScheduledWork(Setting& setting);

// Programs that publish events, each with an id and until they are told that it is stored; a
// workflow that turns them into tasks, and a join of some of those. Judges what became of each.
std::unique_ptr<Workload> EventWorkload(Setting& setting, PlanBook& plans);

// Flows, and customers who signal them, each signal with an id and until they are told that it is
// kept. Judges what was recorded.
std::unique_ptr<Workload> FlowWorkload(Setting& setting);
// Tasks that need resources or go one after the other, and a worker that finds one down.
std::unique_ptr<Workload> ResourceWork(Setting& setting, PlanBook& plans);
// A schedule with steps (I12).
std::unique_ptr<Workload> SteppedWork(Setting& setting, PlanBook& plans);

// The outside world: finishes background tasks with what it was handed, once, twice, late or never.
std::unique_ptr<Workload> OutsideWorld(Setting& setting, PlanBook& plans);

}  // namespace stint::sim
