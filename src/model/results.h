// What a task leaves behind besides its output: results of single objects, its checkpoint, and
// objects that are to be deleted in time.
#pragma once

#include <stint/ids.h>
#include <stint/item.h>
#include <stint/result.h>
#include <stint/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/limits.h"
#include "model/task.h"

namespace stint::model {

// Names field, value and cure.
Result<void> Validate(const ItemResult& item);
Result<void> CheckCheckpoint(std::string_view json);
std::size_t BytesOf(const ItemResult& item);

struct ItemRecord {
    ItemResult item;   // an empty `before` or `after` is null
    int claim_no = 0;  // of the attempt that wrote it
    Time written_at{};
};

struct Checkpoint {
    std::string json;
    int claim_no = 0;
    Time saved_at{};
};

// What is kept of a task besides its record.
struct ResultSummary {
    ItemCounts items;
    std::optional<Checkpoint> checkpoint;
};

// What the items of a task say of an attempt that would complete.
enum class ItemVerdict : std::uint8_t { kFine, kWarning, kFailed };
constexpr ItemVerdict JudgeItems(const ItemCounts& counts) {
    if (counts.errors == 0) return ItemVerdict::kFine;
    return counts.errors < counts.total ? ItemVerdict::kWarning : ItemVerdict::kFailed;
}
std::string ItemVerdictText(const ItemCounts& counts);  // "3 of 10 items are in error"

// ---- deletions ----

using DeletionId = Id<struct DeletionIdTag>;

struct NewDeletion {
    TenantId tenant = kDefaultTenant;
    std::string kind;
    std::string key;
    std::string initiator;
    std::string steps;  // JSON, model/steps.h: what has to happen first, then the deletion
    Duration grace{};
    DeletionId replaces{};  // one that has begun
};
Result<void> Validate(const NewDeletion& deletion);

enum class DeletionState : std::uint8_t {
    kMarked = 0,
    kTaken = 1,  // a node is about to submit its task
    kBegun = 2,
};
std::string_view DeletionStateName(DeletionState state);

struct Deletion {
    DeletionId id;  // of this mark: another one of the same object has another
    TenantId tenant = kDefaultTenant;
    std::string kind;
    std::string key;
    std::string initiator;
    std::string steps;
    DeletionState state = DeletionState::kMarked;
    Time marked_at{};
    Time delete_at{};
    TaskId task;  // kBegun
};

struct Pace {
    TenantId tenant = kDefaultTenant;
    std::string kind;
    int cap = 50;
    Duration every = std::chrono::minutes{1};
};
Result<void> Validate(const Pace& pace);

}  // namespace stint::model
