#include "store/sqlite/reads.h"

#include <algorithm>

#include "base/check.h"
#include "base/json.h"
#include "model/limits.h"
#include "model/placement.h"
#include "sqlite/transaction.h"
#include "store/sqlite/queries.h"
#include "store/sqlite/reads_view.h"

namespace stint::store::lite {

Reads::Reads(const std::string& path, base::Clock& clock)
    : clock_(clock), db_(path, {.role = sqlite::OpenOptions::Role::kReader, .cache_kib = 4096}) {
}

sqlite::Statement& Reads::Sql(std::string_view name) {
    return lite::Sql(db_, name);
}
sqlite::Statement& Reads::Sql(std::string_view name, std::int64_t period) {
    return lite::Sql(db_, name, period);
}

const Reads::LaneNames& Reads::LaneAt(std::int64_t id) {
    auto found = lanes_.find(id);
    if (found != lanes_.end()) return found->second;
    sqlite::Rows rows = Sql("lane_get").Query(id);
    CHECK_WHY(rows.Next(), "a task of no lane");
    return lanes_[id] = {
               TenantId(rows.Int(0)), rows.String(1), rows.String(2), PlacementOf(rows.Text(3))};
}

// ---- registries ----

std::string Reads::Identity() {
    View view(*this);
    sqlite::Rows rows = Sql("identity").Query();
    if (!rows.Next())
        throw WrongSchema("the table stint_identity of this file is empty: restore a backup");
    return rows.String(0);
}

std::vector<TypeRecord> Reads::Types() {
    View view(*this);
    std::vector<TypeRecord> types;
    for (sqlite::Rows rows = Sql("type_list").Query(); rows.Next();)
        types.push_back(ReadType(rows));
    return types;
}

std::vector<SessionRecord> Reads::Sessions() {
    View view(*this);
    std::vector<SessionRecord> sessions;
    for (sqlite::Rows rows = Sql("session_list").Query(); rows.Next();) {
        SessionRecord& session = sessions.emplace_back();
        session.id = FromBytes<SessionId>(rows.Bytes(0));
        session.node = NodeId(rows.Int(1));
        session.hostname = rows.String(2);
        session.pid = rows.Int(3);
        session.state = static_cast<SessionState>(rows.Int(4));
        session.worker_state = rows.String(5);
        session.slots = static_cast<int>(rows.Int(6));
        session.running = static_cast<int>(rows.Int(7));
        session.queues = base::ReadJsonList(rows.Text(8));
        session.types = base::ReadJsonList(rows.Text(9));
        session.version = rows.String(10);
        session.started_at = FromMicros(rows.Int(11));
        session.renewed_at = FromMicros(rows.Int(12));
        session.lease_until = FromMicros(rows.Int(13));
        session.labels = base::ReadJsonList(rows.Text(14));
        // Its lease is over even if no sweeper has come by yet.
        if (session.state < SessionState::kClosed && session.lease_until <= clock_.WallTime()) {
            session.state = SessionState::kExpired;
        }
    }
    return sessions;
}

std::vector<NodeRecord> Reads::Nodes() {
    View view(*this);
    std::vector<NodeRecord> nodes;
    for (sqlite::Rows rows = Sql("node_list").Query(); rows.Next();) {
        nodes.push_back({NodeId(rows.Int(0)), rows.String(1), FromMicros(rows.Int(2))});
    }
    return nodes;
}

std::vector<QueueRecord> Reads::Queues() {
    View view(*this);
    std::map<std::string, QueueRecord> queues;
    for (sqlite::Rows rows = Sql("queue_list").Query(); rows.Next();) {
        QueueSettings settings = ReadQueue(rows);
        queues[settings.name].settings = settings;
    }
    for (sqlite::Rows rows = Sql("lane_queues").Query(); rows.Next();) {
        queues[rows.String(0)].settings.name = rows.String(0);
    }
    std::vector<std::tuple<std::int64_t, State, std::int64_t>> tallies;
    for (sqlite::Rows rows = Sql("tally_live").Query(); rows.Next();) {
        tallies.emplace_back(rows.Int(0), static_cast<State>(rows.Int(1)), rows.Int(2));
    }
    for (auto [lane, state, n] : tallies) {
        QueueRecord& queue = queues[LaneAt(lane).queue];
        if (state == State::kOpen || state == State::kError) queue.waiting += n;
        if (state == State::kInProgress) queue.running += n;
    }
    std::vector<QueueRecord> records;
    for (auto& [name, record] : queues) records.push_back(std::move(record));
    return records;
}

// ---- one task ----

bool Reads::LoadFinished(TaskId id, TaskRow& row) {
    for (const Period& period : periods_.Of(PeriodKind::kHistory)) {
        sqlite::Rows rows = Sql("history_load", period.id).Query(id.value());
        if (!rows.Next()) continue;
        ReadHistory(rows, period.id, row);
        return true;
    }
    return false;
}

TaskRecord Reads::ToRecord(TaskRow& row) {
    const LaneNames& lane = LaneAt(row.lane);
    TaskRecord record;
    record.id = row.id;
    record.tenant = lane.tenant;
    record.parent = row.parent;
    record.type = lane.type;
    record.queue = lane.queue;
    record.placement = lane.placement;
    if (row.Has(kOrdered)) {
        sqlite::Rows order = Sql("ordered_get").Query(row.id.value());
        if (order.Next()) {
            record.placement.order_key = order.String(1);
            record.placement.on_failed_head = static_cast<OnFailedHead>(order.Int(3));
        }
    }
    record.state = row.state;
    record.priority = row.priority;
    record.input = std::move(row.input);
    record.output = std::move(row.output);
    record.error = ErrorOf(row.error);
    if (row.state != State::kInProgress) record.reason = std::move(row.reason);
    record.warning = row.Has(kWarning);
    record.type_known = !row.Has(kTypeUnknown);
    record.cancel_requested = row.Has(kCancelRequested);
    record.suspect = row.Has(kSuspect);
    record.stage = row.stage();
    record.retry = RetryOf(row.retry);
    record.attempt = row.attempt;
    record.max_attempts = record.retry.max_attempts;
    record.claim_no = row.claim_no;
    record.generation = row.generation;
    record.crash_count = row.crashes;
    record.tags = TagsOf(row.tags);
    record.unique_key = std::move(row.unique_key);
    record.idempotency_key = std::move(row.idem_key);
    record.timeout = row.timeout;
    record.progress = ProgressOf(row.progress);
    record.node = row.node;
    record.created_at = row.created_at;
    record.due_at = row.due_at;
    record.start_by = row.start_by;
    record.claimed_at = row.claimed_at;
    record.finished_at = row.finished_at;
    record.updated_at = row.updated_at;
    if (row.state == State::kBackground) record.expires_at = row.deadline_at;
    return record;
}

std::optional<TaskRecord> Reads::GetInView(TaskId task) {
    TaskRow row;
    {
        sqlite::Rows rows = Sql("get_task").Query(task.value());
        if (rows.Next()) {
            ReadTask(rows, row);
            SessionId session = FromBytes<SessionId>(rows.Bytes(32));
            auto lease_until = OptionalTime(rows, 33);
            TaskRecord record = ToRecord(row);
            if (row.state == State::kBlocked) record.waiting_for = PendingOf(task);
            if (row.state == State::kInProgress) {
                record.session = session;
                record.expires_at = lease_until;
            }
            return record;
        }
    }
    if (!LoadFinished(task, row)) return std::nullopt;
    return ToRecord(row);
}

std::optional<TaskRecord> Reads::Get(TaskId task) {
    View view(*this);
    return GetInView(task);
}

std::optional<TaskId> Reads::FindByIdempotencyKey(TenantId tenant, std::string_view key) {
    View view(*this);
    auto found = Sql("idem_task").Scalar(tenant.value(), key, Micros(clock_.WallTime()));
    return found ? std::optional(TaskId(*found)) : std::nullopt;
}

std::optional<SettleReply> Reads::SettledBy(TaskId task, LeaseToken token) {
    View view(*this);
    Bytes16 bytes = ToBytes(token);
    for (const Period& period : periods_.Of(PeriodKind::kAttempt)) {
        auto state = Sql("attempt_find_token", period.id).Scalar(task.value(), sqlite::Blob(bytes));
        if (state) return SettleReply{SettleReply::Kind::kAccepted, static_cast<State>(*state)};
    }
    {
        sqlite::Rows rows = Sql("running_attempt").Query(task.value());
        if (rows.Next() && FromBytes<LeaseToken>(rows.Bytes(8)) == token) return std::nullopt;
    }
    auto record = GetInView(task);
    return SettleReply{SettleReply::Kind::kLost, record ? record->state : State::kOpen};
}

std::vector<FinishedTask> Reads::Finished(std::span<const TaskId> tasks) {
    View view(*this);
    std::vector<FinishedTask> finished;
    TaskRow row;
    std::size_t bytes = 0;
    for (TaskId task : tasks) {
        if (bytes >= limits::kFinishedBytes) break;
        // Most of the asked ones still run: the live table answers first.
        if (Sql("task_exists").Scalar(task.value()) || !LoadFinished(task, row)) continue;
        bytes += row.output.size() + row.error.size();
        finished.push_back(
            {.id = row.id,
             .type = LaneAt(row.lane).type,
             .state = row.state,
             .output = std::move(row.output),
             .error = ErrorOf(row.error),
             .reason = std::move(row.reason),
             .warning = row.Has(kWarning)}
        );
    }
    return finished;
}

// ---- what happened to it ----

int Reads::PendingOf(TaskId task) {
    return static_cast<int>(Sql("wait_pending").Scalar(task.value()).value_or(0));
}

std::vector<WaitMember> Reads::Waited(TaskId task) {
    View view(*this);
    std::vector<WaitMember> members;
    for (sqlite::Rows rows = Sql("wait_member_list").Query(task.value()); rows.Next();) {
        auto ended = rows.IsNull(2) ? std::nullopt : std::optional(static_cast<State>(rows.Int(2)));
        members.push_back({TaskId(rows.Int(0)), TaskId(rows.Int(1)), ended});
    }
    return members;
}

std::vector<AttemptRecord> Reads::Attempts(TaskId task) {
    View view(*this);
    std::vector<AttemptRecord> attempts;
    if (!GetInView(task)) return attempts;  // its history is gone; what is left of it goes later
    auto read = [&attempts](const sqlite::Rows& rows) -> AttemptRecord& {
        AttemptRecord& attempt = attempts.emplace_back();
        attempt.task = TaskId(rows.Int(0));
        attempt.claim_no = static_cast<int>(rows.Int(1));
        attempt.attempt = static_cast<int>(rows.Int(2));
        attempt.generation = static_cast<int>(rows.Int(3));
        attempt.session = FromBytes<SessionId>(rows.Bytes(4));
        attempt.node = NodeId(rows.Int(5));
        attempt.started_at = FromMicros(rows.Int(6));
        return attempt;
    };
    auto number = [](const sqlite::Rows& rows, int column) {
        return rows.IsNull(column) ? std::nullopt
                                   : std::optional(static_cast<int>(rows.Int(column)));
    };
    for (const Period& period : periods_.Of(PeriodKind::kAttempt)) {
        sqlite::Rows rows = Sql("attempt_list", period.id).Query(task.value());
        while (rows.Next()) {
            AttemptRecord& attempt = read(rows);
            attempt.finished_at = FromMicros(rows.Int(7));
            attempt.end = static_cast<AttemptEnd>(rows.Int(8));
            attempt.alone = rows.Int(10) != 0;
            attempt.error = ErrorOf(rows.Text(12));
            attempt.exit_code = number(rows, 13);
            attempt.exit_signal = number(rows, 14);
            attempt.stderr_tail = rows.String(15);
        }
    }
    sqlite::Rows rows = Sql("running_attempt").Query(task.value());
    if (rows.Next()) read(rows).alone = (rows.Int(7) & kAlone) != 0;
    std::sort(attempts.begin(), attempts.end(), [](const auto& a, const auto& b) {
        return a.claim_no < b.claim_no;
    });
    return attempts;
}

std::vector<AuditEntry> Reads::Audit(const AuditRequest& request) {
    View view(*this);
    int limit = std::clamp(request.limit, 1, limits::kListPage);
    std::vector<AuditEntry> entries;
    for (const Period& period : periods_.Of(PeriodKind::kAudit)) {
        sqlite::Rows rows =
            request.task.valid()
                ? Sql("audit_of_task", period.id).Query(request.task.value(), request.after, limit)
                : Sql("audit_all", period.id).Query(request.after, limit);
        while (rows.Next()) {
            AuditEntry& entry = entries.emplace_back();
            entry.seq = rows.Int(0);
            entry.task = TaskId(rows.Int(1));
            entry.tenant = TenantId(rows.Int(2));
            if (!rows.IsNull(3)) entry.from = static_cast<State>(rows.Int(3));
            entry.to = static_cast<State>(rows.Int(4));
            entry.event = static_cast<Event>(rows.Int(5));
            entry.attempt = static_cast<int>(rows.Int(6));
            entry.generation = static_cast<int>(rows.Int(7));
            entry.at = FromMicros(rows.Int(8));
            entry.session = FromBytes<SessionId>(rows.Bytes(9));
            entry.actor = rows.String(10);
            entry.reason = rows.String(11);
        }
    }
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
        return a.seq < b.seq;
    });
    if (entries.size() > static_cast<std::size_t>(limit))
        entries.resize(static_cast<std::size_t>(limit));
    return entries;
}

}  // namespace stint::store::lite
