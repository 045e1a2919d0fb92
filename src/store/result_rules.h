// What the stores have in common about results and deletions.
#pragma once

#include <algorithm>
#include <map>
#include <tuple>

#include "base/result.h"
#include "base/text.h"
#include "model/decide.h"
#include "store/results.h"

namespace stint::store {

// What the items of a task say of an outcome that would complete it, whoever brings it: the attempt
// that wrote them, a later one that knows nothing of them, or somebody outside.
inline void HearItems(
    const ItemCounts& counts, const RetryPolicy& retry, int attempt, Settlement& settlement
) {
    if (settlement.kind != Settlement::Kind::kComplete) return;
    const ItemVerdict verdict = JudgeItems(counts);
    if (verdict == ItemVerdict::kFine || (verdict == ItemVerdict::kWarning && settlement.warning)) {
        return;
    }
    settlement.warning = verdict == ItemVerdict::kWarning;
    settlement.reason = ItemVerdictText(counts);
    if (settlement.warning) return;
    settlement.error = TaskError{ItemVerdictText(counts), "items", {}, true};
    constexpr double kMiddle = 0.5;  // of what the delay may vary
    Disposition next = DecideFailure(retry, std::max(1, attempt), *settlement.error, kMiddle);
    settlement.kind = next.to == State::kDead ? Settlement::Kind::kDead : Settlement::Kind::kRetry;
    settlement.end = AttemptEnd::kFailed;
    settlement.delay = next.delay;
    settlement.reason = next.reason;
    settlement.output.clear();
}

// The same for what somebody outside says.
struct HeardFinish {
    Disposition what{Event::kComplete, State::kComplete, Duration::zero(), {}};
    std::optional<TaskError> error;
    bool warning = false;
};
inline HeardFinish HearFinish(
    const BackgroundFinish& finish, const ItemCounts& counts, const RetryPolicy& retry, int attempt
) {
    HeardFinish heard;
    const ItemVerdict verdict = JudgeItems(counts);
    if (!finish.success) {
        heard.error = finish.error;
    } else if (verdict == ItemVerdict::kFailed) {
        heard.error = TaskError{ItemVerdictText(counts), "items", {}, true};
    } else if (verdict != ItemVerdict::kFine) {
        heard.warning = true;
        heard.what.reason = ItemVerdictText(counts);
    }
    if (heard.error) heard.what = DecideFailure(retry, attempt, *heard.error, finish.jitter);
    return heard;
}

inline Deletion MarkOf(const NewDeletion& wanted, DeletionId id, Time now) {
    Deletion mark;
    mark.id = id;
    mark.tenant = wanted.tenant;
    mark.kind = wanted.kind;
    mark.key = wanted.key;
    mark.initiator = wanted.initiator;
    mark.steps = wanted.steps;
    mark.marked_at = now;
    mark.delete_at = now + wanted.grace;
    return mark;
}

inline Error NotMarked(std::string_view kind, std::string_view key) {
    return base::MakeError(
        Code::kNotFound,
        "{} {} is not marked for deletion; `stint deletion list` shows what is",
        kind,
        base::Quoted(key)
    );
}

inline Error HasBegun(const Deletion& deletion) {
    std::string what = deletion.task.valid()
                           ? "its task is " + deletion.task.ToString() + ": cancel that"
                           : std::string("try again in a moment, its task is being made");
    return base::MakeError(
        Code::kConflict,
        "the deletion of {} {} has begun; {}",
        deletion.kind,
        base::Quoted(deletion.key),
        what
    );
}

// A kind goes at its pace, not at the pace of those that were taken with it: all of its turn, or
// none of it this time.
inline bool HasRoom(const TakeReply& reply, int cap, int limit) {
    return reply.deletions.empty() || static_cast<int>(reply.deletions.size()) + cap <= limit;
}

// Where the page begins: all that are not asked for lie before it, or behind those that are.
inline std::tuple<TenantId, std::string, std::string> BehindOf(const DeletionsRequest& request) {
    TenantId tenant = std::max(request.after_tenant, request.tenant.value_or(TenantId{}));
    bool same = tenant == request.after_tenant;
    std::string kind = same ? request.after_kind : std::string();
    std::string key = same ? request.after_key : std::string();
    if (kind < request.kind) return {tenant, request.kind, std::string()};
    return {tenant, std::move(kind), std::move(key)};
}
inline std::vector<Deletion> ThoseAskedFor(
    std::vector<Deletion> page, const DeletionsRequest& request
) {
    std::erase_if(page, [&](const Deletion& one) {
        return (request.tenant && one.tenant != *request.tenant) ||
               (!request.kind.empty() && one.kind != request.kind);
    });
    return page;
}

// Of items with one key the last, each key once.
inline std::vector<const ItemResult*> LastOfEachKey(const std::vector<ItemResult>& items) {
    std::map<std::string_view, const ItemResult*> last;
    for (const ItemResult& item : items) last[item.key] = &item;
    std::vector<const ItemResult*> each;
    each.reserve(last.size());
    for (const auto& [key, item] : last) each.push_back(item);
    return each;
}

}  // namespace stint::store
