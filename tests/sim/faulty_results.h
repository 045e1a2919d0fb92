// Items, checkpoints and deletions of the shared store as one simulated process sees them.
#pragma once

#include "sim/oracle.h"
#include "store/results.h"

namespace stint::sim {

class FaultyStore;

class FaultyResults final : public store::ResultStore {
public:
    FaultyResults(FaultyStore& store, Oracle& oracle, store::ResultStore& inner)
        : store_(store), oracle_(oracle), inner_(inner) {}

    std::optional<ItemCounts> Write(const store::ResultWrite& write) override;
    model::ResultSummary Summary(TaskId task) override;
    std::vector<model::ItemRecord> Items(const store::ItemsRequest& request) override;
    model::Deletion MarkDeletion(const model::NewDeletion& deletion) override;
    Result<model::Deletion> Unmark(TenantId tenant, std::string_view kind, std::string_view key)
        override;
    std::optional<model::Deletion> FindDeletion(
        TenantId tenant, std::string_view kind, std::string_view key
    ) override;
    std::vector<model::Deletion> Deletions(const store::DeletionsRequest& request) override;
    store::TakeReply TakeDeletions(int limit) override;
    void BeginDeletion(model::DeletionId deletion, TaskId task) override;
    void SetPace(const model::Pace& pace) override;

private:
    template <class Work>
    auto Read(std::string_view name, Work&& work);
    template <class Work>
    auto Change(std::string_view name, Work&& work);

    FaultyStore& store_;
    Oracle& oracle_;
    store::ResultStore& inner_;
};

}  // namespace stint::sim
