// The fields of everything about resources that crosses the owner's socket.
#pragma once

#include "store/resources.h"
#include "store/sqlite/wire_types.h"

namespace stint::model {

template <class A>
void Fields(A& a, QueueOrder& x) {
    a(x.queue, x.fair, x.weights, x.aging);
}

}  // namespace stint::model

namespace stint::store {

template <class A>
void Fields(A& a, Rate& x) {
    a(x.count, x.period, x.burst);
}
template <class A>
void Fields(A& a, Breaker& x) {
    a(x.failures, x.open_for, x.open_at_most);
}
template <class A>
void Fields(A& a, ResourceSettings& x) {
    a(x.name, x.capacity, x.rate, x.breaker, x.changed_by, x.changed_at);
}
template <class A>
void Fields(A& a, ResourceChange& x) {
    a(x.name, x.capacity, x.rate, x.breaker);
}
template <class A>
void Fields(A& a, BreakerEvidence& x) {
    a(x.at, x.task, x.type, x.node, x.message);
}
template <class A>
void Fields(A& a, ResourceRecord& x) {
    a(x.settings,
      x.pattern,
      x.held,
      x.holders,
      x.breaker,
      x.closed_until,
      x.evidence,
      x.tokens,
      x.waiting);
}

}  // namespace stint::store
