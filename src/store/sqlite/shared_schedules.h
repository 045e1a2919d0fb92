// Schedules as every process sees them: of the owner, or through its socket.
#pragma once

#include "store/schedules.h"

namespace stint::store::lite {

class SharedStore;

class SharedSchedules final : public ScheduleStore {
public:
    explicit SharedSchedules(SharedStore& store) : store_(store) {}

    Result<Schedule> Put(const SchedulePut& put) override;
    std::optional<Schedule> Get(TenantId tenant, std::string_view name) override;
    std::vector<Schedule> List(const ScheduleListRequest& request) override;
    bool Remove(TenantId tenant, std::string_view name) override;
    std::optional<Schedule> SetPaused(
        TenantId tenant, std::string_view name, bool paused, std::string_view actor
    ) override;
    DueReply Due(int schedules, int visits) override;
    std::vector<FiringReply> Fire(std::span<const Firing> firings) override;
    std::vector<FiringReply> FireVisits(std::span<const VisitFiring> firings) override;
    std::vector<ScheduleRun> Runs(const RunsRequest& request) override;
    int ForgetRuns(int limit) override;
    void PutCalendar(const Calendar& calendar) override;
    std::vector<Calendar> Calendars(TenantId tenant) override;
    bool RemoveCalendar(TenantId tenant, std::string_view name) override;
    Result<void> PutVisits(ScheduleId schedule, std::span<const VisitPut> visits) override;
    int RemoveVisits(ScheduleId schedule, std::span<const std::string> entities) override;
    std::vector<Visit> Visits(const VisitsRequest& request) override;

private:
    SharedStore& store_;
};

}  // namespace stint::store::lite
