#include "store/sqlite/serve.h"

namespace stint::store::lite {

namespace {

using Text = std::string;

void ServeOne(Operation operation, EventStore& s, Decoder& in, Encoder& out) {
    switch (operation) {
        case Operation::kPublish:
            return Reply<std::vector<NewEvent>>(in, out, [&](auto& x) { return s.Publish(x); });
        case Operation::kPutWorkflow:
            return Reply<WorkflowDefinition, Text>(in, out, [&](auto& x, auto& actor) {
                return s.PutWorkflow(x, actor);
            });
        case Operation::kRemoveWorkflow:
            return Reply<TenantId, Text>(in, out, [&](auto& tenant, auto& name) {
                return s.RemoveWorkflow(tenant, name);
            });
        case Operation::kWorkflows:
            return Reply<>(in, out, [&] { return s.Workflows(); });
        case Operation::kNextEvents:
            return Reply<NextEventsRequest>(in, out, [&](auto& x) { return s.NextEvents(x); });
        case Operation::kFire:
            return Reply<std::vector<EventOutcome>>(in, out, [&](auto& x) { return s.Fire(x); });
        case Operation::kGetEvent:
            return Reply<EventNo>(in, out, [&](auto& x) { return s.GetEvent(x); });
        case Operation::kListEvents:
            return Reply<EventFilter>(in, out, [&](auto& x) { return s.ListEvents(x); });
        case Operation::kCountEvents:
            return Reply<>(in, out, [&] { return s.CountEvents(); });
        case Operation::kFirings:
            return Reply<FiringFilter>(in, out, [&](auto& x) { return s.Firings(x); });
        case Operation::kJoins:
            return Reply<JoinFilter>(in, out, [&](auto& x) { return s.Joins(x); });
        default:
            return Reply<TidyRequest>(in, out, [&](auto& x) { return s.Tidy(x); });
    }
}

}  // namespace

bool ServeEvents(Operation operation, EventStore& events, Decoder& in, Encoder& out) {
    if (operation < Operation::kPublish || operation > Operation::kTidyEvents) return false;
    ServeOne(operation, events, in, out);
    return true;
}

}  // namespace stint::store::lite
