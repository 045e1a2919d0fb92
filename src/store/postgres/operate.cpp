// What an operator may do to a task.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/result.h"
#include "base/test_point.h"
#include "model/limits.h"
#include "store/postgres/store_impl.h"

namespace stint::store::pg {

using base::MakeError;

namespace {

// A task that is being moved by others may have to be looked for again.
constexpr int kLooks = 20;

std::string BeingMoved(std::int64_t task) {
    return fmt::format(
        "task {} was being moved by others at each of {} looks; try again", task, kLooks
    );
}

}  // namespace

std::vector<Facts> PostgresStore::TakeWaiting(
    Transaction& transaction, std::vector<std::int64_t> ids, std::initializer_list<State> states
) {
    std::vector<Facts> taken;
    std::vector<std::int64_t> open = Sorted(std::move(ids));
    for (int look = 0; !open.empty(); ++look) {
        if (look == kLooks) throw Unavailable(BeingMoved(open.front()));
        Params params;
        AddInts(params, open);
        ArrayOf numbers(oid::kInt2);
        for (State state : states) numbers.Int(static_cast<int>(state));
        numbers.AddTo(params);
        std::set<std::int64_t> got;
        for (Facts& facts : ReadFacts(transaction.Query(db_.sql.take_waiting, params))) {
            got.insert(facts.id.value());
            taken.push_back(std::move(facts));
        }
        std::erase_if(open, [&](std::int64_t id) { return got.contains(id); });
        if (open.empty()) break;
        // One that has just become due went from where the statement had found it to where it had
        // not: it waits all the same.
        Params rest;
        AddInts(rest, open);
        Rows live = transaction.Query(db_.sql.live_ids, rest);
        open.clear();
        for (int i = 0; i < live.size(); ++i) {
            bool wanted =
                std::find(states.begin(), states.end(), static_cast<State>(live.Int(i, 2))) !=
                states.end();
            if (live.Int(i, 1) == 0 && wanted) open.push_back(live.Int(i, 0));
        }
    }
    std::sort(taken.begin(), taken.end(), [](const Facts& a, const Facts& b) {
        return a.id < b.id;
    });
    return taken;
}

int PostgresStore::LaneWith(int id, bool suspect) {
    Lane lane = catalog_.LaneOf(id);
    if (lane.suspect == suspect) return id;
    lane.suspect = suspect;
    return catalog_.LaneId(lane);
}

void PostgresStore::Ready(Transaction& transaction, const Changes& changes) {
    if (changes.waiting().empty()) return;
    std::vector<std::pair<int, std::int64_t>> places;
    for (const Changes::Waiting& waiting : changes.waiting()) {
        places.emplace_back(waiting.after.lane, waiting.after.pos);
    }
    // Not before: a claim that does not see them yet would raise the mark again.
    transaction.OnCommit([this, places = std::move(places)] {
        marks_.Lower(places);
        idle_ = false;
    });
}

// ---- cancel ------------------------------------------------------------------------------------

void PostgresStore::CancelTaken(
    const std::vector<Facts>& taken,
    std::string_view actor,
    const CancelReasons& reasons,
    Changes& changes,
    std::map<TaskId, CancelReply>& replies
) {
    for (const Facts& facts : taken) {
        const std::string& reason = reasons.at(facts.id);
        changes.AddAudit(
            {facts.id,
             catalog_.LaneOf(facts.lane).tenant,
             Event::kCancel,
             facts.state,
             State::kCancelled,
             facts.attempt,
             facts.generation,
             {},
             std::string(actor),
             reason}
        );
        changes.AddFinish({facts, State::kCancelled, std::nullopt, {}, false, facts.error, reason});
        replies[facts.id] = {CancelReply::Kind::kCancelled, State::kCancelled};
    }
}

// Leases first, then waits, then places: the order of whoever ends what a blocked task waits for.
void PostgresStore::CancelOnce(
    Transaction& transaction,
    const CancelReasons& reasons,
    std::string_view actor,
    Changes& changes,
    std::map<TaskId, CancelReply>& replies
) {
    std::map<std::string, std::vector<std::int64_t>> by_reason;
    std::vector<std::int64_t> all;
    for (const auto& [task, reason] : reasons) {
        by_reason[reason].push_back(task.value());
        all.push_back(task.value());
    }
    for (const auto& [reason, tasks] : by_reason) {
        Params running;
        AddInts(running, tasks);
        running.Text(reason);
        Rows rows = transaction.Query(db_.sql.cancel_running, running);
        for (int i = 0; i < rows.size(); ++i) {
            replies[TaskId(rows.Int(i, 0))] = {CancelReply::Kind::kRequested, State::kInProgress};
        }
    }
    Params ids, waits;
    AddInts(ids, all);
    AddInts(waits, all);
    transaction.Defer(db_.sql.lock_waits, std::move(waits));
    CancelTaken(
        TakeWaiting(transaction, all, {State::kOpen, State::kError}),
        actor,
        reasons,
        changes,
        replies
    );
    CancelTaken(
        ReadFacts(transaction.Query(db_.sql.take_outside, ids)), actor, reasons, changes, replies
    );
}

// What is not finished below the tasks, with the topmost of the tasks that it is below. What is
// finished in between does not hide what is below it.
std::map<TaskId, TaskId> PostgresStore::Below(
    Transaction& transaction, std::span<const TaskId> tasks
) {
    std::map<TaskId, TaskId> below, root_of, above;  // above: of tasks that are below others
    std::vector<std::int64_t> level = Sorted(Values(tasks));
    if (level.empty()) return below;
    // Those below a task were submitted after it.
    std::vector<int> parts;
    const int oldest = catalog_.PeriodOf(TaskId(level.front())) - 1;
    const int newest = catalog_.PeriodOf(TaskId(INT64_MAX)) + 1;
    for (int part = oldest * kClasses; part < (newest + 1) * kClasses; ++part)
        parts.push_back(part);
    for (std::int64_t task : level) root_of[TaskId(task)] = TaskId(task);
    for (int finished = 0; !level.empty() && finished < limits::kTreeFinished;) {
        ArrayOf numbers(oid::kInt4);
        for (int part : parts) numbers.Int(part);
        Params params;
        AddInts(params, level);
        numbers.AddTo(params);
        params.Int4(INT32_MAX);
        Rows rows = transaction.Query(db_.sql.children_of, params);
        level.clear();
        for (int i = 0; i < rows.size(); ++i) {
            TaskId child(rows.Int(i, 1));
            const TaskId root = root_of.at(TaskId(rows.Int(i, 0)));
            if (rows.Bool(i, 2) && ++finished > limits::kTreeFinished) continue;
            if (!rows.Bool(i, 2)) below.emplace(child, root);
            if (!root_of.emplace(child, root).second) {
                above.emplace(child, root);
                continue;
            }
            level.push_back(child.value());
        }
    }
    for (auto& [task, root] : below) {
        for (auto next = above.find(root); next != above.end(); next = above.find(root)) {
            root = next->second;
        }
    }
    return below;
}

// The tasks and all below them, in one transaction: those of the tasks that were live, and what
// became of them.
std::map<TaskId, CancelReply> PostgresStore::CancelTrees(
    std::span<const TaskId> tasks, std::string_view actor, const std::string& why
) {
    return db_.Run([&](Transaction& transaction) {
        std::map<TaskId, CancelReply> found;
        std::map<TaskId, TaskId> root_of;
        Changes changes(catalog_);
        for (int look = 0; look < kLooks; ++look) {
            // A task that was asked to stop makes no more below it; until then it may have.
            root_of.merge(Below(transaction, tasks));
            CancelReasons reasons;
            for (TaskId task : tasks) reasons[task] = why;
            for (const auto& [task, root] : root_of) {
                reasons.emplace(task, WhyBelowCancelled(root));
            }
            std::erase_if(reasons, [&](const auto& one) { return found.contains(one.first); });
            // Between two statements a task may have moved to where the first had looked.
            Params ids;
            AddInts(ids, [&] {
                std::vector<std::int64_t> values;
                for (const auto& [task, reason] : reasons) values.push_back(task.value());
                return values;
            }());
            Rows live = transaction.Query(db_.sql.live_ids, ids);
            std::set<TaskId> there;
            for (int i = 0; i < live.size(); ++i) there.insert(TaskId(live.Int(i, 0)));
            std::erase_if(reasons, [&](const auto& one) { return !there.contains(one.first); });
            if (reasons.empty()) break;
            CancelOnce(transaction, reasons, actor, changes, found);
        }
        Apply(transaction, changes);
        for (const auto& [task, root] : root_of) {
            if (found.contains(task)) ++found[root].descendants;
        }
        return found;
    });
}

std::vector<CancelReply> PostgresStore::Cancel(
    std::span<const TaskId> tasks, std::string_view actor, std::string_view reason
) {
    std::string why(reason);
    if (why.empty()) why = "cancelled by " + std::string(actor);
    std::map<TaskId, CancelReply> replies;
    std::map<TaskId, int> below;
    std::vector<std::int64_t> open = Sorted(Values(tasks));
    for (int look = 0; !open.empty(); ++look) {
        if (look == kLooks) throw Unavailable(BeingMoved(open.front()));
        std::vector<TaskId> roots(open.begin(), open.end());
        for (auto& [task, reply] : CancelTrees(roots, actor, why)) {
            bool known = reply.kind != CancelReply::Kind::kNotFound;
            if (known) replies.emplace(task, reply);
            below[task] += reply.descendants;
        }
        base::TestPoint("store_postgres.cancelled_live");
        std::vector<TaskId> missing;
        for (std::int64_t task : open) {
            if (!replies.contains(TaskId(task))) missing.emplace_back(task);
        }
        open.clear();
        for (const TaskRecord& record : Records(missing)) {
            if (IsTerminal(record.state)) {
                // Dead, with others waiting behind it: its turn is over.
                bool given_up = record.state == State::kDead &&
                                !record.placement.order_key.empty() && GiveUpTurn(record.id);
                replies[record.id] = {
                    given_up ? CancelReply::Kind::kCancelled : CancelReply::Kind::kAlreadyTerminal,
                    record.state};
            } else {
                open.push_back(record.id.value());  // submitted or revived between the two looks
            }
        }
    }
    CancelRest();
    std::vector<CancelReply> answers;
    for (TaskId task : tasks) {
        CancelReply& reply = replies[task];
        answers.push_back(reply);
        answers.back().descendants = std::exchange(below[task], 0);
        // Named twice in one call: the second finds what the first did.
        if (reply.kind == CancelReply::Kind::kCancelled) {
            reply.kind = CancelReply::Kind::kAlreadyTerminal;
        }
    }
    return answers;
}

// ---- retry and discard -------------------------------------------------------------------------

std::vector<RetryReply> PostgresStore::Retry(
    std::span<const TaskId> tasks, std::string_view actor
) {
    std::map<TaskId, RetryReply> replies = db_.Run([&](Transaction& transaction) {
        std::map<TaskId, RetryReply> found;
        Changes changes(catalog_);
        for (Facts facts : TakeWaiting(transaction, Values(tasks), {State::kError})) {
            changes.AddAudit(
                {facts.id,
                 catalog_.LaneOf(facts.lane).tenant,
                 Event::kOperatorRetry,
                 State::kError,
                 State::kOpen,
                 facts.attempt,
                 facts.generation,
                 {},
                 std::string(actor),
                 {}}
            );
            facts.state = State::kOpen;
            changes.AddWaiting({facts, facts.now});
            found[facts.id] = {RetryReply::Kind::kRequeued, State::kOpen};
        }
        Apply(transaction, changes);
        std::vector<TaskId> others;
        for (TaskId task : tasks) {
            if (!found.contains(task)) others.push_back(task);
        }
        if (!others.empty()) ReviveFinished(transaction, others, actor, found);
        return found;
    });
    std::vector<RetryReply> answers;
    for (TaskId task : tasks) {
        RetryReply& reply = replies[task];
        answers.push_back(reply);
        if (reply.kind == RetryReply::Kind::kRequeued) reply.kind = RetryReply::Kind::kRefused;
    }
    return answers;
}

void PostgresStore::ReviveFinished(
    Transaction& transaction,
    std::vector<TaskId> tasks,
    std::string_view actor,
    std::map<TaskId, RetryReply>& replies
) {
    std::vector<TaskId> wanted;
    std::vector<std::int64_t> ids;
    ArrayOf names(oid::kText), kind(oid::kInt2), tenant(oid::kInt8), type(oid::kText),
        key(oid::kText);
    std::vector<const TaskRecord*> keyed;
    std::vector<TaskRecord> records = RecordsIn(transaction, tasks);
    for (const TaskRecord& record : records) {
        replies[record.id] = {RetryReply::Kind::kRefused, record.state};
        if (!IsTerminal(record.state) || !Next(record.state, Event::kOperatorRetry)) continue;
        ids.push_back(record.id.value());
        if (record.unique_key.empty()) continue;
        keyed.push_back(&record);
        names.Text(fmt::format("0 {} {} {}", record.tenant.value(), record.type, record.unique_key)
        );
        kind.Int(0);
        tenant.Int(record.tenant.value());
        type.Text(record.type);
        key.Text(record.unique_key);
    }
    if (!keyed.empty()) {
        // Its key may stand for another live task meanwhile (I7).
        Params lock, read;
        names.AddTo(lock);
        for (ArrayOf* column : {&kind, &tenant, &type, &key}) column->AddTo(read);
        transaction.Defer(db_.sql.keys_lock, std::move(lock));
        Rows taken = transaction.Query(db_.sql.keys_read, read);
        for (int i = 0; i < taken.size(); ++i) {
            if (taken.IsNull(i, 0)) continue;
            std::erase(ids, keyed.at(static_cast<std::size_t>(taken.Int(i, 0) - 1))->id.value());
        }
    }
    if (ids.empty()) return;
    Params params;
    AddInts(params, Sorted(ids));
    ArrayOf parts(oid::kInt4), states(oid::kInt2);
    for (int part : PartsOf(tasks)) parts.Int(part);
    states.Int(static_cast<int>(State::kCancelled)).Int(static_cast<int>(State::kDead));
    parts.AddTo(params);
    states.AddTo(params);
    Changes changes(catalog_);
    ArrayOf w_kind(oid::kInt2), w_tenant(oid::kInt8), w_type(oid::kText), w_key(oid::kText),
        w_task(oid::kInt8), w_hash(oid::kText), w_lasts(oid::kInt8);
    for (Facts facts : ReadFacts(transaction.Query(db_.sql.revive, params))) {
        State from = facts.state;
        Lane lane = catalog_.LaneOf(facts.lane);
        facts.lane = LaneWith(facts.lane, false);
        facts.state = State::kOpen;
        changes.AddAudit(
            {facts.id,
             lane.tenant,
             Event::kOperatorRetry,
             from,
             State::kOpen,
             0,
             facts.generation,
             {},
             std::string(actor),
             {}}
        );
        changes.AddWaiting({facts, facts.now});
        replies[facts.id] = {RetryReply::Kind::kRequeued, State::kOpen};
        auto own = std::find_if(keyed.begin(), keyed.end(), [&](const TaskRecord* record) {
            return record->id == facts.id;
        });
        if (own == keyed.end()) continue;
        w_kind.Int(0);
        w_tenant.Int(lane.tenant.value());
        w_type.Text(lane.type);
        w_key.Text((*own)->unique_key);
        w_task.Int(facts.id.value());
        w_hash.Text("");
        w_lasts.Int(0);
    }
    if (w_kind.size() > 0) {
        Params write;
        for (ArrayOf* column : {&w_kind, &w_tenant, &w_type, &w_key, &w_task, &w_hash, &w_lasts}) {
            column->AddTo(write);
        }
        transaction.Defer(db_.sql.keys_write, std::move(write));
    }
    RejoinOrder(transaction, changes);
    Apply(transaction, changes);
}

std::vector<RetryReply> PostgresStore::Discard(
    std::span<const TaskId> tasks, std::string_view actor
) {
    std::string reason = "discarded by " + std::string(actor);
    std::map<TaskId, RetryReply> replies = db_.Run([&](Transaction& transaction) {
        std::map<TaskId, RetryReply> found;
        Changes changes(catalog_);
        for (const Facts& facts : TakeWaiting(transaction, Values(tasks), {State::kError})) {
            changes.AddAudit(
                {facts.id,
                 catalog_.LaneOf(facts.lane).tenant,
                 Event::kFailFinal,
                 State::kError,
                 State::kDead,
                 facts.attempt,
                 facts.generation,
                 {},
                 std::string(actor),
                 reason}
            );
            changes.AddFinish({facts, State::kDead, std::nullopt, {}, false, facts.error, reason});
            found[facts.id] = {RetryReply::Kind::kRequeued, State::kDead};
        }
        Apply(transaction, changes);
        return found;
    });
    std::vector<TaskId> missing;
    for (TaskId task : tasks) {
        if (!replies.contains(task)) missing.push_back(task);
    }
    for (const TaskRecord& record : Records(missing)) {
        replies[record.id] = {RetryReply::Kind::kRefused, record.state};
    }
    std::vector<RetryReply> answers;
    for (TaskId task : tasks) {
        RetryReply& reply = replies[task];
        answers.push_back(reply);
        if (reply.kind == RetryReply::Kind::kRequeued) reply.kind = RetryReply::Kind::kRefused;
    }
    return answers;
}

// ---- edit --------------------------------------------------------------------------------------

namespace {

std::string ChangedFields(const TaskEdit& edit) {
    std::string changed;
    auto note = [&](bool given, std::string_view field) {
        if (given) (changed += changed.empty() ? "" : ", ") += field;
    };
    note(edit.queue.has_value(), "queue");
    note(edit.priority.has_value(), "priority");
    note(edit.input.has_value(), "input");
    note(edit.run_at.has_value(), "run_at");
    note(edit.start_by.has_value(), "start_by");
    note(edit.retry.has_value(), "retry");
    note(edit.timeout.has_value(), "timeout");
    note(edit.tags.has_value(), "tags");
    note(edit.delay.has_value(), "delay");
    return changed;
}

int ExplicitBy(const TaskEdit& edit) {
    return (edit.queue ? kExplicitQueue : 0) | (edit.priority ? kExplicitPriority : 0) |
           (edit.retry ? kExplicitRetry : 0) | (edit.timeout ? kExplicitTimeout : 0);
}

}  // namespace

Result<void> PostgresStore::Edit(TaskId task, const TaskEdit& edit, std::string_view actor) {
    if (auto valid = Validate(edit); !valid) return valid;
    using Reply = Result<void>;
    return db_.Run([&](Transaction& transaction) -> Reply {
        std::vector<Facts> taken =
            TakeWaiting(transaction, {task.value()}, {State::kOpen, State::kError});
        if (taken.empty()) {
            std::vector<TaskRecord> there = RecordsIn(transaction, {&task, 1});
            if (there.empty())
                return MakeError(Code::kNotFound, "there is no task {}", task.value());
            return MakeError(
                Code::kConflict,
                "task {} is {}; only a task that waits can be edited",
                task.value(),
                StateName(there.front().state)
            );
        }
        Facts facts = taken.front();
        Lane lane = catalog_.LaneOf(facts.lane);
        if (edit.queue) lane.queue = *edit.queue;
        if (edit.priority) lane.priority = *edit.priority;
        LiveEdit change;
        change.id = task;
        change.explicit_mask = facts.explicit_mask | ExplicitBy(edit);
        change.timeout = edit.timeout.value_or(facts.timeout.value_or(Duration::zero()));
        if (edit.retry) change.policy = catalog_.PolicyId(*edit.retry);
        change.set_start_by = edit.start_by.has_value();
        change.start_by = edit.start_by;
        change.set_tags = edit.tags.has_value();
        if (edit.tags) change.tags = *edit.tags;
        change.input = edit.input;
        facts.flags &= ~kHasTimeout;
        if (change.timeout > Duration::zero()) facts.flags |= kHasTimeout;
        if (edit.start_by) facts.flags |= kHasStartBy;
        change.flags = facts.flags;
        facts.lane = catalog_.LaneId(lane);
        Time due = edit.run_at.value_or(facts.due_at);
        if (edit.delay) due = facts.now + *edit.delay;
        transaction.Defer(db_.sql.edit_live, EditParams({&change, 1}));
        Changes changes(catalog_);
        changes.AddWaiting({facts, due});
        changes.AddAudit(
            {task,
             lane.tenant,
             Event::kEdit,
             facts.state,
             facts.state,
             facts.attempt,
             facts.generation,
             {},
             std::string(actor),
             ChangedFields(edit)}
        );
        Apply(transaction, changes);
        return {};
    });
}

}  // namespace stint::store::pg
