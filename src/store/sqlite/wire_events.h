// The fields of everything about events that crosses the owner's socket. A change here is a new
// protocol version.
#pragma once

#include "store/events.h"
#include "store/sqlite/wire_types.h"

namespace stint::model {

template <class A>
void Fields(A& a, NewEvent& x) {
    a(x.tenant, x.source, x.id, x.type, x.data, x.time, x.cause);
}
template <class A>
void Fields(A& a, EventRecord& x) {
    a(x.no,
      x.tenant,
      x.source,
      x.id,
      x.type,
      x.data,
      x.time,
      x.cause,
      x.depth,
      x.state,
      x.reason,
      x.tries,
      x.published_at,
      x.processed_at);
}
template <class A>
void Fields(A& a, TaskTemplate& x) {
    a(x.type, x.input, x.queue, x.priority, x.timeout, x.delay, x.retry, x.tags, x.unique_key);
}
template <class A>
void Fields(A& a, FinishTemplate& x) {
    a(x.success, x.task, x.token, x.output, x.message, x.retryable);
}
template <class A>
void Fields(A& a, Trigger& x) {
    a(x.name, x.on, x.match, x.action);
}
template <class A>
void Fields(A& a, Join& x) {
    a(x.name, x.types, x.key, x.policy, x.ttl, x.submit);
}
template <class A>
void Fields(A& a, WorkflowDefinition& x) {
    a(x.tenant, x.name, x.triggers, x.joins);
}
template <class A>
void Fields(A& a, WorkflowRecord& x) {
    a(x.definition, x.version, x.updated_at, x.updated_by, x.unreadable);
}
template <class A>
void Fields(A& a, Finishing& x) {
    a(x.task, x.token, x.success, x.output, x.message, x.retryable);
}
template <class A>
void Fields(A& a, JoinKey& x) {
    a(x.tenant, x.workflow, x.join, x.key);
}
template <class A>
void Fields(A& a, JoinPart& x) {
    a(x.member, x.type, x.task, x.output, x.completed_at);
}
template <class A>
void Fields(A& a, JoinInstance& x) {
    a(x.key,
      x.generation,
      x.mask,
      x.state,
      x.task,
      x.message,
      x.created_at,
      x.expires_at,
      x.ended_at,
      x.parts,
      x.no,
      x.once);
}
template <class A>
void Fields(A& a, JoinArrival& x) {
    a(x.key, x.types, x.policy, x.ttl, x.submit, x.part);
}

}  // namespace stint::model

namespace stint::store {

template <class A>
void Fields(A& a, PublishReply& x) {
    a(x.kind, x.no, x.message, x.refused);
}
template <class A>
void Fields(A& a, NextEventsRequest& x) {
    a(x.limit, x.taken);
}
template <class A>
void Fields(A& a, NextEventsReply& x) {
    a(x.events, x.revision, x.now);
}
template <class A>
void Fields(A& a, Action::Finish& x) {
    a(x.what, x.jitter);
}
template <class A>
void Fields(A& a, Action::Refusal& x) {
    a(x.message);
}
template <class A>
void Fields(A& a, Action& x) {
    a(x.workflow, x.trigger, x.version, x.what);
}
template <class A>
void Fields(A& a, EventOutcome& x) {
    a(x.event, x.actions, x.refusal, x.later, x.last, x.wait, x.here);
}
template <class A>
void Fields(A& a, FiringRecord& x) {
    a(x.event, x.tenant, x.workflow, x.trigger, x.version, x.kind, x.task, x.message, x.at);
}
template <class A>
void Fields(A& a, FireReply& x) {
    a(x.pending, x.ignored, x.fired, x.queues, x.published);
}
template <class A>
void Fields(A& a, EventFilter& x) {
    a(x.tenant, x.types, x.states, x.before, x.limit);
}
template <class A>
void Fields(A& a, FiringFilter& x) {
    a(x.event, x.task, x.workflow, x.tenant, x.limit);
}
template <class A>
void Fields(A& a, JoinFilter& x) {
    a(x.tenant, x.workflow, x.states, x.limit, x.before);
}
template <class A>
void Fields(A& a, EventCountKey& x) {
    a(x.type, x.state);
}
template <class A>
void Fields(A& a, TidyRequest& x) {
    a(x.limit, x.kept);
}
template <class A>
void Fields(A& a, TidyReply& x) {
    a(x.expired, x.forgotten_events, x.forgotten_joins, x.more);
}

}  // namespace stint::store
