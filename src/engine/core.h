// The inside of Worker: its pieces, and the steps that both ways of driving it share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/ahead.h"
#include "engine/attempts.h"
#include "engine/breaker.h"
#include "engine/claim.h"
#include "engine/desk.h"
#include "engine/execute.h"
#include "engine/hooks.h"
#include "engine/housekeep.h"
#include "engine/machine.h"
#include "engine/parts.h"
#include "engine/pulse.h"
#include "engine/recover.h"
#include "engine/session.h"
#include "engine/settle.h"
#include "engine/worker.h"

namespace stint::engine {

struct Worker::Core {
    Core(WorkerParts given, WorkerOptions options_in);
    ~Core();

    // ---- the steps (core.cpp) ----
    base::Instant ClaimOnce();
    bool RunOneAttempt();
    base::Instant SettleOnce();
    base::Instant RenewOnce();
    std::string Note() const;
    base::Instant WatchOnce();
    base::Instant SweepOnce();
    base::Instant HousekeepOnce();
    // Everything of a stop but the threads. `hurry` cuts all waits short.
    void Shut(Duration drain, std::stop_token hurry);

    void Connect();
    void Reach(model::WorkerState goal);
    void MakeTypeLimits();
    void UseFreshFlight(SessionId session);
    int Room() const;
    int OutcomeRoom() const;  // leases and outcomes in memory, together
    void HandBackWaiting();
    base::Instant HandBackStalled();
    void WaitForTheObedient();
    void Flush(std::stop_token hurry);
    void CloseSession();
    void CheckHealth();
    void SayUnhealthy();
    // Runs `work`, which talks to the store, once the breaker allows; returns when to come again.
    template <class Work>
    base::Instant Step(
        std::string_view what, Work work, Breaker::Caller caller = Breaker::Caller::kOrdinary
    );
    base::Instant Broken(std::string_view what, const std::exception& error);
    base::Instant Later(Duration time, double jitter);

    // ---- the threads (threads.cpp) ----
    void StartThreads();
    void StopThreads();

    const WorkerOptions options;
    const Registry& registry;
    Metrics own_metrics;
    Parts parts;
    SafeHooks hooks;
    // Before those who poke them, so that they outlive them.
    Pulse claim_pulse, settle_pulse, renew_pulse, watch_pulse, sweep_pulse;
    Pulse settled_pulse;  // after each batch
    Machine machine;
    Breaker breaker;
    std::shared_ptr<StoreDesk> desk;
    AttemptTable attempts;
    Ahead ahead;
    Settler settler;
    Session session;
    Executor executor;
    Claimer claimer;
    Recoverer recoverer;
    Housekeeper housekeeper;

    std::atomic<bool> stopping{false};
    std::atomic<bool> unhealthy{false};
    std::atomic<bool> connected{false};  // start-up is complete: recovery may run by itself
    std::atomic<bool> threaded{false};
    std::mutex claim_mutex;  // held while claiming: a stop waits for its end
    bool published = false;  // guarded by claim_mutex, as the next
    bool recovered = false;  // since the session was opened

    // A thread and what it runs now. Shared, because a thread that was left behind outlives us.
    struct Runner {
        std::mutex mutex;
        std::vector<AttemptPtr> crew;  // guarded by mutex
    };
    struct RunnerThread {
        std::shared_ptr<Runner> runner;
        std::jthread thread;
    };
    enum class Life : std::uint8_t { kNew, kStarted, kStopping, kStopped };
    std::mutex life_mutex;
    std::condition_variable life_changed;
    Life life = Life::kNew;           // guarded by life_mutex
    std::stop_source hurry;           // StopNow
    std::vector<std::jthread> loops;  // touched by Start and the one Stop
    std::vector<RunnerThread> runners;
    std::jthread unhealthy_teller;  // the host may call Stop from its callback
};

}  // namespace stint::engine
