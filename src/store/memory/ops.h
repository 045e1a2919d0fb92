// The operations of the memory store on its data, at one instant. The caller holds the lock.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "model/decide.h"
#include "store/block.h"
#include "store/memory/data.h"
#include "store/memory/memory_store.h"

namespace stint::store::memory {

class Ops {
public:
    Ops(Data& data, base::Random& random, Time now, std::vector<CommittedTransition>& commits)
        : data_(data), random_(random), now_(now), commits_(commits) {}

    Time now() const { return now_; }

    // submit.cpp
    std::vector<SubmitReply> Submit(std::span<const NewTask> tasks);
    std::vector<SubmitReply> SubmitAll(std::span<const NewTask> tasks);
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
    std::vector<Crowd> Crowds(const std::string& queue);

    // settle.cpp
    SettleReply Settle(const Settlement& settlement);
    SettleReply Settle(Task& task, const Settlement& settlement);  // one that holds it
    Result<State> FinishBackground(const BackgroundFinish& finish);
    std::optional<SettleReply> SettledBy(TaskId task, LeaseToken token);

    // results.cpp
    bool IsHeld(const Held& held);
    ItemCounts ItemsOf(TaskId task) const;

    // reclaim.cpp. Finding and moving are two steps so that one planted bug can let the world
    // change in between; the store itself makes both under one lock.
    struct Doomed {
        TaskId task;
        LeaseToken token;
        enum class Why { kSessionOver, kTimedOut, kBackgroundOver } why = Why::kSessionOver;
    };
    std::vector<Doomed> FindDoomed(const ReclaimRequest& request, ReclaimReply& reply);
    void MoveDoomed(const Doomed& doomed, const ReclaimRequest& request, ReclaimReply& reply);

    // wait.cpp
    std::vector<WaitMember> Waited(TaskId task);

    // flows.cpp
    // A task that is not due becomes it; its queue. Nothing: it does not sleep.
    std::optional<std::string> WakeSleeper(
        TaskId task, std::string_view actor, const std::string& reason
    );
    bool SignalCame(TaskId task) const;  // that the flow is about to sleep for

    // operate.cpp
    CancelReply Cancel(TaskId task, std::string_view actor, std::string_view reason);
    CancelReply CancelTree(TaskId task, std::string_view actor, std::string_view reason);
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

    // resources.cpp
    ResourceBook& resources() { return data_.resources; }
    std::int64_t WaitingFor(const std::string& resource) const;
    // Running tasks count for what was set after they had started.
    void AdoptRunning();

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

    // wait.cpp
    Result<std::vector<WaitMember>> MembersOf(
        std::span<const TaskId> tasks, TenantId tenant, const Beside& beside
    );
    void Await(Task& task, const WaitOn& wait, std::vector<WaitMember> members);
    // Whether it may start at once.
    bool StartAfter(TaskId task, const WaitOn& wait, std::vector<WaitMember> members);
    Result<void> BlockOn(Task& task, const Settlement& settlement);
    void TellWaiters(const Task& ended);  // it is terminal
    void TellWaitersOf(const Task& ended);
    void EndWaitIfOver(Task& waiter);
    void CancelWaiter(Task& waiter);
    void CancelRest(const Task& waiter);
    std::vector<WaitLink> LinksOf(TaskId task);
    std::vector<TaskId> Descendants(TaskId task) const;

    // submit.cpp
    std::vector<SubmitReply> SubmitInOrder(std::span<const NewTask> tasks);
    SubmitReply SubmitOne(const NewTask& task, const Beside& beside);
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
    void TakeUnits(const ClaimPlan& plan, const std::vector<Task*>& picked, ClaimReply& reply);
    // Lines of those among the tasks that no condition of their own keeps from the claimer, and
    // which tasks they are.
    struct Lines {
        std::vector<WaitingLine> lines;
        std::vector<std::vector<Task*>> tasks;
    };
    Lines LinesOf(const std::vector<Task*>& ready) const;
    WaitingLine LineOf(const TaskRecord& record) const;
    Offer OfferOf(const ClaimRequest& request, const std::vector<WaitingLine>& lines) const;
    std::vector<Explanation> PlanReasons(Task& task, const ClaimRequest& claimer);
    std::string Detail(Condition condition, const Task& task) const;

    // resources.cpp
    void JoinOrder(Task& task);
    void LeaveOrder(Task& task);
    bool IsBehind(const Task& task) const;
    void EndOrder(Task& task);  // it is terminal
    void Place(Task& task, const Placement& placement);
    std::set<std::string> HeldBy(TaskId task) const;  // resources
    void OpenForFreed();  // the queues whose tasks wait for what was let go of
    int ForgetIdleResources(int limit);

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
    void JudgeResources(std::vector<CheckFinding>& findings);
    void JudgeWaits(std::vector<CheckFinding>& findings);
    void JudgeFlows(std::vector<CheckFinding>& findings);
    int ExpireUnstarted(int limit);
    int ExpireKeys(int limit);
    int ForgetSessions(const HousekeepRequest& request);
    std::vector<std::string> DropPeriods(int limit);
    std::set<TaskId> MayBeRead() const;

    std::vector<std::string> opened_;  // queues, by the ends of waits
    std::vector<TaskId> ended_;        // whose waiters are being told
    std::set<std::string> freed_;      // resources
    bool dead_letters_ = false;        // those behind a dead one are being ended
    Data& data_;
    base::Random& random_;
    const Time now_;
    std::vector<CommittedTransition>& commits_;
};

constexpr bool IsWaiting(State state) {
    return state == State::kOpen || state == State::kError;
}

}  // namespace stint::store::memory
