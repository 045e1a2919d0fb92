// What the doors may ask about events and workflows. Throws StoreError, see client.h.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "services/event_explain.h"
#include "store/events.h"
#include "wake/wake.h"

namespace stint::node {

// The words of the store that the doors share.
using services::EventQuestion;
using store::EventCountKey;
using store::EventFilter;
using store::FiringFilter;
using store::FiringRecord;
using store::JoinFilter;
using store::PublishReply;

class EventClient {
public:
    EventClient(store::Store& store, wake::Wake& wake)
        : store_(store), events_(store.Events()), wake_(wake) {}

    std::vector<PublishReply> Publish(std::span<const model::NewEvent> events);
    Result<model::WorkflowRecord> PutWorkflow(
        const model::WorkflowDefinition& definition, std::string_view actor
    );
    bool RemoveWorkflow(TenantId tenant, std::string_view name);
    std::vector<model::WorkflowRecord> Workflows();
    std::optional<model::EventRecord> GetEvent(EventNo event);
    std::vector<model::EventRecord> ListEvents(const EventFilter& filter);
    std::map<EventCountKey, std::int64_t> CountEvents();
    std::vector<FiringRecord> Firings(const FiringFilter& filter);
    std::vector<model::JoinInstance> Joins(const JoinFilter& filter);
    std::vector<EventObstacle> Explain(const EventQuestion& question);

private:
    store::Store& store_;
    store::EventStore& events_;
    wake::Wake& wake_;
};

base::OrderedJson ToJson(const model::EventRecord& event);
base::OrderedJson ToJson(const FiringRecord& firing);
base::OrderedJson ToJson(const model::WorkflowRecord& workflow);
base::OrderedJson ToJson(const model::JoinInstance& join);
base::OrderedJson ToJson(const EventObstacle& obstacle);

}  // namespace stint::node
