// What is known of a task: what was asked, what happened, what is asked of a list.
#pragma once

#include <stint/ids.h>
#include <stint/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.h"
#include "model/limits.h"
#include "model/resource.h"
#include "model/retry.h"
#include "model/state.h"
#include "model/wait.h"

namespace stint::model {

// ---- asking ------------------------------------------------------------------------------------

// What to do when a live task has the same (tenant, type, unique key).
enum class UniquePolicy : std::uint8_t {
    kReturnExisting,       // the answer is the live task
    kReplaceIfNotStarted,  // a waiting one takes over the new request; a started one is returned
    kError,                // refused as a conflict that names the live task
};

// Bursts become one task: each submit with the key moves the waiting task's due time to now + wait
// and replaces its input, but never past the first submit + max_wait.
struct Debounce {
    std::string key;
    Duration wait{};
    Duration max_wait{};  // zero = no bound
    friend bool operator==(const Debounce&, const Debounce&) = default;
};

// At most one task per key and period (counted from the accepted one): later ones get its id.
struct Throttle {
    std::string key;
    Duration period{};
    friend bool operator==(const Throttle&, const Throttle&) = default;
};

// Defaults of a task type, published by the workers that handle it.
struct TypeDefaults {
    std::string type;
    std::string queue = "default";
    int priority = limits::kPriorityDefault;
    RetryPolicy retry = {};
    Duration timeout{};  // zero = none
    bool isolated = false;
    Needs needs = {};
    std::vector<std::string> labels = {};
    friend bool operator==(const TypeDefaults&, const TypeDefaults&) = default;
};
Result<void> Validate(const TypeDefaults& defaults);

struct TypeRecord {
    TypeDefaults defaults;
    int revision = 0;
    Time updated_at{};
};

// A request. What is not given is taken from the type's registered defaults, else from the global
// ones (see Resolve); a type nobody registered yet is accepted and resolved at its registration.
struct NewTask {
    TaskId id;  // reserved beforehand (Store::ReserveIds); none = the store assigns one
    TenantId tenant = kDefaultTenant;
    std::string type;
    std::string input = "null";  // JSON
    std::optional<std::string> queue;
    std::optional<int> priority;
    std::optional<RetryPolicy> retry;
    std::optional<Duration> timeout;
    std::optional<Duration> delay;  // due this long after the store accepts it
    std::optional<Time> run_at;     // due at this instant; not together with delay
    std::optional<Time> start_by;   // dead if not started by then
    std::vector<std::string> tags;
    std::string idempotency_key;  // empty = none
    std::string unique_key;       // empty = none
    UniquePolicy unique_policy = UniquePolicy::kReturnExisting;
    std::optional<Debounce> debounce;  // not together with unique_key
    std::optional<Throttle> throttle;
    TaskId parent;
    TaskId cause;  // whose handler asks for it; none = somebody outside. For the depth of events
    std::optional<Needs> needs;                      // none = the type's
    std::optional<std::vector<std::string>> labels;  // none = the type's
    std::string order_key;                           // empty = no order but the queue's
    OnFailedHead on_failed_head = OnFailedHead::kBlock;
    std::optional<WaitOn> after;  // starts when this wait is over; not together with debounce
    std::string actor;            // who asks, for the audit log
};

// Checks names, sizes, ranges, JSON and the combinations; the message names field, value and cure.
Result<void> Validate(const NewTask& task);

// A stable digest of everything that makes two requests "the same" (not id, not actor, not cause,
// not keys).
std::string RequestHash(const NewTask& task);

// The settings of a request after explicit > registered > global.
struct Resolved {
    std::string queue;
    int priority = limits::kPriorityDefault;
    RetryPolicy retry;
    Duration timeout{};
    bool type_known = false;
    Placement placement = {};
};
Resolved Resolve(const NewTask& task, const TypeDefaults* registered);

// Which settings were given explicitly, as bits; stored with tasks of unknown types.
enum ExplicitBits : int {
    kExplicitQueue = 1,
    kExplicitPriority = 2,
    kExplicitRetry = 4,
    kExplicitTimeout = 8
};
int ExplicitMask(const NewTask& task);

// Change of a task that has not started (OPEN, or ERROR waiting for its next try).
struct TaskEdit {
    std::optional<std::string> queue;
    std::optional<int> priority;
    std::optional<std::string> input;
    std::optional<Duration> delay;  // from now, by the store's clock
    std::optional<Time> run_at;
    std::optional<Time> start_by;
    std::optional<RetryPolicy> retry;
    std::optional<Duration> timeout;
    std::optional<std::vector<std::string>> tags;
};
Result<void> Validate(const TaskEdit& edit);

// ---- seeing ------------------------------------------------------------------------------------

// Where a running attempt is: a named step, a count, a total where known.
struct Progress {
    std::string step;
    std::int64_t done = 0;
    std::optional<std::int64_t> total;
    std::string message;
    friend bool operator==(const Progress&, const Progress&) = default;
};

struct TaskRecord {
    TaskId id;
    TenantId tenant = kDefaultTenant;
    TaskId parent;
    std::string type;
    std::string queue;
    State state = State::kOpen;
    int priority = limits::kPriorityDefault;
    std::string input;
    std::string output;              // JSON; the result, empty unless COMPLETE
    std::optional<TaskError> error;  // the last failure, kept while retrying and when DEAD
    std::string reason;              // why DEAD or CANCELLED, why BACKGROUND
    bool warning = false;            // COMPLETE, with something to look at
    bool type_known = true;
    bool cancel_requested = false;
    bool suspect = false;  // was running in a process that crashed
    int attempt = 0;       // attempts used in this generation, the running one included
    int max_attempts = 0;  // 0 = no limit
    int claim_no = 0;      // claims over the whole life: the fencing number
    int generation = 1;
    int crash_count = 0;  // crashes while alone, in the current window
    std::vector<std::string> tags;
    std::string unique_key;
    std::string idempotency_key;
    RetryPolicy retry;
    Duration timeout{};
    std::optional<Progress> progress;
    Placement placement;
    Stage stage = Stage::kStart;  // of the running or next attempt
    int waiting_for = 0;          // while BLOCKED: so many are not terminal yet
    SessionId session;            // the holder, while IN_PROGRESS
    NodeId node;                  // where it runs or last ran
    Time created_at{};
    Time due_at{};
    std::optional<Time> start_by;
    std::optional<Time> claimed_at;  // of the running or last attempt
    std::optional<Time> finished_at;
    std::optional<Time> expires_at;  // lease or background timeout, where it has one
    Time updated_at{};
};

// How one try went. One row per claim.
enum class AttemptEnd : std::uint8_t {
    kRunning,
    kComplete,
    kFailed,
    kTimedOut,
    kCrashed,
    kReleased,
    kSnoozed,
    kCancelled,
    kBlocked,
    kBackground,
    kLost,  // its lease ended and the task moved on
};
std::string_view AttemptEndName(AttemptEnd end);
std::optional<AttemptEnd> AttemptEndNamed(std::string_view name);

struct AttemptRecord {
    TaskId task;
    int claim_no = 0;
    int attempt = 0;
    int generation = 1;
    SessionId session;
    NodeId node;
    Time started_at{};
    std::optional<Time> finished_at;
    AttemptEnd end = AttemptEnd::kRunning;
    std::optional<TaskError> error;
    std::optional<int> exit_code;  // isolated and command tasks
    std::optional<int> exit_signal;
    std::string stderr_tail;
    bool alone = false;
};

struct AuditEntry {
    std::int64_t seq = 0;  // grows with commit order within one task
    TaskId task;
    TenantId tenant = kDefaultTenant;
    std::optional<State> from;
    State to = State::kOpen;
    Event event = Event::kSubmit;
    int attempt = 0;
    int generation = 1;
    SessionId session;  // the worker that made it, where one did
    std::string actor;  // "worker", "sweeper", "operator:ann", …
    std::string reason;
    Time at{};
};

// ---- searching ---------------------------------------------------------------------------------

// input.<path> compared with a JSON scalar; the path is dotted member names.
struct InputMatch {
    enum class Op : std::uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };
    std::string path;
    Op op = Op::kEqual;
    std::string value;  // JSON scalar
};

