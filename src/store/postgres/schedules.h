// Schedules on PostgreSQL. Who decides for a schedule holds its row; the mark of each instant is
// unique all the same.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/postgres/db.h"
#include "store/schedules.h"

namespace stint::store::pg {

class PostgresStore;

class PostgresSchedules final : public ScheduleStore {
public:
    explicit PostgresSchedules(PostgresStore& store);

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
    // A run on its way through a transaction.
    struct Deciding {
        ScheduleId schedule;
        std::string entity;
        const PlannedRun* run = nullptr;
        TaskId id;  // reserved for its task
        RunReply* reply = nullptr;
    };

    static Time NowIn(Transaction& transaction, const Sql& sql);
    std::optional<Schedule> FindLocked(
        Transaction& transaction, TenantId tenant, std::string_view name
    );
    std::map<ScheduleId, Schedule> Lock(Transaction& transaction, std::vector<std::int64_t> ids);
    // So that a calendar does not change unseen while a schedule that names it is on its way.
    void HoldCalendars(Transaction& transaction, const ScheduleSpec& spec);
    void ShortenVisits(Transaction& transaction, const Schedule& schedule, Duration before);
    void MoveDueVisits(Transaction& transaction, const Schedule& schedule, Time now);
    void DueSchedules(int limit, DueReply& reply);
    void Save(Transaction& transaction, const Schedule& schedule);
    void SaveAdvanced(Transaction& transaction, const std::map<ScheduleId, Schedule>& schedules);
    // One id for each run with a task, in order.
    std::vector<TaskId> IdsFor(int count);
    void Decide(Transaction& transaction, std::vector<Deciding> runs);
    std::vector<Deciding> Mark(Transaction& transaction, std::vector<Deciding> runs);
    void ReadDecided(Transaction& transaction, std::span<const Deciding> runs);
    void SubmitRuns(Transaction& transaction, std::span<const Deciding> runs);
    std::vector<FiringReply> FireIn(
        Transaction& transaction, std::span<const Firing> firings, std::span<const TaskId> ids
    );
    using VisitKey = std::pair<ScheduleId, std::string>;
    std::map<VisitKey, Time> VisitsThere(
        Transaction& transaction, std::span<const VisitFiring> firings
    );
    // One visit that moves, and whether it was made.
    struct Moved {
        const VisitFiring* firing = nullptr;
        const FiringReply* reply = nullptr;
    };
    void AdvanceVisits(Transaction& transaction, std::span<const Moved> visits);
    std::vector<FiringReply> FireVisitsIn(
        Transaction& transaction, std::span<const VisitFiring> firings, std::span<const TaskId> ids
    );
    // Runs it in a transaction; again when the defaults of a type have changed meanwhile.
    template <class Work>
    auto Submitting(Work&& work);

    PostgresStore& store_;
    Db& db_;
};

}  // namespace stint::store::pg
