// The oracle: a shadow of every task, moved only by what the store commits, and the invariants it
// must keep. It is told of every commit as it happens, and of what was asked and answered around
// it, and judges each on its own: it never asks the store what to believe.
//
// Invariants by number, as in ARCHITECTURE.md: I1 nothing lost, I2 one outcome, I3 token fence,
// I4 attempts, I5 leases, I6 resources, I7 unique keys, I8 idempotency keys, I9 waits, I10 joins,
// I11 schedules, I12 steps, I13 cancel, I14 due times, I15 audit, I16 effects, L1 everything due
// ends, L2 nobody sleeps through a signal.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/world.h"
#include "store/memory/memory_store.h"
#include "store/results.h"
#include "store/store.h"

namespace stint::sim {

struct Violation {
    std::string invariant;  // "I3"
    TaskId task;
    std::string what;
    std::vector<std::string> history;  // of the task
    std::vector<std::string> trace;    // the last points of the world
};

// Which operation is inside the store: what may change depends on it.
enum class Call : std::uint8_t {
    kNone,
    kSubmit,
    kClaim,
    kSettle,
    kReclaim,
    kFinish,
    kCancel,
    kRetry,
    kDiscard,
    kEdit,
    kHousekeep,
    kWrite,
    kPublish,
    kSession,
};
std::string_view CallName(Call call);

// One task as a commit left it.
struct Change {
    model::TaskRecord after;
    LeaseToken token;  // of the holder, or the completion token; none otherwise
    std::vector<store::CommittedTransition> transitions;
};

class Oracle {
public:
    // Listens to the store's commits from now on.
    Oracle(World& world, store::MemoryStore& store, Duration lease);

    bool violated() const { return violation_.has_value(); }
    const Violation& violation() const { return *violation_; }
    void Violate(std::string_view invariant, TaskId task, std::string what);
    // Looks past violations whose text contains one of these, for others behind a known one.
    void Ignore(std::vector<std::string> texts) { ignored_ = std::move(texts); }

    // ---- from the faulty store, around the call, before any answer travels back ----
    void Begin(Call call);
    void End();
    void AfterSubmit(
        std::span<const model::NewTask> tasks, std::span<const store::SubmitReply> replies
    );
    void AfterOpen(const store::NewSession& session);
    void AfterRenew(const store::RenewRequest& request, const store::RenewReply& reply);
    void AfterClose(SessionId session);
    void AfterClaim(const store::ClaimRequest& request, const store::ClaimReply& reply);
    void BeforeSettle(std::span<const store::Settlement> settlements);
    void AfterSettle(
        std::span<const store::Settlement> settlements, std::span<const store::SettleReply> replies
    );
    void AfterReclaim(const store::ReclaimReply& reply);
    void BeforeFinish(const store::BackgroundFinish& finish);
    void AfterFinish(const store::BackgroundFinish& finish, const Result<model::State>& reply);
    void AfterCancel(std::span<const TaskId> tasks, std::span<const store::CancelReply> replies);
    void AfterWrite(bool committed);
    void AfterPublish();
    void AfterResults(const store::ResultWrite& write, bool accepted);

    // ---- from the workload ----
    // The host's own write inside Store::Write, to be committed with it.
    void StageEffect(TaskId task) { staged_effects_.push_back(task); }
    // A client was told that its request `marker` is stored as `task`.
    void Acknowledged(TaskId task, std::int64_t marker);
    void HandlerStarted(TaskId task, int claim_no, std::stop_token stop);
    void HandlerEnded(TaskId task, int claim_no);
    // What running tasks hold of a resource: those of a group as much as its seats, or as are left.
    int UnitsOf(const std::string& resource) const;
    // It is about to return success, and nobody has asked it to stop.
    void HandlerSucceeds(TaskId task, int claim_no) { succeeded_.insert({task, claim_no}); }

    // ---- at the end ----
    // Everything that is due, or due soon, is terminal.
    bool Quiet() const;
    std::string Unfinished() const;
    TaskId FirstUnfinished() const;
    // When the last of the unfinished becomes due, as far as it is in sight.
    Virtual LastDue() const;
    std::uint64_t transitions() const { return transitions_; }
    void CheckEnd();

