// The fields of everything that crosses the owner's socket, in the order of the wire. A change here
// is a new protocol version.
#pragma once

#include "store/store.h"

// Found by argument-dependent lookup, so each lives in the namespace of its struct.
namespace stint {
template <class A>
void Fields(A& a, Error& x) {
    a(x.code, x.message);
}
}  // namespace stint

namespace stint::model {

template <class A>
void Fields(A& a, RetryPolicy& x) {
    a(x.kind, x.on, x.max_attempts, x.first_delay, x.max_delay, x.factor, x.jitter, x.delays);
}
template <class A>
void Fields(A& a, TaskError& x) {
    a(x.message, x.klass, x.stack, x.retryable);
}
template <class A>
void Fields(A& a, Debounce& x) {
    a(x.key, x.wait, x.max_wait);
}
template <class A>
void Fields(A& a, Throttle& x) {
    a(x.key, x.period);
}
template <class A>
void Fields(A& a, WaitOn& x) {
    a(x.on, x.on_failure, x.any, x.need_success);
}
template <class A>
void Fields(A& a, WaitMember& x) {
    a(x.asked, x.task, x.ended);
}
template <class A>
void Fields(A& a, Need& x) {
    a(x.resource, x.units);
}
template <class A>
void Fields(A& a, Placement& x) {
    a(x.needs, x.labels, x.order_key, x.on_failed_head);
}
template <class A>
void Fields(A& a, TypeDefaults& x) {
    a(x.type, x.queue, x.priority, x.retry, x.timeout, x.isolated, x.needs, x.labels);
}
template <class A>
void Fields(A& a, TypeRecord& x) {
    a(x.defaults, x.revision, x.updated_at);
}
template <class A>
void Fields(A& a, Progress& x) {
    a(x.step, x.done, x.total, x.message);
}
template <class A>
void Fields(A& a, InputMatch& x) {
    a(x.path, x.op, x.value);
}
template <class A>
void Fields(A& a, CountKey& x) {
    a(x.state, x.queue, x.type);
}
template <class A>
void Fields(A& a, NodeRecord& x) {
    a(x.id, x.hostname, x.last_seen);
}
template <class A>
void Fields(A& a, QueueSettings& x) {
    a(x.name,
      x.paused,
      x.cap,
      x.keep_complete,
      x.keep_dead,
      x.keep_cancelled,
      x.changed_by,
      x.changed_at);
}
template <class A>
void Fields(A& a, QueueChange& x) {
    a(x.name, x.paused, x.cap, x.keep_complete, x.keep_dead, x.keep_cancelled, x.create);
}
template <class A>
void Fields(A& a, QueueRecord& x) {
    a(x.settings, x.waiting, x.running);
}
template <class A>
void Fields(A& a, TaskPage& x) {
    a(x.tasks, x.next);
}
template <class A>
void Fields(A& a, TaskFilter& x) {
    a(x.tenant,
      x.states,
      x.types,
      x.queues,
      x.tags,
      x.created_from,
      x.created_to,
      x.finished_from,
      x.finished_to,
      x.input,
      x.parent);
}
template <class A>
void Fields(A& a, NewTask& x) {
    a(x.id,
      x.tenant,
      x.type,
      x.input,
      x.queue,
      x.priority,
      x.retry,
      x.timeout,
      x.delay,
      x.run_at,
      x.start_by,
      x.tags,
      x.idempotency_key,
      x.unique_key,
      x.unique_policy,
      x.debounce,
      x.throttle,
      x.parent,
      x.cause,
      x.needs,
      x.labels,
      x.order_key,
      x.on_failed_head,
      x.after,
      x.actor);
}
template <class A>
void Fields(A& a, TaskEdit& x) {
    a(x.queue, x.priority, x.input, x.delay, x.run_at, x.start_by, x.retry, x.timeout, x.tags);
}
template <class A>
void Fields(A& a, TaskRecord& x) {
    a(x.id,
      x.tenant,
      x.parent,
      x.type,
      x.queue,
      x.state,
      x.priority,
      x.input,
      x.output,
      x.error,
      x.reason,
      x.warning,
      x.type_known,
      x.cancel_requested,
      x.suspect,
      x.attempt,
      x.max_attempts,
      x.claim_no,
      x.generation,
      x.crash_count,
      x.tags,
      x.unique_key,
      x.idempotency_key,
      x.retry,
      x.timeout,
      x.progress,
      x.placement,
      x.stage,
      x.waiting_for,
      x.session,
      x.node,
      x.created_at,
      x.due_at,
      x.start_by,
      x.claimed_at,
      x.finished_at,
      x.expires_at,
      x.updated_at);
}
template <class A>
void Fields(A& a, AttemptRecord& x) {
    a(x.task,
      x.claim_no,
      x.attempt,
      x.generation,
      x.session,
      x.node,
      x.started_at,
      x.finished_at,
      x.end,
      x.error,
      x.exit_code,
      x.exit_signal,
      x.stderr_tail,
      x.alone);
}
template <class A>
void Fields(A& a, AuditEntry& x) {
    a(x.seq,
      x.task,
      x.tenant,
      x.from,
      x.to,
      x.event,
      x.attempt,
      x.generation,
      x.session,
      x.actor,
      x.reason,
      x.at);
}
template <class A>
void Fields(A& a, SessionRecord& x) {
    a(x.id,
      x.node,
      x.hostname,
      x.pid,
      x.state,
      x.worker_state,
      x.slots,
      x.running,
      x.queues,
      x.types,
      x.labels,
      x.version,
      x.started_at,
      x.renewed_at,
      x.lease_until);
}

}  // namespace stint::model

