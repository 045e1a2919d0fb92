#include "model/results.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/result.h"
#include "base/text.h"
#include "model/time_text.h"

namespace stint::model {

namespace {

using base::MakeError;
using base::Quoted;

Result<void> CheckText(
    std::string_view field, std::string_view value, std::size_t limit, bool needed
) {
    if ((needed && value.empty()) || !base::IsUtf8(value) || base::HasControl(value)) {
        return MakeError(Code::kInvalid, "{} is {}; use a text of one line", field, Quoted(value));
    }
    if (value.size() <= limit) return {};
    return MakeError(
        Code::kLimit, "{} is {} bytes; the limit is {} bytes", field, value.size(), limit
    );
}

Result<void> CheckValue(std::string_view field, const std::string& json, std::size_t limit) {
    if (json.size() > limit) {
        return MakeError(
            Code::kLimit,
            "{} is {} bytes; the limit is {} bytes: keep large values elsewhere",
            field,
            json.size(),
            limit
        );
    }
    auto valid = base::CheckJson(json, limits::kJsonDepth);
    if (valid) return {};
    return MakeError(valid.error().code, "{} is not JSON: {}", field, valid.error().message);
}

}  // namespace

Result<void> Validate(const ItemResult& item) {
    if (auto key = CheckText("key", item.key, limits::kItemKey, true); !key) return key;
    auto action = CheckText("action", item.action, limits::kItemAction, false);
    if (!action) return action;
    if (auto before = CheckValue("before", item.before.text, limits::kItemValue); !before) {
        return before;
    }
    if (auto after = CheckValue("after", item.after.text, limits::kItemValue); !after) return after;
    if (base::IsUtf8(item.error)) return {};
    return MakeError(Code::kInvalid, "error of item {} is not UTF-8", Quoted(item.key));
}

Result<void> CheckCheckpoint(std::string_view json) {
    return CheckValue("the checkpoint", std::string(json), limits::kCheckpoint);
}

std::size_t BytesOf(const ItemResult& item) {
    return item.key.size() + item.action.size() + item.before.text.size() + item.after.text.size() +
           item.error.size();
}

std::string ItemVerdictText(const ItemCounts& counts) {
    if (counts.total == 1) return "its only item is in error";
    if (counts.errors == counts.total)
        return fmt::format("all {} items are in error", counts.total);
    return fmt::format("{} of {} items are in error", counts.errors, counts.total);
}

Result<void> Validate(const NewDeletion& deletion) {
    if (auto kind = CheckText("kind", deletion.kind, limits::kDeletionKind, true); !kind) {
        return kind;
    }
    if (auto key = CheckText("key", deletion.key, limits::kDeletionKey, true); !key) return key;
    auto who = CheckText("initiator", deletion.initiator, limits::kActor, true);
    if (!who) return who;
    if (deletion.grace >= Duration::zero() && deletion.grace <= limits::kDelayMax) return {};
    return MakeError(
        Code::kInvalid,
        "grace is {}; it must be between 0 and {}",
        FormatDuration(deletion.grace),
        FormatDuration(limits::kDelayMax)
    );
}

std::string_view DeletionStateName(DeletionState state) {
    return state == DeletionState::kBegun ? "begun" : "marked";
}

Result<void> Validate(const Pace& pace) {
    if (auto kind = CheckText("kind", pace.kind, limits::kDeletionKind, true); !kind) return kind;
    if (pace.cap < 1 || pace.cap > limits::kDeletionCap) {
        return MakeError(
            Code::kInvalid, "cap is {}; it must be between 1 and {}", pace.cap, limits::kDeletionCap
        );
    }
    if (pace.every >= limits::kIntervalMin && pace.every <= limits::kDelayMax) return {};
    return MakeError(
        Code::kInvalid,
        "every is {}; it must be between {} and {}",
        FormatDuration(pace.every),
        FormatDuration(limits::kIntervalMin),
        FormatDuration(limits::kDelayMax)
    );
}

}  // namespace stint::model
