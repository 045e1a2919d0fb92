// What the store knows of a task, of a machine, of a worker: copies, true when they were read.
#pragma once

#include <stint/ids.h>
#include <stint/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stint {

// Where a running attempt is, as its handler said it: Context::Progress.
struct ProgressInfo {
    std::string step;
    std::int64_t done = 0;
    std::optional<std::int64_t> total;
    std::string message;
};

struct TaskInfo {
    TaskId id;
    TenantId tenant = kDefaultTenant;
    std::string type;
    std::string queue;
    // "open", "in_progress", "blocked", "background", "error" (waits for its next try); and for
    // good: "complete", "cancelled", "dead".
    std::string state;
    bool finished = false;  // the state is one of the last three
    int priority = 0;
    std::string input;              // JSON
    std::string output;             // JSON; empty unless complete
    std::string error;              // of the last failed attempt
    std::string error_class;        // "timeout", "crash", a C++ type, …
    std::string reason;             // why dead, cancelled or in the background
    bool warning = false;           // complete, with something to look at
    bool cancel_requested = false;  // its worker is told, no new attempt starts
    int attempt = 0;                // attempts used, the running one included
    int max_attempts = 0;           // 0 = no limit
    int waiting_for = 0;            // while blocked: so many tasks are not finished
    int generation = 1;             // an operator's retry begins the next
    std::vector<std::string> tags;
    std::string idempotency_key;
    std::string unique_key;
    std::optional<ProgressInfo> progress;
    std::optional<SessionId> session;  // the worker that holds it, while in progress
    Time created_at{};
    Time due_at{};
    std::optional<Time> started_at;  // of the running or last attempt
    std::optional<Time> finished_at;
};

// Why a task is not running.
struct Reason {
    std::string condition;  // "resource_full", "not_due", "no_worker", …
    std::string text;       // a sentence
    std::string detail;     // which resource, which time, …
    std::string cure;       // what would change it
    int workers = 0;        // of those that are live, so many are kept by it
    bool eligible = false;  // no reason at all: the next claim of some worker may take it
};

// All that is known about why a task is not running: Engine::Why().
struct TaskWait {
    bool eligible = false;        // nothing keeps it: some worker takes it when its turn comes
    int workers = 0;              // that are live
    std::vector<Reason> reasons;  // of workers, too, that would not take it while another does
    // Of one that is eligible: so many go before it in the worker that gets to it first.
    std::optional<std::int64_t> ahead;
    bool more_ahead = false;            // than that; not all were counted
    std::optional<Duration> starts_in;  // about, at the pace of the last minutes; none: not known
    // Why others may go before it, too (tenants share the queue, age counts); empty = nothing of
    // that kind.
    std::string estimate;
};

// What keeps the waiting tasks of a queue: Queues::Why().
struct QueueWait {
    struct Share {
        std::string condition;  // as in Reason; "eligible": nothing but their turn
        std::string text, detail, cure;
        std::int64_t tasks = 0;
        TaskId example;
    };
    std::int64_t waiting = 0;
    int workers = 0;            // that are live
    bool estimate = false;      // of very many different ones some were asked for the others
    std::vector<Share> shares;  // of all that wait, the largest first
};

// A machine, or whatever its workers call it (Options::node_name).
struct NodeInfo {
    NodeId id;
    std::string name;
    Time last_seen{};
};

// One worker process, from its start to its end.
struct SessionInfo {
    SessionId id;
    NodeId node;
    std::string node_name;
    std::int64_t pid = 0;
    std::string state;  // "live", "draining", "closed", "expired"
    std::string doing;  // "polling", "processing", …; empty when it is over
    int slots = 0;
    int running = 0;
    std::vector<std::string> queues;  // served; empty = all
    std::vector<std::string> types;   // handled
    std::vector<std::string> labels;  // carried, for tasks that require them
    std::string version;
    Time started_at{};
    Time last_seen{};
};

}  // namespace stint
