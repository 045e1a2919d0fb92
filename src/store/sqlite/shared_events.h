// Events as every process sees them.
#pragma once

#include "store/events.h"

namespace stint::store::lite {

class SharedStore;

class SharedEvents final : public EventStore {
public:
    explicit SharedEvents(SharedStore& store) : store_(store) {}

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
    SharedStore& store_;
};

}  // namespace stint::store::lite
