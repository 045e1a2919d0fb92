// The durable truth: domain operations, in batches, each one transaction. Three implementations
// (memory, SQLite, PostgreSQL) pass one conformance suite.
//
// Errors. What a caller can expect (no such task, lease lost, queue full) is in the replies. A
// broken environment is an exception: Unavailable when nothing was changed, CommitUnknown when the
// change may or may not have happened; the caller resolves the latter by reading back with its
// token or key. Unstorable blames the request itself; what is none of these (a missing right, a
// bug) says nothing about it.
//
// Time. Only the store's clock compares instants. Durations are passed in, except instants that a
// user names (run_at, start_by).
//
// Threads. Every method may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/condition.h"
#include "model/room.h"
#include "model/task.h"
#include "model/worker_state.h"

namespace stint::store {

class EventStore;
class FlowStore;
class ResourceStore;
class ResultStore;

using namespace stint::model;  // NOLINT(google-build-using-namespace): the store speaks the model's
                               // words

// The store cannot be reached or refuses to work now; nothing was changed.
class Unavailable : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};
// The store went away between the request and its answer: the change may or may not have happened.
class CommitUnknown : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};
// A value in the request can never be stored; nothing was changed. Other requests may well be.
class Unstorable : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};
// The store's schema is newer than this program, or otherwise not one it may touch.
class WrongSchema : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// ---- submit ------------------------------------------------------------------------------------

struct SubmitReply {
    enum class Kind : std::uint8_t {
        kCreated,
        kExisting,   // same idempotency key and request, or same live unique key
        kReplaced,   // a waiting task took over this request (unique key, debounce)
        kThrottled,  // within the period of the task named by `id`
        kConflict,   // same idempotency key with another request, or unique key with policy error
        kQueueFull,  // the queue's cap is reached; nothing stored
        kInvalid,    // see message; nothing stored
    };
    Kind kind = Kind::kCreated;
    TaskId id;            // the task that now stands for the request, where there is one
    std::string message;  // for conflicts and refusals: says what and how to cure it
    std::string queue;    // of the created or replaced task, for the wake-up
    bool due_now = false;
    bool announced = false;  // other processes are told of it, with the commit

    bool accepted() const { return kind <= Kind::kThrottled; }
};

// ---- sessions ----------------------------------------------------------------------------------

struct NewSession {
    SessionId id;  // random, fresh per process start
    std::string hostname;
    std::int64_t pid = 0;
    Duration lease{};
    int slots = 0;
    std::vector<std::string> queues;
    std::vector<std::string> types;
    std::vector<std::string> labels;
    std::string version;
    // D1: this process is proven to be the only one on this store (a file lock). Every other
    // session is dead: its tasks are recovered by the next Reclaim without waiting for lease ends.
    bool exclusive = false;
};

struct Held {
    TaskId task;
    LeaseToken token;
    friend bool operator==(const Held&, const Held&) = default;
};
struct ProgressUpdate {
    TaskId task;
    LeaseToken token;
    Progress progress;
};
struct RenewRequest {
    SessionId session;
    Duration lease{};
    std::string worker_state;
    int running = 0;
    bool draining = false;
    std::vector<Held> held;                // checked: still mine? cancel requested?
    std::vector<ProgressUpdate> progress;  // stored only with the current token
};
struct RenewReply {
    bool live = false;  // false: the session is over; stop everything, open a new one
    Time store_time{};
    // Of `held`; each by its token, since a worker may name a task that it lost and has again.
    std::vector<Held> cancel_requested;
    std::vector<Held> lost;  // no longer held with that token
};

// ---- claim, settle, recover --------------------------------------------------------------------

struct ClaimRequest {
    SessionId session;
    int limit = 1;
    std::vector<std::string> queues;  // served; empty = every queue
    std::vector<std::string> types;   // handled
    // False: ordinary tasks, suspects skipped. True: one suspect, which the idle caller runs alone.
    bool suspect = false;
    std::vector<std::string> labels;    // what the worker carries
    std::vector<std::string> withheld;  // resources that this node cannot offer now
    // So many more of a queue or a type this worker takes; what is not named: up to the limit.
    std::map<std::string, int> queue_room, type_room;
    model::Room resource_room;  // likewise of each resource, by name or pattern
    // So many of what it takes the worker runs at once: of resources it then gets no more units
    // than that for tasks of the same needs, and the rest wait here for a seat (see Lease). Not
    // where it has room limits. 0: each task has units of its own.
    int at_once = 0;
    // Something is said to wait: a store that would first look whether anything does need not.
    bool hinted = false;
};

