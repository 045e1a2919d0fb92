// Items, checkpoints and deletions as the file's owner sees them.
#pragma once

#include "store/results.h"
#include "store/sqlite/reader_pool.h"
#include "store/sqlite/writer.h"

namespace stint::store::lite {

class DirectResults final : public ResultStore {
public:
    DirectResults(Writer& writer, ReaderPool& readers, base::Clock& clock)
        : writer_(writer), readers_(readers), clock_(clock) {}

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
    auto Change(Work&& work);
    template <class Question>
    auto Ask(Question&& question);

    Writer& writer_;
    ReaderPool& readers_;
    base::Clock& clock_;
};

}  // namespace stint::store::lite
