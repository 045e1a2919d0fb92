// One after the other: of the tasks of an order key only the first is where claims look.
#include <fmt/format.h>

#include "base/text.h"
#include "store/postgres/store_impl.h"

namespace stint::store::pg {

namespace {

std::vector<std::int64_t> OrderedOf(const Changes& changes) {
    std::vector<std::int64_t> tasks;
    for (const Changes::Waiting& waiting : changes.waiting()) {
        if ((waiting.after.flags & kOrdered) != 0) tasks.push_back(waiting.after.id.value());
    }
    return Sorted(std::move(tasks));
}

}  // namespace

void PostgresStore::KeepOrder(Transaction& transaction, const Changes& changes) {
    std::vector<std::int64_t> tasks = OrderedOf(changes);
    if (tasks.empty()) return;
    Params params;
    AddInts(params, tasks);
    transaction.Defer(db_.sql.order_park, std::move(params));
}

void PostgresStore::RejoinOrder(Transaction& transaction, const Changes& changes) {
    std::vector<std::int64_t> tasks = OrderedOf(changes);
    if (tasks.empty()) return;
    Params params;
    AddInts(params, tasks);
    transaction.Defer(db_.sql.order_rejoin, std::move(params));
}

PostgresStore::Opened PostgresStore::EndOrder(
    Transaction& transaction, const std::map<TaskId, State>& ended, bool plainly
) {
    if (ended.empty()) return {};
    ArrayOf task(oid::kInt8), state(oid::kInt2);
    for (const auto& [id, to] : ended) {
        task.Int(id.value());
        state.Int(static_cast<int>(to));
    }
    Params params;
    task.AddTo(params);
    state.AddTo(params);
    params.Bool(plainly);
    Rows rows = transaction.Query(db_.sql.order_next, params);
    Opened opened;
    std::map<TaskId, TaskId> doomed;
    std::vector<std::pair<int, std::int64_t>> places;
    for (int i = 0; i < rows.size(); ++i) {
        if (rows.Int(i, 0) == 1) {
            doomed.emplace(TaskId(rows.Int(i, 1)), TaskId(rows.Int(i, 4)));
            continue;
        }
        places.emplace_back(static_cast<int>(rows.Int(i, 2)), rows.Int(i, 3));
        opened.push_back(catalog_.LaneOf(places.back().first).queue);
    }
    transaction.OnCommit([this, places = std::move(places)] {
        marks_.Lower(places);
        idle_ = false;
    });
    if (doomed.empty()) return opened;
    return EndBehind(transaction, doomed, std::move(opened));
}

// It is over and blocks those behind it. False: it does not.
bool PostgresStore::GiveUpTurn(TaskId task) {
    return db_.Run([&](Transaction& transaction) {
        Params params;
        AddInts(params, std::vector<std::int64_t>{task.value()});
        Rows rows = transaction.Query(db_.sql.order_give_up, params);
        bool given_up = false;
        std::vector<std::pair<int, std::int64_t>> places;
        for (int i = 0; i < rows.size(); ++i) {
            if (rows.Int(i, 0) == 2) {
                given_up = true;
            } else {
                places.emplace_back(static_cast<int>(rows.Int(i, 2)), rows.Int(i, 3));
            }
        }
        transaction.OnCommit([this, places = std::move(places)] {
            marks_.Lower(places);
            idle_ = false;
        });
        return given_up;
    });
}

// Those behind a dead one go with it.
PostgresStore::Opened PostgresStore::EndBehind(
    Transaction& transaction, const std::map<TaskId, TaskId>& doomed, Opened opened
) {
    std::vector<std::int64_t> ids, causes;
    for (const auto& [id, cause] : doomed) {
        ids.push_back(id.value());
        causes.push_back(cause.value());
    }
    // Theirs is the key of the one before them.
    std::map<TaskId, std::string> keys;
    Params dead_ones;
    AddInts(dead_ones, Sorted(std::move(causes)));
    Rows rows = transaction.Query(db_.sql.order_keys, dead_ones);
    for (int i = 0; i < rows.size(); ++i) keys[TaskId(rows.Int(i, 0))] = rows.Text(i, 1);
    Changes changes(catalog_);
    std::map<TaskId, State> dead;
    for (Facts facts : TakeWaiting(transaction, ids, {State::kOpen, State::kError})) {
        const TaskId cause = doomed.at(facts.id);
        std::string reason = fmt::format(
            "task {} before it, of order key {}, is dead", cause.value(), base::Quoted(keys[cause])
        );
        changes.AddAudit(
            {facts.id,
             catalog_.LaneOf(facts.lane).tenant,
             Event::kExpire,
             facts.state,
             State::kDead,
             facts.attempt,
             facts.generation,
             {},
             "store",
             reason}
        );
        dead[facts.id] = State::kDead;
        facts.flags &= ~kOrdered;  // what its own policy says does not matter: it is ended below
        changes.AddFinish({facts, State::kDead, std::nullopt, {}, false, facts.error, reason});
    }
    for (std::string& queue : Apply(transaction, changes)) opened.push_back(std::move(queue));
    for (std::string& queue : EndOrder(transaction, dead, true)) opened.push_back(std::move(queue));
    return opened;
}

}  // namespace stint::store::pg
