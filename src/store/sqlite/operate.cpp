// What an operator may do to a task.
#include <fmt/format.h>

#include "base/check.h"
#include "base/result.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/queries.h"

namespace stint::store::lite {

using base::MakeError;

std::vector<CancelReply> Ops::Cancel(
    std::span<const TaskId> tasks, std::string_view actor, std::string_view reason
) {
    std::vector<CancelReply> replies;
    for (TaskId task : tasks) replies.push_back(CancelTree(task, actor, reason));
    return replies;
}

CancelReply Ops::CancelTree(TaskId task, std::string_view actor, std::string_view reason) {
    std::vector<TaskId> below = Descendants(task);
    CancelReply reply = CancelOne(task, actor, reason);
    for (TaskId descendant : below) {
        CancelReply::Kind kind = CancelOne(descendant, actor, WhyBelowCancelled(task)).kind;
        bool stops = kind == CancelReply::Kind::kCancelled || kind == CancelReply::Kind::kRequested;
        reply.descendants += stops ? 1 : 0;
    }
    return reply;
}

CancelReply Ops::CancelOne(TaskId task, std::string_view actor, std::string_view reason) {
    TaskRow row;
    if (!Load(task, row)) {
        if (!LoadFinished(task, row)) return {CancelReply::Kind::kNotFound, State::kOpen};
        // Dead, with others waiting behind it: its turn is over.
        bool given_up = row.Has(kOrdered) && GiveUpTurn(task);
        auto kind = given_up ? CancelReply::Kind::kCancelled : CancelReply::Kind::kAlreadyTerminal;
        return {kind, row.state};
    }
    std::string why(reason);
    if (why.empty()) why = "cancelled by " + std::string(actor);
    if (row.state == State::kInProgress) {
        // The first request stands; its holder hears of it at its next heartbeat.
        if (!row.Has(kCancelRequested)) {
            row.Set(kCancelRequested, true);
            row.reason = why;
            SaveTask(Sql("task_save"), row);
        }
        return {CancelReply::Kind::kRequested, row.state};
    }
    Move(row, Event::kCancel, {.actor = actor, .reason = why, .session = {}});
    row.reason = why;
    Persist(row);
    return {CancelReply::Kind::kCancelled, row.state};
}

std::vector<RetryReply> Ops::Retry(std::span<const TaskId> tasks, std::string_view actor) {
    std::vector<RetryReply> replies;
    for (TaskId task : tasks) replies.push_back(RetryOne(task, actor));
    return replies;
}

RetryReply Ops::RetryOne(TaskId task, std::string_view actor) {
    TaskRow row;
    bool live = Load(task, row);
    if (!live && !LoadFinished(task, row)) return {RetryReply::Kind::kNotFound, State::kOpen};
    if (!Next(row.state, Event::kOperatorRetry)) return {RetryReply::Kind::kRefused, row.state};
    Why why{.actor = actor, .reason = {}, .session = {}};
    if (live) {
        Move(row, Event::kOperatorRetry, why);
        row.reason.clear();
        ToWaiting(row, now_);
        Persist(row);
        return {RetryReply::Kind::kRequeued, row.state};
    }
    const Lane& lane = lanes_.At(row.lane);
    if (!row.unique_key.empty()) {
        // Its key may have passed to another task meanwhile.
        auto other = Sql("unique_find").Scalar(lane.tenant.value(), lane.type, row.unique_key);
        if (other && *other != task.value()) return {RetryReply::Kind::kRefused, row.state};
        if (!other)
            Sql("unique_set").Run(lane.tenant.value(), lane.type, row.unique_key, task.value());
    }
    Sql("history_delete", row.period).Run(task.value());
    Count(row.period, row.lane, row.state, -1);
    ++row.generation;
    row.attempt = 0;
    row.crashes = 0;
    row.crash_from.reset();
    row.Set(kCancelRequested, false);
    row.Set(kSuspect, false);
    row.Set(kWarning, false);
    row.Set(kHasWait, false);
    row.Set(kWaitedFor, false);
    row.SetStage(Stage::kStart);
    row.reason.clear();
    row.start_by.reset();
    Move(row, Event::kOperatorRetry, why);
    if (row.Has(kOrdered)) JoinOrderAgain(row);
    ToWaiting(row, now_);
    InsertTask(Sql("task_insert"), row);
    return {RetryReply::Kind::kRequeued, row.state};
}

std::vector<RetryReply> Ops::Discard(std::span<const TaskId> tasks, std::string_view actor) {
    std::vector<RetryReply> replies;
    for (TaskId task : tasks) replies.push_back(DiscardOne(task, actor));
    return replies;
}

RetryReply Ops::DiscardOne(TaskId task, std::string_view actor) {
    TaskRow row;
    if (!Load(task, row)) {
        if (!LoadFinished(task, row)) return {RetryReply::Kind::kNotFound, State::kOpen};
        return {RetryReply::Kind::kRefused, row.state};
    }
    if (row.state != State::kError) return {RetryReply::Kind::kRefused, row.state};
    row.reason = "discarded by " + std::string(actor);
    Move(row, Event::kFailFinal, {.actor = actor, .reason = row.reason, .session = {}});
    Persist(row);
    return {RetryReply::Kind::kRequeued, row.state};
}

Result<void> Ops::Edit(TaskId task, const TaskEdit& edit, std::string_view actor) {
    TaskRow row;
    bool live = Load(task, row);
    if (!live && !LoadFinished(task, row)) {
        return MakeError(Code::kNotFound, "there is no task {}", task.value());
    }
    if (!Next(row.state, Event::kEdit)) {
        return MakeError(
            Code::kConflict,
            "task {} is {}; only a task that waits can be edited",
            task.value(),
            StateName(row.state)
        );
    }
    std::string changed;
    auto note = [&](std::string_view field, int bit) {
        (changed += changed.empty() ? "" : ", ") += field;
        row.flags |= bit << kExplicitShift;
    };
    if (edit.queue) note("queue", kExplicitQueue);
    if (edit.priority) row.priority = *edit.priority, note("priority", kExplicitPriority);
    if (edit.input) note("input", 0);
    if (edit.run_at) note("run_at", 0);
    if (edit.start_by) row.start_by = edit.start_by, note("start_by", 0);
    if (edit.retry) row.retry = RetryText(*edit.retry), note("retry", kExplicitRetry);
    if (edit.timeout) row.timeout = *edit.timeout, note("timeout", kExplicitTimeout);
    if (edit.tags) row.tags = TagsText(*edit.tags), note("tags", 0);
    if (edit.delay) note("delay", 0);
    Move(row, Event::kEdit, {.actor = actor, .reason = changed, .session = {}});
    if (edit.queue) ChangeLane(row, *edit.queue, lanes_.At(row.lane).placement);
    Time due_at = row.due_at;
    if (edit.delay) due_at = now_ + *edit.delay;
    if (edit.run_at) due_at = *edit.run_at;
    ToWaiting(row, due_at);
    Persist(row);
    if (edit.input) Sql("task_save_input").Run(*edit.input, task.value());
    return {};
}

}  // namespace stint::store::lite
