#include "store/memory/event_store.h"

#include "store/event_words.h"

namespace stint::store::memory {

std::vector<PublishReply> EventDoor::Publish(std::span<const NewEvent> events) {
    if (events.size() > limits::kPublishBatch) return TooManyEvents(events.size());
    return Do([&](EventOps& ops) {
        std::vector<PublishReply> replies;
        for (const NewEvent& event : events) replies.push_back(ops.Publish(event));
        return replies;
    });
}

Result<WorkflowRecord> EventDoor::PutWorkflow(
    const WorkflowDefinition& definition, std::string_view actor
) {
    return Do([&](EventOps& ops) { return ops.PutWorkflow(definition, actor); });
}

bool EventDoor::RemoveWorkflow(TenantId tenant, std::string_view name) {
    return Do([&](EventOps& ops) { return ops.RemoveWorkflow(tenant, name); });
}

std::vector<WorkflowRecord> EventDoor::Workflows() {
    return Do([](EventOps& ops) { return ops.Workflows(); });
}

NextEventsReply EventDoor::NextEvents(const NextEventsRequest& request) {
    return Do([&](EventOps& ops) { return ops.NextEvents(request); });
}

std::vector<FireReply> EventDoor::Fire(std::span<const EventOutcome> outcomes) {
    return Do([&](EventOps& ops) { return ops.Fire(outcomes); });
}

std::optional<EventRecord> EventDoor::GetEvent(EventNo event) {
    return Do([&](EventOps& ops) { return ops.GetEvent(event); });
}

std::vector<EventRecord> EventDoor::ListEvents(const EventFilter& filter) {
    return Do([&](EventOps& ops) { return ops.ListEvents(filter); });
}

std::map<EventCountKey, std::int64_t> EventDoor::CountEvents() {
    return Do([](EventOps& ops) { return ops.CountEvents(); });
}

std::vector<FiringRecord> EventDoor::Firings(const FiringFilter& filter) {
    return Do([&](EventOps& ops) { return ops.Firings(filter); });
}

std::vector<JoinInstance> EventDoor::Joins(const JoinFilter& filter) {
    return Do([&](EventOps& ops) { return ops.Joins(filter); });
}

TidyReply EventDoor::Tidy(const TidyRequest& request) {
    return Do([&](EventOps& ops) { return ops.Tidy(request); });
}

}  // namespace stint::store::memory
