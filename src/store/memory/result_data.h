// What the memory store remembers of results and deletions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "store/results.h"

namespace stint::store::memory {

struct TaskResult {
    std::map<std::string, ItemRecord> items;
    ItemCounts counts;
    std::optional<Checkpoint> checkpoint;
};

struct DeletionRow {
    Deletion deletion;
    Time changed_at{};  // when it was taken, or began
};
struct PaceRow {
    Pace pace;
    Time next_at{};  // of the next cycle
};

using DeletionName = std::tuple<TenantId, std::string, std::string>;  // kind, key
using KindName = std::pair<TenantId, std::string>;

struct ResultData {
    std::map<TaskId, TaskResult> of;
    std::map<DeletionName, DeletionRow> deletions;
    std::map<KindName, PaceRow> paces;
    std::int64_t next_deletion = 1;
};

}  // namespace stint::store::memory
