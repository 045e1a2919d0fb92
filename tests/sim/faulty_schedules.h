// The schedules of the shared store as one simulated process sees them.
#pragma once

#include "store/schedules.h"

namespace stint::sim {

class FaultyStore;

class FaultySchedules final : public store::ScheduleStore {
public:
    FaultySchedules(FaultyStore& store, store::ScheduleStore& inner)
        : store_(store), inner_(inner) {}

    Result<model::Schedule> Put(const store::SchedulePut& put) override;
    std::optional<model::Schedule> Get(TenantId tenant, std::string_view name) override;
    std::vector<model::Schedule> List(const store::ScheduleListRequest& request) override;
    bool Remove(TenantId tenant, std::string_view name) override;
    std::optional<model::Schedule> SetPaused(
        TenantId tenant, std::string_view name, bool paused, std::string_view actor
    ) override;
    store::DueReply Due(int schedules, int visits) override;
    std::vector<store::FiringReply> Fire(std::span<const store::Firing> firings) override;
    std::vector<store::FiringReply> FireVisits(std::span<const store::VisitFiring> firings
    ) override;
    std::vector<model::ScheduleRun> Runs(const store::RunsRequest& request) override;
    int ForgetRuns(int limit) override;
    void PutCalendar(const model::Calendar& calendar) override;
    std::vector<model::Calendar> Calendars(TenantId tenant) override;
    bool RemoveCalendar(TenantId tenant, std::string_view name) override;
    Result<void> PutVisits(model::ScheduleId schedule, std::span<const VisitPut> visits) override;
    int RemoveVisits(model::ScheduleId schedule, std::span<const std::string> entities) override;
    std::vector<model::Visit> Visits(const store::VisitsRequest& request) override;

private:
    template <class Work>
    auto Read(std::string_view name, Work&& work);
    template <class Work>
    auto Write(std::string_view name, Work&& work);

    FaultyStore& store_;
    store::ScheduleStore& inner_;
};

}  // namespace stint::sim
