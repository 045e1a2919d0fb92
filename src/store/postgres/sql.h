// Every statement of the store, by name, for one schema. The texts are the files in queries/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "postgres/connection.h"

namespace stint::store::pg {

// clang-format off
#define STINT_PG_QUERIES(X)                                                                     \
    X(attempts_of) X(audit_all) X(audit_of) X(begin_period) X(cancel_running) X(change_queue)   \
    X(check_leases) X(check_orphans) X(check_policies) X(check_replay) X(check_tally) X(claim)  \
    X(claim_idle) X(close_session) X(complete) X(counts_history) X(counts_live)                 \
    X(drop_candidates) X(drop_leaf) X(edit_live) X(expire_keys) X(expire_sessions) X(explain)   \
    X(finish) X(finished_of) X(fold_tally) X(forget_sessions) X(go_outside) X(held_leases)      \
    X(history_of) X(history_parts) X(idem_of) X(ids_exist) X(info) X(keys_lock) X(keys_read)    \
    X(keys_write) X(lane_by_id) X(lane_make) X(lapsed_background) X(lapsed_leases)              \
    X(lease_facts) X(leases_of_expired) X(leave_lease) X(list_floor) X(list_history)            \
    X(list_live) X(live_ids) X(live_of) X(lock_leases) X(make_leaf) X(nodes) X(now)             \
    X(open_others) X(open_session) X(outside_of) X(periods) X(policy_by_id) X(policy_make)      \
    X(progress_write) X(promote) X(queue_caps) X(queue_make) X(queues) X(renew) X(reserve_ids)  \
    X(retire_classes) X(revive) X(sessions) X(settled_by) X(start_by_passed) X(submit_plain)    \
    X(take_outside) X(take_waiting) X(types) X(types_lock) X(types_lock_shared)                 \
    X(types_publish) X(unknown_any) X(unknown_of_types) X(wait) X(waiting_of)                   \
    X(write_attempts) X(write_audit)
// clang-format on

struct Sql {
    explicit Sql(std::string_view schema);

#define X(name) postgres::Statement name;
    STINT_PG_QUERIES(X)
#undef X

    std::string schema;  // as SQL wants it
};

void ReplaceAll(std::string& text, std::string_view from, std::string_view to);

// The text with $schema$. and $schema_name$ replaced.
std::string ForSchema(std::string_view text, std::string_view schema);

// Numbered from 1, in order.
struct Migration {
    int number;
    std::string name;
    std::string_view text;
};
const std::vector<Migration>& Migrations();

}  // namespace stint::store::pg
