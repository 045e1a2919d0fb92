// Schedules as rows: put, look, change.
#include "store/postgres/schedules.h"

#include <algorithm>

#include "base/check.h"
#include "base/json.h"
#include "store/postgres/store_impl.h"
#include "store/schedule_rules.h"

namespace stint::store::pg {

namespace {

constexpr int kLooks = 20;

// Of the columns of schedule_find.
Schedule ReadSchedule(const Rows& rows, int row) {
    Schedule schedule;
    schedule.spec = ReadSpec(rows.View(row, 1), rows.View(row, 14));
    schedule.id = ScheduleId(rows.Int(row, 0));
    schedule.revision = static_cast<int>(rows.Int(row, 2));
    schedule.turn = rows.Int(row, 3);
    schedule.paused = rows.Bool(row, 4);
    schedule.created_at = rows.At(row, 5);
    schedule.considered_at = rows.At(row, 6);
    schedule.next_at = rows.MaybeAt(row, 7);
    schedule.queued_at = rows.MaybeAt(row, 8);
    schedule.last_instant = rows.MaybeAt(row, 9);
    schedule.last_task = TaskId(rows.Int(row, 10));
    schedule.running = ReadRunning(rows.View(row, 11));
    schedule.changed_by = rows.Text(row, 12);
    schedule.changed_at = rows.At(row, 13);
    return schedule;
}

// A schedule that a newer program wrote is that program's to fire, and holds nobody up here.
std::vector<Schedule> ReadThoseWeKnow(const Rows& rows) {
    std::vector<Schedule> schedules;
    for (int i = 0; i < rows.size(); ++i) {
        if (rows.IsNull(i, 0)) continue;
        try {
            schedules.push_back(ReadSchedule(rows, i));
        } catch (const WrongSchema&) {
            continue;
        }
    }
    return schedules;
}

std::vector<Schedule> ReadSchedules(const Rows& rows) {
    std::vector<Schedule> schedules;
    for (int i = 0; i < rows.size(); ++i) schedules.push_back(ReadSchedule(rows, i));
    return schedules;
}

Visit ReadVisit(const Rows& rows, int row, ScheduleId schedule, int first) {
    Visit visit;
    visit.schedule = schedule;
    visit.entity = rows.Text(row, first);
    if (!rows.IsNull(row, first + 1)) visit.every = Duration(rows.Int(row, first + 1));
    visit.next_at = rows.At(row, first + 2);
    visit.last_at = rows.MaybeAt(row, first + 3);
    return visit;
}

bool HasVisits(const Schedule& schedule) {
    return schedule.spec.timing.kind == TimingSpec::Kind::kVisits;
}

void Earliest(std::optional<Time>& into, const std::optional<Time>& at) {
    if (at) into = into ? std::min(*into, *at) : *at;
}

}  // namespace

PostgresSchedules::PostgresSchedules(PostgresStore& store) : store_(store), db_(store.db()) {
}

Time PostgresSchedules::NowIn(Transaction& transaction, const Sql& sql) {
    return transaction.Query(sql.now).At(0, 0);
}

std::optional<Schedule> PostgresSchedules::FindLocked(
    Transaction& transaction, TenantId tenant, std::string_view name
) {
    Rows rows = transaction.Query(db_.sql.schedule_find_lock, Params().Number(tenant).Text(name));
    if (rows.empty()) return std::nullopt;
    return ReadSchedule(rows, 0);
}

std::map<ScheduleId, Schedule> PostgresSchedules::Lock(
    Transaction& transaction, std::vector<std::int64_t> ids
) {
    Params params;
    AddInts(params, Sorted(std::move(ids)));
    std::map<ScheduleId, Schedule> locked;
    for (Schedule& schedule : ReadSchedules(transaction.Query(db_.sql.schedule_lock, params))) {
        ScheduleId id = schedule.id;
        locked.emplace(id, std::move(schedule));
    }
    return locked;
}

Result<Schedule> PostgresSchedules::Put(const SchedulePut& put) {
    return db_.Run([&](Transaction& transaction) -> Result<Schedule> {
        HoldCalendars(transaction, put.spec);
        for (int look = 0; look < kLooks; ++look) {
            std::optional<Schedule> found = FindLocked(transaction, put.spec.tenant, put.spec.name);
            int revision = found ? found->revision : 0;
            if (put.expected_revision && *put.expected_revision != revision) {
                return UnexpectedRevision(put, revision);
            }
            Schedule schedule = found.value_or(Schedule{});
            Replace(schedule, put, NowIn(transaction, db_.sql));
            if (found) {
                Save(transaction, schedule);
                if (VisitsComeSooner(found->spec, put.spec)) {
                    ShortenVisits(transaction, schedule, found->spec.timing.every);
                }
                return schedule;
            }
            Rows made = transaction.Query(
                db_.sql.schedule_insert,
                Params()
                    .Number(put.spec.tenant)
                    .Text(put.spec.name)
                    .Text(ScheduleToJson(schedule.spec))
                    .Bool(HasVisits(schedule))
                    .Bool(schedule.paused)
                    .At(schedule.created_at)
                    .AtOrNull(schedule.next_at)
                    .Text(schedule.changed_by)
            );
            // Empty: somebody made it since we looked.
            if (made.empty()) continue;
            schedule.id = ScheduleId(made.Int(0, 0));
            return schedule;
        }
        throw Unavailable("the schedule is made and removed by others all the time; try again");
    });
}

void PostgresSchedules::HoldCalendars(Transaction& transaction, const ScheduleSpec& spec) {
    if (spec.except.empty()) return;
    Params params;
    params.Number(spec.tenant);
    AddTexts(params, spec.except);
    transaction.Query(db_.sql.calendars_hold, params);
}

void PostgresSchedules::ShortenVisits(
    Transaction& transaction, const Schedule& schedule, Duration before
) {
    transaction.Query(
        db_.sql.visits_shorten,
        Params()
            .Number(schedule.id)
            .At(schedule.changed_at)
            .Int(schedule.spec.timing.every.count())
            .Int(before.count())
    );
}

void PostgresSchedules::MoveDueVisits(
    Transaction& transaction, const Schedule& schedule, Time now
) {
    transaction.Query(
        db_.sql.visits_resume,
        Params().Number(schedule.id).At(now).Int(schedule.spec.timing.every.count())
    );
}

void PostgresSchedules::Save(Transaction& transaction, const Schedule& schedule) {
    transaction.Query(
        db_.sql.schedule_save,
        Params()
            .Number(schedule.id)
            .Text(ScheduleToJson(schedule.spec))
            .Bool(HasVisits(schedule))
            .Int4(schedule.revision)
            .Bool(schedule.paused)
            .At(schedule.considered_at)
            .AtOrNull(schedule.next_at)
            .AtOrNull(schedule.queued_at)
            .Text(schedule.changed_by)
            .At(schedule.changed_at)
    );
}

void PostgresSchedules::SaveAdvanced(
    Transaction& transaction, const std::map<ScheduleId, Schedule>& schedules
) {
    if (schedules.empty()) return;
    ArrayOf id(oid::kInt8), turn(oid::kInt8), considered(oid::kTimestamptz),
        next(oid::kTimestamptz), queued(oid::kTimestamptz), instant(oid::kTimestamptz),
        task(oid::kInt8), running(oid::kText);
    auto at = [](ArrayOf& column, const std::optional<Time>& time) {
        time ? column.At(*time) : column.Null();
    };
    for (const auto& [key, schedule] : schedules) {
        id.Int(schedule.id.value());
        turn.Int(schedule.turn);
        considered.At(schedule.considered_at);
        at(next, schedule.next_at);
        at(queued, schedule.queued_at);
        at(instant, schedule.last_instant);
        schedule.last_task.valid() ? task.Int(schedule.last_task.value()) : task.Null();
        running.Text(RunningText(schedule.running));
    }
    Params params;
    for (ArrayOf* column : {&id, &turn, &considered, &next, &queued, &instant, &task, &running}) {
        column->AddTo(params);
    }
    transaction.Defer(db_.sql.schedule_advance, std::move(params));
}

std::optional<Schedule> PostgresSchedules::Get(TenantId tenant, std::string_view name) {
    Rows rows = db_.Read(db_.sql.schedule_find, Params().Number(tenant).Text(name));
    if (rows.empty()) return std::nullopt;
    return ReadSchedule(rows, 0);
}

std::vector<Schedule> PostgresSchedules::List(const ScheduleListRequest& request) {
    Params params;
    request.tenant ? params.Number(*request.tenant) : params.Null(oid::kInt8);
    params.Number(request.after_tenant).Text(request.after_name).Int4(request.limit);
    return ReadSchedules(db_.ReadPlanned(db_.sql.list_schedules, params));
}

bool PostgresSchedules::Remove(TenantId tenant, std::string_view name) {
    return db_.Run([&](Transaction& transaction) {
        std::optional<Schedule> found = FindLocked(transaction, tenant, name);
        if (!found) return false;
        transaction.Query(db_.sql.schedule_remove, Params().Number(found->id));
        return true;
    });
}

std::optional<Schedule> PostgresSchedules::SetPaused(
    TenantId tenant, std::string_view name, bool paused, std::string_view actor
) {
    return db_.Run([&](Transaction& transaction) {
        std::optional<Schedule> found = FindLocked(transaction, tenant, name);
        if (!found) return found;
        Time now = NowIn(transaction, db_.sql);
        if (found->paused && !paused) MoveDueVisits(transaction, *found, now);
        store::SetPaused(*found, paused, actor, now);
        Save(transaction, *found);
        return found;
    });
}

void PostgresSchedules::DueSchedules(int limit, DueReply& reply) {
    const auto wanted = static_cast<std::size_t>(limit);
    // Those of a newer program must not be all that is ever seen.
    for (int asked = limit;; asked *= 2) {
        Rows due = db_.Read(db_.sql.schedule_due, Params().Int4(asked));
        reply.now = due.At(0, 15);
        reply.next_at = due.MaybeAt(0, 16);
        reply.schedules = ReadThoseWeKnow(due);
        if (due.size() < asked || due.IsNull(0, 0) || reply.schedules.size() >= wanted) break;
    }
    if (reply.schedules.size() > wanted) reply.schedules.resize(wanted);
}

DueReply PostgresSchedules::Due(int schedules, int visits) {
    DueReply reply;
    DueSchedules(schedules, reply);
    Rows rows = db_.Read(db_.sql.visits_due, Params().At(reply.now).Int4(visits));
    std::vector<std::int64_t> of;
    for (int i = 0; i < rows.size(); ++i) {
        Earliest(reply.next_at, rows.MaybeAt(i, 1));
        if (rows.IsNull(i, 2)) continue;
        of.push_back(rows.Int(i, 0));
        reply.visits.push_back(ReadVisit(rows, i, ScheduleId(rows.Int(i, 0)), 2));
    }
    if (of.empty()) return reply;
    Params params;
    AddInts(params, Sorted(std::move(of)));
    reply.of_visits = ReadThoseWeKnow(db_.Read(db_.sql.schedules_of, params));
    return reply;
}

std::vector<ScheduleRun> PostgresSchedules::Runs(const RunsRequest& request) {
    // The end of the range and the page before it are both an upper bound.
    std::optional<Time> below = request.to;
    std::string below_entity;
    if (request.before && (!below || *request.before < *below)) {
        below = request.before;
        below_entity = request.before_entity;
    }
    Rows rows = db_.Read(
        db_.sql.run_list,
        Params()
            .Number(request.schedule)
            .AtOrNull(request.from)
            .AtOrNull(below)
            .Text(below_entity)
            .Int4(request.limit)
    );
    std::vector<ScheduleRun> runs;
    for (int i = 0; i < rows.size(); ++i) {
        ScheduleRun& run = runs.emplace_back();
        run.instant = rows.At(i, 0);
        run.entity = rows.Text(i, 1);
        run.cause = static_cast<RunCause>(rows.Int(i, 2));
        run.task = TaskId(rows.Int(i, 3));
        run.skipped = rows.Text(i, 4);
        run.decided_at = rows.At(i, 5);
    }
    return runs;
}

int PostgresSchedules::ForgetRuns(int limit) {
    return static_cast<int>(db_.Once(db_.sql.runs_forget, Params().Int4(limit)).affected());
}

// ---- calendars, visits -------------------------------------------------------------------------

void PostgresSchedules::PutCalendar(const Calendar& calendar) {
    db_.Run([&](Transaction& transaction) {
        transaction.Query(
            db_.sql.calendar_put,
            Params()
                .Number(calendar.tenant)
                .Text(calendar.name)
                .Text(base::JsonList(calendar.dates))
        );
        Params params = Params().Number(calendar.tenant).Text(calendar.name);
        transaction.Query(db_.sql.calendar_changed, params);
    });
}

std::vector<Calendar> PostgresSchedules::Calendars(TenantId tenant) {
    Rows rows = db_.Read(db_.sql.calendars, Params().Number(tenant));
    std::vector<Calendar> calendars;
    for (int i = 0; i < rows.size(); ++i) {
        calendars.push_back(
            {.tenant = tenant,
             .name = rows.Text(i, 0),
             .dates = base::ReadJsonList(rows.View(i, 1))}
        );
    }
    return calendars;
}

bool PostgresSchedules::RemoveCalendar(TenantId tenant, std::string_view name) {
    return db_.Run([&](Transaction& transaction) {
        Params params = Params().Number(tenant).Text(name);
        return transaction.Query(db_.sql.calendar_remove, params).affected() > 0;
    });
}

Result<void> PostgresSchedules::PutVisits(ScheduleId schedule, std::span<const VisitPut> visits) {
    return db_.Run([&](Transaction& transaction) -> Result<void> {
        std::map<ScheduleId, Schedule> locked = Lock(transaction, {schedule.value()});
        if (locked.empty()) return NoSuchSchedule(schedule);
        // One that is named twice gets what was said last.
        std::map<std::string_view, const VisitPut*> each;
        for (const VisitPut& put : visits) each[put.visit.entity] = &put;
        ArrayOf entity(oid::kText), every(oid::kInt8), next(oid::kTimestamptz);
        for (const auto& [name, put] : each) {
            entity.Text(name);
            put->visit.every ? every.Int(put->visit.every->count()) : every.Null();
            next.At(put->next_at);
        }
        Params params;
        params.Number(schedule);
        for (ArrayOf* column : {&entity, &every, &next}) column->AddTo(params);
        params.Int(locked.at(schedule).spec.timing.every.count());
        transaction.Query(db_.sql.visits_put, params);
        return {};
    });
}

int PostgresSchedules::RemoveVisits(ScheduleId schedule, std::span<const std::string> entities) {
    return db_.Run([&](Transaction& transaction) {
        if (Lock(transaction, {schedule.value()}).empty()) return 0;
        Params params;
        params.Number(schedule);
        AddTexts(params, entities);
        return static_cast<int>(transaction.Query(db_.sql.visits_remove, params).affected());
    });
}

std::vector<Visit> PostgresSchedules::Visits(const VisitsRequest& request) {
    Rows rows = db_.Read(
        db_.sql.visit_list,
        Params().Number(request.schedule).Text(request.after).Int4(request.limit)
    );
    std::vector<Visit> visits;
    for (int i = 0; i < rows.size(); ++i) {
        visits.push_back(ReadVisit(rows, i, ScheduleId(rows.Int(i, 0)), 1));
    }
    return visits;
}

}  // namespace stint::store::pg
