#include "node/result_client.h"

#include "base/text.h"
#include "node/ask.h"

namespace stint::node {

using base::OrderedJson;

ResultClient::ResultClient(store::Store& store, wake::Wake& wake)
    : store_(store), desk_(store, wake, base::SystemClock(), base::Logger({}, "deletion")) {
}

std::vector<model::ItemRecord> ResultClient::Items(const ItemsRequest& request) {
    return Ask([&] { return store_.Results().Items(request); });
}

model::ResultSummary ResultClient::Summary(TaskId task) {
    return Ask([&] { return store_.Results().Summary(task); });
}

Result<model::Deletion> ResultClient::Mark(const DeletionWish& wish) {
    return Ask([&] { return desk_.Mark(wish); });
}

Result<model::Deletion> ResultClient::Unmark(
    TenantId tenant, std::string_view kind, std::string_view key
) {
    return Ask([&] { return desk_.Unmark(tenant, kind, key); });
}

Result<std::vector<model::Deletion>> ResultClient::Deletions(const DeletionsRequest& request) {
    return Ask([&] { return desk_.List(request); });
}

Result<void> ResultClient::SetPace(const model::Pace& pace) {
    return Ask([&] { return desk_.SetPace(pace); });
}

OrderedJson ToJson(const model::ItemRecord& record) {
    const ItemResult& item = record.item;
    return {
        {"key", item.key},
        {"action", item.action},
        {"before", base::ReadOrderedJson(item.before.text)},
        {"after", base::ReadOrderedJson(item.after.text)},
        {"error", item.error.empty() ? OrderedJson(nullptr) : OrderedJson(item.error)},
        {"claim_no", record.claim_no},
        {"written_at", base::Iso8601(record.written_at)},
    };
}

OrderedJson ToJson(const model::Deletion& deletion) {
    return {
        {"kind", deletion.kind},
        {"key", deletion.key},
        {"state", model::DeletionStateName(deletion.state)},
        {"initiator", deletion.initiator},
        {"marked_at", base::Iso8601(deletion.marked_at)},
        {"delete_at", base::Iso8601(deletion.delete_at)},
        {"task",
         deletion.task.valid() ? OrderedJson(deletion.task.ToString()) : OrderedJson(nullptr)},
        {"steps", base::ReadOrderedJson(deletion.steps)},
    };
}

}  // namespace stint::node
