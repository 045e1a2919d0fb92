// The fields of results and deletions as they cross the owner's socket. A change here is a new
// protocol version.
#pragma once

#include "store/results.h"
#include "store/sqlite/wire_types.h"

namespace stint {

template <class A>
void Fields(A& a, Json& x) {
    a(x.text);
}
template <class A>
void Fields(A& a, ItemResult& x) {
    a(x.key, x.action, x.before, x.after, x.error);
}
template <class A>
void Fields(A& a, ItemCounts& x) {
    a(x.total, x.errors);
}

namespace model {

template <class A>
void Fields(A& a, ItemRecord& x) {
    a(x.item, x.claim_no, x.written_at);
}
template <class A>
void Fields(A& a, Checkpoint& x) {
    a(x.json, x.claim_no, x.saved_at);
}
template <class A>
void Fields(A& a, ResultSummary& x) {
    a(x.items, x.checkpoint);
}
template <class A>
void Fields(A& a, NewDeletion& x) {
    a(x.tenant, x.kind, x.key, x.initiator, x.steps, x.grace, x.replaces);
}
template <class A>
void Fields(A& a, Deletion& x) {
    a(x.id, x.tenant, x.kind, x.key, x.initiator, x.steps, x.state, x.marked_at, x.delete_at, x.task
    );
}
template <class A>
void Fields(A& a, Pace& x) {
    a(x.tenant, x.kind, x.cap, x.every);
}

}  // namespace model

namespace store {

template <class A>
void Fields(A& a, ResultWrite& x) {
    a(x.by, x.claim_no, x.items, x.checkpoint);
}
template <class A>
void Fields(A& a, ItemsRequest& x) {
    a(x.task, x.errors_only, x.after, x.limit);
}
template <class A>
void Fields(A& a, DeletionsRequest& x) {
    a(x.tenant, x.kind, x.after_tenant, x.after_kind, x.after_key, x.limit);
}
template <class A>
void Fields(A& a, TakeReply& x) {
    a(x.deletions);
}

}  // namespace store

}  // namespace stint
