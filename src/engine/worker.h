// Worker: the part of a process that executes tasks. One object, two ways to drive the same code:
//
//   threads    Start() … Stop(drain) / StopNow()
//   stepwise   Open(), then any of ClaimOnce, RunOneAttempt, SettleOnce, RenewOnce, WatchOnce,
//              SweepOnce, HousekeepOnce in any order, then Drain(). For the simulator and for the
//              inline test mode: no threads are made. Each step returns when it wants to run next.
//
// Threads of the first way, and what each owns:
//
//   claimer      session, recovery at start, claims            ── leases ──▶ executors (N)
//   executors    one attempt at a time each                    ── settlements ──▶ settler
//   settler      batches of outcomes, replay of the spool
//   renewer      heartbeats: session, cancellations, progress in one trip
//   watcher      timeouts, hung handlers, self-stop; never touches the store, so never waits for it
//   sweeper      dead workers' tasks, housekeeping
//   aside        the handlers' stop callbacks, so that none of the above waits for one; on demand
//
// A store that fails sends the loops to wait with backoff, for ever. A handler that ignores every
// stop request cannot hold up Stop(): its thread is left behind with a log line and touches nothing
// of the worker any more.
#pragma once

#include <stint/log.h>
#include <stint/options.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "engine/metrics.h"
#include "engine/registry.h"
#include "model/lease.h"
#include "model/room.h"
#include "model/worker_state.h"
#include "store/store.h"
#include "wake/wake.h"

namespace stint::engine {

struct WorkerOptions {
    int slots = 8;
    // Leases held beyond the running ones, so that slots never wait for a trip; none: chosen by
    // how long attempts take.
    std::optional<int> claim_ahead = 0;
    std::vector<std::string> queues = {};                     // served; empty = all
    std::vector<std::string> labels = {};                     // carried
    std::map<std::string, int> at_once_of_queue = {};         // at most so many of it at once here
    model::Room at_once_of_resource = {};                     // likewise with each
    std::function<std::vector<std::string>()> withheld = {};  // resources not to be had from here
    model::LeasePolicy lease = {};
    PollOptions poll = {};
    Duration drain = std::chrono::seconds{25};
    Duration stop_grace = std::chrono::seconds{5};
    Duration timeout_grace = std::chrono::seconds{10};
    Duration error_wait = std::chrono::seconds{5};  // the longest pause after a store's failure
    Duration sweep_every = std::chrono::seconds{5};
    Duration housekeep_every = std::chrono::seconds{60};
    Duration history_every = std::chrono::hours{6};  // dropping what is kept no longer
    std::string hostname = {};
    std::int64_t pid = 0;
    std::string version = {};
    std::string state_dir = {};  // spool and flight records; empty = neither
    bool exclusive = false;      // proven to be the only process on this store (D1)
    LogSink log = {};
    Hooks hooks = {};
    std::function<void(std::string_view why)> on_unhealthy = {};
};

// What a worker works with; all outlive it.
struct WorkerParts {
    store::Store& store;
    wake::Wake& wake;
    const Registry& registry;
    base::Clock& clock;
    base::Random& random;              // thread-safe unless driven stepwise
    store::Store* reserved = nullptr;  // a second way to the same store, for outcomes only
    Metrics* metrics = nullptr;        // shared with others of this process; null = its own
};

class Worker {
public:
    Worker(WorkerParts parts, WorkerOptions options);
    ~Worker();  // StopNow() if it was started and not stopped; driven stepwise: does nothing
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    // ---- with threads ----
    void Start();               // returns at once; the store need not be reachable yet
    void Stop();                // Stop(options.drain)
    void Stop(Duration drain);  // idempotent; several callers wait for the same stop
    void StopNow();             // also cuts short a Stop that is waiting

    // ---- stepwise ----
    // Start-up: publishes the types, opens the session, replays spools, recovers what dead workers
    // held (cancelled ones first). With a failing store it ends in ErrorWait and ClaimOnce goes on.
    void Open();
    base::Instant ClaimOnce();
    bool RunOneAttempt();  // false: no claimed lease is waiting
    base::Instant SettleOnce();
    base::Instant RenewOnce();
    base::Instant WatchOnce();
    base::Instant SweepOnce();
    base::Instant HousekeepOnce();
    // Hands back what is claimed but not started, reports what is finished, closes the session.
    void Drain();

    // Something may be claimable that was not before: look at once.
    void Look();

    // ---- seeing ----
    model::WorkerState state() const;
    SessionId session() const;  // none while there is no live one
    // What the next claim will offer to tasks: by this, the store explains what it takes.
    store::ClaimRequest offered() const;
    int running() const;    // attempts claimed, running or stopping
    int unsettled() const;  // outcomes not yet accepted by the store
    bool healthy() const;   // false: half of the slots hang for good; it claims no more
    const Metrics& metrics() const;

private:
    struct Core;
    std::unique_ptr<Core> core_;
};

}  // namespace stint::engine
