// The fields of everything about flows that crosses the owner's socket. A change here is a new
// protocol version.
#pragma once

#include "store/flows.h"
#include "store/sqlite/wire_types.h"

namespace stint::model {

template <class A>
void Fields(A& a, FlowStep& x) {
    a(x.no,
      x.name,
      x.occurrence,
      x.kind,
      x.state,
      x.about,
      x.hash,
      x.result,
      x.task,
      x.due_at,
      x.late,
      x.at,
      x.ended_at);
}
template <class A>
void Fields(A& a, FlowSignal& x) {
    a(x.no, x.name, x.id, x.payload, x.at, x.step);
}
template <class A>
void Fields(A& a, NewSignal& x) {
    a(x.task, x.name, x.payload, x.id, x.actor);
}
template <class A>
void Fields(A& a, FlowRecord& x) {
    a(x.task, x.tenant, x.steps, x.bytes, x.signals, x.waiting, x.awaits, x.came, x.started_at);
}
template <class A>
void Fields(A& a, FlowHistory& x) {
    a(x.flow, x.steps, x.signals, x.now);
}

}  // namespace stint::model

namespace stint::store {

template <class A>
void Fields(A& a, FlowWrite& x) {
    a(x.task, x.token, x.step, x.length, x.child);
}
template <class A>
void Fields(A& a, FlowReply& x) {
    a(x.kind, x.step, x.message, x.now, x.queue, x.due_now);
}
template <class A>
void Fields(A& a, SignalReply& x) {
    a(x.kind, x.message, x.woken, x.queue);
}
template <class A>
void Fields(A& a, FlowFork& x) {
    a(x.from, x.step, x.occurrence, x.task);
}
template <class A>
void Fields(A& a, ForkReply& x) {
    a(x.kind, x.task, x.steps, x.message, x.queue, x.due_now);
}
template <class A>
void Fields(A& a, FlowListRequest& x) {
    a(x.tenant, x.before, x.limit);
}

}  // namespace stint::store
