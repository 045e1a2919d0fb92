// How an engine is set up, and what may be said when a task is submitted.
#pragma once

#include <stint/context.h>
#include <stint/ids.h>
#include <stint/log.h>
#include <stint/probe.h>
#include <stint/submit_options.h>
#include <stint/task.h>
#include <stint/time.h>
#include <stint/transaction.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint {

// How long a worker may be silent before its tasks are taken over. Each worker stops its own tasks
// before that (self_stop): after more than two heartbeats that failed, and with at least a tenth of
// the lease left.
struct LeaseOptions {
    Duration lease = std::chrono::seconds{30};
    Duration heartbeat_every = std::chrono::seconds{10};
    Duration self_stop = std::chrono::seconds{22};

    static constexpr LeaseOptions Default() { return {}; }
    // One busy machine, quick recovery.
    static constexpr LeaseOptions Brisk() {
        using namespace std::chrono_literals;
        return {.lease = 8s, .heartbeat_every = 2s, .self_stop = 6s};
    }
    // Many machines, slow links.
    static constexpr LeaseOptions Patient() {
        using namespace std::chrono_literals;
        return {.lease = 120s, .heartbeat_every = 30s, .self_stop = 90s};
    }
};

// How often an idle worker looks for work: between min and max, longer while it finds none. A
// wake-up from a submitter cuts the wait short where the store has them; where they cannot be heard
// (behind a transaction pooler), it looks every two seconds.
struct PollOptions {
    Duration min = std::chrono::milliseconds{50};
    Duration max = std::chrono::seconds{5};
};

// What happened to an attempt, for hooks.
struct AttemptInfo {
    TaskId task;
    std::string_view type;
    std::string_view queue;
    int attempt = 0;
    std::string_view outcome;  // after: "complete", "failed", "timed_out", …; empty before
    std::string_view error;    // after a failure
};
struct TransitionInfo {
    TaskId task;
    std::string_view from;
    std::string_view to;
    std::string_view event;
};

// Called by the worker around its own attempts, on its own threads. What they throw is logged and
// otherwise ignored. One that blocks holds up what it is called from: before_attempt its attempt,
// on_transition the claims or the reports. None may call Engine::Stop(), which would wait for
// itself; that throws std::logic_error.
struct Hooks {
    std::function<void(const AttemptInfo&)> before_attempt = {};
    std::function<void(const AttemptInfo&)> after_attempt = {};
    std::function<void(const TransitionInfo&)> on_transition = {};  // made by this process
};

struct Options {
    std::string store = "sqlite:stint.db";  // or "postgres://user@host/database", or "memory:"
    int slots = 8;                          // attempts running at once in this process
    // Tasks claimed beyond the running ones, so that a free slot never waits for the store.
    // Nothing: as many as pay by how long attempts take here, none where they take longer than the
    // store does, and what has waited here for a second goes back to the others. A number: always
    // that many, and no other worker takes them.
    std::optional<int> prefetch = std::nullopt;
    std::vector<std::string> queues = {};  // served; empty = all
    std::vector<std::string> labels = {};  // carried: what tasks may require of a worker
    // At most so many attempts of a queue at once in this process; what is not named: up to slots.
    std::map<std::string, int> at_once_of_queue = {};
    // Likewise of the attempts that need a resource: by its name, or by pattern as "host:*", then
    // of each such name. Counts attempts, not units, and for this process only.
    std::map<std::string, int> at_once_of_resource = {};
    std::vector<Probe> probes = {};  // resources that this process uses only while they work
    LeaseOptions lease = {};
    PollOptions poll = {};
    Duration drain = std::chrono::seconds{25};          // how long Stop() lets attempts finish
    Duration stop_grace = std::chrono::seconds{5};      // and then how long they may take to stop
    Duration timeout_grace = std::chrono::seconds{10};  // a timed-out handler may take to return
    Duration error_wait = std::chrono::seconds{5};  // pause after an unexpected failure of the loop
    Duration sweep_every = std::chrono::seconds{5};  // looking for dead workers' tasks
    Duration housekeep_every = std::chrono::seconds{60};
    Duration history_every = std::chrono::hours{6};  // dropping what is kept no longer
    bool schedules = true;                           // Start() also fires schedules that are due
    std::string node_name = {};                      // a label; empty = the host name
    std::string state_dir = {};  // spool and flight records, one folder per store; empty = beside
                                 // the SQLite file, or $XDG_STATE_HOME/stint
    bool exclusive = true;       // SQLite: at start, take back at once what dead processes held
    TenantId tenant = kDefaultTenant;
    LogSink log = {};
    Hooks hooks = {};
    // An embedded engine never ends the process. When half of its slots hang for good it stops
    // claiming and tells the host here; the host decides.
    std::function<void(std::string_view why)> on_unhealthy = {};
};

}  // namespace stint
