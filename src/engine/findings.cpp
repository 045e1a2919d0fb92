#include "engine/findings.h"

#include <fmt/format.h>
#include <stint/outcome.h>

#include <stdexcept>

#include "base/text.h"
#include "engine/text.h"

namespace stint::engine {

namespace limits = model::limits;

Desk& Findings::desk() {
    if (!desk_) throw Retryable("this attempt has nobody to ask");
    return *desk_;
}

void Findings::Add(ItemResult item) {
    if (auto valid = model::Validate(item); !valid) {
        throw std::invalid_argument("item: " + valid.error().message);
    }
    item.error = CutText(item.error, limits::kItemError);
    // A batch that the store did not take comes first; while it does not, there is no room.
    if (full()) {
        if (refused_.size() < limits::kItemBatch) refused_.insert(item.key);
        Send({});
    }
    refused_.erase(item.key);
    bytes_ += model::BytesOf(item);
    items_.push_back(std::move(item));
    if (full()) Send({});
}

ItemCounts Findings::Flush() {
    if (!refused_.empty()) {
        throw Retryable(fmt::format(
            "item {} was refused because those before it could not be written, and the handler "
            "went on without it",
            base::Quoted(*refused_.begin())
        ));
    }
    if (unwritten()) Send({});
    if (!counts_) Look();
    return *counts_;
}

void Findings::SaveCheckpoint(std::string json) {
    if (auto valid = model::CheckCheckpoint(json); !valid) {
        throw std::invalid_argument(valid.error().message);
    }
    Send(std::move(json));
}

std::optional<std::string> Findings::LoadCheckpoint() {
    model::ResultSummary summary = Look();
    if (!summary.checkpoint) return std::nullopt;
    return std::move(summary.checkpoint->json);
}

model::ResultSummary Findings::Look() {
    model::ResultSummary summary = desk().Results(held_.task);
    counts_ = summary.items;
    return summary;
}

std::optional<ItemCounts> Findings::Write(store::ResultWrite& write) {
    write.by = held_;
    write.claim_no = claim_no_;
    auto counts = desk().WriteResults(write);
    if (counts) counts_ = counts;
    return counts;
}

void Findings::Send(std::optional<std::string> checkpoint) {
    store::ResultWrite write;
    write.items = std::move(items_);
    write.checkpoint = std::move(checkpoint);
    items_.clear();
    std::optional<ItemCounts> counts;
    try {
        counts = Write(write);
    } catch (...) {
        // Nobody knows whether they were written; the same again changes nothing.
        items_ = std::move(write.items);
        throw;
    }
    bytes_ = 0;
    if (!counts) {
        throw Retryable(fmt::format(
            "task {} is no longer held by this attempt: nothing was written, stop",
            held_.task.value()
        ));
    }
    if (counts->total > limits::kItemsPerTask) {
        throw std::invalid_argument(fmt::format(
            "the task has {} items; the limit is {}: split the work into subtasks",
            counts->total,
            limits::kItemsPerTask
        ));
    }
}

}  // namespace stint::engine
