#include "store/sqlite/row.h"

#include <unordered_map>

#include "base/check.h"
#include "base/json.h"
#include "model/placement.h"
#include "store/unreadable_policy.h"

namespace stint::store::lite {

namespace {

std::optional<std::int64_t> OrNull(std::int64_t value) {
    return value == 0 ? std::nullopt : std::optional(value);
}

std::optional<sqlite::Blob> TokenBlob(const LeaseToken& token, const Bytes16& bytes) {
    return token.valid() ? std::optional(sqlite::Blob(bytes)) : std::nullopt;
}

int Int(const sqlite::Rows& rows, int column) {
    return static_cast<int>(rows.Int(column));
}

}  // namespace

void ReadTask(const sqlite::Rows& rows, TaskRow& row) {
    row.id = TaskId(rows.Int(0));
    row.lane = rows.Int(1);
    row.state = static_cast<State>(rows.Int(2));
    row.wait = static_cast<Wait>(rows.Int(3));
    row.priority = limits::kPriorityMax - Int(rows, 4);
    row.position = rows.Int(5);
    row.due_at = FromMicros(rows.Int(6));
    row.start_by = OptionalTime(rows, 7);
    row.attempt = Int(rows, 8);
    row.claim_no = Int(rows, 9);
    row.generation = Int(rows, 10);
    row.crashes = Int(rows, 11);
    row.crash_from = OptionalTime(rows, 12);
    row.flags = Int(rows, 13);
    row.timeout = Duration(rows.Int(14));
    row.created_at = FromMicros(rows.Int(15));
    row.updated_at = FromMicros(rows.Int(16));
    row.claimed_at = OptionalTime(rows, 17);
    row.session = rows.Int(18);
    row.deadline_at = OptionalTime(rows, 19);
    row.node = NodeId(rows.Int(20));
    row.parent = TaskId(rows.Int(21));
    row.token = FromBytes<LeaseToken>(rows.Bytes(22));
    row.retry = rows.Text(23);
    row.tags = rows.Text(24);
    row.unique_key = rows.Text(25);
    row.idem_key = rows.Text(26);
    row.debounce_key = rows.Text(27);
    row.progress = rows.Text(28);
    row.error = rows.Text(29);
    row.reason = rows.Text(30);
    row.input = rows.Text(31);
    row.output.clear();
    row.finished_at.reset();
    row.period = 0;
}

void ReadHistory(const sqlite::Rows& rows, std::int64_t period, TaskRow& row) {
    row = TaskRow();
    row.period = period;
    row.id = TaskId(rows.Int(0));
    row.lane = rows.Int(1);
    row.state = static_cast<State>(rows.Int(2));
    row.priority = limits::kPriorityMax - Int(rows, 3);
    row.position = rows.Int(4);
    row.due_at = FromMicros(rows.Int(5));
    row.start_by = OptionalTime(rows, 6);
    row.attempt = Int(rows, 7);
    row.claim_no = Int(rows, 8);
    row.generation = Int(rows, 9);
    row.crashes = Int(rows, 10);
    row.flags = Int(rows, 11);
    row.timeout = Duration(rows.Int(12));
    row.created_at = FromMicros(rows.Int(13));
    row.updated_at = FromMicros(rows.Int(14));
    row.claimed_at = OptionalTime(rows, 15);
    row.finished_at = OptionalTime(rows, 16);
    row.node = NodeId(rows.Int(17));
    row.parent = TaskId(rows.Int(18));
    row.retry = rows.Text(19);
    row.tags = rows.Text(20);
    row.unique_key = rows.Text(21);
    row.idem_key = rows.Text(22);
    row.error = rows.Text(23);
    row.reason = rows.Text(24);
    row.output = rows.Text(25);
    row.input = rows.Text(26);
}

void FillTask(sqlite::Statement& task_insert, int& index, const TaskRow& row) {
    CHECK(!row.token.valid());  // nobody can hold it yet
    task_insert.Fill(
        index,
        row.id.value(),
        row.lane,
        static_cast<int>(row.state),
        static_cast<int>(row.wait),
        limits::kPriorityMax - row.priority,
        row.position,
        Micros(row.due_at),
        Micros(row.start_by),
        row.attempt,
        row.claim_no,
        row.generation,
        row.crashes,
        Micros(row.crash_from),
        row.flags,
        std::int64_t{row.timeout.count()},
        Micros(row.created_at),
        Micros(row.updated_at),
        Micros(row.claimed_at),
        OrNull(row.session),
        Micros(row.deadline_at),
        OrNull(row.node.value()),
        OrNull(row.parent.value()),
        nullptr,
        OrNull(row.retry),
        OrNull(row.tags),
        OrNull(row.unique_key),
        OrNull(row.idem_key),
        OrNull(row.debounce_key),
        OrNull(row.progress),
        OrNull(row.error),
        OrNull(row.reason),
        row.input
    );
}

void InsertTask(sqlite::Statement& task_insert, const TaskRow& row) {
    int index = 0;
    FillTask(task_insert, index, row);
    task_insert.RunFilled(index);
}

void SaveTask(sqlite::Statement& task_save, const TaskRow& row) {
    Bytes16 token = ToBytes(row.token);
    int changed = task_save.Run(
        row.lane,
        static_cast<int>(row.state),
        static_cast<int>(row.wait),
        limits::kPriorityMax - row.priority,
        row.position,
        Micros(row.due_at),
        Micros(row.start_by),
        row.attempt,
        row.claim_no,
        row.generation,
        row.crashes,
        Micros(row.crash_from),
        row.flags,
        std::int64_t{row.timeout.count()},
        Micros(row.updated_at),
        Micros(row.claimed_at),
        OrNull(row.session),
        Micros(row.deadline_at),
        OrNull(row.node.value()),
        TokenBlob(row.token, token),
        OrNull(row.retry),
        OrNull(row.tags),
        OrNull(row.unique_key),
        OrNull(row.idem_key),
        OrNull(row.debounce_key),
        OrNull(row.progress),
        OrNull(row.error),
        OrNull(row.reason),
        row.id.value()
    );
    CHECK(changed == 1);
}

void FillHistory(sqlite::Statement& history_insert, int& index, const TaskRow& row) {
    history_insert.Fill(
        index,
        row.id.value(),
        row.lane,
        static_cast<int>(row.state),
        limits::kPriorityMax - row.priority,
        row.position,
        Micros(row.due_at),
        Micros(row.start_by),
        row.attempt,
        row.claim_no,
        row.generation,
        row.crashes,
        row.flags,
        std::int64_t{row.timeout.count()},
        Micros(row.created_at),
        Micros(row.updated_at),
        Micros(row.claimed_at),
        Micros(row.finished_at),
        OrNull(row.node.value()),
        OrNull(row.parent.value()),
        OrNull(row.retry),
        OrNull(row.tags),
        OrNull(row.unique_key),
        OrNull(row.idem_key),
        OrNull(row.error),
        OrNull(row.reason),
        OrNull(row.output),
        row.input
    );
}

QueueSettings ReadQueue(const sqlite::Rows& rows) {
    auto duration = [&rows](int column) {
        return rows.IsNull(column) ? std::nullopt : std::optional(Duration(rows.Int(column)));
    };
    return {
        .name = rows.String(0),
        .paused = rows.Int(1) != 0,
        .cap = rows.OptionalInt(2),
        .keep_complete = duration(3),
        .keep_dead = duration(4),
        .keep_cancelled = duration(5),
        .changed_by = rows.IsNull(6) ? std::string() : rows.String(6),
        .changed_at = OptionalTime(rows, 7),
    };
}

TypeRecord ReadType(const sqlite::Rows& rows) {
    TypeRecord record;
    record.defaults.type = rows.String(0);
    record.defaults.queue = rows.String(1);
    record.defaults.priority = Int(rows, 2);
    record.defaults.retry = RetryOf(rows.String(3));
    record.defaults.timeout = Duration(rows.Int(4));
    record.defaults.isolated = rows.Int(5) != 0;
    record.revision = Int(rows, 6);
    record.updated_at = FromMicros(rows.Int(7));
    Placement placement = PlacementOf(rows.Text(8));
    record.defaults.needs = std::move(placement.needs);
    record.defaults.labels = std::move(placement.labels);
    return record;
}

// ---- texts ----

std::string RetryText(const RetryPolicy& policy) {
    static const RetryPolicy kDefault;
    return policy == kDefault ? std::string() : RetryToJson(policy);
}

const RetryPolicy& RetryOf(const std::string& text) {
    static const RetryPolicy kDefault;
    if (text.empty()) return kDefault;
    thread_local std::unordered_map<std::string, RetryPolicy> parsed;
    if (auto found = parsed.find(text); found != parsed.end()) return found->second;
    if (parsed.size() >= 1000) parsed.clear();
    auto policy = RetryFromJson(text);
    return parsed.emplace(text, policy ? *policy : StandIn()).first->second;
}

bool IsRetry(const std::string& text) {
    return text.empty() || RetryFromJson(text).has_value();
}

std::string TagsText(const std::vector<std::string>& tags) {
    return tags.empty() ? std::string() : base::JsonList(tags);
}

std::vector<std::string> TagsOf(std::string_view text) {
    if (text.empty()) return {};
    return base::ReadJsonList(text);
}

std::string ErrorText(const TaskError& error) {
    base::OrderedJson json;
    json["message"] = error.message;
    json["class"] = error.klass;
    json["stack"] = error.stack;
    json["retryable"] = error.retryable;
    return base::JsonText(json);
}

std::optional<TaskError> ErrorOf(std::string_view text) {
    if (text.empty()) return std::nullopt;
    base::Json json = base::ReadJson(text);
    TaskError error;
    json.at("message").get_to(error.message);
    json.at("class").get_to(error.klass);
    json.at("stack").get_to(error.stack);
    json.at("retryable").get_to(error.retryable);
    return error;
}

std::string ProgressText(const Progress& progress) {
    base::OrderedJson json;
    json["step"] = progress.step;
    json["done"] = progress.done;
    if (progress.total) json["total"] = *progress.total;
    json["message"] = progress.message;
    return base::JsonText(json);
}

std::optional<Progress> ProgressOf(std::string_view text) {
    if (text.empty()) return std::nullopt;
    base::Json json = base::ReadJson(text);
    Progress progress;
    json.at("step").get_to(progress.step);
    json.at("done").get_to(progress.done);
    if (json.contains("total")) progress.total = json["total"].get<std::int64_t>();
    json.at("message").get_to(progress.message);
    return progress;
}

}  // namespace stint::store::lite
