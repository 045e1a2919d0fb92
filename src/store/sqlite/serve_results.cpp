#include "store/sqlite/serve.h"

namespace stint::store::lite {

namespace {

using Text = std::string;

void ServeOne(Operation operation, ResultStore& s, Decoder& in, Encoder& out) {
    switch (operation) {
        case Operation::kResultWrite:
            return Reply<ResultWrite>(in, out, [&](auto& x) { return s.Write(x); });
        case Operation::kResultSummary:
            return Reply<TaskId>(in, out, [&](auto& task) { return s.Summary(task); });
        case Operation::kItems:
            return Reply<ItemsRequest>(in, out, [&](auto& x) { return s.Items(x); });
        case Operation::kMarkDeletion:
            return Reply<NewDeletion>(in, out, [&](auto& x) { return s.MarkDeletion(x); });
        case Operation::kUnmarkDeletion:
            return Reply<TenantId, Text, Text>(in, out, [&](auto& tenant, auto& kind, auto& key) {
                return s.Unmark(tenant, kind, key);
            });
        case Operation::kFindDeletion:
            return Reply<TenantId, Text, Text>(in, out, [&](auto& tenant, auto& kind, auto& key) {
                return s.FindDeletion(tenant, kind, key);
            });
        case Operation::kDeletions:
            return Reply<DeletionsRequest>(in, out, [&](auto& x) { return s.Deletions(x); });
        case Operation::kTakeDeletions:
            return Reply<int>(in, out, [&](auto& limit) { return s.TakeDeletions(limit); });
        case Operation::kBeginDeletion:
            return Reply<DeletionId, TaskId>(in, out, [&](auto& deletion, auto& task) {
                s.BeginDeletion(deletion, task);
            });
        default:
            return Reply<Pace>(in, out, [&](auto& x) { s.SetPace(x); });
    }
}

}  // namespace

bool ServeResults(Operation operation, ResultStore& results, Decoder& in, Encoder& out) {
    if (operation < Operation::kResultWrite || operation > Operation::kSetPace) return false;
    ServeOne(operation, results, in, out);
    return true;
}

}  // namespace stint::store::lite
