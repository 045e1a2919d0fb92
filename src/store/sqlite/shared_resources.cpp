#include "store/sqlite/shared_resources.h"

#include "store/sqlite/shared_call.h"
#include "store/sqlite/wire_resources.h"

namespace stint::store::lite {

Result<ResourceSettings> SharedResources::Change(
    const ResourceChange& change, std::string_view actor
) {
    return store_.Do<Result<ResourceSettings>>(
        Operation::kResourceChange,
        [&](DirectStore& s) { return s.Resources().Change(change, actor); },
        change,
        actor
    );
}

bool SharedResources::Remove(std::string_view name, std::string_view actor) {
    return store_.Do<bool>(
        Operation::kResourceRemove,
        [&](DirectStore& s) { return s.Resources().Remove(name, actor); },
        name,
        actor
    );
}

std::vector<ResourceRecord> SharedResources::List() {
    return store_.Do<std::vector<ResourceRecord>>(Operation::kResourceList, [&](DirectStore& s) {
        return s.Resources().List();
    });
}

std::optional<ResourceRecord> SharedResources::Find(std::string_view name) {
    return store_.Do<std::optional<ResourceRecord>>(
        Operation::kResourceFind, [&](DirectStore& s) { return s.Resources().Find(name); }, name
    );
}

bool SharedResources::Reopen(std::string_view name, std::string_view actor) {
    return store_.Do<bool>(
        Operation::kResourceReopen,
        [&](DirectStore& s) { return s.Resources().Reopen(name, actor); },
        name,
        actor
    );
}

bool SharedResources::Close(
    std::string_view name, Duration length, std::string_view reason, std::string_view actor
) {
    return store_.Do<bool>(
        Operation::kResourceClose,
        [&](DirectStore& s) { return s.Resources().Close(name, length, reason, actor); },
        name,
        length,
        reason,
        actor
    );
}

Result<void> SharedResources::SetOrder(const QueueOrder& order, std::string_view actor) {
    return store_.Do<Result<void>>(
        Operation::kOrderSet,
        [&](DirectStore& s) { return s.Resources().SetOrder(order, actor); },
        order,
        actor
    );
}

bool SharedResources::RemoveOrder(std::string_view queue, std::string_view actor) {
    return store_.Do<bool>(
        Operation::kOrderRemove,
        [&](DirectStore& s) { return s.Resources().RemoveOrder(queue, actor); },
        queue,
        actor
    );
}

std::vector<QueueOrder> SharedResources::Orders() {
    return store_.Do<std::vector<QueueOrder>>(Operation::kOrders, [&](DirectStore& s) {
        return s.Resources().Orders();
    });
}

}  // namespace stint::store::lite
