// The shared store as one simulated process sees it: slow, sometimes gone, sometimes silent about
// what it did. Every call is a point before and after.
#pragma once

#include "sim/faults.h"
#include "sim/oracle.h"
#include "sim/world.h"
#include "store/store.h"

namespace stint::sim {

class FaultyStore final : public store::Store {
public:
    FaultyStore(World& world, Faults& faults, Oracle& oracle, store::Store& inner)
        : world_(world), faults_(faults), oracle_(oracle), inner_(inner) {}

    store::StoreInfo Info() override;
    Time Now() override;
    TaskId ReserveIds(int count) override;
    void PublishTypes(std::span<const model::TypeDefaults> types) override;
    std::vector<model::TypeRecord> Types() override;
    std::vector<store::SubmitReply> Submit(std::span<const model::NewTask> tasks) override;
    NodeId OpenSession(const store::NewSession& session) override;
    store::RenewReply Renew(const store::RenewRequest& request) override;
    void CloseSession(SessionId session) override;
    std::vector<model::SessionRecord> Sessions() override;
    std::vector<model::NodeRecord> Nodes() override;
    store::ClaimReply Claim(const store::ClaimRequest& request) override;
    std::vector<store::SettleReply> Settle(std::span<const store::Settlement> settlements) override;
    store::ReclaimReply Reclaim(const store::ReclaimRequest& request) override;
    Result<model::State> FinishBackground(const store::BackgroundFinish& finish) override;
    std::optional<store::SettleReply> SettledBy(TaskId task, LeaseToken token) override;
    std::vector<store::CancelReply> Cancel(
        std::span<const TaskId> tasks, std::string_view actor, std::string_view reason
    ) override;
    std::vector<store::RetryReply> Retry(std::span<const TaskId> tasks, std::string_view actor)
        override;
    std::vector<store::RetryReply> Discard(std::span<const TaskId> tasks, std::string_view actor)
        override;
    Result<void> Edit(TaskId task, const model::TaskEdit& edit, std::string_view actor) override;
    std::optional<model::TaskRecord> Get(TaskId task) override;
    std::optional<TaskId> FindByIdempotencyKey(TenantId tenant, std::string_view key) override;
    model::TaskPage List(const store::ListRequest& request) override;
    std::map<model::CountKey, std::int64_t> Counts(const model::TaskFilter& filter) override;
    std::vector<model::AttemptRecord> Attempts(TaskId task) override;
    std::vector<model::AuditEntry> Audit(const store::AuditRequest& request) override;
    std::vector<store::FinishedTask> Finished(std::span<const TaskId> tasks) override;
    std::vector<store::Explanation> Explain(TaskId task, const store::ClaimRequest& claimer)
        override;
    std::optional<model::QueueSettings> ChangeQueue(
        const model::QueueChange& change, std::string_view actor
    ) override;
    std::vector<model::QueueRecord> Queues() override;
    store::HousekeepReply Housekeep(const store::HousekeepRequest& request) override;
    std::vector<store::CheckFinding> Check() override;
    Result<void> Write(const std::function<Result<void>(store::Transaction&)>& work) override;
    Result<std::unique_ptr<store::Transaction>> Borrow(void* native_connection) override;

private:
    enum class Effect : std::uint8_t { kReads, kWrites };

    // On the way there: points, delays, refusals. Says whether the call may reach the store at all.
    void Travel(std::string_view name, Effect effect);
    void TravelBack(std::string_view name, Effect effect);
    void Delay();

    template <class F>
    auto Reads(std::string_view name, F&& call);
    // `as`: what the oracle is told is going on.
    template <class F>
    auto Writes(std::string_view name, Call as, F&& call);
    template <class F>
    auto Reach(std::string_view name, Effect effect, Call as, F&& call);

    World& world_;
    Faults& faults_;
    Oracle& oracle_;
    store::Store& inner_;
};

}  // namespace stint::sim
