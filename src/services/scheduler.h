// Fires schedules. Every node has one and none of them leads: a node looks for what is due, plans
// it, and hands the plan to the store, which takes the first and refuses the others.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "engine/pulse.h"
#include "services/planner.h"
#include "services/zones.h"
#include "store/schedules.h"
#include "store/store.h"
#include "wake/wake.h"

namespace stint::services {

struct SchedulerOptions {
    // A schedule that another process made is noticed at the latest after this.
    Duration look_every = std::chrono::seconds{2};
    Duration error_wait = std::chrono::seconds{5};  // after a failure of the store
    Duration forget_every = std::chrono::seconds{60};
    // A schedule that cannot be planned here (its zone is unknown) is left to other nodes, and
    // complained of so often.
    Duration complain_every = std::chrono::minutes{5};
};

class Scheduler {
public:
    struct Parts {
        store::Store& store;
        wake::Wake& wake;
        base::Clock& clock;
        base::Logger log;
        ZoneSource zones;
    };
    Scheduler(Parts parts, SchedulerOptions options);
    ~Scheduler();  // Stop()

    // One round: what is due now. Returns when to come back. Does not throw for a store that fails.
    base::Instant RunOnce();

    // The same from a thread of its own, until Stop().
    void Start();
    void Stop();  // idempotent
    // Something was changed: look at once.
    void Poke() {
        told_ = true;
        pulse_.Poke();
    }

private:
    base::Instant Round();
    std::vector<store::Firing> Plan(const store::DueReply& due);
    std::vector<store::VisitFiring> PlanVisits(const store::DueReply& due);
    // Nothing: it cannot be planned here.
    std::optional<store::Firing> PlanOne(
        Planner& planner, const model::Schedule& schedule, Time now
    );
    void Complain(const model::Schedule& schedule, const Error& error);
    model::RunsNow LookAtRuns(const model::Schedule& schedule);
    // Those of `due` whose runs matter and are over for certain, in one question.
    void LookForFinished(const store::DueReply& due);
    template <class Firing, class Fire>
    void FireAll(const std::vector<Firing>& firings, Fire fire);
    // Counts, and wakes those who serve the queues.
    void Tell(std::span<const store::FiringReply> replies);

    Parts parts_;
    const SchedulerOptions options_;
    store::ScheduleStore& schedules_;
    // Of this round.
    std::set<TaskId> finished_;
    std::set<TaskId> asked_to_end_;
    int fired_ = 0;
    int unplanned_ = 0;  // of the last round: due, and not to be planned here
    std::map<model::ScheduleId, base::Instant> complained_;
    base::Instant forget_at_{};
    std::atomic<bool> told_{true};  // there may be something that nobody has seen yet
    base::Instant looked_{};        // by itself, of the real clock
    engine::Pulse pulse_;
    std::mutex life_;
    std::jthread thread_;  // guarded by life_
};

}  // namespace stint::services
