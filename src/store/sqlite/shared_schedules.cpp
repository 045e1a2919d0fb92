#include "store/sqlite/shared_schedules.h"

#include "store/sqlite/shared_call.h"
#include "store/sqlite/wire_schedules.h"

namespace stint::store::lite {

Result<Schedule> SharedSchedules::Put(const SchedulePut& put) {
    return store_.Do<Result<Schedule>>(
        Operation::kSchedulePut, [&](DirectStore& s) { return s.Schedules().Put(put); }, put
    );
}

std::optional<Schedule> SharedSchedules::Get(TenantId tenant, std::string_view name) {
    return store_.Do<std::optional<Schedule>>(
        Operation::kScheduleGet,
        [&](DirectStore& s) { return s.Schedules().Get(tenant, name); },
        tenant,
        name
    );
}

std::vector<Schedule> SharedSchedules::List(const ScheduleListRequest& request) {
    return store_.Do<std::vector<Schedule>>(
        Operation::kScheduleList,
        [&](DirectStore& s) { return s.Schedules().List(request); },
        request
    );
}

bool SharedSchedules::Remove(TenantId tenant, std::string_view name) {
    return store_.Do<bool>(
        Operation::kScheduleRemove,
        [&](DirectStore& s) { return s.Schedules().Remove(tenant, name); },
        tenant,
        name
    );
}

std::optional<Schedule> SharedSchedules::SetPaused(
    TenantId tenant, std::string_view name, bool paused, std::string_view actor
) {
    return store_.Do<std::optional<Schedule>>(
        Operation::kScheduleSetPaused,
        [&](DirectStore& s) { return s.Schedules().SetPaused(tenant, name, paused, actor); },
        tenant,
        name,
        paused,
        actor
    );
}

DueReply SharedSchedules::Due(int schedules, int visits) {
    return store_.Do<DueReply>(
        Operation::kScheduleDue,
        [&](DirectStore& s) { return s.Schedules().Due(schedules, visits); },
        schedules,
        visits
    );
}

std::vector<FiringReply> SharedSchedules::Fire(std::span<const Firing> firings) {
    return store_.Do<std::vector<FiringReply>>(
        Operation::kScheduleFire,
        [&](DirectStore& s) { return s.Schedules().Fire(firings); },
        Copy(firings)
    );
}

std::vector<FiringReply> SharedSchedules::FireVisits(std::span<const VisitFiring> firings) {
    return store_.Do<std::vector<FiringReply>>(
        Operation::kScheduleFireVisits,
        [&](DirectStore& s) { return s.Schedules().FireVisits(firings); },
        Copy(firings)
    );
}

std::vector<ScheduleRun> SharedSchedules::Runs(const RunsRequest& request) {
    return store_.Do<std::vector<ScheduleRun>>(
        Operation::kScheduleRuns,
        [&](DirectStore& s) { return s.Schedules().Runs(request); },
        request
    );
}

int SharedSchedules::ForgetRuns(int limit) {
    return store_.Do<int>(
        Operation::kScheduleForgetRuns,
        [&](DirectStore& s) { return s.Schedules().ForgetRuns(limit); },
        limit
    );
}

void SharedSchedules::PutCalendar(const Calendar& calendar) {
    store_.Do<void>(
        Operation::kCalendarPut,
        [&](DirectStore& s) { s.Schedules().PutCalendar(calendar); },
        calendar
    );
}

std::vector<Calendar> SharedSchedules::Calendars(TenantId tenant) {
    return store_.Do<std::vector<Calendar>>(
        Operation::kCalendars,
        [&](DirectStore& s) { return s.Schedules().Calendars(tenant); },
        tenant
    );
}

bool SharedSchedules::RemoveCalendar(TenantId tenant, std::string_view name) {
    return store_.Do<bool>(
        Operation::kCalendarRemove,
        [&](DirectStore& s) { return s.Schedules().RemoveCalendar(tenant, name); },
        tenant,
        name
    );
}

Result<void> SharedSchedules::PutVisits(ScheduleId schedule, std::span<const VisitPut> visits) {
    return store_.Do<Result<void>>(
        Operation::kVisitsPut,
        [&](DirectStore& s) { return s.Schedules().PutVisits(schedule, visits); },
        schedule,
        Copy(visits)
    );
}

int SharedSchedules::RemoveVisits(ScheduleId schedule, std::span<const std::string> entities) {
    return store_.Do<int>(
        Operation::kVisitsRemove,
        [&](DirectStore& s) { return s.Schedules().RemoveVisits(schedule, entities); },
        schedule,
        Copy(entities)
    );
}

std::vector<Visit> SharedSchedules::Visits(const VisitsRequest& request) {
    return store_.Do<std::vector<Visit>>(
        Operation::kVisits, [&](DirectStore& s) { return s.Schedules().Visits(request); }, request
    );
}

}  // namespace stint::store::lite
