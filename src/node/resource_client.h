// What the doors may ask about resources. Throws StoreError, see client.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/claim_plan.h"
#include "store/resources.h"
#include "wake/wake.h"

namespace stint::node {

// The words of the store that the doors share.
using store::Breaker;
using store::BreakerEvidence;
using store::BreakerState;
using store::Rate;
using store::ResourceChange;
using store::ResourceRecord;

class ResourceClient {
public:
    ResourceClient(store::ResourceStore& resources, wake::Wake& wake)
        : resources_(resources), wake_(wake) {}

    // Those who wait for it look at once, where it is wider than before.
    Result<ResourceRecord> Change(const ResourceChange& change, std::string_view actor);
    bool Remove(std::string_view name, std::string_view actor);
    std::vector<ResourceRecord> List();
    std::optional<ResourceRecord> Find(std::string_view name);
    bool Reopen(std::string_view name, std::string_view actor);
    bool Close(
        std::string_view name, Duration length, std::string_view reason, std::string_view actor
    );

    // How the tasks of queues take turns, by queue; "*" is of those that have no order.
    std::map<std::string, model::QueueOrder> Orders();
    Result<void> SetOrder(const model::QueueOrder& order, std::string_view actor);
    bool RemoveOrder(std::string_view queue, std::string_view actor);

private:
    void WakeAll();

    store::ResourceStore& resources_;
    wake::Wake& wake_;
};

// "open", "closed", "trying"
std::string_view BreakerStateName(BreakerState state);

base::OrderedJson ToJson(const ResourceRecord& resource);
base::OrderedJson ToJson(const model::QueueOrder& order);  // "of": the queue that has it, or *

}  // namespace stint::node