namespace stint::store {

template <class A>
void Fields(A& a, SubmitReply& x) {
    a(x.kind, x.id, x.message, x.queue, x.due_now, x.announced);
}
template <class A>
void Fields(A& a, NewSession& x) {
    a(x.id, x.hostname, x.pid, x.lease, x.slots, x.queues, x.types, x.labels, x.version, x.exclusive
    );
}
template <class A>
void Fields(A& a, Held& x) {
    a(x.task, x.token);
}
template <class A>
void Fields(A& a, ProgressUpdate& x) {
    a(x.task, x.token, x.progress);
}
template <class A>
void Fields(A& a, RenewRequest& x) {
    a(x.session, x.lease, x.worker_state, x.running, x.draining, x.held, x.progress);
}
template <class A>
void Fields(A& a, RenewReply& x) {
    a(x.live, x.store_time, x.cancel_requested, x.lost);
}
template <class A>
void Fields(A& a, ClaimRequest& x) {
    a(x.session,
      x.limit,
      x.queues,
      x.types,
      x.suspect,
      x.labels,
      x.withheld,
      x.queue_room,
      x.type_room,
      x.resource_room,
      x.at_once,
      x.hinted);
}
template <class A>
void Fields(A& a, Lease& x) {
    a(x.task,
      x.token,
      x.tenant,
      x.parent,
      x.type,
      x.queue,
      x.priority,
      x.input,
      x.attempt,
      x.claim_no,
      x.generation,
      x.crash_count,
      x.alone,
      x.stage,
      x.placement,
      x.retry,
      x.timeout,
      x.idempotency_key,
      x.claimed_at,
      x.group,
      x.seats);
}
template <class A>
void Fields(A& a, ClaimReply& x) {
    a(x.session_live, x.leases, x.next_due, x.suspects_waiting);
}
template <class A>
void Fields(A& a, Settlement& x) {
    a(x.task,
      x.token,
      x.session,
      x.kind,
      x.output,
      x.warning,
      x.error,
      x.delay,
      x.reason,
      x.end,
      x.exit_code,
      x.exit_signal,
      x.stderr_tail,
      x.crashed,
      x.children,
      x.wait,
      x.needs,
      x.unavailable,
      x.closed_for);
}
template <class A>
void Fields(A& a, SettleReply& x) {
    a(x.kind, x.state, x.message, x.opened);
}
template <class A>
void Fields(A& a, BackgroundFinish& x) {
    a(x.task, x.token, x.actor, x.success, x.output, x.error, x.jitter);
}
template <class A>
void Fields(A& a, ReclaimRequest& x) {
    a(x.by, x.limit, x.timeout_grace, x.flights);
}
template <class A>
void Fields(A& a, Reclaimed& x) {
    a(x.task, x.from, x.hostname, x.to, x.end, x.suspect, x.reason);
}
template <class A>
void Fields(A& a, ReclaimReply& x) {
    a(x.expired, x.tasks, x.skipped, x.more);
}
template <class A>
void Fields(A& a, CancelReply& x) {
    a(x.kind, x.state, x.descendants);
}
template <class A>
void Fields(A& a, RetryReply& x) {
    a(x.kind, x.state);
}
template <class A>
void Fields(A& a, ListRequest& x) {
    a(x.filter, x.before, x.limit);
}
template <class A>
void Fields(A& a, AuditRequest& x) {
    a(x.task, x.after, x.limit);
}
template <class A>
void Fields(A& a, HousekeepRequest& x) {
    a(x.limit, x.session_kept, x.history);
}
template <class A>
void Fields(A& a, HousekeepReply& x) {
    a(x.expired_tasks, x.expired_keys, x.forgotten_sessions, x.dropped_periods, x.more);
}
template <class A>
void Fields(A& a, FinishedTask& x) {
    a(x.id, x.type, x.state, x.output, x.error, x.reason, x.warning);
}
template <class A>
void Fields(A& a, Explanation& x) {
    a(x.condition, x.detail, x.ahead, x.more_ahead);
}
template <class A>
void Fields(A& a, Crowd& x) {
    a(x.tasks, x.last);
}
template <class A>
void Fields(A& a, StoreInfo& x) {
    a(x.kind, x.address, x.version, x.schema, x.durability, x.shared, x.identity);
}
template <class A>
void Fields(A& a, CheckFinding& x) {
    a(x.what, x.detail, x.ok);
}

}  // namespace stint::store
