// What tasks leave behind besides their outputs: items, checkpoints, and deletions in time.
//
// Items and checkpoints are written only by who holds the task, with the token of its lease (I3),
// and live as long as the task's record. Of two items of one key the later stays.
//
// A deletion is a mark until a node takes it, when its time has come and its kind's pace allows;
// the node submits its task under the key DeletionKey() and says so. One that was taken by a node
// that died is taken again: the key makes it the same task.
//
// Errors, time and threads as in store.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/results.h"
#include "store/store.h"

namespace stint::store {

struct ResultWrite {
    Held by;
    int claim_no = 0;               // of the lease
    std::vector<ItemResult> items;  // valid, at most limits::kItemBatch
    std::optional<std::string> checkpoint;
};

struct ItemsRequest {
    TaskId task;
    bool errors_only = false;
    std::string after;  // keyset on the key, by bytes
    int limit = limits::kListPageDefault;
};

struct DeletionsRequest {
    std::optional<TenantId> tenant;
    std::string kind;  // empty = all
    // Keyset: only those behind this one, by (tenant, kind, key).
    TenantId after_tenant;
    std::string after_kind, after_key;
    int limit = limits::kListPageDefault;
};

struct TakeReply {
    std::vector<Deletion> deletions;
};

class ResultStore {
public:
    virtual ~ResultStore() = default;

    // All of it, or, when the task is not held with that token, nothing: nullopt. The counts after
    // it.
    virtual std::optional<ItemCounts> Write(const ResultWrite& write) = 0;
    virtual ResultSummary Summary(TaskId task) = 0;
    virtual std::vector<ItemRecord> Items(const ItemsRequest& request) = 0;

    // One that is there stays as it is and is returned, but for one that has begun and that
    // `replaces` names: the caller knows that it is over.
    virtual Deletion MarkDeletion(const NewDeletion& deletion) = 0;
    // Takes the mark away. kNotFound, or kConflict: it is taken or has begun.
    virtual Result<Deletion> Unmark(
        TenantId tenant, std::string_view kind, std::string_view key
    ) = 0;
    virtual std::optional<Deletion> FindDeletion(
        TenantId tenant, std::string_view kind, std::string_view key
    ) = 0;
    virtual std::vector<Deletion> Deletions(const DeletionsRequest& request) = 0;
    // Those that were taken and not begun in time; then those whose time has come, of each kind as
    // many as its pace allows now, of further kinds while they fit into `limit`. They are the
    // caller's for limits::kDeletionTaken: ask again until there are none. Also forgets old ones.
    virtual TakeReply TakeDeletions(int limit) = 0;
    virtual void BeginDeletion(DeletionId deletion, TaskId task) = 0;
    virtual void SetPace(const Pace& pace) = 0;
};

// The idempotency key of its task.
inline std::string DeletionKey(const Deletion& deletion) {
    return "deletion:" + deletion.id.ToString();
}

}  // namespace stint::store
