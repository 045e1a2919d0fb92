// The memory store's door to its events.
#pragma once

#include <functional>

#include "store/memory/event_ops.h"

namespace stint::store::memory {

class EventDoor final : public EventStore {
public:
    // Calls its argument as one operation of the store.
    using Run = std::function<void(const std::function<void(EventOps&)>&)>;
    explicit EventDoor(Run run) : run_(std::move(run)) {}

    std::vector<PublishReply> Publish(std::span<const NewEvent> events) override;
    Result<WorkflowRecord> PutWorkflow(const WorkflowDefinition& definition, std::string_view actor)
        override;
    bool RemoveWorkflow(TenantId tenant, std::string_view name) override;
    std::vector<WorkflowRecord> Workflows() override;
    NextEventsReply NextEvents(const NextEventsRequest& request) override;
    std::vector<FireReply> Fire(std::span<const EventOutcome> outcomes) override;
    std::optional<EventRecord> GetEvent(EventNo event) override;
    std::vector<EventRecord> ListEvents(const EventFilter& filter) override;
    std::map<EventCountKey, std::int64_t> CountEvents() override;
    std::vector<FiringRecord> Firings(const FiringFilter& filter) override;
    std::vector<JoinInstance> Joins(const JoinFilter& filter) override;
    TidyReply Tidy(const TidyRequest& request) override;

private:
    template <class Work>
    auto Do(Work&& work) {
        std::optional<decltype(work(std::declval<EventOps&>()))> reply;
        run_([&](EventOps& ops) { reply.emplace(work(ops)); });
        return std::move(*reply);
    }

    const Run run_;
};

}  // namespace stint::store::memory
