// Resources as the file's owner sees them. Few ask: each question is the writer's.
#pragma once

#include "store/resources.h"
#include "store/sqlite/writer.h"

namespace stint::store::lite {

class DirectResources final : public ResourceStore {
public:
    explicit DirectResources(Writer& writer) : writer_(writer) {}

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
    auto Do(Work&& work);

    Writer& writer_;
};

}  // namespace stint::store::lite
