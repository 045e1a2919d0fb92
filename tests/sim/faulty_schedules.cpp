#include "sim/faulty_schedules.h"

#include "sim/faulty_store.h"

namespace stint::sim {

template <class Work>
auto FaultySchedules::Read(std::string_view name, Work&& work) {
    std::optional<std::invoke_result_t<Work>> reply;
    store_.AroundRead(name, [&] { reply.emplace(work()); });
    return std::move(*reply);
}

template <class Work>
auto FaultySchedules::Write(std::string_view name, Work&& work) {
    std::optional<std::invoke_result_t<Work>> reply;
    store_.AroundWrite(name, Call::kSubmit, [&] { reply.emplace(work()); });
    return std::move(*reply);
}

Result<model::Schedule> FaultySchedules::Put(const store::SchedulePut& put) {
    return Write("schedules.put", [&] { return inner_.Put(put); });
}
std::optional<model::Schedule> FaultySchedules::Get(TenantId tenant, std::string_view name) {
    return Read("schedules.get", [&] { return inner_.Get(tenant, name); });
}
std::vector<model::Schedule> FaultySchedules::List(const store::ScheduleListRequest& request) {
    return Read("schedules.list", [&] { return inner_.List(request); });
}
bool FaultySchedules::Remove(TenantId tenant, std::string_view name) {
    return Write("schedules.remove", [&] { return inner_.Remove(tenant, name); });
}
std::optional<model::Schedule> FaultySchedules::SetPaused(
    TenantId tenant, std::string_view name, bool paused, std::string_view actor
) {
    return Write("schedules.pause", [&] { return inner_.SetPaused(tenant, name, paused, actor); });
}
store::DueReply FaultySchedules::Due(int schedules, int visits) {
    return Read("schedules.due", [&] { return inner_.Due(schedules, visits); });
}
std::vector<store::FiringReply> FaultySchedules::Fire(std::span<const store::Firing> firings) {
    return Write("schedules.fire", [&] { return inner_.Fire(firings); });
}
std::vector<store::FiringReply> FaultySchedules::FireVisits(
    std::span<const store::VisitFiring> firings
) {
    return Write("schedules.fire_visits", [&] { return inner_.FireVisits(firings); });
}
std::vector<model::ScheduleRun> FaultySchedules::Runs(const store::RunsRequest& request) {
    return Read("schedules.runs", [&] { return inner_.Runs(request); });
}
int FaultySchedules::ForgetRuns(int limit) {
    return Write("schedules.forget", [&] { return inner_.ForgetRuns(limit); });
}
void FaultySchedules::PutCalendar(const model::Calendar& calendar) {
    Write("schedules.put_calendar", [&] { return inner_.PutCalendar(calendar), true; });
}
std::vector<model::Calendar> FaultySchedules::Calendars(TenantId tenant) {
    return Read("schedules.calendars", [&] { return inner_.Calendars(tenant); });
}
bool FaultySchedules::RemoveCalendar(TenantId tenant, std::string_view name) {
    return Write("schedules.remove_calendar", [&] { return inner_.RemoveCalendar(tenant, name); });
}
Result<void> FaultySchedules::PutVisits(
    model::ScheduleId schedule, std::span<const VisitPut> visits
) {
    return Write("schedules.put_visits", [&] { return inner_.PutVisits(schedule, visits); });
}
int FaultySchedules::RemoveVisits(
    model::ScheduleId schedule, std::span<const std::string> entities
) {
    return Write("schedules.remove_visits", [&] {
        return inner_.RemoveVisits(schedule, entities);
    });
}
std::vector<model::Visit> FaultySchedules::Visits(const store::VisitsRequest& request) {
    return Read("schedules.visits", [&] { return inner_.Visits(request); });
}

}  // namespace stint::sim