struct Lease {
    TaskId task;
    LeaseToken token;
    TenantId tenant = kDefaultTenant;
    TaskId parent;
    std::string type;
    std::string queue;
    int priority = 0;
    std::string input;
    int attempt = 0;   // this one included
    int claim_no = 0;  // the fencing number
    int generation = 1;
    int crash_count = 0;
    bool alone = false;  // a suspect: run it with nothing else in the process
    Stage stage = Stage::kStart;
    Placement placement;  // it holds what this needs
    RetryPolicy retry;
    Duration timeout{};
    std::string idempotency_key;  // "task-<id>" for outside effects, the same for every attempt
    Time claimed_at{};
    // It shares the units that it needs with those of its group, which hold `seats` times of them,
    // or as many as are left of it: so many of the group may run at once. 0: it has its own.
    std::int64_t group = 0;
    int seats = 0;
};

struct ClaimReply {
    bool session_live = true;   // false: nothing was claimed because the session is over
    std::vector<Lease> leases;  // by priority (higher first), then position
    std::optional<Duration>
        next_due;  // until the earliest task that was skipped only for its due time
    bool suspects_waiting = false;  // a suspect of these queues and types is due
};

struct Settlement {
    enum class Kind : std::uint8_t {
        kComplete,
        kRetry,       // failed; ERROR for `delay`
        kDead,        // failed for good, with `reason`
        kSnooze,      // again after `delay`; attempt refunded
        kRelease,     // handed back, to be claimed again after `delay`; attempt refunded
        kBackground,  // outside for at most `delay` (zero = for ever), with `reason`
        kCancelled,   // stopped because of a cancel request
        kBlocked,     // waits for `children` and `wait`; attempt refunded
    };
    TaskId task;
    LeaseToken token;
    SessionId session;
    Kind kind = Kind::kComplete;
    std::string output;  // JSON
    bool warning = false;
    std::optional<TaskError> error;
    Duration delay{};
    std::string reason;
    // Evidence for the attempt's row.
    AttemptEnd end = AttemptEnd::kComplete;
    std::optional<int> exit_code, exit_signal;
    std::string stderr_tail;
    bool crashed = false;  // an isolated child died: counts as a crash while alone
    // kBlocked: tasks made now, with ids reserved beforehand, and the wait for them and for what
    // else `wait.on` names. Made with the wait in one transaction, or none of it.
    std::vector<NewTask> children;
    WaitOn wait;
    // kRelease: the attempt found out that it needs this, too; it is claimed again when it can have
    // all of it.
    std::optional<Needs> needs;
    // kRelease: this resource does not work, as `error` tells. It is closed for everybody: for
    // `closed_for` where the resource said so itself, else as its breaker decides.
    std::string unavailable;
    Duration closed_for{};
};

struct SettleReply {
    enum class Kind : std::uint8_t {
        kAccepted,
        kLost,     // the token is not the current one; nothing was changed
        kRefused,  // a subtask or the wait was refused, see `message`; nothing was changed
        kBusy,     // others hold what it needs, see `message`; nothing was changed: again later
    };
    Kind kind = Kind::kAccepted;
    State state =
        State::kOpen;     // after it. CANCELLED instead of a retry when a cancel was requested
    std::string message;  // kRefused: why
    // Queues in which tasks that had waited became claimable because of it, or of others in the
    // same batch.
    std::vector<std::string> opened;
};

// By whom a background task is finished: its completion token, or an operator's override.
struct BackgroundFinish {
    TaskId task;
    std::optional<LeaseToken> token;  // none = override; audited as such
    std::string actor;
    bool success = true;
    std::string output;
    TaskError error;
    double jitter = 0.5;  // for the delay of a retry
};

struct ReclaimRequest {
    SessionId by;  // the sweeping session, if it is one
    int limit = limits::kReclaimBatch;
    Duration timeout_grace = std::chrono::seconds{10};  // after an attempt's own timeout
    // What had started in dead processes of this host. A session not named here: all it held.
    std::map<SessionId, std::vector<TaskId>> flights;
};
struct Reclaimed {
    TaskId task;
    SessionId from;
    std::string hostname;  // whose it was, for the log
    State to = State::kOpen;
    AttemptEnd end = AttemptEnd::kCrashed;
    bool suspect = false;
    std::string reason;
};
struct ReclaimReply {
    std::vector<SessionId> expired;  // sessions found dead by this call
    std::vector<Reclaimed> tasks;
    // Left as they are, for a program that can read their retry policies, and logged. Told once per
    // process; Check() tells of them as long as they are there.
    std::vector<TaskId> skipped;
    bool more = false;  // the limit was reached: call again
};

