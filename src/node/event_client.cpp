#include "node/event_client.h"

#include <algorithm>

#include "base/text.h"
#include "node/ask.h"

namespace stint::node {

using base::OrderedJson;

std::vector<PublishReply> EventClient::Publish(std::span<const model::NewEvent> events) {
    auto replies = Ask([&] { return events_.Publish(events); });
    wake::Hint hint{.kind = wake::Hint::Kind::kEventPublished, .queue = {}, .task = {}};
    bool any = std::ranges::any_of(replies, [](const PublishReply& reply) {
        return reply.kind == PublishReply::Kind::kAccepted && !reply.refused;
    });
    if (any) wake_.Signal({&hint, 1});
    return replies;
}

Result<model::WorkflowRecord> EventClient::PutWorkflow(
    const model::WorkflowDefinition& definition, std::string_view actor
) {
    return Ask([&] { return events_.PutWorkflow(definition, actor); });
}

bool EventClient::RemoveWorkflow(TenantId tenant, std::string_view name) {
    return Ask([&] { return events_.RemoveWorkflow(tenant, name); });
}

std::vector<model::WorkflowRecord> EventClient::Workflows() {
    return Ask([&] { return events_.Workflows(); });
}

std::optional<model::EventRecord> EventClient::GetEvent(EventNo event) {
    return Ask([&] { return events_.GetEvent(event); });
}

std::vector<model::EventRecord> EventClient::ListEvents(const EventFilter& filter) {
    return Ask([&] { return events_.ListEvents(filter); });
}

std::map<EventCountKey, std::int64_t> EventClient::CountEvents() {
    return Ask([&] { return events_.CountEvents(); });
}

std::vector<FiringRecord> EventClient::Firings(const FiringFilter& filter) {
    return Ask([&] { return events_.Firings(filter); });
}

std::vector<model::JoinInstance> EventClient::Joins(const JoinFilter& filter) {
    return Ask([&] { return events_.Joins(filter); });
}

std::vector<EventObstacle> EventClient::Explain(const EventQuestion& question) {
    return Ask([&] { return services::ExplainEvents(store_, question); });
}

// ---- as JSON -----------------------------------------------------------------------------------

OrderedJson ToJson(const model::EventRecord& event) {
    OrderedJson json;
    json["event"] = event.no.ToString();
    json["tenant"] = event.tenant.ToString();
    json["source"] = event.source;
    json["id"] = event.id;
    json["type"] = event.type;
    json["state"] = EventStateName(event.state);
    json["reason"] = event.reason;
    json["depth"] = event.depth;
    if (event.cause.valid()) json["cause"] = event.cause.ToString();
    json["tries"] = event.tries;
    json["time"] = base::Iso8601(event.time);
    json["published_at"] = base::Iso8601(event.published_at);
    json["processed_at"] = nullptr;
    if (event.processed_at) json["processed_at"] = base::Iso8601(*event.processed_at);
    json["data"] = base::ReadOrderedJson(event.data);
    return json;
}

OrderedJson ToJson(const FiringRecord& firing) {
    OrderedJson json;
    json["event"] = firing.event.ToString();
    json["workflow"] = firing.workflow;
    json["trigger"] = firing.workflow.empty() ? "" : firing.trigger;
    json["version"] = firing.version;
    json["what"] = FiringKindName(firing.kind);
    json["task"] = nullptr;
    if (firing.task.valid()) json["task"] = firing.task.ToString();
    json["message"] = firing.message;
    json["at"] = base::Iso8601(firing.at);
    return json;
}

OrderedJson ToJson(const model::WorkflowRecord& workflow) {
    OrderedJson json;
    json["name"] = workflow.definition.name;
    json["tenant"] = workflow.definition.tenant.ToString();
    json["version"] = workflow.version;
    json["updated_at"] = base::Iso8601(workflow.updated_at);
    json["updated_by"] = workflow.updated_by;
    json["definition"] = base::ReadOrderedJson(WorkflowToJson(workflow.definition));
    if (!workflow.unreadable.empty()) json["unreadable"] = workflow.unreadable;
    return json;
}

OrderedJson ToJson(const model::JoinInstance& join) {
    OrderedJson json;
    json["no"] = std::to_string(join.no);
    json["workflow"] = join.key.workflow;
    json["join"] = join.key.join;
    json["key"] = join.key.key;
    json["generation"] = join.generation;
    json["state"] = JoinStateName(join.state);
    json["complete"] = OrderedJson::array();
    for (const model::JoinPart& part : join.parts) {
        OrderedJson member;
        member["type"] = part.type;
        member["task"] = part.task.ToString();
        json["complete"].push_back(std::move(member));
    }
    json["task"] = nullptr;
    if (join.task.valid()) json["task"] = join.task.ToString();
    json["message"] = join.message;
    json["created_at"] = base::Iso8601(join.created_at);
    json["expires_at"] = base::Iso8601(join.expires_at);
    return json;
}

OrderedJson ToJson(const EventObstacle& obstacle) {
    OrderedJson json;
    json["event"] = nullptr;
    if (obstacle.event.valid()) json["event"] = obstacle.event.ToString();
    json["workflow"] = obstacle.workflow;
    json["trigger"] = obstacle.trigger;
    json["key"] = obstacle.key;
    json["type"] = obstacle.type;
    json["why"] = obstacle.why;
    return json;
}

}  // namespace stint::node
