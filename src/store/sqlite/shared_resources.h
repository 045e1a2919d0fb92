// Resources as every process sees them: of the owner, or through its socket.
#pragma once

#include "store/resources.h"

namespace stint::store::lite {

class SharedStore;

class SharedResources final : public ResourceStore {
public:
    explicit SharedResources(SharedStore& store) : store_(store) {}

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
    SharedStore& store_;
};

}  // namespace stint::store::lite
