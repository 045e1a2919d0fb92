// Engine::Items and Engine::deletions().
#include <stint/engine.h>

#include "base/result.h"
#include "engine/store_failure.h"
#include "node/convert.h"
#include "node/engine_impl.h"

namespace stint {

namespace {

// What the store throws is an answer.
template <class Question>
auto Ask(Question question) -> decltype(question()) {
    try {
        return question();
    } catch (const std::exception& error) {
        return engine::StoreFailure(error);
    }
}

DeletionInfo ToPublic(const model::Deletion& deletion) {
    DeletionInfo info;
    info.kind = deletion.kind;
    info.key = deletion.key;
    info.initiator = deletion.initiator;
    info.state = model::DeletionStateName(deletion.state);
    info.marked_at = deletion.marked_at;
    info.delete_at = deletion.delete_at;
    if (deletion.task.valid()) info.task = deletion.task;
    return info;
}

Result<DeletionInfo> ToPublic(const Result<model::Deletion>& deletion) {
    if (!deletion) return deletion.error();
    return ToPublic(*deletion);
}

}  // namespace

Result<std::vector<ItemResult>> Engine::Items(
    TaskId task, bool errors_only, std::string_view after, int limit
) {
    if (limit < 1 || limit > model::limits::kListPage) {
        return base::MakeError(
            Code::kInvalid,
            "limit is {}; it must be between 1 and {}",
            limit,
            model::limits::kListPage
        );
    }
    return Ask([&]() -> Result<std::vector<ItemResult>> {
        std::vector<ItemResult> items;
        store::ItemsRequest request{
            .task = task, .errors_only = errors_only, .after = std::string(after), .limit = limit};
        for (model::ItemRecord& record : impl_->store->Results().Items(request)) {
            items.push_back(std::move(record.item));
        }
        return items;
    });
}

Result<ItemCounts> Engine::CountItems(TaskId task) {
    return Ask([&]() -> Result<ItemCounts> { return impl_->store->Results().Summary(task).items; });
}

Deletions Engine::deletions() {
    return Deletions(*impl_->deletions, impl_->options.tenant);
}

Result<DeletionInfo> Deletions::Mark(
    std::string_view kind, std::string_view key, const DeletionRequest& request
) {
    services::DeletionWish wish;
    wish.tenant = tenant_;
    wish.kind = kind;
    wish.key = key;
    wish.initiator = request.initiator.empty() ? "engine" : request.initiator;
    wish.grace = request.grace;
    auto task = node::ToNewTask(request.task, tenant_);
    if (!task) return task.error();
    wish.task = std::move(*task);
    for (const TaskToCome& follow_up : request.follow_ups) {
        auto made = node::ToNewTask(follow_up, tenant_);
        if (!made) return made.error();
        wish.follow_ups.push_back(std::move(*made));
    }
    return Ask([&] { return ToPublic(desk_->Mark(wish)); });
}

Result<DeletionInfo> Deletions::Unmark(std::string_view kind, std::string_view key) {
    return Ask([&] { return ToPublic(desk_->Unmark(tenant_, kind, key)); });
}

Result<std::vector<DeletionInfo>> Deletions::List(
    std::string_view kind, std::string_view after, int limit
) {
    if (kind.empty() && !after.empty()) {
        return base::MakeError(
            Code::kInvalid, "after is \"{}\" and no kind is given; name the kind of that key", after
        );
    }
    store::DeletionsRequest request;
    request.tenant = tenant_;
    request.kind = kind;
    request.after_tenant = tenant_;
    request.after_kind = kind;
    request.after_key = after;
    request.limit = limit;
    return Ask([&]() -> Result<std::vector<DeletionInfo>> {
        auto page = desk_->List(request);
        if (!page) return page.error();
        std::vector<DeletionInfo> shown;
        for (const model::Deletion& deletion : *page) shown.push_back(ToPublic(deletion));
        return shown;
    });
}

Result<void> Deletions::SetPace(std::string_view kind, const DeletionPace& pace) {
    model::Pace wanted{
        .tenant = tenant_, .kind = std::string(kind), .cap = pace.cap, .every = pace.every};
    return Ask([&] { return desk_->SetPace(wanted); });
}

}  // namespace stint