// ---- operators ---------------------------------------------------------------------------------

struct CancelReply {
    enum class Kind : std::uint8_t {
        kNotFound,
        // It was waiting: terminal now. Or it was dead, in the way of those behind it in its order
        // key: it has given up its turn, and stays as it is.
        kCancelled,
        kRequested,        // it is running: its worker is told; no new attempt will start
        kAlreadyTerminal,  // nothing to do
    };
    Kind kind = Kind::kNotFound;
    State state = State::kOpen;
    int descendants = 0;  // that were cancelled or asked to stop with it
};
struct RetryReply {
    enum class Kind : std::uint8_t { kNotFound, kRequeued, kRefused };
    Kind kind = Kind::kNotFound;
    State state = State::kOpen;  // the state that refused it, or OPEN
};

// ---- the rest ----------------------------------------------------------------------------------

struct ListRequest {
    TaskFilter filter;
    std::optional<TaskId> before;  // keyset: only ids below
    int limit = limits::kListPageDefault;
};

struct AuditRequest {
    TaskId task;             // none = all tasks
    std::int64_t after = 0;  // keyset on seq
    int limit = limits::kListPage;
};

struct HousekeepRequest {
    int limit = 500;  // rows of each kind per call; the caller comes back
    Duration session_kept = std::chrono::hours{24};  // closed and expired sessions stay visible
    bool history = true;                             // drop the periods that are kept no longer
};
struct HousekeepReply {
    int expired_tasks = 0;  // start-by deadline passed
    int expired_keys = 0;   // idempotency and throttle keys
    int forgotten_sessions = 0;
    std::vector<std::string> dropped_periods;
    bool more = false;
};

struct FinishedTask {
    TaskId id;
    std::string type;
    State state = State::kComplete;
    std::string output;
    std::optional<TaskError> error;
    std::string reason;
    bool warning = false;
};

struct Explanation {
    Condition condition = Condition::kEligible;
    std::string detail = {};  // which queue, which time, …
    // Of an eligible one: so many a claim of this claimer takes before it.
    std::int64_t ahead = 0;
    bool more_ahead = false;  // than that; not all were counted
};

// Waiting tasks of a queue that are kept from claims by the same, if by anything of their own.
struct Crowd {
    std::int64_t tasks = 0;
    TaskId last;  // of them
};

struct StoreInfo {
    std::string kind;     // "memory", "sqlite", "postgres"
    std::string address;  // without secrets
    std::string version;  // of the database
    int schema = 0;
    std::string durability;  // one sentence: what survives what
    bool shared = false;     // several processes may work on it at once without this process
    // 16 random bytes in 32 hexadecimal digits, made with the store: the same through every address
    // and process, after every migration, and another store's is another.
    std::string identity;
};

struct CheckFinding {
    std::string what;  // which invariant or check
    std::string detail;
    bool ok = true;
};

// A transaction of the caller's own on this store's database: what is submitted or settled through
// it happens if and only if the caller commits.
class Transaction {
public:
    virtual ~Transaction() = default;
    virtual std::vector<SubmitReply> Submit(std::span<const NewTask> tasks) = 0;
    virtual SettleReply Settle(const Settlement& settlement) = 0;
    virtual void* native() = 0;  // sqlite3* or PGconn*; null for memory
};

class ScheduleStore;

// What the services of a node would find if they looked: true = nothing that is due now or becomes
// due within kQuietAhead.
struct Quiet {
    base::Instant seen{};  // of this process's real clock
    bool schedules = false;
    bool events = false;
    bool leases = false;  // nothing to recover
    bool deletions = false;
    bool deadlines = false;  // nothing that is not to be started any more
    bool all() const { return schedules && events && leases && deletions && deadlines; }
};
inline constexpr Duration kQuietAhead = std::chrono::seconds{12};

class Store {
public:
    virtual ~Store() = default;

    virtual StoreInfo Info() = 0;
    virtual Time Now() = 0;  // the store's clock
    // Consecutive ids [first, first + count); never given out again.
    virtual TaskId ReserveIds(int count) = 0;

    virtual void PublishTypes(std::span<const TypeDefaults> types) = 0;
    virtual std::vector<TypeRecord> Types() = 0;

    virtual std::vector<SubmitReply> Submit(std::span<const NewTask> tasks) = 0;
    // All or none: when one is refused, nothing is stored, and every reply says so.
    virtual std::vector<SubmitReply> SubmitAll(std::span<const NewTask> tasks) = 0;

