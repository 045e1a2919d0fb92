// The store as its owner sees it: changes through the writer, questions on reading connections.
#pragma once

#include <memory>
#include <string>

#include "store/sqlite/direct_events.h"
#include "store/sqlite/direct_resources.h"
#include "store/sqlite/file_check.h"
#include "store/sqlite/flows.h"
#include "store/sqlite/process.h"
#include "store/sqlite/reader_pool.h"
#include "store/sqlite/results.h"
#include "store/sqlite/schedules.h"
#include "store/sqlite/sqlite_store.h"
#include "store/sqlite/writer.h"

namespace stint::store::lite {

class DirectStore final : public Store {
public:
    // REQUIRES: this process holds the lock.
    DirectStore(const SqliteOptions& options, const Opener& self);

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
    ScheduleStore& Schedules() override { return schedules_; }
    ResourceStore& Resources() override { return resources_; }
    ResultStore& Results() override { return results_; }

    static Error RefuseBorrow(void* native_connection);

    // On behalf of another process, or of another handle of this one.
    NodeId OpenSessionFor(const NewSession& session, const Opener& opener);
    Writer::Totals totals() { return writer_.totals(); }
    std::size_t queued() { return writer_.queued(); }

private:
    // Runs `member(Ops&)` in the next group and returns what it returned.
    template <class Member>
    auto Change(Member&& member, Writer::Work whose = Writer::Work::kOurs);
    // Calls `question(Reads&)` on a reading connection.
    template <class Question>
    auto Ask(Question&& question);
    void BreakDamaged(const std::string& verdict);
    void DropPeriods(int limit, HousekeepReply& reply);

    const SqliteOptions options_;
    const Opener self_;
    Writer writer_;
    ReaderPool readers_;
    DirectSchedules schedules_{writer_, readers_, *options_.clock};
    DirectEvents events_{writer_, readers_, *options_.clock};
    DirectFlows flows_{writer_, readers_, *options_.clock};
    DirectResources resources_{writer_};
    DirectResults results_{writer_, readers_, *options_.clock};
    const std::string identity_;
    std::unique_ptr<FileCheck> check_;  // after an unclean end
};

}  // namespace stint::store::lite
