// Items, checkpoints and deletions on PostgreSQL. Who writes results holds the row of the task's
// lease, so that its end waits, and everybody who ends it is waited for.
#pragma once

#include "store/postgres/db.h"
#include "store/results.h"

namespace stint::store::pg {

class PostgresStore;

class ResultTables final : public ResultStore {
public:
    explicit ResultTables(PostgresStore& store) : store_(store) {}

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

    // Of tasks whose records are gone. True: there may be more.
    bool Forget(int limit);

private:
    PostgresStore& store_;
};

}  // namespace stint::store::pg