    // Registers the node and the session; live from now on.
    virtual NodeId OpenSession(const NewSession& session) = 0;
    virtual RenewReply Renew(const RenewRequest& request) = 0;
    virtual void CloseSession(SessionId session) = 0;  // holds nothing any more
    virtual std::vector<SessionRecord> Sessions() = 0;
    virtual std::vector<NodeRecord> Nodes() = 0;

    virtual ClaimReply Claim(const ClaimRequest& request) = 0;
    // As the last claim that found nothing saw it by the way, so that a node with nothing to do
    // asks one question, not one per service. Nothing: not known, ask. Use store/quiet.h.
    virtual std::optional<Quiet> LastQuiet() { return {}; }
    virtual std::vector<SettleReply> Settle(std::span<const Settlement> settlements) = 0;
    virtual ReclaimReply Reclaim(const ReclaimRequest& request) = 0;
    virtual Result<State> FinishBackground(const BackgroundFinish& finish) = 0;
    // Was this (task, token) settled? nullopt: the token still holds the task. kLost: neither.
    virtual std::optional<SettleReply> SettledBy(TaskId task, LeaseToken token) = 0;

    virtual std::vector<CancelReply> Cancel(
        std::span<const TaskId> tasks, std::string_view actor, std::string_view reason
    ) = 0;
    virtual std::vector<RetryReply> Retry(
        std::span<const TaskId> tasks, std::string_view actor
    ) = 0;
    virtual std::vector<RetryReply> Discard(
        std::span<const TaskId> tasks, std::string_view actor
    ) = 0;  // ERROR → DEAD
    virtual Result<void> Edit(TaskId task, const TaskEdit& edit, std::string_view actor) = 0;

    virtual std::optional<TaskRecord> Get(TaskId task) = 0;
    virtual std::optional<TaskId> FindByIdempotencyKey(TenantId tenant, std::string_view key) = 0;
    virtual TaskPage List(const ListRequest& request) = 0;
    virtual std::map<CountKey, std::int64_t> Counts(const TaskFilter& filter
    ) = 0;  // tenant, states, types, queues only
    virtual std::vector<AttemptRecord> Attempts(TaskId task) = 0;  // by claim_no
    // What the task waits for, or waited for last; of tasks that are not finished.
    virtual std::vector<WaitMember> Waited(TaskId task) = 0;
    virtual std::vector<AuditEntry> Audit(const AuditRequest& request) = 0;
    // Of the given ones, those that are terminal.
    virtual std::vector<FinishedTask> Finished(std::span<const TaskId> tasks) = 0;
    virtual std::vector<Explanation> Explain(TaskId task, const ClaimRequest& claimer) = 0;
    virtual std::vector<Crowd> Crowds(const std::string& queue) = 0;

    // The settings after the change; nullopt: there is no such queue, and none was to be made.
    virtual std::optional<QueueSettings> ChangeQueue(
        const QueueChange& change, std::string_view actor
    ) = 0;
    void SetQueue(const QueueSettings& settings, std::string_view actor) {
        ChangeQueue(ChangeTo(settings), actor);
    }
    virtual std::vector<QueueRecord> Queues() = 0;

    // Events, workflow definitions and what they fired: store/events.h.
    virtual EventStore& Events() = 0;

    virtual HousekeepReply Housekeep(const HousekeepRequest& request) = 0;
    // Verifies the store's own invariants (audit replays to the state, leases have live rows, …).
    virtual std::vector<CheckFinding> Check() = 0;

    // Runs `work` in one transaction of this store (SQLite: on the writer's connection, within a
    // time-limited savepoint). Commits iff it returns success; its Error is passed on.
    virtual Result<void> Write(const std::function<Result<void>(Transaction&)>& work) = 0;
    // Joins a transaction the caller has begun on its own connection: PGconn* on PostgreSQL. Others
    // refuse with the reason.
    virtual Result<std::unique_ptr<Transaction>> Borrow(void* native_connection) = 0;

    virtual ScheduleStore& Schedules() = 0;  // store/schedules.h
    // Resources, their slots, rates and breakers: store/resources.h.
    virtual ResourceStore& Resources() = 0;
    // The recorded steps of workflows: store/flows.h.
    virtual FlowStore& Flows() = 0;
    // Items, checkpoints and deferred deletions: store/results.h.
    virtual ResultStore& Results() = 0;
};

}  // namespace stint::store
