// Schedules: what a person asks for (ScheduleSpec), what a store keeps of it (Schedule), and the
// runs that came of it.
#pragma once

#include <stint/ids.h>
#include <stint/result.h>
#include <stint/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/recurrence.h"
#include "model/steps.h"
#include "model/task.h"

namespace stint::model {

using ScheduleId = Id<struct ScheduleIdTag>;

// Timing in words, before its zone is read.
struct TimingSpec {
    enum class Kind : std::uint8_t {
        kCron,        // `cron` in the schedule's zone
        kEvery,       // a fixed grid: start, start + every, … however long the runs take
        kAfterEnd,    // so long after the end of the run before
        kOnce,        // at `start`
        kVisits,      // many entities, each with an interval of its own, `every` by default
        kAfterStart,  // `every` after the start of the run before, and not before its end
    };
    Kind kind = Kind::kCron;
    std::string cron;
    ClockChangePolicy changes;  // kCron
    Duration every{};
    Duration after_end{};
    std::optional<Time> start;  // none: the schedule's creation (kEvery, kAfterEnd, kAfterStart)
};

struct ScheduleSpec {
    TenantId tenant = kDefaultTenant;
    std::string name;  // unique per tenant
    TimingSpec timing;
    std::string zone = "UTC";  // of the cron expression and of excluded days
    MisfirePolicy misfire;
    OverlapPolicy overlap = OverlapPolicy::kAllow;
    Duration jitter{};                // each task starts up to this much after its instant
    std::vector<std::string> except;  // calendars whose days have no runs
    Duration keep_runs = limits::kScheduleRunsKept;  // the history of runs, at least
    std::string instant_field;  // the member of the input that is given the instant; empty = none
    std::string entity_field;   // … and the entity of a visit
    NewTask task;               // submitted for every run …
    std::vector<Step> steps;    // … unless there are steps: then each run is an execution of them
};

// What is done about overlap unless somebody says it. Visits of one entity pile up where nobody
// works: they do not overlap.
OverlapPolicy UsualOverlap(TimingSpec::Kind kind);

// Names, ranges, the cron expression, the combinations, the task. Zones are files, and not looked
// for. The message names field, value and cure.
Result<void> Validate(const ScheduleSpec& spec);

// The form of stores, files and the command line: {"name": "nightly", "cron": "0 2 * * *", "task":
// {"type": "backup"}}. What has its default value is left out. Relative instants ("now+1h") are
// counted from `now`.
std::string ScheduleToJson(const ScheduleSpec& spec);
Result<ScheduleSpec> ScheduleFromJson(std::string_view json, Time now = {});

// What differs between two specs, member by member, in the words of the JSON form. A member that is
// not there is empty. None: they mean the same.
struct SpecDifference {
    std::string member;  // "cron", "task.queue"
    std::string before;  // JSON
    std::string after;
};
std::vector<SpecDifference> Differences(const ScheduleSpec& before, const ScheduleSpec& after);

// The same instants, whatever else differs. Excluded days are not part of it.
bool SameTiming(const ScheduleSpec& one, const ScheduleSpec& other);

// The timing with its zone, which the caller has read. REQUIRES: Validate(spec) is fine, and the
// kind is not kVisits.
Timing TimingOf(const ScheduleSpec& spec, const Zone& zone, Time created_at);

struct Schedule {
    ScheduleId id;
    ScheduleSpec spec;
    int revision = 1;       // of the spec and the pause
    std::int64_t turn = 0;  // grows with every plan that was carried out
    bool paused = false;
    Time created_at{};
    Time considered_at{};         // every instant up to here was decided
    std::optional<Time> next_at;  // when a node looks at it again; none = never
    // An instant that waits for the end of a run (queue one, cancel running).
    std::optional<Time> queued_at;
    std::optional<Time> last_instant;  // of the latest run that was to become a task
    TaskId last_task;                  // of the latest that did
    std::vector<TaskId> running;       // tasks of runs that were not seen to end, oldest first
    std::string changed_by;
    Time changed_at{};
};

// Why a run is there.
enum class RunCause : std::uint8_t { kTimed, kManual, kBackfill };
std::string_view RunCauseName(RunCause cause);

// One instant of a schedule: the task it became, or why it became none.
struct ScheduleRun {
    Time instant{};
    std::string entity;  // of a visit
    RunCause cause = RunCause::kTimed;
    TaskId task;
    std::string skipped;  // why there is no task
    Time decided_at{};
};

// Days without runs, under a name that schedules refer to.
struct Calendar {
    TenantId tenant = kDefaultTenant;
    std::string name;
    std::vector<std::string> dates;  // "2026-12-25", each once
};
Result<void> Validate(const Calendar& calendar);
ExcludedDays DaysOf(const std::vector<const Calendar*>& calendars, const Zone& zone);

// One entity of a schedule of visits. With OverlapPolicy::kSkip there is no visit while the one
// before is not over, which stands for it; other policies than that and kAllow have no meaning.
struct Visit {
    ScheduleId schedule;
    std::string entity;
    std::optional<Duration> every;  // none = the schedule's
    Time next_at{};
    std::optional<Time> last_at;  // the instant of its last visit
};
struct NewVisit {
    std::string entity;
    std::optional<Duration> every;
};
Result<void> Validate(const NewVisit& visit);

std::string_view OverlapName(OverlapPolicy policy);
std::string_view MisfireName(MisfirePolicy::Kind kind);

}  // namespace stint::model
