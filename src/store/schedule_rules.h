// What every store does alike when a schedule changes.
#pragma once

#include "store/schedules.h"
#include "store/store.h"

namespace stint::store {

// The schedule with this spec from now on: see ScheduleStore::Put.
void Replace(Schedule& schedule, const SchedulePut& put, Time now);
// Days without runs have changed. What was to be decided before still is; what was excluded when
// its time came is not made up for.
void LookAtOnce(Schedule& schedule, Time now);
// Whether a change of the calendar is one of the schedule's plan. Visits ask when they are due.
bool Excepts(const ScheduleSpec& spec, const Calendar& calendar);
// Whether the visits that follow the schedule's own interval come sooner from now on: what is left
// until then is shortened in proportion, so that those that are spread stay so.
bool VisitsComeSooner(const ScheduleSpec& before, const ScheduleSpec& after);
// The error of a put that met another revision than it expected; 0 = there is none.
Error UnexpectedRevision(const SchedulePut& put, int found);
Error NoSuchSchedule(ScheduleId schedule);
// A pause begins or ends.
void SetPaused(Schedule& schedule, bool paused, std::string_view actor, Time now);

// As text, and back.
std::string RunningText(const std::vector<TaskId>& running);
std::vector<TaskId> ReadRunning(std::string_view text);
// Of the store's own text. Throws WrongSchema for what a newer program wrote.
ScheduleSpec ReadSpec(std::string_view json, std::string_view name);

// What the submit of a run's task means for the run.
RunReply RunReplyOf(const SubmitReply& reply);
// The same for a visit: a task that is there and not over leaves none to make.
RunReply VisitReplyOf(const SubmitReply& reply);
// The answer to runs of their own that cannot be remembered, as where runs must not overlap each
// one that is not over has to be. Nothing of such a firing happens.
std::optional<RunReply> NoRoomFor(const Schedule& schedule, const Firing& firing);
// The schedule after its runs were decided so.
void Advance(Schedule& schedule, const Firing& firing, std::span<const RunReply> replies);

}  // namespace stint::store
