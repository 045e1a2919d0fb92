// The reference store: plain containers under one mutex, obviously right. The simulator and
// in-process tests run on it, and every other store is compared with it. Nothing survives the
// process.
//
// Threads: every operation holds the one mutex from begin to end. The work given to Write() and the
// commit listener run under it and must not call the store again.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/random.h"
#include "store/store.h"

namespace stint::store {

// One transition, as committed.
struct CommittedTransition {
    AuditEntry entry;
    LeaseToken token;     // of the lease it began, ended or belongs to; none where there is none
    bool audited = true;  // false only under a planted bug
};

class MemoryStore final : public Store {
public:
    // The store's time is clock.WallTime().
    MemoryStore(base::Clock& clock, base::Random& random);
    ~MemoryStore() override;

    // Called once for each transition, in commit order, at the commit of its operation; transitions
    // of a Write() that fails are never seen.
    void SetCommitListener(std::function<void(const CommittedTransition&)> listener);

    StoreInfo Info() override;
    Time Now() override;
    TaskId ReserveIds(int count) override;
    void PublishTypes(std::span<const TypeDefaults> types) override;
    std::vector<TypeRecord> Types() override;
    std::vector<SubmitReply> Submit(std::span<const NewTask> tasks) override;
    std::vector<SubmitReply> SubmitAll(std::span<const NewTask> tasks) override;
    NodeId OpenSession(const NewSession& session) override;
    RenewReply Renew(const RenewRequest& request) override;
    void CloseSession(SessionId session) override;
    std::vector<SessionRecord> Sessions() override;
    std::vector<NodeRecord> Nodes() override;
    ClaimReply Claim(const ClaimRequest& request) override;
    std::vector<SettleReply> Settle(std::span<const Settlement> settlements) override;
    ReclaimReply Reclaim(const ReclaimRequest& request) override;
    Result<State> FinishBackground(const BackgroundFinish& finish) override;
    std::optional<SettleReply> SettledBy(TaskId task, LeaseToken token) override;
    std::vector<CancelReply> Cancel(
        std::span<const TaskId> tasks, std::string_view actor, std::string_view reason
    ) override;
    std::vector<RetryReply> Retry(std::span<const TaskId> tasks, std::string_view actor) override;
    std::vector<RetryReply> Discard(std::span<const TaskId> tasks, std::string_view actor) override;
    Result<void> Edit(TaskId task, const TaskEdit& edit, std::string_view actor) override;
    std::optional<TaskRecord> Get(TaskId task) override;
    std::optional<TaskId> FindByIdempotencyKey(TenantId tenant, std::string_view key) override;
    TaskPage List(const ListRequest& request) override;
    std::map<CountKey, std::int64_t> Counts(const TaskFilter& filter) override;
    std::vector<AttemptRecord> Attempts(TaskId task) override;
    std::vector<WaitMember> Waited(TaskId task) override;
    std::vector<AuditEntry> Audit(const AuditRequest& request) override;
    std::vector<FinishedTask> Finished(std::span<const TaskId> tasks) override;
    std::vector<Explanation> Explain(TaskId task, const ClaimRequest& claimer) override;
    std::vector<Crowd> Crowds(const std::string& queue) override;
    std::optional<QueueSettings> ChangeQueue(const QueueChange& change, std::string_view actor)
        override;
    std::vector<QueueRecord> Queues() override;
    EventStore& Events() override;
    FlowStore& Flows() override;
    HousekeepReply Housekeep(const HousekeepRequest& request) override;
    std::vector<CheckFinding> Check() override;
    Result<void> Write(const std::function<Result<void>(Transaction&)>& work) override;
    Result<std::unique_ptr<Transaction>> Borrow(void* native_connection) override;
    ScheduleStore& Schedules() override;
    ResourceStore& Resources() override;
    ResultStore& Results() override;

private:
    struct Impl;
    const std::unique_ptr<Impl> impl_;
};

std::unique_ptr<Store> MakeMemoryStore(base::Clock& clock, base::Random& random);

}  // namespace stint::store
