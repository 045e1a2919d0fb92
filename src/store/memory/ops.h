// The operations of the memory store on its data, at one instant. The caller holds the lock.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "model/decide.h"
#include "store/memory/data.h"
#include "store/memory/memory_store.h"

namespace stint::store::memory {

class Ops {
public:
    Ops(Data& data, base::Random& random, Time now, std::vector<CommittedTransition>& commits)
        : data_(data), random_(random), now_(now), commits_(commits) {}

    // submit.cpp
    std::vector<SubmitReply> Submit(std::span<const NewTask> tasks);
    void PublishTypes(std::span<const TypeDefaults> types);
    TaskId ReserveIds(int count);

    // sessions.cpp
    NodeId OpenSession(const NewSession& session);
    RenewReply Renew(const RenewRequest& request);
    void CloseSession(SessionId session);
    std::vector<SessionRecord> Sessions();

    // claim.cpp
    ClaimReply Claim(const ClaimRequest& request);
    std::vector<Explanation> Explain(TaskId task, const ClaimRequest& claimer);

    // settle.cpp
    SettleReply Settle(const Settlement& settlement);
    Result<State> FinishBackground(const BackgroundFinish& finish);
    std::optional<SettleReply> SettledBy(TaskId task, LeaseToken token);

    // reclaim.cpp. Finding and moving are two steps so that one planted bug can let the world
    // change in between; the store itself makes both under one lock.
    struct Doomed {
        TaskId task;
        LeaseToken token;
        enum class Why { kSessionOver, kTimedOut, kBackgroundOver } why = Why::kSessionOver;
    };
    std::vector<Doomed> FindDoomed(const ReclaimRequest& request, ReclaimReply& reply);
    void MoveDoomed(const Doomed& doomed, const ReclaimRequest& request, ReclaimReply& reply);

    // operate.cpp
    CancelReply Cancel(TaskId task, std::string_view actor, std::string_view reason);
    RetryReply Retry(TaskId task, std::string_view actor);
    RetryReply Discard(TaskId task, std::string_view actor);
    Result<void> Edit(TaskId task, const TaskEdit& edit, std::string_view actor);

    // read.cpp
    std::optional<TaskRecord> Get(TaskId task);
    std::optional<TaskId> FindByIdempotencyKey(TenantId tenant, std::string_view key);
    TaskPage List(const ListRequest& request);
    std::map<CountKey, std::int64_t> Counts(const TaskFilter& filter);
    std::vector<AuditEntry> Audit(const AuditRequest& request);
    std::vector<FinishedTask> Finished(std::span<const TaskId> tasks);
    std::vector<QueueRecord> Queues();
    std::optional<QueueSettings> ChangeQueue(const QueueChange& change, std::string_view actor);
    std::vector<AttemptRecord> Attempts(TaskId task);

    // housekeep.cpp
    HousekeepReply Housekeep(const HousekeepRequest& request);
    std::vector<CheckFinding> Check();

private:
    struct Why {
        std::string_view actor;
        std::string reason = {};
        SessionId session = {};
    };
    struct Ending {
        AttemptEnd end;
        std::optional<TaskError> error = {};
        std::optional<int> exit_code = {};
        std::optional<int> exit_signal = {};
        std::string stderr_tail = {};
    };

    // task.cpp: what every operation is made of.
    Task* Find(TaskId task);  // live or finished; null when there is none
    // The one place where a task changes its state: asks the table, writes the audit entry, and
    // moves the task between the live ones and the finished. References to it stay valid.
    void Move(Task& task, Event event, const Why& why);
    void Audit(Task& task, std::optional<State> from, Event event, const Why& why);
    void Finish(Task& task);
    void EndAttempt(Task& task, const Ending& ending);
    void CountCrash(Task& task);
    void Wait(Task& task, Time due_at);  // claimable from then on
    bool IsLive(SessionId session) const;
    std::int64_t WaitingIn(const std::string& queue) const;
    void TouchQueue(const std::string& queue);

    // submit.cpp
    SubmitReply SubmitOne(const NewTask& task);
    std::optional<SubmitReply> KnownByKey(const NewTask& task, const std::string& hash);
    std::optional<SubmitReply> KnownByUnique(const NewTask& task);
    std::optional<SubmitReply> KnownByDebounce(const NewTask& task);
    SubmitReply Replace(Task& waiting, const NewTask& task, Time due_at);
    SubmitReply Insert(const NewTask& task, const Resolved& resolved);
    void Remember(const NewTask& task, const std::string& hash, const SubmitReply& reply);
    void ApplyDefaults(Task& task, const TypeDefaults& defaults);
    const TypeDefaults* TypeOf(const std::string& type) const;

    // claim.cpp
    bool Applies(Condition condition, const Task& task, const ClaimRequest& claimer) const;
    bool Skips(const Task& task, const ClaimRequest& claimer) const;
    bool OnlyNotDue(const Task& task, const ClaimRequest& claimer) const;
    Lease Take(Task& task, const ClaimRequest& request);
    std::string Detail(Condition condition, const Task& task) const;

    // settle.cpp
    bool Holds(const Task& task, const Settlement& settlement) const;
    Disposition Decide(Task& task, const Settlement& settlement);

    // reclaim.cpp
    void ReclaimCrashed(Task& task, Reclaimed& report);
    void ReclaimUnstarted(Task& task, Reclaimed& report);
    void ReclaimTimedOut(Task& task, Reclaimed& report);
    void ReclaimBackground(Task& task, Reclaimed& report);
    void BackToWaiting(Task& task, Duration delay);

    // housekeep.cpp
    int ExpireUnstarted(int limit);
    int ExpireKeys(int limit);
    int ForgetSessions(const HousekeepRequest& request);
    std::vector<std::string> DropPeriods(int limit);

    Data& data_;
    base::Random& random_;
    const Time now_;
    std::vector<CommittedTransition>& commits_;
};

constexpr bool IsWaiting(State state) {
    return state == State::kOpen || state == State::kError;
}

}  // namespace stint::store::memory
