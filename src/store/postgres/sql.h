// Every statement of the store, by name, for one schema. The texts are the files in queries/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "postgres/connection.h"

namespace stint::store::pg {

// clang-format off
#define STINT_PG_QUERIES(X)                                                                     \
    X(announce) X(attempts_of) X(audit_all) X(audit_of) X(begin_period) X(calendar_changed)     \
    X(calendar_put) X(calendar_remove) X(calendars) X(calendars_hold) X(cancel_done)            \
    X(cancel_due) X(cancel_running) X(change_queue)                                             \
    X(check_leases) X(check_orphans) X(check_policies) X(check_replay) X(check_tally)           \
    X(check_waits) X(claim) X(claim_idle) X(close_session) X(complete) X(counts_events)         \
    X(counts_history) X(counts_live) X(children_of) X(drop_candidates) X(drop_leaf)             \
    X(edit_live) X(event_of) X(events_add) X(events_depth) X(events_end) X(events_fired)        \
    X(events_follow)                                                                            \
    X(events_forget) X(events_known) X(events_lock) X(events_take)                              \
    X(expire_sessions) X(explain) X(finish) X(finished_of) X(firings_add) X(flow_came)          \
    X(flow_find) X(flow_forget) X(flow_holds) X(flow_list) X(flow_look) X(flow_make)            \
    X(flow_read) X(flow_save) X(flow_signal_add) X(flow_signal_by_id) X(flow_signal_next)       \
    X(flow_signal_take) X(flow_signals) X(flow_step) X(flow_step_add) X(flow_step_end)          \
    X(flow_steps) X(fold_tally)                                                                 \
    X(forget) X(forget_sessions) X(go_outside) X(held_leases) X(history_of) X(history_parts)    \
    X(housekeep_look)                                                                           \
    X(hold_live) X(idem_of) X(ids_exist) X(info) X(keys_lock) X(keys_read) X(keys_write)        \
    X(lane_by_id) X(lane_make) X(lapsed_background) X(lapsed_leases) X(lease_facts)             \
    X(leases_of_expired) X(leave_lease) X(list_events) X(list_firings) X(list_floor)            \
    X(list_history) X(list_joins) X(list_live) X(list_schedules) X(live_ids) X(live_of)         \
    X(lock_leases) X(lock_waits) X(make_leaf) X(nodes) X(now) X(open_others) X(open_session)    \
    X(outside_of) X(parts_of) X(parts_set) X(periods) X(policy_by_id) X(policy_make)            \
    X(progress_write) X(promote) X(queue_caps) X(queue_make) X(queues) X(renew) X(reserve_ids)  \
    X(retire_classes) X(revive) X(rounds_forget) X(rounds_lapsed) X(rounds_newest)              \
    X(rounds_set) X(run_list) X(run_result) X(runs_forget) X(runs_mark) X(runs_of)              \
    X(schedule_advance) X(schedule_due) X(schedule_find) X(schedule_find_lock)                  \
    X(schedule_insert) X(schedule_lock) X(schedule_remove) X(schedule_save) X(schedules_of)     \
    X(sessions) X(settled_by) X(start_by_passed) X(submit_plain) X(take_outside)                \
    X(take_waiting) X(tell_waiters) X(types) X(types_lock) X(types_lock_shared)                 \
    X(types_publish) X(unknown_of_types) X(visit_list) X(visits_advance)                        \
    X(visits_due) X(visits_put) X(visits_remove) X(visits_resume) X(visits_shorten)             \
    X(visits_there)                                                                             \
    X(wait) X(wait_close) X(wait_lock)                                                          \
    X(wait_failed) X(wait_forget) X(wait_members) X(wait_of) X(wait_reaches) X(wait_write)      \
    X(waiting_of) X(workflow_lock) X(workflow_of) X(workflow_remove) X(workflow_set)            \
    X(workflows) X(write_attempts) X(write_audit)                                               \
    X(claim_begin) X(claim_lane) X(complete_plain) X(late) X(tick)                              \
    X(check_ordered) X(check_slots) X(claim_picked) X(order_join) X(order_next) X(order_park)   \
    X(order_rejoin) X(order_remove) X(order_set) X(plan_lanes)                                  \
    X(order_give_up) X(shares) X(share_lock) X(share_make) X(share_save) X(wait_links)          \
    X(queue_orders) X(resource_lock) X(resource_make) X(resource_remove)                        \
    X(resource_save) X(resource_waiting) X(resources) X(slots_release)                          \
    X(deletion_any) X(deletion_begin) X(deletion_find) X(deletion_forget) X(deletion_list)      \
    X(deletion_mark) X(deletion_take) X(deletion_unmark) X(items_forget) X(items_of)            \
    X(pace_lock) X(pace_make) X(pace_set) X(result_hold) X(result_make) X(result_of)            \
    X(result_write) X(results_forget) X(results_later) X(results_look) X(items_in_error)        \
    X(tasks_kept) X(deletion_retake)                                                            \
    X(check_capacity) X(check_flows) X(check_slots_missing) X(lanes_waiting)                    \
    X(resource_crowd) X(resource_idle) X(resource_of_pattern) X(resources_all) X(running_hold)  \
    X(running_lines) X(slots_adopt) X(claims_stop) X(order_keys) X(crowds) X(ready_between)
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
