#include "store/sqlite/ops.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>

#include "base/check.h"
#include "base/planted_bug.h"
#include "store/event_words.h"
#include "store/sqlite/events.h"
#include "store/sqlite/queries.h"

namespace stint::store::lite {

namespace {

constexpr int kSeqBlock = 100'000;

bool IsOurs(std::string_view name) {
    static constexpr std::array kViews = {
        std::string_view{"task"},
        std::string_view{"task_status"},
        std::string_view{"task_task_dep"},
        std::string_view{"task_resource"},
        std::string_view{"task_resource_dep"},
        std::string_view{"task_joins"},
        std::string_view{"node"},
        std::string_view{"audit_logs"},
    };
    return name.starts_with("stint_") ||
           std::find(kViews.begin(), kViews.end(), name) != kViews.end();
}

template <class Delta>
void Merge(std::vector<Delta>& deltas, const Delta& delta) {
    for (Delta& one : deltas) {
        if (one.period == delta.period && one.lane == delta.lane && one.state == delta.state) {
            one.by += delta.by;
            return;
        }
    }
    deltas.push_back(delta);
}

}  // namespace

Ops::Ops(sqlite::Connection& db, base::Clock& clock, base::Random& random)
    : db_(db), clock_(clock), random_(random), gate_(db, IsOurs), lanes_(db), periods_(db) {
    db_.Define("stint_token", [this](std::int64_t task) { return TokenOf(task); });
    WatchRows();
}

void Ops::WatchRows() {
    recent_.Clear();
    db_.OnChange([this](std::string_view table, std::int64_t row) {
        // What a claim changes is remembered as it becomes.
        if (table == "stint_task" && claimed_.empty()) recent_.Drop(TaskId(row));
    });
}

void Ops::BeginMember() {
    now_ = clock_.WallTime();
    opened_.clear();
    freed_.clear();
    ended_.clear();
    dead_letters_ = false;
    any_results_.reset();
}

void Ops::EndMember() {
    SaveBook();
    for (const Delta& delta : deltas_) Merge(gathered_deltas_, delta);
    deltas_.clear();
    std::move(entries_.begin(), entries_.end(), std::back_inserter(gathered_entries_));
    entries_.clear();
    arrivals_before_ = arrivals_.size();
}

void Ops::WriteMember() {
    SaveBook();
    AddTallies(deltas_);
    WriteEntries(entries_);
}

void Ops::BeginGroup() {
    arrivals_.clear();
    arrivals_before_ = arrivals_bytes_ = 0;
    gathered_deltas_.clear();
    gathered_entries_.clear();
}

void Ops::WriteGathered() {
    WriteArrivals();
    AddTallies(gathered_deltas_);
    WriteEntries(gathered_entries_);
}

void Ops::MakeRoom() {
    if (arrivals_.size() >= kRowsAtOnce || arrivals_bytes_ >= kBytesAtOnce) WriteArrivals();
}

void Ops::WriteArrivals() {
    InsertRows("task_insert", std::span<const TaskRow>(arrivals_), FillTask);
    arrivals_.clear();
    arrivals_before_ = arrivals_bytes_ = 0;
}

void Ops::AddTallies(std::vector<Delta>& deltas) {
    for (const Delta& delta : deltas) {
        if (delta.by == 0) continue;
        Sql("tally_add").Run(delta.period, delta.lane, static_cast<int>(delta.state), delta.by);
    }
    deltas.clear();
}

void Ops::Forget() {
    book_.reset();
    lanes_.Forget();
    periods_.Forget();
    seq_next_ = seq_end_ = 0;
    next_id_.reset();
    newest_finished_.reset();
    deltas_.clear();
    entries_.clear();
    attempts_.clear();
    finished_count_ = finished_bytes_ = 0;
    claimed_.clear();
    recent_.Clear();
    arrivals_.resize(arrivals_before_);
    releasing_.clear();
    slots_.clear();
    gathers_ends_ = false;
    ended_.clear();
    queues_.reset();
    types_.reset();
    members_.reset();
    sessions_.clear();
    session_by_no_.clear();
}

// ---- numbers ----

std::int64_t Ops::NextSeq() {
    if (seq_next_ == seq_end_) {
        auto next = Sql("counter_take").Scalar(kSeqBlock, "seq");
        CHECK(next.has_value());
        seq_end_ = *next;
        seq_next_ = seq_end_ - kSeqBlock;
    }
    return seq_next_++;
}

std::int64_t Ops::TakeIds(int count) {
    // A rollback takes the counter back, but somebody may have seen the ids.
    RaiseIds(TaskId(given_out_ - 1));
    auto next = Sql("counter_take").Scalar(count, "task");
    CHECK(next.has_value());
    next_id_ = *next;
    given_out_ = *next;
    return *next - count;
}

// An id that came from outside is never given out again.
void Ops::RaiseIds(TaskId used) {
    if (next_id_ && used.value() < *next_id_) return;
    // `next_id_` may be below the counter, never above it: that only costs a statement.
    Sql("counter_raise").Run(used.value() + 1);
    next_id_ = used.value() + 1;
}

TaskId Ops::ReserveIds(int count) {
    CHECK(count > 0 && count <= limits::kIdBlock);
    return TaskId(TakeIds(count));
}

void Ops::Count(std::int64_t period, std::int64_t lane, State state, int by) {
    Merge(deltas_, Delta{period, lane, state, by});
}

// ---- settings ----

const QueueSettings* Ops::QueueOf(const std::string& name) {
    if (!queues_) {
        queues_.emplace();
        for (sqlite::Rows rows = Sql("queue_list").Query(); rows.Next();) {
            QueueSettings settings = ReadQueue(rows);
            queues_->emplace(settings.name, settings);
        }
    }
    auto found = queues_->find(name);
    return found == queues_->end() ? nullptr : &found->second;
}

const TypeDefaults* Ops::TypeOf(const std::string& name) {
    if (!types_) {
        types_.emplace();
        for (sqlite::Rows rows = Sql("type_list").Query(); rows.Next();) {
            TypeRecord record = ReadType(rows);
            types_->emplace(record.defaults.type, record);
        }
    }
    auto found = types_->find(name);
    return found == types_->end() ? nullptr : &found->second.defaults;
}

Duration Ops::KeepOf(State state, const std::string& queue) {
    const QueueSettings* settings = QueueOf(queue);
    if (settings == nullptr) return limits::kRetention;
    switch (state) {
        case State::kComplete:
            return settings->keep_complete.value_or(limits::kRetention);
        case State::kDead:
            return settings->keep_dead.value_or(limits::kRetention);
        case State::kCancelled:
            return settings->keep_cancelled.value_or(limits::kRetention);
        default:
            return limits::kRetention;
    }
}

Duration Ops::KeepRecords(const std::string& queue) {
    const QueueSettings* settings = QueueOf(queue);
    if (settings == nullptr) return limits::kRetention;
    return std::max(
        {Duration(limits::kRetention),
         settings->keep_complete.value_or(Duration::zero()),
         settings->keep_dead.value_or(Duration::zero()),
         settings->keep_cancelled.value_or(Duration::zero())}
    );
}

std::optional<QueueSettings> Ops::ChangeQueue(const QueueChange& change, std::string_view actor) {
    const QueueSettings* known = QueueOf(change.name);
    bool there = known != nullptr || std::ranges::any_of(lanes_.All(), [&](const Lane& lane) {
                     return lane.queue == change.name;
                 });
    if (!there && !change.create) return std::nullopt;
    QueueSettings settings = known != nullptr ? *known : QueueSettings{.name = change.name};
    Apply(change, settings);
    settings.changed_by = actor;
    settings.changed_at = now_;
    auto millis = [](const std::optional<Duration>& duration) {
        return duration ? std::optional<std::int64_t>(duration->count()) : std::nullopt;
    };
    Sql("queue_set")
        .Run(
            settings.name,
            settings.paused,
            settings.cap,
            millis(settings.keep_complete),
            millis(settings.keep_dead),
            millis(settings.keep_cancelled),
            settings.changed_by,
            Micros(settings.changed_at)
        );
    queues_.reset();
    return settings;
}

std::int64_t Ops::WaitingIn(const std::string& queue) {
    std::int64_t waiting = 0;
    for (const Lane& lane : lanes_.All()) {
        if (lane.queue != queue) continue;
        for (State state : {State::kOpen, State::kError}) {
            waiting += Sql("tally_one").Scalar(0, lane.id, static_cast<int>(state)).value_or(0);
        }
        for (const auto* deltas : {&deltas_, &gathered_deltas_}) {
            for (const Delta& delta : *deltas) {
                bool is_waiting = delta.state == State::kOpen || delta.state == State::kError;
                if (delta.period == 0 && delta.lane == lane.id && is_waiting) waiting += delta.by;
            }
        }
    }
    return waiting;
}

// ---- one task ----

bool Ops::Load(TaskId id, TaskRow& row) {
    if (const TaskRow* recent = recent_.Find(id)) {
        row = *recent;
        return true;
    }
    sqlite::Rows rows = Sql("task_load").Query(id.value());
    if (!rows.Next()) return false;
    ReadTask(rows, row);
    return true;
}

bool Ops::LoadFinished(TaskId id, TaskRow& row) {
    for (const Period& period : periods_.Of(PeriodKind::kHistory)) {
        sqlite::Rows rows = Sql("history_load", period.id).Query(id.value());
        if (!rows.Next()) continue;
        ReadHistory(rows, period.id, row);
        return true;
    }
    return false;
}

bool Ops::Exists(TaskId id) {
    auto is_it = [id](const TaskRow& row) { return row.id == id; };
    if (std::ranges::any_of(arrivals_, is_it)) return true;
    if (Sql("task_exists").Scalar(id.value())) return true;
    const auto& periods = periods_.Of(PeriodKind::kHistory);
    if (!newest_finished_) {
        newest_finished_ = 0;
        for (const Period& period : periods) {
            auto newest = Sql("history_newest", period.id).Scalar().value_or(0);
            newest_finished_ = std::max(*newest_finished_, newest);
        }
    }
    if (id.value() > *newest_finished_) return false;
    return std::any_of(periods.begin(), periods.end(), [&](const Period& period) {
        return Sql("history_exists", period.id).Scalar(id.value()).has_value();
    });
}

void Ops::Move(TaskRow& row, std::optional<State> from, Event event, const Why& why) {
    std::optional<State> to = Next(from, event);
    CHECK_WHY(to.has_value(), EventName(event));
    LeaveLater(row);
    if (from && !IsTerminal(*from)) Count(0, row.lane, *from, -1);
    if (!IsTerminal(*to)) Count(0, row.lane, *to, 1);
    row.state = *to;
    row.updated_at = now_;
    Audit(row, from, *to, event, why);
}

void Ops::Audit(
    const TaskRow& row, std::optional<State> from, State to, Event event, const Why& why
) {
    if (base::Planted(base::Bug::kAuditOutsideTransaction) && random_.Below(16) == 0) return;
    const Lane& lane = lanes_.At(row.lane);
    std::int64_t period = periods_.At(PeriodKind::kAudit, KeepRecords(lane.queue), now_);
    entries_.push_back({
        .period = period,
        .seq = NextSeq(),
        .task = row.id,
        .tenant = lane.tenant,
        .from = from,
        .to = to,
        .event = event,
        .attempt = row.attempt,
        .generation = row.generation,
        .at = now_,
        .session = why.session.valid() ? std::optional(ToBytes(why.session)) : std::nullopt,
        .actor = std::string(why.actor),
        .reason = std::string(why.reason),
    });
}

void Ops::RunForAll(std::string_view name, std::span<const TaskId> tasks) {
    while (!tasks.empty()) {
        const std::size_t count = std::bit_floor(std::min(tasks.size(), kRowsAtOnce));
        sqlite::Statement& statement = SqlAnyOf(db_, name, count);
        int index = 0;
        for (TaskId task : tasks.first(count)) statement.Fill(index, task.value());
        statement.RunFilled(index);
        tasks = tasks.subspan(count);
    }
}

void Ops::WriteEntries(std::vector<Entry>& entries) {
    auto fill = [](sqlite::Statement& insert, int& index, const Entry& entry) {
        insert.Fill(
            index,
            entry.seq,
            entry.task.value(),
            entry.tenant.value(),
            entry.from ? std::optional<int>(static_cast<int>(*entry.from)) : std::nullopt,
            static_cast<int>(entry.to),
            static_cast<int>(entry.event),
            entry.attempt,
            entry.generation,
            Micros(entry.at),
            entry.session ? std::optional(sqlite::Blob(*entry.session)) : std::nullopt,
            OrNull(entry.actor),
            OrNull(entry.reason)
        );
    };
    InsertRows("audit_insert", std::span<const Entry>(entries), fill);
    entries.clear();
}

void Ops::WriteEnds() {
    auto fill = [](sqlite::Statement& insert, int& index, const AttemptRow& row) {
        insert.Fill(
            index,
            row.task.value(),
            row.claim_no,
            row.attempt,
            row.generation,
            row.session ? std::optional(sqlite::Blob(*row.session)) : std::nullopt,
            row.node.value(),
            Micros(row.started_at),
            Micros(row.finished_at),
            static_cast<int>(row.end),
            static_cast<int>(row.state),
            row.alone,
            row.token ? std::optional(sqlite::Blob(*row.token)) : std::nullopt,
            OrNull(row.error),
            row.exit_code,
            row.exit_signal,
            OrNull(row.stderr_tail)
        );
    };
    InsertRows("attempt_insert", std::span<const AttemptRow>(attempts_), fill);
    attempts_.clear();
    RunForAll("slot_release", releasing_);
    releasing_.clear();
    std::span<const TaskRow> finished(finished_.data(), finished_count_);
    InsertRows("history_insert", finished, FillHistory);
    std::vector<TaskId> over;
    for (const TaskRow& row : finished) over.push_back(row.id);
    ForEachRun(std::move(over), [this](std::int64_t first, std::int64_t last) {
        Sql("task_delete").Run(first, last);
    });
    finished_count_ = finished_bytes_ = 0;
}

void Ops::Persist(TaskRow& row) {
    if (IsTerminal(row.state)) {
        Finish(row);
    } else {
        SaveTask(Sql("task_save"), row);
    }
}

void Ops::Finish(TaskRow& row) {
    CHECK(IsTerminal(row.state));
    if (row.state == State::kComplete) TellJoins(row);
    ReleaseKeys(row);
    row.finished_at = now_;
    row.Set(kSuspect, false);
    row.Set(kAlone, false);
    Duration keep = KeepOf(row.state, lanes_.At(row.lane).queue);
    row.period = periods_.At(PeriodKind::kHistory, keep, now_);
    if (finished_count_ == finished_.size()) finished_.emplace_back();
    finished_[finished_count_++] = row;
    finished_bytes_ += row.input.size() + row.output.size();
    const bool many = finished_count_ == kRowsAtOnce || finished_bytes_ >= kBytesAtOnce;
    if (!gathers_ends_ || many) WriteEnds();
    Count(row.period, row.lane, row.state, 1);
    if (newest_finished_) newest_finished_ = std::max(*newest_finished_, row.id.value());
    if (row.Has(kHasWait)) {
        Sql("wait_remove").Run(row.id.value());
        Sql("wait_member_remove").Run(row.id.value());
    }
    if (row.Has(kOrdered)) EndOrder(row);
    if (row.Has(kWaitedFor)) TellWaiters(row);
}

// A task is complete: if a join waits for its type, that is an event.
void Ops::TellJoins(const TaskRow& row) {
    if (!members_) {
        members_.emplace();
        for (sqlite::Rows rows = Sql("member_list").Query(); rows.Next();) {
            members_->emplace(TenantId(rows.Int(0)), rows.String(1));
        }
    }
    if (members_->empty()) return;
    const Lane& lane = lanes_.At(row.lane);
    if (!members_->contains({lane.tenant, lane.type})) return;
    EventOps(*this).Add(CompletionOf(row.id, lane.tenant));
}

void Ops::ReleaseKeys(const TaskRow& row) {
    if (row.unique_key.empty() && row.debounce_key.empty()) return;
    const Lane& lane = lanes_.At(row.lane);
    if (!row.unique_key.empty() && !base::Planted(base::Bug::kUniqueKeyNotReleased)) {
        Sql("unique_remove").Run(lane.tenant.value(), lane.type, row.unique_key, row.id.value());
    }
    if (!row.debounce_key.empty()) {
        Sql("debounce_remove")
            .Run(lane.tenant.value(), lane.type, row.debounce_key, row.id.value());
    }
}

void Ops::ToWaiting(TaskRow& row, Time due_at) {
    row.due_at = due_at;
    row.session = 0;
    row.token = {};
    row.deadline_at.reset();
    row.Set(kAlone, false);
    if (due_at > now_) {
        row.wait = row.Has(kSuspect) ? Wait::kLaterSuspect : Wait::kLater;
    } else {
        row.wait = row.Has(kSuspect) ? Wait::kReadySuspect : Wait::kReady;
    }
    if (row.Has(kOrdered) && !IsFirst(row)) row.wait = Wait::kBehind;
    NoteWaiting(row);
}

void Ops::NoteWaiting(const TaskRow& row) {
    Lane& lane = lanes_.At(row.lane);
    if (row.wait == Wait::kReady) lane.may_be_ready = true;
    if (row.wait == Wait::kReadySuspect) lane.may_have_suspects = true;
    if (row.wait == Wait::kLater) lane.later.Note(row.due_at);
    if (row.wait == Wait::kLaterSuspect) lane.later_suspect.Note(row.due_at);
}

// It may have been the lane's first to become due: a claim looks again.
void Ops::LeaveLater(const TaskRow& row) {
    if (row.wait == Wait::kLater) lanes_.At(row.lane).later.known = false;
    if (row.wait == Wait::kLaterSuspect) lanes_.At(row.lane).later_suspect.known = false;
}

void Ops::ChangeLane(TaskRow& row, std::string_view queue, const Placement& placement) {
    const Lane& old = lanes_.At(row.lane);
    const Lane& lane = lanes_.Of(old.tenant, queue, old.type, placement);
    if (lane.id == row.lane) return;
    LeaveLater(row);
    Count(0, row.lane, row.state, -1);
    Count(0, lane.id, row.state, 1);
    row.lane = lane.id;
}

void Ops::EndAttempt(const TaskRow& row, const Ending& ending) {
    std::int64_t period =
        periods_.At(PeriodKind::kAttempt, KeepRecords(lanes_.At(row.lane).queue), now_);
    const SessionFacts* session = SessionAt(row.session);
    attempts_.push_back({
        .period = period,
        .task = row.id,
        .claim_no = row.claim_no,
        .attempt = row.attempt,
        .generation = row.generation,
        .session = session != nullptr ? std::optional(ToBytes(session->id)) : std::nullopt,
        .node = row.node,
        .started_at = row.claimed_at.value_or(now_),
        .finished_at = now_,
        .end = ending.end,
        .state = row.state,
        .alone = row.Has(kAlone),
        .token = ending.by_holder ? std::optional(ToBytes(row.token)) : std::nullopt,
        .error = ending.error,
        .exit_code = ending.exit_code,
        .exit_signal = ending.exit_signal,
        .stderr_tail = std::string(ending.stderr_tail),
    });
    // Every way out of a lease comes by here.
    ReleaseSlots(row.id, ending.end);
    if (!gathers_ends_) WriteEnds();
}

// ---- sessions as remembered ----

Ops::SessionFacts* Ops::FindSession(SessionId id) {
    if (auto found = sessions_.find(id); found != sessions_.end()) return &found->second;
    Bytes16 bytes = ToBytes(id);
    sqlite::Rows rows = Sql("session_find").Query(sqlite::Blob(bytes));
    if (!rows.Next()) return nullptr;
    SessionFacts facts{
        .no = rows.Int(0),
        .id = id,
        .node = NodeId(rows.Int(1)),
        .state = static_cast<SessionState>(rows.Int(2)),
        .lease_until = FromMicros(rows.Int(3)),
        .hostname = rows.String(4),
    };
    session_by_no_[facts.no] = id;
    return &(sessions_[id] = facts);
}

const Ops::SessionFacts* Ops::SessionAt(std::int64_t no) {
    if (no == 0) return nullptr;
    if (auto found = session_by_no_.find(no); found != session_by_no_.end()) {
        return FindSession(found->second);
    }
    SessionId id;
    {
        sqlite::Rows rows = Sql("session_of_no").Query(no);
        if (!rows.Next()) return nullptr;
        id = FromBytes<SessionId>(rows.Bytes(0));
    }
    return FindSession(id);
}

}  // namespace stint::store::lite
