#include "store/sqlite/direct_resources.h"

#include "model/placement.h"

namespace stint::store::lite {

template <class Work>
auto DirectResources::Do(Work&& work) {
    std::optional<std::invoke_result_t<Work, Ops&>> reply;
    writer_.Run([&](Ops& ops) { reply.emplace(work(ops)); });
    return std::move(*reply);
}

Result<ResourceSettings> DirectResources::Change(
    const ResourceChange& change, std::string_view actor
) {
    return Do([&](Ops& ops) {
        auto settings = ops.Book().Change(change, actor, ops.now());
        if (settings) ops.AdoptRunning();
        return settings;
    });
}

bool DirectResources::Remove(std::string_view name, std::string_view) {
    return Do([&](Ops& ops) {
        bool there = ops.Book().Remove(name);
        if (there) ops.AdoptRunning();  // a pattern may be for it
        return there;
    });
}

std::vector<ResourceRecord> DirectResources::List() {
    return Do([&](Ops& ops) {
        std::vector<ResourceRecord> records = ops.Book().Records(ops.now());
        for (ResourceRecord& record : records) {
            record.waiting = ops.WaitingFor(record.settings.name);
        }
        return records;
    });
}

std::optional<ResourceRecord> DirectResources::Find(std::string_view name) {
    return Do([&](Ops& ops) {
        std::optional<ResourceRecord> record = ops.Book().Record(name, ops.now());
        if (record) record->waiting = ops.WaitingFor(record->settings.name);
        return record;
    });
}

bool DirectResources::Reopen(std::string_view name, std::string_view) {
    return Do([&](Ops& ops) { return ops.Book().Reopen(name); });
}

bool DirectResources::Close(
    std::string_view name, Duration length, std::string_view reason, std::string_view actor
) {
    return Do([&](Ops& ops) {
        return ops.Book().Close(name, length, OperatorEvidence(reason, actor, ops.now()));
    });
}

Result<void> DirectResources::SetOrder(const QueueOrder& order, std::string_view) {
    if (auto valid = Validate(order); !valid) return valid;
    Do([&](Ops& ops) { return ops.SetOrder(order); });
    return {};
}

bool DirectResources::RemoveOrder(std::string_view queue, std::string_view) {
    return Do([&](Ops& ops) { return ops.RemoveOrder(queue); });
}

std::vector<QueueOrder> DirectResources::Orders() {
    return Do([&](Ops& ops) {
        std::vector<QueueOrder> orders;
        for (const auto& [queue, order] : ops.Book().orders) orders.push_back(order);
        return orders;
    });
}

}  // namespace stint::store::lite