struct TaskFilter {
    std::optional<TenantId> tenant;
    std::vector<State> states;                     // any of; empty = all
    std::vector<std::string> types;                // any of; a trailing * matches a prefix
    std::vector<std::string> queues;               // any of
    std::vector<std::string> tags;                 // all of
    std::optional<Time> created_from, created_to;  // [from, to)
    std::optional<Time> finished_from, finished_to;
    std::vector<InputMatch> input;  // all of
    TaskId parent;
};
Result<void> Validate(const TaskFilter& filter);

// The reference meaning of a filter; stores that filter in SQL are compared with it.
//
// Input matches: a task without the member never matches, whatever the operator; arrays have no
// members. Numbers compare as numbers (1 equals 1.0), strings byte by byte; values of different
// types are unequal and have no order, nor have booleans, nulls, arrays and objects.
bool Matches(const TaskFilter& filter, const TaskRecord& task);

struct TaskPage {
    std::vector<TaskRecord> tasks;  // newest first (by id)
    std::optional<TaskId> next;     // pass as `before` for the next page; none = the end
};

struct CountKey {
    State state;
    std::string queue;
    std::string type;
    friend auto operator<=>(const CountKey&, const CountKey&) = default;
};

// ---- who ---------------------------------------------------------------------------------------

struct NodeRecord {
    NodeId id;
    std::string hostname;
    Time last_seen{};
};

enum class SessionState : std::uint8_t { kLive, kDraining, kClosed, kExpired };
std::string_view SessionStateName(SessionState state);

struct SessionRecord {
    SessionId id;
    NodeId node;
    std::string hostname;
    std::int64_t pid = 0;
    SessionState state = SessionState::kLive;
    std::string worker_state;  // of the worker's own machine, see worker_state.h
    int slots = 0;
    int running = 0;
    std::vector<std::string> queues;
    std::vector<std::string> types;
    std::vector<std::string> labels;
    std::string version;
    Time started_at{};
    Time renewed_at{};
    Time lease_until{};
};

// Settings of a queue. A queue exists from its first task or setting on.
struct QueueSettings {
    std::string name;
    bool paused = false;
    std::optional<std::int64_t> cap;  // waiting tasks beyond this are refused at submit
    std::optional<Duration> keep_complete, keep_dead, keep_cancelled;  // retention; none = default
    // Who changed it last, and when. Kept by the store.
    std::string changed_by;
    std::optional<Time> changed_at;
};
Result<void> Validate(const QueueSettings& settings);

// Some settings of one queue. What is not named here stays as it is, whoever changes it meanwhile.
struct QueueChange {
    std::string name;
    std::optional<bool> paused;
    // The inner value absent: no cap, the default retention.
    std::optional<std::optional<std::int64_t>> cap;
    std::optional<std::optional<Duration>> keep_complete, keep_dead, keep_cancelled;
    bool create = true;  // false: a queue that is not there stays so
};
Result<void> Validate(const QueueChange& change);
void Apply(const QueueChange& change, QueueSettings& settings);
// All of them.
QueueChange ChangeTo(const QueueSettings& settings);

struct QueueRecord {
    QueueSettings settings;
    std::int64_t waiting = 0;  // OPEN and ERROR
    std::int64_t running = 0;
};

}  // namespace stint::model
