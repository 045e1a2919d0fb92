// Schedules: tasks that are submitted again and again, by every process that runs an engine on the
// store and by none of them in particular. However many there are, an instant of a schedule becomes
// at most one task.
//
//   engine.schedules().Put("nightly", when::Cron{"30 2 * * *", "Europe/Berlin"}, backup, {"all"});
//   engine.schedules().Put("poll", when::Every{std::chrono::minutes{10}}, poll,
//                          {.overlap = OnOverlap::kSkip});
#pragma once

#include <stint/codec.h>
#include <stint/ids.h>
#include <stint/options.h>
#include <stint/result.h>
#include <stint/task.h>
#include <stint/time.h>
#include <stint/to_come.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace stint {

class Engine;
namespace services {
class ScheduleDesk;
}

namespace when {

// Where clocks go forward: a time that does not exist on that day.
enum class OnGap : std::uint8_t { kEndOfGap, kSkip };
// Where clocks go back: a time that comes twice.
enum class OnFold : std::uint8_t { kFirst, kLast, kBoth };

// Five fields (minute hour day month weekday), six with seconds first, Quartz's ? L W #, names
// (MON, JAN), @hourly, @daily, …; local times of an IANA zone. Weekdays are numbered as in
// crontab(5), not as in Quartz: 0 or 7 is Sunday, 1 Monday, 5#2 the second Friday; names are safer.
struct Cron {
    std::string expression;
    std::string zone = "UTC";
    OnGap on_gap = OnGap::kEndOfGap;
    OnFold on_fold = OnFold::kFirst;
};
// anchor, anchor + interval, …: the runs' length moves nothing. The anchor is the schedule's
// creation unless it is given.
struct Every {
    Duration interval = std::chrono::minutes{10};
    std::optional<Time> anchor = {};
};
// So long after the end of the run before, however it ended. The first at once, or at `first`. The
// end is noticed within a second, after long runs within half a minute.
struct AfterEnd {
    Duration delay{};
    std::optional<Time> first = {};
};
// So long after the start of the run before (of its last attempt, where it was retried): the time
// that a run takes is no part of it. One that takes longer is followed at once, by one run. The
// first at once, or at `first`. The end is noticed as with AfterEnd.
struct AfterStart {
    Duration interval = std::chrono::minutes{10};
    std::optional<Time> first = {};
};
struct Once {
    Time at{};
};
// Many entities, each visited at its own interval (see Schedules::PutVisits), spread over time. A
// visit that was missed is made up for once. Unless OnOverlap::kAllow is asked for there is none
// while the entity's last visit is not over: that one stands for those that would have followed.
struct Visits {
    Duration interval{};  // unless the entity has its own
};

}  // namespace when

using When = std::
    variant<when::Cron, when::Every, when::AfterEnd, when::Once, when::Visits, when::AfterStart>;

// What becomes of instants that passed while no engine ran.
struct OnMissed {
    enum class Kind : std::uint8_t {
        kSkip,
        kOnce,  // the latest stands for all of them
        kAll,   // those of the last `window`, the latest `limit` of them
    };
    Kind kind = Kind::kOnce;
    Duration grace = std::chrono::minutes{1};  // no later than this is on time
    Duration window = std::chrono::hours{24};
    int limit = 100;
};

// What happens when an instant comes and a run of the schedule is not over.
enum class OnOverlap : std::uint8_t {
    kAllow,
    kSkip,           // no run, and the history says so
    kQueueOne,       // the latest such instant runs when the run is over
    kCancelRunning,  // the same, and the run is asked to end
};

struct ScheduleOptions {
    OnMissed missed = {};  // not of visits
    // None: kAllow, of visits kSkip. Visits have no other than these two.
    std::optional<OnOverlap> overlap = {};
    // Each task is due up to this much after its instant; a visit that is made up for, after now.
    Duration jitter{};
    std::vector<std::string> except = {};  // calendars (PutCalendar) whose days have no runs
    std::string zone = {};                 // of those days; empty = of the cron expression, or UTC
    Duration keep_runs = std::chrono::hours{24 * 7};  // the history, at least
    std::string instant_field = {};  // the member of the input that is given the instant
    std::string entity_field = {};   // … and the entity of a visit
    // 0: only if there is no schedule of that name; else only if this is its revision.
    std::optional<int> expected_revision = {};
    // Of every run. Not: delay, run_at, start_by, idempotency_key, in.
    SubmitOptions task = {};
};

// One step of a schedule with steps: its tasks run side by side; the next step begins when all of
// them are terminal.
struct ScheduleStep {
    std::string name;
    std::vector<TaskToCome> tasks;
    // What a task that ends dead or cancelled means: the execution has failed, and later steps do
    // not begin (all of this one are waited for); or it goes on, and ends with a warning.
    enum class OnFailure : std::uint8_t { kStop, kContinue };
    OnFailure on_failure = OnFailure::kStop;
};

struct ScheduleInfo {
    std::string name;
    std::string definition;  // JSON, as `stint schedule apply` takes it
    int revision = 1;
    bool paused = false;
    std::optional<Time> next_at;  // when it is looked at next; none = never again
    std::optional<Time> last_instant;
    std::optional<TaskId> last_task;
    Time created_at{};
    std::string changed_by;
    Time changed_at{};
};

// One instant: the task that it became, or why it became none.
struct ScheduleRunInfo {
    Time instant{};
    std::string entity;  // of a visit
    std::string cause;   // "timed", "manual", "backfill"
    std::optional<TaskId> task;
    std::string skipped;
    Time decided_at{};
    // Of a schedule with steps: the run is an execution, and `task` stands for all of it. It is
    // "open", "in_progress", "blocked" (its step is running), "complete", "dead" (a step has
    // failed) or "cancelled"; empty: it is kept no longer.
    std::string state = {};
    std::string step = {};  // "2/3 load" while a step is running; why, when it ended badly
};

