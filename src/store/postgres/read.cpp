// Looking at tasks: live and finished alike.
#include <algorithm>

#include "model/limits.h"
#include "store/postgres/store_impl.h"

namespace stint::store::pg {

namespace {

constexpr int kChunk = 500;  // rows of a filtered list fetched at a time
constexpr int kPeriodsPerLook = 8;
constexpr int kFirstLook = 1'000;  // rows that one look may meet, in each of the two places
constexpr int kWidestLook = 10'000;
constexpr int kLookCosts = 100;  // in rows: a look that meets none is not for nothing

Params IdsAndParts(std::span<const TaskId> tasks, const std::vector<int>& parts) {
    Params params;
    AddInts(params, Values(tasks));
    ArrayOf array(oid::kInt4);
    for (int part : parts) array.Int(part);
    array.AddTo(params);
    return params;
}

// tenant, states, types, prefixes, queues: what lists and counts share.
struct FilterColumns {
    ArrayOf states{oid::kInt2};
    std::vector<std::string> types, prefixes;
    explicit FilterColumns(const TaskFilter& filter) {
        for (State state : filter.states) states.Int(static_cast<int>(state));
        for (const std::string& type : filter.types) {
            if (type.ends_with('*')) {
                prefixes.push_back(type.substr(0, type.size() - 1));
            } else {
                types.push_back(type);
            }
        }
    }
    void AddTo(Params& params, const TaskFilter& filter) {
        filter.tenant ? params.Int(filter.tenant->value()) : params.Null(oid::kInt8);
        states.AddTo(params);
        AddTexts(params, types);
        AddTexts(params, prefixes);
        AddTexts(params, filter.queues);
    }
};

bool Wants(const TaskFilter& filter, bool terminal) {
    return filter.states.empty() ||
           std::any_of(filter.states.begin(), filter.states.end(), [&](State state) {
               return IsTerminal(state) == terminal;
           });
}

Params ListParams(const TaskFilter& filter, TaskId before, int limit) {
    Params params;
    params.Int(before.value()).Int4(limit);
    FilterColumns(filter).AddTo(params, filter);
    AddTexts(params, filter.tags);
    params.AtOrNull(filter.created_from).AtOrNull(filter.created_to);
    params.AtOrNull(filter.finished_from).AtOrNull(filter.finished_to);
    filter.parent.valid() ? params.Int(filter.parent.value()) : params.Null(oid::kInt8);
    return params;
}

// Where finished tasks of these periods may lie; see PeriodsOf.
void AddParts(Params& params, const Catalog::Stretch& stretch) {
    ArrayOf parts(oid::kInt4);
    for (int part = (stretch.oldest - 1) * kClasses; part < (stretch.newest + 2) * kClasses; ++part)
        parts.Int(part);
    parts.AddTo(params);
}

}  // namespace

// Where a finished task may lie: the period of its id, or the one before (see Catalog::PeriodOf),
// under any retention class.
std::vector<int> PostgresStore::PartsOf(std::span<const TaskId> tasks) {
    std::vector<int> parts;
    for (TaskId task : tasks) {
        for (int period : PeriodsOf(task)) {
            for (int c = 0; c < kClasses; ++c) parts.push_back(period * kClasses + c);
        }
    }
    std::sort(parts.begin(), parts.end());
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    return parts;
}

std::vector<int> PostgresStore::PeriodsOf(TaskId task) {
    int period = catalog_.PeriodOf(task);
    // One above as well: it may have been begun after we last looked.
    return {period - 1, period, period + 1};
}

std::vector<TaskRecord> PostgresStore::RecordsIn(
    Transaction& transaction, std::span<const TaskId> tasks
) {
    std::vector<TaskRecord> records;
    if (tasks.empty()) return records;
    Params ids;
    AddInts(ids, Values(tasks));
    Rows live = transaction.Query(db_.sql.live_of, ids);
    for (int i = 0; i < live.size(); ++i) records.push_back(ReadTask(live, i, catalog_));
    if (records.size() == tasks.size()) return records;
    Rows finished = transaction.Query(db_.sql.history_of, IdsAndParts(tasks, PartsOf(tasks)));
    for (int i = 0; i < finished.size(); ++i) records.push_back(ReadTask(finished, i, catalog_));
    return records;
}

std::vector<TaskRecord> PostgresStore::Records(std::span<const TaskId> tasks) {
    std::vector<TaskRecord> records;
    // A task may finish between the two looks; then it is in the second.
    Params ids;
    AddInts(ids, Values(tasks));
    if (tasks.empty()) return records;
    Rows live = db_.Read(db_.sql.live_of, ids);
    for (int i = 0; i < live.size(); ++i) records.push_back(ReadTask(live, i, catalog_));
    if (records.size() == tasks.size()) return records;
    Rows finished = db_.ReadPlanned(db_.sql.history_of, IdsAndParts(tasks, PartsOf(tasks)));
    for (int i = 0; i < finished.size(); ++i) records.push_back(ReadTask(finished, i, catalog_));
    return records;
}

std::vector<TaskId> PostgresStore::Existing(
    Transaction& transaction, std::span<const TaskId> tasks
) {
    std::vector<TaskId> there;
    if (tasks.empty()) return there;
    Rows rows = transaction.Query(db_.sql.ids_exist, IdsAndParts(tasks, PartsOf(tasks)));
    for (int i = 0; i < rows.size(); ++i) there.emplace_back(rows.Int(i, 0));
    return there;
}

std::map<TaskId, Time> PostgresStore::KeptUntil(
    Transaction& transaction, std::span<const TaskId> tasks, Duration earliest
) {
    std::map<TaskId, Time> kept;
    if (tasks.empty()) return kept;
    Params params = IdsAndParts(tasks, PartsOf(tasks));
    params.Int(earliest.count());
    Rows rows = transaction.Query(db_.sql.tasks_kept, params);
    for (int i = 0; i < rows.size(); ++i) kept.emplace(TaskId(rows.Int(i, 0)), rows.At(i, 1));
    return kept;
}

void AddLooks(Params& params, const std::map<TaskId, Time>& kept) {
    ArrayOf tasks(oid::kInt8), times(oid::kTimestamptz);
    for (const auto& [task, at] : kept) {
        tasks.Int(task.value());
        times.At(at);
    }
    tasks.AddTo(params);
    times.AddTo(params);
}

std::vector<std::int64_t> WithoutThose(
    std::span<const TaskId> tasks, const std::map<TaskId, Time>& kept
) {
    std::vector<std::int64_t> gone;
    for (TaskId task : tasks) {
        if (!kept.contains(task)) gone.push_back(task.value());
    }
    return Sorted(std::move(gone));
}

std::optional<TaskRecord> PostgresStore::Get(TaskId task) {
    std::vector<TaskRecord> records = Records({&task, 1});
    if (records.empty()) return std::nullopt;
    // Revived between the two looks: the later one is the history's, the earlier is newer.
    return records.front();
}

std::optional<TaskId> PostgresStore::FindByIdempotencyKey(TenantId tenant, std::string_view key) {
    Params params;
    params.Number(tenant).Text(key);
    Rows rows = db_.Read(db_.sql.idem_of, params);
    if (rows.empty()) return std::nullopt;
    return TaskId(rows.Int(0, 0));
}

// The next stretch of ids below `before`, short enough to be looked at in one statement whatever
// the filter leaves of it.
PostgresStore::Look PostgresStore::LookBelow(const TaskFilter& filter, TaskId before, int rows) {
    Look look;
    look.before = before;
    bool finished = Wants(filter, true);
    if (finished) {
        TaskId newest = std::max(TaskId(before.value() - 1), TaskId(1));
        look.stretch = catalog_.StretchBelow(newest, kPeriodsPerLook);
    }
    Params params;
    params.Int(before.value()).Int4(rows).Int(look.stretch.first_id);
    AddParts(params, look.stretch);
    params.Bool(Wants(filter, false)).Bool(finished);
    Rows floor = db_.ReadRange(db_.sql.list_floor, params);
    look.floor = TaskId(floor.Int(0, 0));
    look.rows = static_cast<int>(floor.Int(0, 1));
    return look;
}

std::vector<TaskRecord> PostgresStore::Candidates(
    const TaskFilter& filter, const Look& look, int limit
) {
    std::vector<TaskRecord> found;
    Params params = ListParams(filter, look.before, limit);
    params.Int(look.floor.value());
    AddParts(params, look.stretch);
    for (bool terminal : {false, true}) {
        if (!Wants(filter, terminal)) continue;
        Rows rows = db_.ReadRange(terminal ? db_.sql.list_history : db_.sql.list_live, params);
        for (int i = 0; i < rows.size(); ++i) found.push_back(ReadTask(rows, i, catalog_));
    }
    std::sort(found.begin(), found.end(), [](const TaskRecord& a, const TaskRecord& b) {
        return a.id > b.id;
    });
    // Finished between the two looks: once is enough.
    auto same = [](const TaskRecord& a, const TaskRecord& b) { return a.id == b.id; };
    found.erase(std::unique(found.begin(), found.end(), same), found.end());
    if (static_cast<int>(found.size()) > limit) found.resize(static_cast<std::size_t>(limit));
    return found;
}

TaskPage PostgresStore::List(const ListRequest& request) {
    auto limit = static_cast<std::size_t>(std::clamp(request.limit, 1, limits::kListPage));
    TaskPage page;
    TaskId before = request.before.value_or(TaskId(std::numeric_limits<std::int64_t>::max()));
    // Only matches on the input are left to us; without any, one chunk is the page.
    int chunk = request.filter.input.empty() ? static_cast<int>(limit) + 1 : kChunk;
    int width = std::max(kFirstLook, chunk);
    for (int looked = 0; looked < limits::kHistoryScan; width = std::min(width * 4, kWidestLook)) {
        Look look = LookBelow(request.filter, before, width);
        looked += look.rows + kLookCosts;
        for (bool more = true; more;) {
            std::vector<TaskRecord> found = Candidates(request.filter, look, chunk);
            more = static_cast<int>(found.size()) == chunk;
            for (TaskRecord& task : found) {
                look.before = task.id;
                if (!Matches(request.filter, task)) continue;
                if (page.tasks.size() == limit) {
                    page.next = page.tasks.back().id;
                    return page;
                }
                page.tasks.push_back(std::move(task));
            }
        }
        if (look.floor.value() == 0) return page;
        before = look.floor;
    }
    // Looked at enough for one call; the next one goes on from here.
    page.next = before;
    return page;
}

std::map<CountKey, std::int64_t> PostgresStore::Counts(const TaskFilter& filter) {
    std::map<CountKey, std::int64_t> counts;
    Params params;
    FilterColumns(filter).AddTo(params, filter);
    // Who asks for what is over does not pay for a walk through all that waits.
    auto wanted = [&](bool over) {
        return filter.states.empty() ||
               std::ranges::any_of(filter.states, [&](State s) { return IsTerminal(s) == over; });
    };
    std::vector<const postgres::Statement*> statements;
    if (wanted(false)) statements.push_back(&db_.sql.counts_live);
    if (wanted(true)) statements.push_back(&db_.sql.counts_history);
    for (const postgres::Statement* statement : statements) {
        Rows rows = db_.ReadPlanned(*statement, params);
        for (int i = 0; i < rows.size(); ++i) {
            CountKey key{static_cast<State>(rows.Int(i, 0)), rows.Text(i, 1), rows.Text(i, 2)};
            counts[key] += rows.Int(i, 3);
        }
    }
    return counts;
}

std::vector<Crowd> PostgresStore::Crowds(const std::string& queue) {
    Params params;
    params.Text(queue);
    Rows rows = db_.ReadPlanned(db_.sql.crowds, params);
    std::vector<Crowd> crowds;
    for (int i = 0; i < rows.size(); ++i) {
        crowds.push_back({.tasks = rows.Int(i, 0), .last = TaskId(rows.Int(i, 1))});
    }
    return crowds;
}

std::vector<AttemptRecord> PostgresStore::Attempts(TaskId task) {
    Params params;
    params.Number(task);
    ArrayOf periods(oid::kInt4), parts(oid::kInt4);
    for (int period : PeriodsOf(task)) periods.Int(period);
    for (int part : PartsOf({&task, 1})) parts.Int(part);
    periods.AddTo(params);
    parts.AddTo(params);
    Rows rows = db_.ReadPlanned(db_.sql.attempts_of, params);
    std::vector<AttemptRecord> attempts;
    for (int i = 0; i < rows.size(); ++i) attempts.push_back(ReadAttempt(rows, i));
    return attempts;
}

// Stretch by stretch, so that no statement runs into its time limit however much is kept.
Rows PostgresStore::FirstThatDoesNotReplay() {
    TaskId before(std::numeric_limits<std::int64_t>::max());
    for (;;) {
        Look look = LookBelow({}, before, kWidestLook);
        Params params;
        params.Int(look.floor.value()).Int(before.value());
        AddParts(params, look.stretch);
        Rows wrong = db_.ReadPlanned(db_.sql.check_replay, params);
        if (!wrong.empty() || look.floor.value() == 0) return wrong;
        before = look.floor;
    }
}

std::vector<AuditEntry> PostgresStore::Audit(const AuditRequest& request) {
    Params params;
    if (request.task.valid()) params.Number(request.task);
    params.Int(request.after).Int4(std::clamp(request.limit, 1, limits::kListPage));
    Rows rows =
        db_.ReadPlanned(request.task.valid() ? db_.sql.audit_of : db_.sql.audit_all, params);
    std::vector<AuditEntry> entries;
    for (int i = 0; i < rows.size(); ++i) entries.push_back(ReadAudit(rows, i));
    return entries;
}

std::vector<FinishedTask> PostgresStore::Finished(std::span<const TaskId> tasks) {
    std::vector<FinishedTask> finished;
    if (tasks.empty()) return finished;
    Params params = IdsAndParts(tasks, PartsOf(tasks));
    params.Int(limits::kFinishedBytes);
    Rows rows = db_.ReadPlanned(db_.sql.finished_of, params);
    for (int i = 0; i < rows.size(); ++i) {
        finished.push_back(
            {TaskId(rows.Int(i, 0)),
             rows.Text(i, 6),
             static_cast<State>(rows.Int(i, 1)),
             rows.Text(i, 2),
             ReadError(rows.View(i, 3)),
             rows.Text(i, 4),
             rows.Bool(i, 5)}
        );
    }
    return finished;
}

namespace {

// The columns of queues.sql and change_queue.sql.
QueueSettings ReadQueue(const Rows& rows, int i) {
    auto kept = [&](int column) -> std::optional<Duration> {
        if (rows.IsNull(i, column)) return std::nullopt;
        return Duration(rows.Int(i, column));
    };
    QueueSettings settings;
    settings.name = rows.Text(i, 0);
    settings.paused = rows.Bool(i, 1);
    if (!rows.IsNull(i, 2)) settings.cap = rows.Int(i, 2);
    settings.keep_complete = kept(3);
    settings.keep_dead = kept(4);
    settings.keep_cancelled = kept(5);
    settings.changed_by = rows.Text(i, 6);
    if (!rows.IsNull(i, 7)) settings.changed_at = rows.At(i, 7);
    return settings;
}

}  // namespace

std::vector<QueueRecord> PostgresStore::Queues() {
    Rows rows = db_.ReadPlanned(db_.sql.queues);
    std::vector<QueueRecord> queues;
    for (int i = 0; i < rows.size(); ++i) {
        queues.push_back({ReadQueue(rows, i), rows.Int(i, 8), rows.Int(i, 9)});
    }
    return queues;
}

std::optional<QueueSettings> PostgresStore::ChangeQueue(
    const QueueChange& change, std::string_view actor
) {
    Params params;
    params.Text(change.name).Bool(change.create).Text(actor);
    change.paused ? params.Bool(*change.paused) : params.Null(oid::kBool);
    auto add = [&](bool changes, std::optional<std::int64_t> value) {
        params.Bool(changes);
        value ? params.Int(*value) : params.Null(oid::kInt8);
    };
    auto add_kept = [&](const std::optional<std::optional<Duration>>& kept) {
        bool some = kept && kept->has_value();
        add(kept.has_value(), some ? std::optional((*kept)->count()) : std::nullopt);
    };
    add(change.cap.has_value(), change.cap.value_or(std::nullopt));
    add_kept(change.keep_complete);
    add_kept(change.keep_dead);
    add_kept(change.keep_cancelled);
    return db_.Run([&](Transaction& transaction) -> std::optional<QueueSettings> {
        Rows rows = transaction.Query(db_.sql.change_queue, params);
        if (rows.empty()) return std::nullopt;
        return ReadQueue(rows, 0);
    });
}

}  // namespace stint::store::pg
