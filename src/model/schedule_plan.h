// What becomes of a schedule when a node looks at it: which instants become tasks, which are left
// out and why, and when to look again. Pure: what is known of the runs is given.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/schedule.h"

namespace stint::model {

// Of Schedule::running, what the store says now.
struct RunsNow {
    std::vector<TaskId> live;
    std::optional<Time> ended_at;    // when the last of the others ended
    std::optional<Time> started_at;  // and when the last attempt of it began
};

struct SchedulePlan {
    struct Skipped {
        Time at{};
        std::string why;
    };
    std::vector<Time> fire;  // in order
    std::vector<Skipped> skipped;
    std::vector<TaskId> cancel;   // before anything is fired
    std::vector<TaskId> running;  // what is to be remembered of Schedule::running
    std::optional<Time> queued_at;
    Time considered_at{};
    std::optional<Time> next_at;
};

// Whether a plan depends on which runs are over.
bool RunsMatter(const ScheduleSpec& spec);

// REQUIRES: the timing is not that of visits.
SchedulePlan PlanSchedule(
    const Schedule& schedule,
    const Timing& timing,
    const ExcludedDays& excluded,
    const RunsNow& runs,
    Time now
);

struct VisitPlan {
    bool fire = false;  // at the visit's next_at
    Time next_at{};
};
// However many visits were missed, one makes up for them. Whether the one before is over is not
// asked here: the task of a visit has a key that keeps it from being a second one (TaskOf).
VisitPlan PlanVisit(
    const ScheduleSpec& spec, const Visit& visit, const ExcludedDays& excluded, Time now
);
// When an entity that is new has its first visit: somewhere within one interval, so that entities
// that come together do not stay together.
Time FirstVisit(const ScheduleSpec& spec, const NewVisit& visit, Time now);

// The first visit after `now` of an entity that was to be visited at `next_at`, its place kept.
Time VisitAfter(Time now, Time next_at, Duration every);

// The task of one run. `entity` is empty unless it is a visit, whose jitter counts from `now` if it
// is late: many that are made up for together are spread as well.
NewTask TaskOf(
    const Schedule& schedule, Time instant, const std::string& entity, RunCause cause, Time now = {}
);

// How long the mark of a run stays: no shorter than anybody could decide the instant again.
Duration KeepOf(const ScheduleSpec& spec, RunCause cause);

// What a person is shown of the time to come.
struct PreviewEntry {
    Time at{};
    std::string local;      // "2026-03-29 03:00:00 CEST"
    std::string oddity;     // what clocks do to it on this day; empty on ordinary days
    bool excluded = false;  // nothing will happen: a day without runs, or see oddity
};
// The next `count` instants after `after`, with those among them that are excluded or that clocks
// skip.
std::vector<PreviewEntry> Preview(
    const Timing& timing, const ExcludedDays& excluded, Time after, int count
);

}  // namespace stint::model
