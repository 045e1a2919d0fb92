// The memory store's door to items, checkpoints and deletions.
#pragma once

#include <functional>

#include "store/memory/ops.h"
#include "store/results.h"

namespace stint::store::memory {

class ResultDoor final : public ResultStore {
public:
    // Calls its argument as one operation of the store.
    using Run = std::function<void(const std::function<void(Ops&, ResultData&)>&)>;
    explicit ResultDoor(Run run) : run_(std::move(run)) {}

    std::optional<ItemCounts> Write(const ResultWrite& write) override;
    ResultSummary Summary(TaskId task) override;
    std::vector<ItemRecord> Items(const ItemsRequest& request) override;
    Deletion MarkDeletion(const NewDeletion& deletion) override;
    Result<Deletion> Unmark(TenantId tenant, std::string_view kind, std::string_view key) override;
    std::optional<Deletion> FindDeletion(
        TenantId tenant, std::string_view kind, std::string_view key
    ) override;
    std::vector<Deletion> Deletions(const DeletionsRequest& request) override;
    TakeReply TakeDeletions(int limit) override;
    void BeginDeletion(DeletionId deletion, TaskId task) override;
    void SetPace(const Pace& pace) override;

private:
    template <class Work>
    auto Do(Work&& work) {
        std::optional<decltype(work(std::declval<Ops&>(), std::declval<ResultData&>()))> reply;
        run_([&](Ops& ops, ResultData& data) { reply.emplace(work(ops, data)); });
        return std::move(*reply);
    }

    const Run run_;
};

}  // namespace stint::store::memory
