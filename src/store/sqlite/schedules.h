// Schedules in the file: changes on the writer's connection, questions on a reader's; and the
// owner's ScheduleStore made of both.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/schedules.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/reader_pool.h"
#include "store/sqlite/writer.h"

namespace stint::store::lite {

// Inside a member of the writer's group.
class ScheduleWrites {
public:
    explicit ScheduleWrites(Ops& ops) : ops_(ops), now_(ops.now()) {}

    Result<Schedule> Put(const SchedulePut& put);
    bool Remove(TenantId tenant, std::string_view name);
    std::optional<Schedule> SetPaused(
        TenantId tenant, std::string_view name, bool paused, std::string_view actor
    );
    FiringReply Fire(const Firing& firing);
    FiringReply FireVisit(const VisitFiring& firing);
    int ForgetRuns(int limit);
    void PutCalendar(const Calendar& calendar);
    bool RemoveCalendar(TenantId tenant, std::string_view name);
    Result<void> PutVisits(ScheduleId schedule, std::span<const ScheduleStore::VisitPut> visits);
    int RemoveVisits(ScheduleId schedule, std::span<const std::string> entities);

private:
    sqlite::Statement& Sql(std::string_view name) { return lite::Sql(ops_.db(), name); }
    std::optional<Schedule> Find(TenantId tenant, std::string_view name);
    std::optional<Schedule> Load(ScheduleId id);
    void Save(const Schedule& schedule);
    RunReply Decide(ScheduleId schedule, const std::string& entity, const PlannedRun& run);

    Ops& ops_;
    const Time now_;
};

class ScheduleReads {
public:
    ScheduleReads(sqlite::Connection& db, Time now) : db_(db), now_(now) {}

    std::optional<Schedule> Get(TenantId tenant, std::string_view name);
    std::vector<Schedule> List(const ScheduleListRequest& request);
    DueReply Due(int schedules, int visits);
    std::vector<ScheduleRun> Runs(const RunsRequest& request);
    std::vector<Calendar> Calendars(TenantId tenant);
    std::vector<Visit> Visits(const VisitsRequest& request);

private:
    sqlite::Statement& Sql(std::string_view name) { return lite::Sql(db_, name); }
    std::vector<Schedule> DueSchedules(int limit);
    void DueVisits(int limit, DueReply& reply);

    sqlite::Connection& db_;
    const Time now_;
};

class DirectSchedules final : public ScheduleStore {
public:
    DirectSchedules(Writer& writer, ReaderPool& readers, base::Clock& clock)
        : writer_(writer), readers_(readers), clock_(clock) {}

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
    template <class Work>
    auto Change(Work&& work);
    template <class Question>
    auto Ask(Question&& question);

    Writer& writer_;
    ReaderPool& readers_;
    base::Clock& clock_;
};

}  // namespace stint::store::lite
