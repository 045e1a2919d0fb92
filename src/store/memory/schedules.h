// The memory store's schedules, at one instant. The caller holds the lock.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/memory/data.h"
#include "store/memory/ops.h"
#include "store/schedules.h"

namespace stint::store::memory {

class ScheduleOps {
public:
    ScheduleOps(Data& data, Ops& ops, Time now) : data_(data), ops_(ops), now_(now) {}

    Result<Schedule> Put(const SchedulePut& put);
    std::optional<Schedule> Get(TenantId tenant, std::string_view name);
    std::vector<Schedule> List(const ScheduleListRequest& request);
    bool Remove(TenantId tenant, std::string_view name);
    std::optional<Schedule> SetPaused(
        TenantId tenant, std::string_view name, bool paused, std::string_view actor
    );
    DueReply Due(int schedules, int visits);
    FiringReply Fire(const Firing& firing);
    FiringReply FireVisit(const VisitFiring& firing);
    std::vector<ScheduleRun> Runs(const RunsRequest& request);
    int ForgetRuns(int limit);
    void PutCalendar(const Calendar& calendar);
    std::vector<Calendar> Calendars(TenantId tenant);
    bool RemoveCalendar(TenantId tenant, std::string_view name);
    Result<void> PutVisits(ScheduleId schedule, std::span<const ScheduleStore::VisitPut> visits);
    int RemoveVisits(ScheduleId schedule, std::span<const std::string> entities);
    std::vector<Visit> Visits(const VisitsRequest& request);

private:
    Schedule* Find(TenantId tenant, std::string_view name);
    void ShortenVisits(const Schedule& schedule, Duration every);
    void MoveDueVisits(const Schedule& schedule);
    RunReply Decide(Schedule& schedule, const std::string& entity, const PlannedRun& run);

    Data& data_;
    Ops& ops_;
    const Time now_;
};

}  // namespace stint::store::memory
