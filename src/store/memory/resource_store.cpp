#include "store/memory/resource_store.h"

namespace stint::store::memory {

Result<ResourceSettings> ResourceDoor::Change(
    const ResourceChange& change, std::string_view actor
) {
    return Do([&](Ops& ops) {
        auto settings = ops.resources().Change(change, actor, ops.now());
        if (settings) ops.AdoptRunning();
        return settings;
    });
}

bool ResourceDoor::Remove(std::string_view name, std::string_view) {
    return Do([&](Ops& ops) {
        bool there = ops.resources().Remove(name);
        if (there) ops.AdoptRunning();  // a pattern may be for it
        return there;
    });
}

std::vector<ResourceRecord> ResourceDoor::List() {
    return Do([&](Ops& ops) {
        std::vector<ResourceRecord> records = ops.resources().Records(ops.now());
        for (ResourceRecord& record : records) {
            record.waiting = ops.WaitingFor(record.settings.name);
        }
        return records;
    });
}

std::optional<ResourceRecord> ResourceDoor::Find(std::string_view name) {
    return Do([&](Ops& ops) {
        std::optional<ResourceRecord> record = ops.resources().Record(name, ops.now());
        if (record) record->waiting = ops.WaitingFor(record->settings.name);
        return record;
    });
}

bool ResourceDoor::Reopen(std::string_view name, std::string_view) {
    return Do([&](Ops& ops) { return ops.resources().Reopen(name); });
}

bool ResourceDoor::Close(
    std::string_view name, Duration length, std::string_view reason, std::string_view actor
) {
    return Do([&](Ops& ops) {
        return ops.resources().Close(name, length, OperatorEvidence(reason, actor, ops.now()));
    });
}

Result<void> ResourceDoor::SetOrder(const QueueOrder& order, std::string_view) {
    if (auto valid = Validate(order); !valid) return valid;
    return Do([&](Ops& ops) -> Result<void> {
        ops.resources().orders[order.queue] = order;
        return {};
    });
}

bool ResourceDoor::RemoveOrder(std::string_view queue, std::string_view) {
    return Do([&](Ops& ops) { return ops.resources().orders.erase(std::string(queue)) > 0; });
}

std::vector<QueueOrder> ResourceDoor::Orders() {
    return Do([&](Ops& ops) {
        std::vector<QueueOrder> orders;
        for (const auto& [queue, order] : ops.resources().orders) orders.push_back(order);
        return orders;
    });
}

}  // namespace stint::store::memory
