// Items, checkpoints and deletions as every process sees them.
#pragma once

#include "store/results.h"

namespace stint::store::lite {

class SharedStore;

class SharedResults final : public ResultStore {
public:
    explicit SharedResults(SharedStore& store) : store_(store) {}

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
    SharedStore& store_;
};

}  // namespace stint::store::lite
