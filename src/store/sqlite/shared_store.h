// The store as every process sees it: the owner's own, or through the owner's socket, whichever
// this process happens to be. When the owner is gone, the next call finds a new one, or becomes it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "store/sqlite/client.h"
#include "store/sqlite/direct_store.h"
#include "store/sqlite/owner_lock.h"
#include "store/sqlite/server.h"
#include "store/sqlite/shared_events.h"
#include "store/sqlite/shared_flows.h"
#include "store/sqlite/shared_resources.h"
#include "store/sqlite/shared_results.h"
#include "store/sqlite/shared_schedules.h"

namespace stint::store::lite {

class SharedStore final : public Store {
public:
    explicit SharedStore(const SqliteOptions& options);

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
    EventStore& Events() override { return events_; }
    FlowStore& Flows() override { return flows_; }
    HousekeepReply Housekeep(const HousekeepRequest& request) override;
    std::vector<CheckFinding> Check() override;
    Result<void> Write(const std::function<Result<void>(Transaction&)>& work) override;
    Result<std::unique_ptr<Transaction>> Borrow(void* native_connection) override;
    ScheduleStore& Schedules() override;
    ResourceStore& Resources() override { return resources_; }
    ResultStore& Results() override { return results_; }

    bool is_owner();

    // Asks the owner, or does it here if this is the owner. Defined in shared_call.h.
    template <class Reply, class Direct, class... Args>
    Reply Do(Operation operation, Direct&& direct, const Args&... args);

private:
    friend class SharedEvents;
    friend class SharedResults;
    // What this process is at the moment. Ends in reverse: first the door, then the file, then the
    // lock.
    struct Role {
        std::optional<OwnerLock> lock;
        std::unique_ptr<DirectStore> direct;  // the owner
        std::unique_ptr<Server> server;
        std::unique_ptr<Client> client;  // or not
    };

    std::shared_ptr<Role> Current();
    void Leave(const std::shared_ptr<Role>& role);
    std::shared_ptr<Role> FindRole();
    std::shared_ptr<Role> BecomeOwner(OwnerLock lock);
    std::unique_ptr<Client> FindOwner();  // null: nobody serves
    std::string StoppedOwner() const;

    const SqliteOptions options_;
    const std::string socket_;
    const Opener self_;
    std::mutex mutex_;
    std::shared_ptr<Role> role_;  // guarded by mutex_; null: to be found
    std::string why_failed_;      // guarded by mutex_: of the last search
    std::atomic<int> failures_ = 0;
    SharedSchedules schedules_{*this};
    SharedEvents events_{*this};
    SharedFlows flows_{*this};
    SharedResources resources_{*this};
    SharedResults results_{*this};
};

}  // namespace stint::store::lite
