// Schedules in the store: what was asked, when to look at each again, and the mark of every instant
// that was decided, which is what keeps an instant from becoming two tasks.
//
// The store knows no calendar. A node asks what is due, plans it (model/schedule_plan.h) and hands
// the plan back to Fire(), which commits all of it (marks, tasks, the next look) or, when another
// node was first or somebody changed the schedule meanwhile, nothing.
//
// Errors, time and threads as in store.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/schedule.h"
#include "model/task.h"

namespace stint::store {

// NOLINTNEXTLINE(google-build-using-namespace): the store speaks the model's words
using namespace stint::model;

struct SchedulePut {
    ScheduleSpec spec;
    // None: whatever is there. 0: only if there is none of that name. Else: only this one.
    std::optional<int> expected_revision;
    std::optional<Time> next_at;  // when a node is to look at it first; none = at once
    std::string actor;
};

struct ScheduleListRequest {
    std::optional<TenantId> tenant;
    // Keyset: only those behind this one, by (tenant, name).
    TenantId after_tenant;
    std::string after_name;
    int limit = limits::kListPageDefault;
};

struct DueReply {
    Time now{};  // the store's
    std::vector<Schedule> schedules;
    std::vector<Visit> visits;
    std::vector<Schedule> of_visits;  // the schedules of `visits`, each once
    std::optional<Time> next_at;      // the earliest after now
};

struct PlannedRun {
    Time instant{};
    RunCause cause = RunCause::kTimed;
    std::optional<NewTask> task;  // none: it is only recorded, as skipped
    std::string skipped;
    Duration keep{};
};

// Where a plan leaves its schedule.
struct FiringAdvance {
    int revision = 0;  // of the look that it was made from: if either has changed, nothing happens
    std::int64_t turn = 0;
    Time considered_at{};
    std::optional<Time> next_at;
    std::optional<Time> queued_at;
    std::vector<TaskId> running;  // those of the new runs are added
};

// Everything that was planned for one schedule.
struct Firing {
    ScheduleId schedule;
    std::vector<PlannedRun> runs;
    // None: runs of their own (run now, backfill), which leave the plan alone.
    std::optional<FiringAdvance> advance;
    // Runs that were seen to have ended: they need not be remembered any more.
    std::vector<TaskId> ended = {};
};

// One entity's turn.
struct VisitFiring {
    ScheduleId schedule;
    int revision = 0;
    std::string entity;
    Time expected_next_at{};  // of the look: if it has changed, nothing happens
    std::optional<PlannedRun> run;
    Time next_at{};
};

struct RunReply {
    enum class Kind : std::uint8_t {
        kCreated,   // the task is there
        kExisting,  // a live task stands for it (unique key, debounce, throttle)
        kDecided,   // the instant was decided before; nothing happened
        kSkipped,   // as planned
        kRefused,   // see message; recorded as skipped, unless it could not be remembered
    };
    Kind kind = Kind::kCreated;
    TaskId task;
    std::string message;
    std::string queue;  // for the wake-up
    bool due_now = false;
};
struct FiringReply {
    enum class Kind : std::uint8_t {
        kFired,
        kLost,  // another node was first, or the schedule was changed; nothing happened
        kGone,  // there is no such schedule; nothing happened
    };
    Kind kind = Kind::kFired;
    std::vector<RunReply> runs;  // one each, in order; empty unless kFired
};

struct RunsRequest {
    ScheduleId schedule;
    std::optional<Time> from, to;  // [from, to)
    // Keyset, newest first: only those before this one.
    std::optional<Time> before;
    std::string before_entity;
    int limit = limits::kListPageDefault;
};

struct VisitsRequest {
    ScheduleId schedule;
    std::string after;  // keyset on the entity
    int limit = limits::kListPageDefault;
};

class ScheduleStore {
public:
    virtual ~ScheduleStore() = default;

    // kConflict: it is not what was expected. A new schedule, or one with another timing, begins
    // now: nothing that passed is made up for. One that was there keeps its runs, its pause, its
    // creation and what waits for a run, and with the same timing its place in it as well. With
    // other calendars to except it is looked at at once. Visits that follow the schedule's own
    // interval come sooner when it becomes shorter.
    virtual Result<Schedule> Put(const SchedulePut& put) = 0;
    virtual std::optional<Schedule> Get(TenantId tenant, std::string_view name) = 0;
    virtual std::vector<Schedule> List(const ScheduleListRequest& request) = 0;
    // With its runs and visits; its tasks stay. False: there is none.
    virtual bool Remove(TenantId tenant, std::string_view name) = 0;
    // What passes during a pause is left out, and visits move to their next instant. nullopt: there
    // is no such schedule.
    virtual std::optional<Schedule> SetPaused(
        TenantId tenant, std::string_view name, bool paused, std::string_view actor
    ) = 0;

    virtual DueReply Due(int schedules, int visits) = 0;
    // In one transaction; one answer each, in order. Runs of their own leave the plan alone, but
    // where runs must not overlap one that was made before them is lost; backfills are no runs that
    // anything waits for.
    virtual std::vector<FiringReply> Fire(std::span<const Firing> firings) = 0;
    // A visit whose task is not made since another one is live (unique key) is recorded as skipped,
    // and is not the entity's last.
    virtual std::vector<FiringReply> FireVisits(std::span<const VisitFiring> firings) = 0;
    virtual std::vector<ScheduleRun> Runs(const RunsRequest& request) = 0;
    // Marks that are kept no longer; at most `limit` of them. How many.
    virtual int ForgetRuns(int limit) = 0;

    // Replaces the one of that name. The schedules that name it are looked at at once, and plans
    // that were made before are lost. What was excluded when its time came is not made up for.
    virtual void PutCalendar(const Calendar& calendar) = 0;
    virtual std::vector<Calendar> Calendars(TenantId tenant) = 0;  // by name
    virtual bool RemoveCalendar(TenantId tenant, std::string_view name) = 0;

    // Entities that are new get `next_at`, and those whose interval becomes shorter unless they are
    // due before; of the others that are there only the interval changes.
    // kNotFound: there is no such schedule.
    struct VisitPut {
        NewVisit visit;
        Time next_at{};
    };
    virtual Result<void> PutVisits(ScheduleId schedule, std::span<const VisitPut> visits) = 0;
    virtual int RemoveVisits(ScheduleId schedule, std::span<const std::string> entities) = 0;
    virtual std::vector<Visit> Visits(const VisitsRequest& request) = 0;
};

}  // namespace stint::store
