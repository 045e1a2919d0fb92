// The shared store as one simulated process sees it: slow, sometimes gone, sometimes silent about
// what it did. Every call is a point before and after.
#pragma once

#include "sim/faults.h"
#include "sim/faulty_flows.h"
#include "sim/faulty_results.h"
#include "sim/faulty_schedules.h"
#include "sim/oracle.h"
#include "sim/world.h"
#include "store/events.h"
#include "store/store.h"

namespace stint::sim {

class FaultyStore;

class FaultyEvents final : public store::EventStore {
public:
    explicit FaultyEvents(FaultyStore& store) : store_(store) {}

    std::vector<store::PublishReply> Publish(std::span<const model::NewEvent> events) override;
    Result<model::WorkflowRecord> PutWorkflow(
        const model::WorkflowDefinition& definition, std::string_view actor
    ) override;
    bool RemoveWorkflow(TenantId tenant, std::string_view name) override;
    std::vector<model::WorkflowRecord> Workflows() override;
    store::NextEventsReply NextEvents(const store::NextEventsRequest& request) override;
    std::vector<store::FireReply> Fire(std::span<const store::EventOutcome> outcomes) override;
    std::optional<model::EventRecord> GetEvent(EventNo event) override;
    std::vector<model::EventRecord> ListEvents(const store::EventFilter& filter) override;
    std::map<store::EventCountKey, std::int64_t> CountEvents() override;
    std::vector<store::FiringRecord> Firings(const store::FiringFilter& filter) override;
    std::vector<model::JoinInstance> Joins(const store::JoinFilter& filter) override;
    store::TidyReply Tidy(const store::TidyRequest& request) override;

private:
    FaultyStore& store_;
};

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
    std::vector<store::SubmitReply> SubmitAll(std::span<const model::NewTask> tasks) override;
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
    std::vector<model::WaitMember> Waited(TaskId task) override;
    std::vector<store::FinishedTask> Finished(std::span<const TaskId> tasks) override;
    std::vector<store::Explanation> Explain(TaskId task, const store::ClaimRequest& claimer)
        override;
    std::vector<store::Crowd> Crowds(const std::string& queue) override;
    std::optional<model::QueueSettings> ChangeQueue(
        const model::QueueChange& change, std::string_view actor
    ) override;
    std::vector<model::QueueRecord> Queues() override;
    store::EventStore& Events() override { return events_; }
    store::FlowStore& Flows() override { return flows_; }
    store::HousekeepReply Housekeep(const store::HousekeepRequest& request) override;
    std::vector<store::CheckFinding> Check() override;
    Result<void> Write(const std::function<Result<void>(store::Transaction&)>& work) override;
    Result<std::unique_ptr<store::Transaction>> Borrow(void* native_connection) override;
    store::ScheduleStore& Schedules() override { return schedules_; }
    store::ResultStore& Results() override { return results_; }
    // Asked by operators and tests, not by workers.
    store::ResourceStore& Resources() override { return inner_.Resources(); }

    // For the parts of the store that have wrappers of their own.
    void AroundRead(std::string_view name, const std::function<void()>& call);
    void AroundWrite(std::string_view name, Call as, const std::function<void()>& call);

private:
    friend class FaultyEvents;
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
    FaultySchedules schedules_{*this, inner_.Schedules()};
    FaultyEvents events_{*this};
    FaultyFlows flows_{*this, inner_, oracle_};
    FaultyResults results_{*this, oracle_, inner_.Results()};
};

}  // namespace stint::sim
