#include "store/sqlite/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/json.h"
#include "base/text.h"
#include "sqlite/transaction.h"
#include "store/schedule_rules.h"

namespace stint::store::lite {

namespace {

std::optional<std::int64_t> IdOrNull(TaskId id) {
    return id.valid() ? std::optional(id.value()) : std::nullopt;
}

// Of the columns of schedule_find.
Schedule ReadSchedule(const sqlite::Rows& rows) {
    Schedule schedule;
    schedule.spec = ReadSpec(rows.Text(1), rows.Text(14));
    schedule.id = ScheduleId(rows.Int(0));
    schedule.revision = static_cast<int>(rows.Int(2));
    schedule.turn = rows.Int(3);
    schedule.paused = rows.Int(4) != 0;
    schedule.created_at = FromMicros(rows.Int(5));
    schedule.considered_at = FromMicros(rows.Int(6));
    schedule.next_at = OptionalTime(rows, 7);
    schedule.queued_at = OptionalTime(rows, 8);
    schedule.last_instant = OptionalTime(rows, 9);
    schedule.last_task = TaskId(rows.OptionalInt(10).value_or(0));
    schedule.running = ReadRunning(rows.Text(11));
    schedule.changed_by = rows.String(12);
    schedule.changed_at = FromMicros(rows.Int(13));
    return schedule;
}

// A schedule that a newer program wrote is that program's to fire, and holds nobody up here.
std::vector<Schedule> ReadThoseWeKnow(sqlite::Rows rows, int& seen) {
    std::vector<Schedule> schedules;
    for (seen = 0; rows.Next(); ++seen) {
        try {
            schedules.push_back(ReadSchedule(rows));
        } catch (const WrongSchema&) {
            continue;
        }
    }
    return schedules;
}

std::vector<Schedule> ReadSchedules(sqlite::Rows rows) {
    std::vector<Schedule> schedules;
    while (rows.Next()) schedules.push_back(ReadSchedule(rows));
    return schedules;
}

std::optional<Schedule> ReadOne(sqlite::Rows rows) {
    if (!rows.Next()) return std::nullopt;
    return ReadSchedule(rows);
}

std::vector<Visit> ReadVisits(sqlite::Rows rows) {
    std::vector<Visit> visits;
    while (rows.Next()) {
        Visit& visit = visits.emplace_back();
        visit.schedule = ScheduleId(rows.Int(0));
        visit.entity = rows.String(1);
        if (auto every = rows.OptionalInt(2)) visit.every = Duration(*every);
        visit.next_at = FromMicros(rows.Int(3));
        visit.last_at = OptionalTime(rows, 4);
    }
    return visits;
}

bool HasVisits(const Schedule& schedule) {
    return schedule.spec.timing.kind == TimingSpec::Kind::kVisits;
}

}  // namespace

// ---- changes -----------------------------------------------------------------------------------

std::optional<Schedule> ScheduleWrites::Find(TenantId tenant, std::string_view name) {
    return ReadOne(Sql("schedule_find").Query(tenant.value(), name));
}

std::optional<Schedule> ScheduleWrites::Load(ScheduleId id) {
    return ReadOne(Sql("schedule_load").Query(id.value()));
}

Result<Schedule> ScheduleWrites::Put(const SchedulePut& put) {
    std::optional<Schedule> found = Find(put.spec.tenant, put.spec.name);
    int revision = found ? found->revision : 0;
    if (put.expected_revision && *put.expected_revision != revision) {
        return UnexpectedRevision(put, revision);
    }
    Schedule schedule = found.value_or(Schedule{});
    Replace(schedule, put, now_);
    if (found) {
        Save(schedule);
        if (VisitsComeSooner(found->spec, put.spec)) {
            std::int64_t after = put.spec.timing.every.count();
            std::int64_t before = found->spec.timing.every.count();
            Sql("visits_shorten").Run(schedule.id.value(), Micros(now_), after, before);
        }
        return schedule;
    }
    auto id = Sql("schedule_insert")
                  .Scalar(
                      put.spec.tenant.value(),
                      put.spec.name,
                      ScheduleToJson(schedule.spec),
                      HasVisits(schedule),
                      schedule.revision,
                      schedule.turn,
                      schedule.paused,
                      Micros(schedule.created_at),
                      Micros(schedule.considered_at),
                      Micros(schedule.next_at),
                      Micros(schedule.queued_at),
                      Micros(schedule.last_instant),
                      IdOrNull(schedule.last_task),
                      RunningText(schedule.running),
                      schedule.changed_by,
                      Micros(schedule.changed_at)
                  );
    schedule.id = ScheduleId(id.value());
    return schedule;
}

void ScheduleWrites::Save(const Schedule& schedule) {
    Sql("schedule_save")
        .Run(
            ScheduleToJson(schedule.spec),
            HasVisits(schedule),
            schedule.revision,
            schedule.turn,
            schedule.paused,
            Micros(schedule.considered_at),
            Micros(schedule.next_at),
            Micros(schedule.queued_at),
            Micros(schedule.last_instant),
            IdOrNull(schedule.last_task),
            RunningText(schedule.running),
            schedule.changed_by,
            Micros(schedule.changed_at),
            schedule.id.value()
        );
}

bool ScheduleWrites::Remove(TenantId tenant, std::string_view name) {
    std::optional<Schedule> found = Find(tenant, name);
    if (!found) return false;
    Sql("schedule_remove_runs").Run(found->id.value());
    Sql("schedule_remove_visits").Run(found->id.value());
    Sql("schedule_remove").Run(found->id.value());
    return true;
}

std::optional<Schedule> ScheduleWrites::SetPaused(
    TenantId tenant, std::string_view name, bool paused, std::string_view actor
) {
    std::optional<Schedule> found = Find(tenant, name);
    if (!found) return std::nullopt;
    if (found->paused && !paused) {
        std::int64_t usual = found->spec.timing.every.count();
        Sql("visits_resume").Run(found->id.value(), Micros(now_), usual);
    }
    store::SetPaused(*found, paused, actor, now_);
    Save(*found);
    return found;
}

// The mark first: only who makes it makes the task.
RunReply ScheduleWrites::Decide(
    ScheduleId schedule, const std::string& entity, const PlannedRun& run
) {
    {
        sqlite::Rows rows = Sql("run_find").Query(schedule.value(), Micros(run.instant), entity);
        if (rows.Next()) {
            TaskId task(rows.OptionalInt(0).value_or(0));
            bool may_fill = !task.valid() && run.cause == RunCause::kBackfill && run.task;
            if (!may_fill) return {.kind = RunReply::Kind::kDecided, .task = task};
        }
    }
    RunReply reply{.kind = RunReply::Kind::kSkipped, .message = run.skipped};
    if (run.task) {
        SubmitReply made = ops_.Submit(Prepare({&*run.task, 1})).at(0);
        reply = entity.empty() ? RunReplyOf(made) : VisitReplyOf(made);
    }
    Sql("run_set").Run(
        schedule.value(),
        Micros(run.instant),
        entity,
        static_cast<int>(run.cause),
        IdOrNull(reply.task),
        reply.task.valid() ? std::string() : reply.message,
        Micros(now_),
        Micros(now_ + run.keep)
    );
    return reply;
}

FiringReply ScheduleWrites::Fire(const Firing& firing) {
    std::optional<Schedule> found = Load(firing.schedule);
    if (!found) return {.kind = FiringReply::Kind::kGone};
    if (firing.advance) {
        bool same = found->revision == firing.advance->revision &&
                    found->turn == firing.advance->turn && !found->paused;
        if (!same) return {.kind = FiringReply::Kind::kLost};
    }
    FiringReply reply;
    if (auto refused = NoRoomFor(*found, firing)) {
        reply.runs.assign(firing.runs.size(), *refused);
        return reply;
    }
    for (const PlannedRun& run : firing.runs) reply.runs.push_back(Decide(found->id, "", run));
    Advance(*found, firing, reply.runs);
    Sql("schedule_advance")
        .Run(
            found->turn,
            Micros(found->considered_at),
            Micros(found->next_at),
            Micros(found->queued_at),
            Micros(found->last_instant),
            IdOrNull(found->last_task),
            RunningText(found->running),
            found->id.value()
        );
    return reply;
}

FiringReply ScheduleWrites::FireVisit(const VisitFiring& firing) {
    std::optional<Schedule> found = Load(firing.schedule);
    std::optional<std::int64_t> next_at;
    if (found) next_at = Sql("visit_there").Scalar(firing.schedule.value(), firing.entity);
    if (!next_at) return {.kind = FiringReply::Kind::kGone};
    bool same = found->revision == firing.revision && !found->paused &&
                *next_at == Micros(firing.expected_next_at);
    if (!same) return {.kind = FiringReply::Kind::kLost};
    FiringReply reply;
    std::optional<Time> last_at;
    if (firing.run) {
        reply.runs.push_back(Decide(firing.schedule, firing.entity, *firing.run));
        if (reply.runs[0].task.valid()) last_at = firing.run->instant;
    }
    Sql("visit_advance")
        .Run(Micros(firing.next_at), Micros(last_at), firing.schedule.value(), firing.entity);
    return reply;
}

int ScheduleWrites::ForgetRuns(int limit) {
    return Sql("run_forget").Run(Micros(now_), limit);
}

void ScheduleWrites::PutCalendar(const Calendar& calendar) {
    Sql("calendar_set").Run(calendar.tenant.value(), calendar.name, base::JsonList(calendar.dates));
    Sql("calendar_changed").Run(Micros(now_), calendar.tenant.value(), calendar.name);
}

bool ScheduleWrites::RemoveCalendar(TenantId tenant, std::string_view name) {
    return Sql("calendar_remove").Run(tenant.value(), name) > 0;
}

Result<void> ScheduleWrites::PutVisits(
    ScheduleId schedule, std::span<const ScheduleStore::VisitPut> visits
) {
    std::optional<Schedule> found = Load(schedule);
    if (!found) return NoSuchSchedule(schedule);
    const std::int64_t usual = found->spec.timing.every.count();
    for (const ScheduleStore::VisitPut& put : visits) {
        std::optional<std::int64_t> every;
        if (put.visit.every) every = put.visit.every->count();
        Sql("visit_set").Run(schedule.value(), put.visit.entity, every, Micros(put.next_at), usual);
    }
    return {};
}

int ScheduleWrites::RemoveVisits(ScheduleId schedule, std::span<const std::string> entities) {
    int removed = 0;
    for (const std::string& entity : entities) {
        removed += Sql("visit_remove").Run(schedule.value(), entity);
    }
    return removed;
}

// ---- questions ---------------------------------------------------------------------------------

std::optional<Schedule> ScheduleReads::Get(TenantId tenant, std::string_view name) {
    return ReadOne(Sql("schedule_find").Query(tenant.value(), name));
}

std::vector<Schedule> ScheduleReads::List(const ScheduleListRequest& request) {
    if (!request.tenant) {
        return ReadSchedules(
            Sql("schedule_list")
                .Query(request.after_tenant.value(), request.after_name, request.limit)
        );
    }
    if (request.after_tenant > *request.tenant) return {};
    bool same = request.after_tenant == *request.tenant;
    return ReadSchedules(
        Sql("schedule_list_tenant")
            .Query(
                request.tenant->value(), same ? request.after_name : std::string(), request.limit
            )
    );
}

std::vector<Schedule> ScheduleReads::DueSchedules(int limit) {
    // Those of a newer program must not be all that is ever seen.
    for (int asked = limit;; asked *= 2) {
        int seen = 0;
        auto found = ReadThoseWeKnow(Sql("schedule_due").Query(Micros(now_), asked), seen);
        auto enough = std::min<std::size_t>(found.size(), static_cast<std::size_t>(limit));
        bool more = seen == asked && found.size() < static_cast<std::size_t>(limit);
        if (more) continue;
        found.resize(enough);
        return found;
    }
}

DueReply ScheduleReads::Due(int schedules, int visits) {
    sqlite::ReadTransaction view(db_);
    DueReply reply;
    reply.now = now_;
    reply.schedules = DueSchedules(schedules);
    if (auto next = Sql("schedule_next").Scalar(Micros(now_))) reply.next_at = FromMicros(*next);
    DueVisits(visits, reply);
    return reply;
}

void ScheduleReads::DueVisits(int limit, DueReply& reply) {
    std::vector<std::int64_t> ids;
    for (sqlite::Rows rows = Sql("schedule_of_visits").Query(); rows.Next();) {
        ids.push_back(rows.Int(0));
    }
    if (ids.empty()) return;
    // Each gets a share, so that one that is far behind does not keep the others waiting.
    int share = std::max(1, limit / static_cast<int>(ids.size()));
    for (std::int64_t id : ids) {
        std::vector<Visit> due = ReadVisits(Sql("visit_due").Query(id, Micros(now_), share));
        if (!due.empty()) {
            int seen = 0;
            auto schedule = ReadThoseWeKnow(Sql("schedule_load").Query(id), seen);
            if (schedule.empty()) continue;
            reply.of_visits.push_back(std::move(schedule.front()));
            std::move(due.begin(), due.end(), std::back_inserter(reply.visits));
        }
        if (auto next = Sql("visit_next").Scalar(id, Micros(now_))) {
            Time at = FromMicros(*next);
            reply.next_at = reply.next_at ? std::min(*reply.next_at, at) : at;
        }
    }
}

std::vector<ScheduleRun> ScheduleReads::Runs(const RunsRequest& request) {
    constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::max();
    // The end of the range and the page before it are both an upper bound.
    std::pair<std::int64_t, std::string> below(kEver, "");
    if (request.to) below = {Micros(*request.to), ""};
    if (request.before) below = std::min(below, {Micros(*request.before), request.before_entity});
    std::vector<ScheduleRun> runs;
    sqlite::Rows rows =
        Sql("run_list")
            .Query(
                request.schedule.value(),
                request.from ? Micros(*request.from) : std::numeric_limits<std::int64_t>::min(),
                below.first,
                below.second,
                request.limit
            );
    while (rows.Next()) {
        ScheduleRun& run = runs.emplace_back();
        run.instant = FromMicros(rows.Int(0));
        run.entity = rows.String(1);
        run.cause = static_cast<RunCause>(rows.Int(2));
        run.task = TaskId(rows.OptionalInt(3).value_or(0));
        run.skipped = rows.String(4);
        run.decided_at = FromMicros(rows.Int(5));
    }
    return runs;
}

std::vector<Calendar> ScheduleReads::Calendars(TenantId tenant) {
    std::vector<Calendar> calendars;
    for (sqlite::Rows rows = Sql("calendar_list").Query(tenant.value()); rows.Next();) {
        calendars.push_back(
            {.tenant = tenant, .name = rows.String(1), .dates = base::ReadJsonList(rows.Text(2))}
        );
    }
    return calendars;
}

std::vector<Visit> ScheduleReads::Visits(const VisitsRequest& request) {
    return ReadVisits(
        Sql("visit_list").Query(request.schedule.value(), request.after, request.limit)
    );
}

// ---- the owner's store -------------------------------------------------------------------------

template <class Work>
auto DirectSchedules::Change(Work&& work) {
    using Reply = std::invoke_result_t<Work, ScheduleWrites&>;
    std::optional<Reply> reply;
    writer_.Run([&](Ops& ops) {
        ScheduleWrites writes(ops);
        reply.emplace(work(writes));
    });
    return std::move(*reply);
}

template <class Question>
auto DirectSchedules::Ask(Question&& question) {
    writer_.RequireSound();
    return readers_.With([&](Reads& reads) {
        ScheduleReads schedules(reads.db(), clock_.WallTime());
        return question(schedules);
    });
}

Result<Schedule> DirectSchedules::Put(const SchedulePut& put) {
    return Change([&](auto& writes) { return writes.Put(put); });
}
std::optional<Schedule> DirectSchedules::Get(TenantId tenant, std::string_view name) {
    return Ask([&](auto& reads) { return reads.Get(tenant, name); });
}
std::vector<Schedule> DirectSchedules::List(const ScheduleListRequest& request) {
    return Ask([&](auto& reads) { return reads.List(request); });
}
bool DirectSchedules::Remove(TenantId tenant, std::string_view name) {
    return Change([&](auto& writes) { return writes.Remove(tenant, name); });
}
std::optional<Schedule> DirectSchedules::SetPaused(
    TenantId tenant, std::string_view name, bool paused, std::string_view actor
) {
    return Change([&](auto& writes) { return writes.SetPaused(tenant, name, paused, actor); });
}
DueReply DirectSchedules::Due(int schedules, int visits) {
    return Ask([&](auto& reads) { return reads.Due(schedules, visits); });
}
std::vector<FiringReply> DirectSchedules::Fire(std::span<const Firing> firings) {
    return Change([&](auto& writes) {
        std::vector<FiringReply> replies;
        for (const Firing& firing : firings) replies.push_back(writes.Fire(firing));
        return replies;
    });
}
std::vector<FiringReply> DirectSchedules::FireVisits(std::span<const VisitFiring> firings) {
    return Change([&](auto& writes) {
        std::vector<FiringReply> replies;
        for (const VisitFiring& firing : firings) replies.push_back(writes.FireVisit(firing));
        return replies;
    });
}
std::vector<ScheduleRun> DirectSchedules::Runs(const RunsRequest& request) {
    return Ask([&](auto& reads) { return reads.Runs(request); });
}
int DirectSchedules::ForgetRuns(int limit) {
    return Change([&](auto& writes) { return writes.ForgetRuns(limit); });
}
void DirectSchedules::PutCalendar(const Calendar& calendar) {
    Change([&](auto& writes) { return writes.PutCalendar(calendar), true; });
}
std::vector<Calendar> DirectSchedules::Calendars(TenantId tenant) {
    return Ask([&](auto& reads) { return reads.Calendars(tenant); });
}
bool DirectSchedules::RemoveCalendar(TenantId tenant, std::string_view name) {
    return Change([&](auto& writes) { return writes.RemoveCalendar(tenant, name); });
}
Result<void> DirectSchedules::PutVisits(ScheduleId schedule, std::span<const VisitPut> visits) {
    return Change([&](auto& writes) { return writes.PutVisits(schedule, visits); });
}
int DirectSchedules::RemoveVisits(ScheduleId schedule, std::span<const std::string> entities) {
    return Change([&](auto& writes) { return writes.RemoveVisits(schedule, entities); });
}
std::vector<Visit> DirectSchedules::Visits(const VisitsRequest& request) {
    return Ask([&](auto& reads) { return reads.Visits(request); });
}

}  // namespace stint::store::lite
