// What an operator may do to a task.
#include "base/result.h"
#include "store/memory/ops.h"

namespace stint::store::memory {

using base::MakeError;

CancelReply Ops::Cancel(TaskId id, std::string_view actor, std::string_view reason) {
    Task* task = Find(id);
    if (task == nullptr) return {CancelReply::Kind::kNotFound, State::kOpen};
    TaskRecord& record = task->record;
    if (IsTerminal(record.state)) {
        if (task->order_no == 0) return {CancelReply::Kind::kAlreadyTerminal, record.state};
        // Dead, with others waiting behind it: its turn is over.
        LeaveOrder(*task);
        return {CancelReply::Kind::kCancelled, record.state};
    }

    std::string why(reason);
    if (why.empty()) why = "cancelled by " + std::string(actor);
    if (record.state == State::kInProgress) {
        // The first request stands; its holder hears of it at its next heartbeat.
        if (!record.cancel_requested) task->cancel_reason = why;
        record.cancel_requested = true;
        return {CancelReply::Kind::kRequested, record.state};
    }
    Move(*task, Event::kCancel, {.actor = actor, .reason = why});
    record.reason = why;
    return {CancelReply::Kind::kCancelled, record.state};
}

CancelReply Ops::CancelTree(TaskId id, std::string_view actor, std::string_view reason) {
    std::vector<TaskId> below = Descendants(id);
    CancelReply reply = Cancel(id, actor, reason);
    for (TaskId task : below) {
        CancelReply one = Cancel(task, actor, WhyBelowCancelled(id));
        bool stopped =
            one.kind == CancelReply::Kind::kCancelled || one.kind == CancelReply::Kind::kRequested;
        reply.descendants += stopped ? 1 : 0;
    }
    return reply;
}

RetryReply Ops::Retry(TaskId id, std::string_view actor) {
    Task* task = Find(id);
    if (task == nullptr) return {RetryReply::Kind::kNotFound, State::kOpen};
    TaskRecord& record = task->record;
    if (!Next(record.state, Event::kOperatorRetry))
        return {RetryReply::Kind::kRefused, record.state};

    if (IsTerminal(record.state)) {
        if (!record.unique_key.empty()) {
            // Its key may stand for another live task meanwhile (I7).
            TypedKey key{record.tenant, record.type, record.unique_key};
            if (!data_.unique.try_emplace(key, id).second) {
                return {RetryReply::Kind::kRefused, record.state};
            }
        }
        ++record.generation;
        record.attempt = 0;
        record.crash_count = 0;
        task->crash_from.reset();
        record.suspect = false;
        record.cancel_requested = false;
        record.start_by.reset();
        record.stage = Stage::kStart;
        task->wait.reset();
    }
    Move(*task, Event::kOperatorRetry, {.actor = actor});
    record.reason.clear();
    Wait(*task, now_);
    return {RetryReply::Kind::kRequeued, record.state};
}

RetryReply Ops::Discard(TaskId id, std::string_view actor) {
    Task* task = Find(id);
    if (task == nullptr) return {RetryReply::Kind::kNotFound, State::kOpen};
    TaskRecord& record = task->record;
    if (record.state != State::kError) return {RetryReply::Kind::kRefused, record.state};
    std::string reason = "discarded by " + std::string(actor);
    Move(*task, Event::kFailFinal, {.actor = actor, .reason = reason});
    record.reason = reason;
    return {RetryReply::Kind::kRequeued, record.state};
}

Result<void> Ops::Edit(TaskId id, const TaskEdit& edit, std::string_view actor) {
    if (auto valid = Validate(edit); !valid) return valid;
    Task* task = Find(id);
    if (task == nullptr) return MakeError(Code::kNotFound, "there is no task {}", id.value());
    TaskRecord& record = task->record;
    if (!Next(record.state, Event::kEdit)) {
        return MakeError(
            Code::kConflict,
            "task {} is {}; only a task that waits can be edited",
            id.value(),
            StateName(record.state)
        );
    }
    std::string changed;
    auto note = [&](std::string_view field) { (changed += changed.empty() ? "" : ", ") += field; };
    auto apply = [&](std::string_view field, const auto& from, auto& to, int bit) {
        if (!from) return;
        to = *from;
        task->explicit_mask |= bit;
        note(field);
    };
    apply("queue", edit.queue, record.queue, kExplicitQueue);
    apply("priority", edit.priority, record.priority, kExplicitPriority);
    apply("input", edit.input, record.input, 0);
    apply("run_at", edit.run_at, record.due_at, 0);
    apply("start_by", edit.start_by, record.start_by, 0);
    apply("retry", edit.retry, record.retry, kExplicitRetry);
    apply("timeout", edit.timeout, record.timeout, kExplicitTimeout);
    apply("tags", edit.tags, record.tags, 0);
    if (edit.delay) {
        record.due_at = now_ + *edit.delay;
        note("delay");
    }
    record.max_attempts = record.retry.max_attempts;
    TouchQueue(record.queue);
    Move(*task, Event::kEdit, {.actor = actor, .reason = changed});
    return {};
}

std::optional<QueueSettings> Ops::ChangeQueue(const QueueChange& change, std::string_view actor) {
    if (!change.create && !data_.queues.contains(change.name)) return std::nullopt;
    QueueSettings& settings = data_.queues[change.name];
    settings.name = change.name;
    Apply(change, settings);
    settings.changed_by = actor;
    settings.changed_at = now_;
    return settings;
}

}  // namespace stint::store::memory
