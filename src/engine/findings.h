// What an attempt leaves behind besides its outcome: items, written in batches, and its checkpoint.
#pragma once

#include <stint/item.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/desk.h"
#include "store/results.h"

namespace stint::engine {

// Used by the handler's thread only; throws as Context says.
class Findings {
public:
    Findings(std::shared_ptr<Desk> desk, const store::Lease& lease)
        : desk_(std::move(desk)), held_{lease.task, lease.token}, claim_no_(lease.claim_no) {}

    void Add(ItemResult item);
    ItemCounts Flush();
    void SaveCheckpoint(std::string json);
    std::optional<std::string> LoadCheckpoint();

    // Writes on behalf of the attempt, from wherever its handler runs.
    std::optional<ItemCounts> Write(store::ResultWrite& write);
    model::ResultSummary Look();

    bool unwritten() const { return !items_.empty() || !refused_.empty(); }
    // Of all attempts. Nothing: this one has neither written items nor asked where the last one
    // was, so that they are none of its business.
    const std::optional<ItemCounts>& known() const { return counts_; }

private:
    void Send(std::optional<std::string> checkpoint);
    Desk& desk();
    bool full() const {
        return items_.size() >= model::limits::kItemBatch ||
               bytes_ >= model::limits::kItemBatchBytes;
    }

    const std::shared_ptr<Desk> desk_;
    const store::Held held_;
    const int claim_no_;
    std::vector<ItemResult> items_;  // not yet written
    std::size_t bytes_ = 0;          // of those
    std::set<std::string> refused_;  // keys for which there was no room, so many as a batch
    std::optional<ItemCounts> counts_;
};

}  // namespace stint::engine