struct UpcomingInstant {
    Time at{};
    std::string local;      // as clocks of the zone show it
    std::string oddity;     // what is odd about it; empty on ordinary days
    bool excluded = false;  // nothing will happen: a day without runs, or a time that clocks skip
};

struct BackfillOptions {
    bool only_count = false;
    // Also where nobody remembers any more what ran, so that something may run twice.
    bool again = false;
};

struct BackfillInfo {
    int missing = 0;  // instants of the range that had become no task
    int decided = 0;  // and those that had
    int created = 0;  // tasks made now
    int refused = 0;
    std::string first_refusal;
};

struct CalendarInfo {
    std::string name;
    std::vector<std::string> dates;
};

struct ApplyOptions {
    bool dry_run = false;
    bool prune = false;  // schedules that the document does not name are removed
};
// What a document asks for, compared with what is there.
struct ApplyStepInfo {
    std::string action;  // "create", "change", "keep", "remove"
    std::string what;    // "schedule" or "calendar"
    std::string name;
    std::vector<std::string> differences;  // the members that change: "cron", "task.queue"
};

struct VisitRequest {
    std::string entity;
    std::optional<Duration> every = {};
};
struct VisitInfo {
    std::string entity;
    std::optional<Duration> every;
    Time next_at{};
    std::optional<Time> last_at;
};

// The schedules of an engine's store: Engine::schedules(). Valid as long as the engine.
class Schedules {
public:
    // Makes the schedule, or changes it; one that is there as asked stays as it is, so programs may
    // say it at every start. With the same timing it goes on where it is; another timing begins
    // now.
    template <class In, class Out>
    Result<ScheduleInfo> Put(
        std::string_view name,
        const When& when,
        const Task<In, Out>& task,
        const std::type_identity_t<In>& input,
        const ScheduleOptions& options = {}
    ) {
        return PutBytes(name, when, task.name, &task.defaults, Codec<In>::Encode(input), options);
    }
    template <class Out>
    Result<ScheduleInfo> Put(
        std::string_view name,
        const When& when,
        const Task<void, Out>& task,
        const ScheduleOptions& options = {}
    ) {
        return PutBytes(name, when, task.name, &task.defaults, "null", options);
    }
    // Each run is an execution of these steps, in order. It goes on as it began, whatever becomes
    // of the schedule; cancelling its task cancels those of its step. ScheduleOptions::task is not
    // used: each task has options of its own.
    Result<ScheduleInfo> PutSteps(
        std::string_view name,
        const When& when,
        const std::vector<ScheduleStep>& steps,
        const ScheduleOptions& options = {}
    );
    // {"name": "nightly", "cron": "30 2 * * *", "task": {"type": "backup"}}, or instead of "task"
    // "steps": [{"name": "extract", "tasks": [{"type": "a"}, …], "on_failure": "continue"}, …]
    Result<ScheduleInfo> PutJson(std::string_view definition);
    // Makes schedules and calendars what a document says, as `stint schedule apply` does:
    // {"calendars": {"name": ["2026-12-25"]}, "schedules": [{…}, …]}. One with a mistake changes
    // nothing.
    Result<std::vector<ApplyStepInfo>> Apply(
        std::string_view document, const ApplyOptions& options = {}
    );

    Result<ScheduleInfo> Get(std::string_view name);
    Result<std::vector<ScheduleInfo>> List();    // by name
    Result<void> Remove(std::string_view name);  // its tasks stay
    // Instants that pass meanwhile are left out; visits go on with their next.
    Result<ScheduleInfo> Pause(std::string_view name);
    Result<ScheduleInfo> Resume(std::string_view name);
    // A run now, whatever the policies say and whether or not it is paused.
    Result<TaskId> RunNow(std::string_view name);
    Result<std::vector<UpcomingInstant>> Next(std::string_view name, int count = 20);
    // The same of a schedule that is not there yet; of the options zone and except count.
    Result<std::vector<UpcomingInstant>> Preview(
        const When& when, int count = 20, const ScheduleOptions& options = {}
    );
    // Makes the runs of [from, to) that did not happen; or only counts them. Their tasks are not
    // what ScheduleOptions::overlap asks about.
    Result<BackfillInfo> Backfill(
        std::string_view name, Time from, Time to, const BackfillOptions& options = {}
    );
    Result<std::vector<ScheduleRunInfo>> Runs(std::string_view name, int limit = 100);

    // Days ("2026-12-25") without runs, for ScheduleOptions::except. A change counts at once; what
    // was excluded when its time came is not made up for.
    Result<void> PutCalendar(std::string_view name, std::vector<std::string> dates);
    Result<void> RemoveCalendar(std::string_view name);
    Result<std::vector<CalendarInfo>> Calendars();  // by name

    // Entities of a schedule of visits. One that is there gets the new interval; it keeps its place
    // unless that is shorter, which counts from now on.
    Result<void> PutVisits(std::string_view name, std::span<const VisitRequest> visits);
    Result<int> RemoveVisits(std::string_view name, std::span<const std::string> entities);
    // By entity; `after` is the last one of the page before.
    Result<std::vector<VisitInfo>> Visits(
        std::string_view name, std::string_view after = {}, int limit = 100
    );

private:
    friend class Engine;
    Schedules(services::ScheduleDesk& desk, TenantId tenant) : desk_(&desk), tenant_(tenant) {}
    Result<ScheduleInfo> PutBytes(
        std::string_view name,
        const When& when,
        std::string_view type,
        const TaskDefaults* defaults,
        std::string input,
        const ScheduleOptions& options
    );

    services::ScheduleDesk* desk_;
    TenantId tenant_;
};

}  // namespace stint
