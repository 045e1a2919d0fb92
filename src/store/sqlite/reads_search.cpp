// Lists, counts, and why a task is not claimed.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "base/text.h"
#include "store/block.h"
#include "store/sqlite/conditions.h"
#include "store/sqlite/queries.h"
#include "store/sqlite/reads.h"
#include "store/sqlite/reads_view.h"

namespace stint::store::lite {

namespace {

bool NameMatches(const std::vector<std::string>& patterns, std::string_view name) {
    if (patterns.empty()) return true;
    return std::any_of(patterns.begin(), patterns.end(), [name](std::string_view pattern) {
        if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
        return name == pattern;
    });
}

template <class T>
bool AnyOf(const std::vector<T>& wanted, const T& value) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

bool WantsFinished(const TaskFilter& filter) {
    return filter.states.empty() ||
           std::any_of(filter.states.begin(), filter.states.end(), [](State s) {
               return IsTerminal(s);
           });
}

bool WantsLive(const TaskFilter& filter) {
    if (filter.finished_from || filter.finished_to) return false;
    return filter.states.empty() ||
           std::any_of(filter.states.begin(), filter.states.end(), [](State s) {
               return !IsTerminal(s);
           });
}

// `first`: of its order key, where it has one.
std::string Detail(Condition condition, const TaskRecord& record, TaskId first) {
    switch (condition) {
        case Condition::kNotWaiting:
            return fmt::format("it is {}", StateName(record.state));
        case Condition::kNotDue:
            return "due at " + base::Iso8601(record.due_at);
        case Condition::kStartByPassed:
            return "start-by was " + base::Iso8601(*record.start_by);
        case Condition::kQueuePaused:
        case Condition::kQueueNotServed:
            return "queue " + base::Quoted(record.queue);
        case Condition::kTypeNotHandled:
            return "type " + base::Quoted(record.type);
        case Condition::kBehindInOrder:
            return BehindInOrder(record.placement.order_key, first);
        default:
            return {};
    }
}

}  // namespace

// All tables are walked at once from the newest id down; what a row's first columns rule out is
// never decoded.
TaskPage Reads::List(const ListRequest& request) {
    View view(*this);
    struct Source {
        std::int64_t period;
        sqlite::Rows rows;
        bool more;
    };
    std::int64_t before = request.before ? request.before->value() : INT64_MAX;
    std::vector<Source> sources;
    auto add = [&sources](std::int64_t period, sqlite::Rows rows) {
        bool more = rows.Next();
        if (more) sources.push_back({period, std::move(rows), more});
    };
    const TaskFilter& filter = request.filter;
    if (WantsLive(filter)) add(0, Sql("list_task").Query(before));
    if (WantsFinished(filter)) {
        for (const Period& period : periods_.Of(PeriodKind::kHistory)) {
            if (filter.finished_from && period.ends_at <= *filter.finished_from) continue;
            if (filter.finished_to && period.starts_at >= *filter.finished_to) continue;
            add(period.id, Sql("list_history", period.id).Query(before));
        }
    }
    auto lower = [](const Source& a, const Source& b) { return a.rows.Int(0) < b.rows.Int(0); };
    auto ruled_out = [&](const sqlite::Rows& rows) {
        const LaneNames& lane = LaneAt(rows.Int(1));
        return !AnyOf(filter.states, static_cast<State>(rows.Int(2))) ||
               (filter.tenant && *filter.tenant != lane.tenant) ||
               !AnyOf(filter.queues, lane.queue) || !NameMatches(filter.types, lane.type);
    };
    TaskPage page;
    auto limit = static_cast<std::size_t>(std::clamp(request.limit, 1, limits::kListPage));
    TaskRow row;
    TaskId last;
    for (int looked = 0; !sources.empty(); ++looked) {
        auto source = std::max_element(sources.begin(), sources.end(), lower);
        if (page.tasks.size() == limit || looked == limits::kHistoryScan) {
            page.next = last;
            break;
        }
        last = TaskId(source->rows.Int(0));
        if (!ruled_out(source->rows)) {
            if (source->period == 0) {
                ReadTask(source->rows, row);
            } else {
                ReadHistory(source->rows, source->period, row);
            }
            TaskRecord record = ToRecord(row);
            if (record.state == State::kBlocked) record.waiting_for = PendingOf(record.id);
            if (record.state == State::kInProgress) {
                record.session = FromBytes<SessionId>(source->rows.Bytes(32));
                record.expires_at = OptionalTime(source->rows, 33);
            }
            if (Matches(filter, record)) page.tasks.push_back(std::move(record));
        }
        source->more = source->rows.Next();
        if (!source->more) {
            std::vector<Source> rest;
            for (Source& other : sources) {
                if (other.more) rest.push_back(std::move(other));
            }
            sources = std::move(rest);
        }
    }
    return page;
}

std::map<CountKey, std::int64_t> Reads::Counts(const TaskFilter& filter) {
    View view(*this);
    std::vector<std::tuple<std::int64_t, State, std::int64_t>> tallies;
    for (sqlite::Rows rows = Sql("tally_list").Query(); rows.Next();) {
        tallies.emplace_back(rows.Int(0), static_cast<State>(rows.Int(1)), rows.Int(2));
    }
    std::map<CountKey, std::int64_t> counts;
    for (auto [lane_id, state, n] : tallies) {
        const LaneNames& lane = LaneAt(lane_id);
        if (n == 0 || !AnyOf(filter.states, state) || !AnyOf(filter.queues, lane.queue)) continue;
        if (filter.tenant && *filter.tenant != lane.tenant) continue;
        if (!NameMatches(filter.types, lane.type)) continue;
        counts[{state, lane.queue, lane.type}] += n;
    }
    return counts;
}

bool Reads::SessionIsLive(SessionId session, Time now) {
    Bytes16 id = ToBytes(session);
    sqlite::Rows rows = Sql("session_get").Query(sqlite::Blob(id));
    return rows.Next() && static_cast<SessionState>(rows.Int(0)) < SessionState::kClosed &&
           FromMicros(rows.Int(1)) > now;
}

std::vector<Explanation> Reads::Explain(TaskId task, const ClaimRequest& request) {
    View view(*this);
    auto record = GetInView(task);
    if (!record) return {};
    Time now = clock_.WallTime();
    Claimer claimer(request, SessionIsLive(request.session, now));
    Situation situation{
        .claimer = claimer,
        .now = now,
        .lane =
            {record->queue,
             record->type,
             Sql("queue_paused").Scalar(record->queue).value_or(0) != 0},
        .task =
            {.state = record->state,
             .due_at = record->due_at,
             .start_by = record->start_by,
             .cancel_requested = record->cancel_requested,
             .suspect = record->suspect,
             .behind = Sql("task_wait").Scalar(task.value()) ==
                       std::int64_t{static_cast<int>(Wait::kBehind)}},
    };
    TaskId first;
    if (situation.task.behind) {
        first = TaskId(Sql("ordered_first")
                           .Scalar(record->tenant.value(), record->placement.order_key)
                           .value_or(0));
    }
    std::vector<Explanation> reasons;
    for (int i = 0; i < kConditionCount; ++i) {
        auto condition = static_cast<Condition>(i);
        if (!Applies(condition, situation)) continue;
        reasons.push_back({condition, Detail(condition, *record, first)});
        // Of a task that does not wait there is nothing more to say.
        if (condition == Condition::kNotWaiting) return reasons;
    }
    if (reasons.empty()) reasons.push_back({Condition::kEligible, {}});
    return reasons;
}

std::vector<Crowd> Reads::Crowds(const std::string& queue) {
    View view(*this);
    std::vector<Crowd> crowds;
    std::int64_t now = Micros(clock_.WallTime());
    for (sqlite::Rows rows = Sql("crowds").Query(queue, now, now); rows.Next();) {
        crowds.push_back({.tasks = rows.Int(0), .last = TaskId(rows.Int(1))});
    }
    return crowds;
}

}  // namespace stint::store::lite
