// The memory store's door to its resources.
#pragma once

#include <functional>

#include "store/memory/ops.h"
#include "store/resources.h"

namespace stint::store::memory {

class ResourceDoor final : public ResourceStore {
public:
    // Calls its argument as one operation of the store.
    using Run = std::function<void(const std::function<void(Ops&)>&)>;
    explicit ResourceDoor(Run run) : run_(std::move(run)) {}

    Result<ResourceSettings> Change(const ResourceChange& change, std::string_view actor) override;
    bool Remove(std::string_view name, std::string_view actor) override;
    std::vector<ResourceRecord> List() override;
    std::optional<ResourceRecord> Find(std::string_view name) override;
    bool Reopen(std::string_view name, std::string_view actor) override;
    bool Close(
        std::string_view name, Duration length, std::string_view reason, std::string_view actor
    ) override;
    Result<void> SetOrder(const QueueOrder& order, std::string_view actor) override;
    bool RemoveOrder(std::string_view queue, std::string_view actor) override;
    std::vector<QueueOrder> Orders() override;

private:
    template <class Work>
    auto Do(Work&& work) {
        std::optional<decltype(work(std::declval<Ops&>()))> reply;
        run_([&](Ops& ops) { reply.emplace(work(ops)); });
        return std::move(*reply);
    }

    const Run run_;
};

}  // namespace stint::store::memory
