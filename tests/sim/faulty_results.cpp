#include "sim/faulty_results.h"

#include "sim/faulty_store.h"

namespace stint::sim {

template <class Work>
auto FaultyResults::Read(std::string_view name, Work&& work) {
    std::optional<std::invoke_result_t<Work>> reply;
    store_.AroundRead(name, [&] { reply.emplace(work()); });
    return std::move(*reply);
}

template <class Work>
auto FaultyResults::Change(std::string_view name, Work&& work) {
    std::optional<std::invoke_result_t<Work>> reply;
    store_.AroundWrite(name, Call::kSession, [&] { reply.emplace(work()); });
    return std::move(*reply);
}

std::optional<ItemCounts> FaultyResults::Write(const store::ResultWrite& write) {
    return Change("results.write", [&] {
        auto counts = inner_.Write(write);
        oracle_.AfterResults(write, counts.has_value());
        return counts;
    });
}
model::ResultSummary FaultyResults::Summary(TaskId task) {
    return Read("results.summary", [&] { return inner_.Summary(task); });
}
std::vector<model::ItemRecord> FaultyResults::Items(const store::ItemsRequest& request) {
    return Read("results.items", [&] { return inner_.Items(request); });
}
model::Deletion FaultyResults::MarkDeletion(const model::NewDeletion& deletion) {
    return Change("deletions.mark", [&] { return inner_.MarkDeletion(deletion); });
}
Result<model::Deletion> FaultyResults::Unmark(
    TenantId tenant, std::string_view kind, std::string_view key
) {
    return Change("deletions.unmark", [&] { return inner_.Unmark(tenant, kind, key); });
}
std::optional<model::Deletion> FaultyResults::FindDeletion(
    TenantId tenant, std::string_view kind, std::string_view key
) {
    return Read("deletions.find", [&] { return inner_.FindDeletion(tenant, kind, key); });
}
std::vector<model::Deletion> FaultyResults::Deletions(const store::DeletionsRequest& request) {
    return Read("deletions.list", [&] { return inner_.Deletions(request); });
}
store::TakeReply FaultyResults::TakeDeletions(int limit) {
    return Change("deletions.take", [&] { return inner_.TakeDeletions(limit); });
}
void FaultyResults::BeginDeletion(model::DeletionId deletion, TaskId task) {
    Change("deletions.begin", [&] { return inner_.BeginDeletion(deletion, task), true; });
}
void FaultyResults::SetPace(const model::Pace& pace) {
    Change("deletions.pace", [&] { return inner_.SetPace(pace), true; });
}

}  // namespace stint::sim
