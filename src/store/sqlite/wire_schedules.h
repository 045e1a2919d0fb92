// The fields of everything about schedules that crosses the owner's socket.
#pragma once

#include "store/schedules.h"
#include "store/sqlite/wire_types.h"

namespace stint::model {

template <class A>
void Fields(A& a, ClockChangePolicy& x) {
    a(x.gap, x.fold);
}
template <class A>
void Fields(A& a, TimingSpec& x) {
    a(x.kind, x.cron, x.changes, x.every, x.after_end, x.start);
}
template <class A>
void Fields(A& a, MisfirePolicy& x) {
    a(x.kind, x.grace, x.window, x.limit);
}
template <class A>
void Fields(A& a, Step& x) {
    a(x.name, x.tasks, x.go_on);
}
template <class A>
void Fields(A& a, ScheduleSpec& x) {
    a(x.tenant,
      x.name,
      x.timing,
      x.zone,
      x.misfire,
      x.overlap,
      x.jitter,
      x.except,
      x.keep_runs,
      x.instant_field,
      x.entity_field,
      x.task,
      x.steps);
}
template <class A>
void Fields(A& a, Schedule& x) {
    a(x.id,
      x.spec,
      x.revision,
      x.turn,
      x.paused,
      x.created_at,
      x.considered_at,
      x.next_at,
      x.queued_at,
      x.last_instant,
      x.last_task,
      x.running,
      x.changed_by,
      x.changed_at);
}
template <class A>
void Fields(A& a, ScheduleRun& x) {
    a(x.instant, x.entity, x.cause, x.task, x.skipped, x.decided_at);
}
template <class A>
void Fields(A& a, Calendar& x) {
    a(x.tenant, x.name, x.dates);
}
template <class A>
void Fields(A& a, Visit& x) {
    a(x.schedule, x.entity, x.every, x.next_at, x.last_at);
}
template <class A>
void Fields(A& a, NewVisit& x) {
    a(x.entity, x.every);
}

}  // namespace stint::model

namespace stint::store {

template <class A>
void Fields(A& a, SchedulePut& x) {
    a(x.spec, x.expected_revision, x.next_at, x.actor);
}
template <class A>
void Fields(A& a, ScheduleListRequest& x) {
    a(x.tenant, x.after_tenant, x.after_name, x.limit);
}
template <class A>
void Fields(A& a, DueReply& x) {
    a(x.now, x.schedules, x.visits, x.of_visits, x.next_at);
}
template <class A>
void Fields(A& a, PlannedRun& x) {
    a(x.instant, x.cause, x.task, x.skipped, x.keep);
}
template <class A>
void Fields(A& a, FiringAdvance& x) {
    a(x.revision, x.turn, x.considered_at, x.next_at, x.queued_at, x.running);
}
template <class A>
void Fields(A& a, Firing& x) {
    a(x.schedule, x.runs, x.advance, x.ended);
}
template <class A>
void Fields(A& a, VisitFiring& x) {
    a(x.schedule, x.revision, x.entity, x.expected_next_at, x.run, x.next_at);
}
template <class A>
void Fields(A& a, RunReply& x) {
    a(x.kind, x.task, x.message, x.queue, x.due_now);
}
template <class A>
void Fields(A& a, FiringReply& x) {
    a(x.kind, x.runs);
}
template <class A>
void Fields(A& a, RunsRequest& x) {
    a(x.schedule, x.from, x.to, x.before, x.before_entity, x.limit);
}
template <class A>
void Fields(A& a, VisitsRequest& x) {
    a(x.schedule, x.after, x.limit);
}
template <class A>
void Fields(A& a, ScheduleStore::VisitPut& x) {
    a(x.visit, x.next_at);
}

}  // namespace stint::store
