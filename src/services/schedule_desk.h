// What people and programs do with schedules: put, look, pause, run now, backfill, apply a file.
// The words of the API and of the command line are here; the store knows no calendar.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/schedule_plan.h"
#include "services/planner.h"
#include "services/zones.h"
#include "store/schedules.h"
#include "store/store.h"
#include "wake/wake.h"

namespace stint::services {

struct BackfillRequest {
    std::string name;
    Time from{}, to{};  // [from, to)
    bool dry_run = false;
    bool again = false;  // also where the marks of runs are gone, so that one may run twice
};
struct BackfillReport {
    std::vector<Time> missing;  // instants of the range that became no task
    int decided = 0;            // those that did
    int created = 0;            // tasks made by this call
    int refused = 0;
    std::string first_refusal;
};

// A run of a schedule with steps is an execution: its task's record tells how it stands.
struct RunSeen {
    model::ScheduleRun run;
    std::optional<model::TaskRecord> execution;  // none: it has no steps, or is kept no longer
};
// "2/3 load" while a step is running; why, when it ended badly; else nothing.
std::string StepText(const model::TaskRecord& execution);

// What a file asks for, compared with what is there.
struct ApplyStep {
    enum class Kind : std::uint8_t { kCreate, kChange, kKeep, kRemove };
    Kind kind = Kind::kKeep;
    std::string what;  // "schedule" or "calendar"
    std::string name;
    std::vector<model::SpecDifference> differences;  // kChange
};
std::string_view ApplyKindName(ApplyStep::Kind kind);
struct ApplyRequest {
    std::string document;  // {"calendars": {"name": ["2026-12-25"]}, "schedules": [{…}, …]}
    TenantId tenant = kDefaultTenant;
    bool dry_run = false;
    bool prune = false;  // schedules that the document does not name are removed
    std::string actor;
};

// Errors of the request are in the results; a store that fails throws, as store.h says.
class ScheduleDesk {
public:
    ScheduleDesk(store::Store& store, wake::Wake& wake, ZoneSource zones)
        : store_(store), schedules_(store.Schedules()), wake_(wake), zones_(std::move(zones)) {}

    // Called after every change: a scheduler of this process need not wait for its next look.
    void OnChange(std::function<void()> listener) { changed_ = std::move(listener); }

    Result<model::Schedule> Put(
        const model::ScheduleSpec& spec,
        std::optional<int> expected_revision,
        std::string_view actor
    );
    Result<model::Schedule> Get(TenantId tenant, std::string_view name);
    std::vector<model::Schedule> List(std::optional<TenantId> tenant);
    Result<void> Remove(TenantId tenant, std::string_view name);
    Result<model::Schedule> SetPaused(
        TenantId tenant, std::string_view name, bool paused, std::string_view actor
    );
    // Now, whatever its policies say.
    Result<store::RunReply> RunNow(TenantId tenant, std::string_view name);
    Result<std::vector<model::PreviewEntry>> Next(
        TenantId tenant, std::string_view name, int count
    );
    // Of one that is not there yet.
    Result<std::vector<model::PreviewEntry>> Preview(const model::ScheduleSpec& spec, int count);
    Result<BackfillReport> Backfill(TenantId tenant, const BackfillRequest& request);
    Result<std::vector<model::ScheduleRun>> Runs(
        TenantId tenant, std::string_view name, store::RunsRequest request
    );
    // The same, with the records of executions.
    Result<std::vector<RunSeen>> Executions(
        TenantId tenant, std::string_view name, const store::RunsRequest& request
    );
    // A document with a mistake changes nothing, and a dry run finds it.
    Result<std::vector<ApplyStep>> Apply(const ApplyRequest& request);

    Result<void> PutCalendar(const model::Calendar& calendar);
    std::vector<model::Calendar> Calendars(TenantId tenant) { return schedules_.Calendars(tenant); }
    // Refused while a schedule names it.
    Result<void> RemoveCalendar(TenantId tenant, std::string_view name);

    Result<void> PutVisits(
        TenantId tenant, std::string_view name, std::span<const model::NewVisit> visits
    );
    Result<int> RemoveVisits(
        TenantId tenant, std::string_view name, std::span<const std::string> entities
    );
    Result<std::vector<model::Visit>> Visits(
        TenantId tenant, std::string_view name, store::VisitsRequest request
    );

private:
    Result<std::optional<Time>> FirstLook(
        Planner& planner, const model::ScheduleSpec& spec, const model::Schedule* there
    );
    // Whether it may be put in place of what is there, if anything is. Answers with its first look,
    // where it needs a new one that can be told.
    Result<std::optional<Time>> Check(
        Planner& planner, const model::ScheduleSpec& spec, const model::Schedule* there
    );
    Result<void> CheckRoomFor(
        const std::vector<model::Calendar>& there, std::span<const model::Calendar> wanted
    );
    Result<std::vector<model::PreviewEntry>> PreviewOf(
        const model::ScheduleSpec& spec, Time created_at, Time after, int count
    );
    Result<model::Schedule> OfVisits(TenantId tenant, std::string_view name);
    Result<std::vector<Time>> InstantsIn(
        const model::Schedule& schedule, const BackfillRequest& request, Time now
    );
    void FillIn(
        const model::Schedule& schedule, const std::vector<Time>& instants, BackfillReport& report
    );
    std::vector<TaskId> EndedRuns(const model::Schedule& schedule);
    void Changed();
    void Wake(std::span<const store::RunReply> runs);

    store::Store& store_;
    store::ScheduleStore& schedules_;
    wake::Wake& wake_;
    const ZoneSource zones_;
    std::function<void()> changed_;
};

}  // namespace stint::services
