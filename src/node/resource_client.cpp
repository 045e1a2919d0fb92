#include "node/resource_client.h"

#include "base/text.h"
#include "model/time_text.h"
#include "node/ask.h"

namespace stint::node {

using base::OrderedJson;

namespace {

OrderedJson TimeOrNull(const std::optional<Time>& time) {
    return time ? OrderedJson(base::Iso8601(*time)) : OrderedJson();
}

}  // namespace

void ResourceClient::WakeAll() {
    wake::Hint hint{.kind = wake::Hint::Kind::kTaskAvailable, .queue = {}, .task = {}};
    wake_.Signal({&hint, 1});
}

Result<ResourceRecord> ResourceClient::Change(
    const ResourceChange& change, std::string_view actor
) {
    return Ask([&]() -> Result<ResourceRecord> {
        auto settings = resources_.Change(change, actor);
        if (!settings) return settings.error();
        WakeAll();
        if (auto record = resources_.Find(settings->name)) return *record;
        ResourceRecord removed;  // by somebody else, since
        removed.settings = std::move(*settings);
        return removed;
    });
}

bool ResourceClient::Remove(std::string_view name, std::string_view actor) {
    bool there = Ask([&] { return resources_.Remove(name, actor); });
    if (there) WakeAll();
    return there;
}

std::vector<ResourceRecord> ResourceClient::List() {
    return Ask([&] { return resources_.List(); });
}

std::optional<ResourceRecord> ResourceClient::Find(std::string_view name) {
    return Ask([&] { return resources_.Find(name); });
}

bool ResourceClient::Reopen(std::string_view name, std::string_view actor) {
    bool there = Ask([&] { return resources_.Reopen(name, actor); });
    if (there) WakeAll();
    return there;
}

bool ResourceClient::Close(
    std::string_view name, Duration length, std::string_view reason, std::string_view actor
) {
    return Ask([&] { return resources_.Close(name, length, reason, actor); });
}

std::map<std::string, model::QueueOrder> ResourceClient::Orders() {
    return Ask([&] {
        std::map<std::string, model::QueueOrder> orders;
        for (model::QueueOrder& order : resources_.Orders()) {
            std::string queue = order.queue;
            orders[queue] = std::move(order);
        }
        return orders;
    });
}

Result<void> ResourceClient::SetOrder(const model::QueueOrder& order, std::string_view actor) {
    return Ask([&] { return resources_.SetOrder(order, actor); });
}

bool ResourceClient::RemoveOrder(std::string_view queue, std::string_view actor) {
    return Ask([&] { return resources_.RemoveOrder(queue, actor); });
}

std::string_view BreakerStateName(BreakerState state) {
    switch (state) {
        case BreakerState::kClosed:
            return "open";  // a breaker that is closed lets work through
        case BreakerState::kOpen:
            return "closed";
        case BreakerState::kHalfOpen:
            return "trying";
    }
    return "open";
}

OrderedJson ToJson(const ResourceRecord& resource) {
    OrderedJson json;
    json["name"] = resource.settings.name;
    json["pattern"] = resource.pattern;
    json["capacity"] =
        resource.settings.capacity ? OrderedJson(*resource.settings.capacity) : OrderedJson();
    json["held"] = resource.held;
    json["waiting"] = resource.waiting;
    json["state"] = BreakerStateName(resource.breaker);
    json["closed_until"] = TimeOrNull(resource.closed_until);
    json["rate"] = OrderedJson();
    if (const auto& rate = resource.settings.rate) {
        json["rate"] = {
            {"count", rate->count},
            {"period_ms", rate->period.count()},
            {"burst", rate->burst > 0 ? rate->burst : rate->count}};
        if (resource.tokens) json["rate"]["left"] = *resource.tokens;
    }
    const Breaker& breaker = resource.settings.breaker;
    json["breaker"] = {
        {"failures", breaker.failures},
        {"close_for_ms", breaker.open_for.count()},
        {"close_at_most_ms", breaker.open_at_most.count()}};
    json["holders"] = OrderedJson::array();
    for (TaskId task : resource.holders) json["holders"].push_back(task.ToString());
    json["evidence"] = OrderedJson::array();
    for (const store::BreakerEvidence& one : resource.evidence) {
        json["evidence"].push_back(
            {{"at", base::Iso8601(one.at)},
             {"task", one.task.ToString()},
             {"type", one.type},
             {"node", one.node.ToString()},
             {"message", one.message}}
        );
    }
    json["changed_by"] = resource.settings.changed_by;
    json["changed_at"] = TimeOrNull(resource.settings.changed_at);
    return json;
}

OrderedJson ToJson(const model::QueueOrder& order) {
    OrderedJson weights = OrderedJson::object();
    for (const auto& [tenant, weight] : order.weights) weights[tenant.ToString()] = weight;
    bool ages = order.aging > Duration::zero();
    return {
        {"of", order.queue},
        {"fair", order.fair},
        {"weights", weights},
        {"aging", ages ? OrderedJson(model::FormatDuration(order.aging)) : OrderedJson()}};
}

}  // namespace stint::node
