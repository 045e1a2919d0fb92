#include "store/sqlite/shared_results.h"

#include "store/sqlite/shared_call.h"

namespace stint::store::lite {

std::optional<ItemCounts> SharedResults::Write(const ResultWrite& write) {
    return store_.Do<std::optional<ItemCounts>>(
        Operation::kResultWrite, [&](DirectStore& s) { return s.Results().Write(write); }, write
    );
}

ResultSummary SharedResults::Summary(TaskId task) {
    return store_.Do<ResultSummary>(
        Operation::kResultSummary, [&](DirectStore& s) { return s.Results().Summary(task); }, task
    );
}

std::vector<ItemRecord> SharedResults::Items(const ItemsRequest& request) {
    return store_.Do<std::vector<ItemRecord>>(
        Operation::kItems, [&](DirectStore& s) { return s.Results().Items(request); }, request
    );
}

Deletion SharedResults::MarkDeletion(const NewDeletion& deletion) {
    return store_.Do<Deletion>(
        Operation::kMarkDeletion,
        [&](DirectStore& s) { return s.Results().MarkDeletion(deletion); },
        deletion
    );
}

Result<Deletion> SharedResults::Unmark(
    TenantId tenant, std::string_view kind, std::string_view key
) {
    return store_.Do<Result<Deletion>>(
        Operation::kUnmarkDeletion,
        [&](DirectStore& s) { return s.Results().Unmark(tenant, kind, key); },
        tenant,
        kind,
        key
    );
}

std::optional<Deletion> SharedResults::FindDeletion(
    TenantId tenant, std::string_view kind, std::string_view key
) {
    return store_.Do<std::optional<Deletion>>(
        Operation::kFindDeletion,
        [&](DirectStore& s) { return s.Results().FindDeletion(tenant, kind, key); },
        tenant,
        kind,
        key
    );
}

std::vector<Deletion> SharedResults::Deletions(const DeletionsRequest& request) {
    return store_.Do<std::vector<Deletion>>(
        Operation::kDeletions,
        [&](DirectStore& s) { return s.Results().Deletions(request); },
        request
    );
}

TakeReply SharedResults::TakeDeletions(int limit) {
    return store_.Do<TakeReply>(
        Operation::kTakeDeletions,
        [&](DirectStore& s) { return s.Results().TakeDeletions(limit); },
        limit
    );
}

void SharedResults::BeginDeletion(DeletionId deletion, TaskId task) {
    store_.Do<void>(
        Operation::kBeginDeletion,
        [&](DirectStore& s) { s.Results().BeginDeletion(deletion, task); },
        deletion,
        task
    );
}

void SharedResults::SetPace(const Pace& pace) {
    store_.Do<void>(
        Operation::kSetPace, [&](DirectStore& s) { s.Results().SetPace(pace); }, pace
    );
}

}  // namespace stint::store::lite