    // ---- for generators that want something that exists ----
    std::vector<TaskId> Tasks() const;
    std::size_t task_count() const { return shadows_.size(); }
    const model::TaskRecord* Find(TaskId task) const;
    // Tasks of schedules, by the schedule's tag and the instant in their input as it was first.
    using ScheduledRun = std::pair<std::string, std::string>;
    const std::map<ScheduledRun, TaskId>& runs() const { return runs_; }
    std::uint64_t commits() const { return commits_; }

private:
    struct Shadow {
        model::TaskRecord record;
        LeaseToken token;
        std::set<LeaseToken> spent;  // tokens of earlier claims
        bool alone = false;          // the running attempt is a suspect's, alone
        std::int64_t group = 0;      // of its lease, as the next
        int seats = 0;
        int terminal_in_generation = 0;  // the last generation that ended
        int entries = 0;                 // audit entries so far
        std::vector<std::string> history;
    };
    struct SessionShadow {
        Time lease_until{};
        bool over = false;
    };
    struct Running {
        std::stop_token stop;
        Process* process = nullptr;
    };
    // What a task waits for, as it asked; each counts once, when it first ends.
    struct WaitShadow {
        model::WaitOn policy;
        bool started = false;  // in the middle of its work
        std::map<TaskId, std::optional<model::State>> ended;
    };
    using Key = std::pair<std::int64_t, std::string>;                      // tenant, key
    using UniqueKey = std::tuple<std::int64_t, std::string, std::string>;  // tenant, type, key

    // Judges what was committed since the last time.
    void Digest();
    void Refresh(TaskId task);  // what changes without a transition
    void Judge(const Change& change);
    void JudgeTransition(
        Shadow& shadow, const store::CommittedTransition& transition, const Change& change
    );
    void JudgeEvent(Shadow& shadow, const model::AuditEntry& entry, const Change& change);
    void JudgeClaim(const Shadow& shadow, const Change& change);
    void JudgeHolder(const Shadow& shadow, const model::AuditEntry& entry, const Change& change);
    void JudgeReclaim(const Shadow& shadow, const model::AuditEntry& entry, const Change& change);
    void JudgeRunningHandler(const Shadow& shadow);
    void JudgeSeats(TaskId started);
    void JudgeOperator(const Shadow& shadow, const Change& change);
    void JudgeKeys(const Shadow& shadow, const Change& change);
    void JudgeRequest(const model::TaskRecord& fresh);
    void JudgeScheduled(const model::TaskRecord& fresh);
    void JudgeEffects(const Change& change);
    void JudgeSubmit(const model::NewTask& task, const store::SubmitReply& reply);
    void JudgeToken(TaskId task, LeaseToken asked, bool accepted, std::string_view who);
    void CheckTask(const Shadow& shadow);
    // oracle_waits.cpp
    void NoteWait(TaskId waiter, const model::WaitOn& policy, std::vector<TaskId> on, bool started);
    void JudgeWaits(const std::map<TaskId, Change>& changes);
    void JudgeEndOfWait(const WaitShadow& wait, const Change& change);
    static model::WaitVerdict VerdictOf(const WaitShadow& wait);
    // oracle_steps.cpp
    bool JudgeStep(const model::TaskRecord& fresh);  // false: it is not of a step
    void CheckExecution(const model::TaskRecord& execution);
    bool EverEnded(TaskId task) const;
    bool OutOfSight(TaskId task) const;  // not due for long, or waits for such a one
    std::vector<TaskId> Below(TaskId task) const;
    bool SessionDead(SessionId session) const;
    Time now() const;

    World& world_;
    store::MemoryStore& store_;
    const Duration lease_;
    std::vector<store::CommittedTransition> committed_;  // not yet judged
    std::uint64_t commits_ = 0;
    std::uint64_t transitions_ = 0;
    std::map<std::int64_t, TaskId> markers_;  // first task stored for each client's request
    std::map<ScheduledRun, TaskId> runs_;
    std::map<TaskId, Shadow> shadows_;
    std::map<TaskId, WaitShadow> waits_;  // that go on
    // The tasks of one step, by the generation of the execution that made them.
    using Made = std::map<int, std::vector<TaskId>>;
    using Steps = std::map<std::size_t, Made>;
    bool IsDone(const Made& made, std::size_t tasks) const;
    std::map<TaskId, Steps> steps_;  // of each execution
    std::map<SessionId, SessionShadow> sessions_;
    std::map<TaskId, LeaseToken> before_;  // tokens when the settling call began
    std::map<UniqueKey, TaskId> unique_;   // live tasks only
    std::map<Key, std::pair<TaskId, std::string>> idempotent_;  // task and request hash
    std::map<std::int64_t, TaskId> acknowledged_;               // by the client's marker
    std::map<std::pair<TaskId, int>, Running> running_;         // by claim number
    // Handlers that ended by themselves or died with their process: their attempt counts.
    std::set<std::pair<TaskId, int>> spent_attempts_;
    std::set<std::pair<TaskId, int>> succeeded_;
    std::vector<TaskId> staged_effects_;
    std::map<TaskId, int> effects_;
    std::vector<std::string> ignored_;
    std::optional<Violation> violation_;
};

}  // namespace stint::sim
