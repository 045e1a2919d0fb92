#include "store/sqlite/shared_events.h"

#include "store/sqlite/shared_call.h"

namespace stint::store::lite {

std::vector<PublishReply> SharedEvents::Publish(std::span<const NewEvent> events) {
    return store_.Do<std::vector<PublishReply>>(
        Operation::kPublish,
        [&](DirectStore& s) { return s.Events().Publish(events); },
        Copy(events)
    );
}

Result<WorkflowRecord> SharedEvents::PutWorkflow(
    const WorkflowDefinition& definition, std::string_view actor
) {
    return store_.Do<Result<WorkflowRecord>>(
        Operation::kPutWorkflow,
        [&](DirectStore& s) { return s.Events().PutWorkflow(definition, actor); },
        definition,
        actor
    );
}

bool SharedEvents::RemoveWorkflow(TenantId tenant, std::string_view name) {
    return store_.Do<bool>(
        Operation::kRemoveWorkflow,
        [&](DirectStore& s) { return s.Events().RemoveWorkflow(tenant, name); },
        tenant,
        name
    );
}

std::vector<WorkflowRecord> SharedEvents::Workflows() {
    return store_.Do<std::vector<WorkflowRecord>>(Operation::kWorkflows, [&](DirectStore& s) {
        return s.Events().Workflows();
    });
}

NextEventsReply SharedEvents::NextEvents(const NextEventsRequest& request) {
    return store_.Do<NextEventsReply>(
        Operation::kNextEvents,
        [&](DirectStore& s) { return s.Events().NextEvents(request); },
        request
    );
}

std::vector<FireReply> SharedEvents::Fire(std::span<const EventOutcome> outcomes) {
    return store_.Do<std::vector<FireReply>>(
        Operation::kFire, [&](DirectStore& s) { return s.Events().Fire(outcomes); }, Copy(outcomes)
    );
}

std::optional<EventRecord> SharedEvents::GetEvent(EventNo event) {
    return store_.Do<std::optional<EventRecord>>(
        Operation::kGetEvent, [&](DirectStore& s) { return s.Events().GetEvent(event); }, event
    );
}

std::vector<EventRecord> SharedEvents::ListEvents(const EventFilter& filter) {
    return store_.Do<std::vector<EventRecord>>(
        Operation::kListEvents,
        [&](DirectStore& s) { return s.Events().ListEvents(filter); },
        filter
    );
}

std::map<EventCountKey, std::int64_t> SharedEvents::CountEvents() {
    return store_.Do<std::map<EventCountKey, std::int64_t>>(
        Operation::kCountEvents, [&](DirectStore& s) { return s.Events().CountEvents(); }
    );
}

std::vector<FiringRecord> SharedEvents::Firings(const FiringFilter& filter) {
    return store_.Do<std::vector<FiringRecord>>(
        Operation::kFirings, [&](DirectStore& s) { return s.Events().Firings(filter); }, filter
    );
}

std::vector<JoinInstance> SharedEvents::Joins(const JoinFilter& filter) {
    return store_.Do<std::vector<JoinInstance>>(
        Operation::kJoins, [&](DirectStore& s) { return s.Events().Joins(filter); }, filter
    );
}

TidyReply SharedEvents::Tidy(const TidyRequest& request) {
    return store_.Do<TidyReply>(
        Operation::kTidyEvents, [&](DirectStore& s) { return s.Events().Tidy(request); }, request
    );
}

}  // namespace stint::store::lite
