#include "store/postgres/records.h"

#include "base/json.h"
#include "base/text.h"
#include "model/placement.h"
#include "store/postgres/catalog.h"
#include "store/unreadable_policy.h"

namespace stint::store::pg {

using base::Json;

Stage StageOf(int flags) {
    if ((flags & kResumes) == 0) return Stage::kStart;
    return (flags & kFailedWait) != 0 ? Stage::kError : Stage::kResume;
}

int WithStage(int flags, Stage stage) {
    flags &= ~(kResumes | kFailedWait);
    if (stage != Stage::kStart) flags |= kResumes;
    if (stage == Stage::kError) flags |= kFailedWait;
    return flags;
}

std::string WriteError(const std::optional<TaskError>& error) {
    if (!error) return {};
    Json json = {
        {"message", base::CleanText(error->message, limits::kErrorMessage)},
        {"class", base::CleanText(error->klass, limits::kErrorClass)},
        {"stack", base::CleanText(error->stack, limits::kErrorStack)},
        {"retryable", error->retryable}};
    return base::JsonText(json);
}

std::optional<TaskError> ReadError(std::string_view text) {
    if (text.empty()) return std::nullopt;
    auto json = base::ParseJson(text, limits::kJsonDepth);
    if (!json || !json->is_object()) return TaskError{.message = std::string(text)};
    return TaskError{
        json->value("message", ""),
        json->value("class", ""),
        json->value("stack", ""),
        json->value("retryable", false)};
}

std::optional<Progress> ReadProgress(std::string_view text) {
    if (text.empty()) return std::nullopt;
    auto json = base::ParseJson(text, limits::kJsonDepth);
    if (!json || !json->is_object()) return std::nullopt;
    Progress progress;
    progress.step = json->value("step", "");
    progress.done = json->value("done", std::int64_t{0});
    if (json->contains("total") && !(*json)["total"].is_null())
        progress.total = (*json)["total"].get<std::int64_t>();
    progress.message = json->value("message", "");
    return progress;
}

RetryPolicy ReadPolicy(std::string_view json) {
    auto policy = RetryFromJson(json);
    return policy ? *policy : StandIn();
}

TypeRecord ReadType(const Rows& rows, int row) {
    TypeRecord record;
    record.defaults.type = rows.Text(row, 0);
    record.defaults.queue = rows.Text(row, 1);
    record.defaults.priority = static_cast<int>(rows.Int(row, 2));
    record.defaults.retry = ReadPolicy(rows.View(row, 3));
    record.defaults.timeout = Duration(rows.Int(row, 4));
    record.defaults.isolated = rows.Bool(row, 5);
    record.revision = static_cast<int>(rows.Int(row, 6));
    record.updated_at = rows.At(row, 7);
    Placement placement = PlacementOf(rows.View(row, 8));
    record.defaults.needs = std::move(placement.needs);
    record.defaults.labels = std::move(placement.labels);
    return record;
}

std::int64_t KeyOf(LeaseToken token) {
    return static_cast<std::int64_t>(token.high());
}
std::int64_t SecretOf(LeaseToken token) {
    return static_cast<std::int64_t>(token.low());
}
LeaseToken TokenOf(std::int64_t key, std::int64_t secret) {
    return LeaseToken(static_cast<std::uint64_t>(key), static_cast<std::uint64_t>(secret));
}

TaskRecord ReadTask(const Rows& rows, int row, Catalog& catalog) {
    TaskRecord task;
    task.id = TaskId(rows.Int(row, 0));
    task.tenant = TenantId(rows.Int(row, 1));
    task.parent = TaskId(rows.Int(row, 2));
    task.type = rows.Text(row, 3);
    task.queue = rows.Text(row, 4);
    task.state = static_cast<State>(rows.Int(row, 5));
    task.priority = static_cast<int>(rows.Int(row, 6));
    task.input = rows.Text(row, 7);
    task.output = rows.Text(row, 8);
    task.error = ReadError(rows.View(row, 9));
    task.reason = rows.Text(row, 10);
    task.warning = rows.Bool(row, 11);
    task.type_known = rows.Bool(row, 12);
    task.cancel_requested = rows.Bool(row, 13);
    task.suspect = rows.Bool(row, 14);
    task.attempt = static_cast<int>(rows.Int(row, 15));
    task.claim_no = static_cast<int>(rows.Int(row, 16));
    task.generation = static_cast<int>(rows.Int(row, 17));
    task.crash_count = static_cast<int>(rows.Int(row, 18));
    task.tags = rows.Texts(row, 19);
    task.unique_key = rows.Text(row, 20);
    task.idempotency_key = rows.Text(row, 21);
    task.retry = catalog.PolicyOf(static_cast<int>(rows.Int(row, 22)));
    task.max_attempts = task.retry.max_attempts;
    task.timeout = Duration(rows.Int(row, 23));
    task.progress = ReadProgress(rows.View(row, 24));
    task.session = rows.Uuid<SessionId>(row, 25);
    task.node = NodeId(rows.Int(row, 26));
    task.created_at = rows.At(row, 27);
    task.due_at = rows.At(row, 28);
    task.start_by = rows.MaybeAt(row, 29);
    task.claimed_at = rows.MaybeAt(row, 30);
    task.finished_at = rows.MaybeAt(row, 31);
    task.expires_at = rows.MaybeAt(row, 32);
    task.updated_at = rows.At(row, 33);
    // Behind the other columns of either view.
    const int order = IsTerminal(task.state) ? 36 : 37;
    task.placement = PlacementOf(rows.View(row, order + 2));
    if (!rows.IsNull(row, order)) {
        task.placement.order_key = rows.Text(row, order);
        task.placement.on_failed_head = static_cast<OnFailedHead>(rows.Int(row, order + 1));
    }
    if (!IsTerminal(task.state)) {
        task.waiting_for = static_cast<int>(rows.Int(row, 35));
        task.stage = StageOf(static_cast<int>(rows.Int(row, 36)));
    }
    return task;
}

AuditEntry ReadAudit(const Rows& rows, int row) {
    AuditEntry entry;
    entry.seq = rows.Int(row, 0);
    entry.task = TaskId(rows.Int(row, 1));
    entry.tenant = TenantId(rows.Int(row, 2));
    if (!rows.IsNull(row, 3)) entry.from = static_cast<State>(rows.Int(row, 3));
    entry.to = static_cast<State>(rows.Int(row, 4));
    entry.event = static_cast<Event>(rows.Int(row, 5));
    entry.attempt = static_cast<int>(rows.Int(row, 6));
    entry.generation = static_cast<int>(rows.Int(row, 7));
    entry.session = rows.Uuid<SessionId>(row, 8);
    entry.actor = rows.Text(row, 9);
    entry.reason = rows.Text(row, 10);
    entry.at = rows.At(row, 11);
    return entry;
}

AttemptRecord ReadAttempt(const Rows& rows, int row) {
    AttemptRecord attempt;
    attempt.task = TaskId(rows.Int(row, 0));
    attempt.claim_no = static_cast<int>(rows.Int(row, 1));
    attempt.attempt = static_cast<int>(rows.Int(row, 2));
    attempt.generation = static_cast<int>(rows.Int(row, 3));
    attempt.end = static_cast<AttemptEnd>(rows.Int(row, 4));
    attempt.alone = rows.Bool(row, 5);
    attempt.started_at = rows.At(row, 6);
    attempt.finished_at = rows.MaybeAt(row, 7);
    attempt.session = rows.Uuid<SessionId>(row, 8);
    attempt.node = NodeId(rows.Int(row, 9));
    attempt.exit_code = rows.MaybeInt(row, 10);
    attempt.exit_signal = rows.MaybeInt(row, 11);
    attempt.error = ReadError(rows.View(row, 12));
    attempt.stderr_tail = rows.Text(row, 13);
    return attempt;
}

}  // namespace stint::store::pg
