// The body of stint::Engine: the parts of one process, wired. Used by engine.cpp, testing.cpp and
// the doors.
#pragma once

#include <stint/engine.h>

#include <memory>
#include <mutex>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "engine/await.h"
#include "engine/metrics.h"
#include "engine/registry.h"
#include "engine/submit.h"
#include "engine/worker.h"
#include "node/why.h"
#include "services/deletions.h"
#include "services/events.h"
#include "services/probes.h"
#include "services/schedule_desk.h"
#include "services/scheduler.h"
#include "store/store.h"
#include "wake/wake.h"

namespace stint {

struct Engine::Impl {
    Options options;
    base::Clock& clock;
    base::Random& random;
    base::Logger log;
    engine::Metrics metrics;

    // Declared in the order in which they depend on each other: destroyed in reverse.
    std::unique_ptr<store::Store> store;
    store::StoreInfo info;                   // as it was when the store was opened
    std::unique_ptr<store::Store> reserved;  // PostgreSQL: a second way, for outcomes only
    std::unique_ptr<wake::Wake> wake;
    engine::Registry registry;
    std::unique_ptr<engine::Submitter> submitter;
    std::shared_ptr<detail::Waiter> waiter;
    std::shared_ptr<engine::Await> await;  // the waiter, where it is one of ours
    std::unique_ptr<services::ScheduleDesk> desk;
    std::unique_ptr<services::Scheduler> scheduler;
    std::unique_ptr<services::DeletionDesk> deletions;
    std::unique_ptr<services::Probes> probes;  // null: there are none
    std::unique_ptr<engine::Worker> worker;
    std::unique_ptr<services::EventService> events;

    std::mutex lifecycle;  // Start and Stop
    bool started = false;
    bool stopped = false;

    Impl(Options given, base::Clock& the_clock, base::Random& the_random);

    engine::WorkerOptions MakeWorkerOptions() const;
    engine::WorkerParts MakeWorkerParts();
    void MakeScheduler();  // of the store, the wake and the clock; what else keeps to times as well
    void MakeEvents();
    node::OwnWorker Own();  // of this process, for explaining; none: there is none now
    // Registers it. Throws std::invalid_argument, also when it is too late.
    void Bind(std::string_view name, const TaskDefaults& defaults, engine::HandlerEntry entry);
};

}  // namespace stint
