// Firing schedules: the row's lock says who decides, the mark says that it was decided, and the
// task is submitted in the same transaction.
#include <algorithm>
#include <set>
#include <tuple>

#include "base/check.h"
#include "base/test_point.h"
#include "store/postgres/schedules.h"
#include "store/postgres/store_impl.h"
#include "store/postgres/submit.h"
#include "store/schedule_rules.h"

namespace stint::store::pg {

namespace {

// The tasks' keys and queues may be held by others: a node has other schedules to fire meanwhile.
constexpr std::chrono::milliseconds kLockPatience{2'000};

}  // namespace

template <class Work>
auto PostgresSchedules::Submitting(Work&& work) {
    TransactionOptions options;
    options.lock_timeout = kLockPatience;
    for (int tries = 1;; ++tries) {
        try {
            return db_.Run(work, options);
        } catch (const OutdatedTypes& outdated) {
            if (tries == kTypeTries) throw Unavailable(outdated.what());
            store_.catalog().ReloadTypes();
        }
    }
}

std::vector<TaskId> PostgresSchedules::IdsFor(int count) {
    std::vector<TaskId> ids;
    if (count == 0) return ids;
    TaskId first = store_.ReserveIds(count);
    for (int i = 0; i < count; ++i) ids.emplace_back(first.value() + i);
    return ids;
}

// Those that were not decided before; the others have their answer.
std::vector<PostgresSchedules::Deciding> PostgresSchedules::Mark(
    Transaction& transaction, std::vector<Deciding> runs
) {
    // One statement must not name a row twice: who comes second was decided before.
    std::set<std::tuple<ScheduleId, Time, std::string_view>> seen;
    std::vector<Deciding> twice;
    std::erase_if(runs, [&](const Deciding& one) {
        bool is_new = seen.emplace(one.schedule, one.run->instant, one.entity).second;
        if (!is_new) twice.push_back(one);
        return !is_new;
    });
    ArrayOf schedule(oid::kInt8), instant(oid::kTimestamptz), entity(oid::kText), cause(oid::kInt2),
        task(oid::kInt8), skipped(oid::kText), keep(oid::kInt8);
    for (const Deciding& one : runs) {
        schedule.Int(one.schedule.value());
        instant.At(one.run->instant);
        entity.Text(one.entity);
        cause.Int(static_cast<int>(one.run->cause));
        one.run->task ? task.Int(one.id.value()) : task.Null();
        skipped.Text(one.run->skipped);
        keep.Int(one.run->keep.count());
    }
    Params params;
    for (ArrayOf* column : {&schedule, &instant, &entity, &cause, &task, &skipped, &keep}) {
        column->AddTo(params);
    }
    Rows rows = transaction.Query(db_.sql.runs_mark, params);
    CHECK(rows.size() == static_cast<int>(runs.size()));
    std::vector<Deciding> ours;
    for (int i = 0; i < rows.size(); ++i) {
        const Deciding& one = runs[static_cast<std::size_t>(i)];
        rows.Bool(i, 1) ? ours.push_back(one) : twice.push_back(one);
    }
    ReadDecided(transaction, twice);
    return ours;
}

void PostgresSchedules::ReadDecided(Transaction& transaction, std::span<const Deciding> runs) {
    if (runs.empty()) return;
    ArrayOf schedule(oid::kInt8), instant(oid::kTimestamptz), entity(oid::kText);
    for (const Deciding& one : runs) {
        one.reply->kind = RunReply::Kind::kDecided;
        schedule.Int(one.schedule.value());
        instant.At(one.run->instant);
        entity.Text(one.entity);
    }
    Params params;
    for (ArrayOf* column : {&schedule, &instant, &entity}) column->AddTo(params);
    Rows rows = transaction.Query(db_.sql.runs_of, params);
    for (int i = 0; i < rows.size(); ++i) {
        runs[static_cast<std::size_t>(rows.Int(i, 0) - 1)].reply->task = TaskId(rows.Int(i, 1));
    }
}

void PostgresSchedules::SubmitRuns(Transaction& transaction, std::span<const Deciding> runs) {
    std::vector<NewTask> tasks;
    for (const Deciding& one : runs) {
        tasks.push_back(*one.run->task);
        tasks.back().id = one.id;
    }
    std::vector<SubmitReply> replies = store_.SubmitIn(transaction, tasks);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const Deciding& one = runs[i];
        *one.reply = one.entity.empty() ? RunReplyOf(replies[i]) : VisitReplyOf(replies[i]);
        if (one.reply->task == one.id) continue;
        // Another task stands for it, or none: the mark has named the one that was to be.
        Params params;
        params.Number(one.schedule).At(one.run->instant).Text(one.entity);
        one.reply->task.valid() ? params.Number(one.reply->task) : params.Null(oid::kInt8);
        params.Text(one.reply->task.valid() ? std::string_view() : one.reply->message);
        transaction.Defer(db_.sql.run_result, std::move(params));
    }
}

void PostgresSchedules::Decide(Transaction& transaction, std::vector<Deciding> runs) {
    if (runs.empty()) return;
    std::vector<Deciding> with_task;
    for (const Deciding& one : Mark(transaction, std::move(runs))) {
        if (one.run->task) {
            with_task.push_back(one);
        } else {
            *one.reply = {.kind = RunReply::Kind::kSkipped, .message = one.run->skipped};
        }
    }
    base::TestPoint("store_postgres.marked");
    if (!with_task.empty()) SubmitRuns(transaction, with_task);
}

std::vector<FiringReply> PostgresSchedules::FireIn(
    Transaction& transaction, std::span<const Firing> firings, std::span<const TaskId> ids
) {
    std::vector<std::int64_t> wanted;
    for (const Firing& firing : firings) wanted.push_back(firing.schedule.value());
    std::map<ScheduleId, Schedule> locked = Lock(transaction, wanted);
    std::vector<FiringReply> replies(firings.size());
    std::vector<Deciding> runs;
    std::set<ScheduleId> advanced;
    std::set<std::size_t> without_room;
    for (std::size_t i = 0; i < firings.size(); ++i) {
        const Firing& firing = firings[i];
        FiringReply& reply = replies[i];
        auto found = locked.find(firing.schedule);
        if (found == locked.end()) {
            reply.kind = FiringReply::Kind::kGone;
        } else if (firing.advance) {
            const Schedule& now = found->second;
            bool same = now.revision == firing.advance->revision &&
                        now.turn == firing.advance->turn && !now.paused;
            // A second one in this batch was planned from the same look.
            if (!same || !advanced.insert(now.id).second) reply.kind = FiringReply::Kind::kLost;
        }
        bool fired = reply.kind == FiringReply::Kind::kFired;
        auto refused = fired ? NoRoomFor(found->second, firing) : std::nullopt;
        if (fired) reply.runs.assign(firing.runs.size(), refused.value_or(RunReply{}));
        if (refused) without_room.insert(i);
        for (std::size_t k = 0; k < firing.runs.size(); ++k) {
            TaskId id;
            if (firing.runs[k].task) {
                id = ids.front();
                ids = ids.subspan(1);
            }
            if (!fired || refused) continue;
            runs.push_back({firing.schedule, "", &firing.runs[k], id, &reply.runs[k]});
        }
    }
    Decide(transaction, std::move(runs));
    std::map<ScheduleId, Schedule> changed;
    for (std::size_t i = 0; i < firings.size(); ++i) {
        if (replies[i].kind != FiringReply::Kind::kFired || without_room.contains(i)) continue;
        auto [schedule, is_new] = changed.try_emplace(firings[i].schedule);
        if (is_new) schedule->second = locked.at(firings[i].schedule);
        Advance(schedule->second, firings[i], replies[i].runs);
    }
    SaveAdvanced(transaction, changed);
    return replies;
}

std::vector<FiringReply> PostgresSchedules::Fire(std::span<const Firing> firings) {
    if (firings.empty()) return {};
    int tasks = 0;
    for (const Firing& firing : firings) {
        for (const PlannedRun& run : firing.runs) tasks += run.task ? 1 : 0;
    }
    std::vector<TaskId> ids = IdsFor(tasks);
    return Submitting([&](Transaction& transaction) { return FireIn(transaction, firings, ids); });
}

// When those that are there are due. Their schedules' rows are locked.
std::map<PostgresSchedules::VisitKey, Time> PostgresSchedules::VisitsThere(
    Transaction& transaction, std::span<const VisitFiring> firings
) {
    ArrayOf schedule(oid::kInt8), entity(oid::kText);
    for (const VisitFiring& firing : firings) {
        schedule.Int(firing.schedule.value());
        entity.Text(firing.entity);
    }
    Params where;
    schedule.AddTo(where);
    entity.AddTo(where);
    std::map<VisitKey, Time> there;
    Rows rows = transaction.Query(db_.sql.visits_there, where);
    for (int i = 0; i < rows.size(); ++i) {
        const VisitFiring& firing = firings[static_cast<std::size_t>(rows.Int(i, 0) - 1)];
        there[{firing.schedule, firing.entity}] = rows.At(i, 1);
    }
    return there;
}

void PostgresSchedules::AdvanceVisits(Transaction& transaction, std::span<const Moved> visits) {
    if (visits.empty()) return;
    ArrayOf schedule(oid::kInt8), entity(oid::kText), next(oid::kTimestamptz),
        last(oid::kTimestamptz);
    for (const auto& [firing, reply] : visits) {
        schedule.Int(firing->schedule.value());
        entity.Text(firing->entity);
        next.At(firing->next_at);
        bool made = firing->run && reply->runs.at(0).task.valid();
        made ? last.At(firing->run->instant) : last.Null();
    }
    Params params;
    for (ArrayOf* column : {&schedule, &entity, &next, &last}) column->AddTo(params);
    transaction.Defer(db_.sql.visits_advance, std::move(params));
}

std::vector<FiringReply> PostgresSchedules::FireVisitsIn(
    Transaction& transaction, std::span<const VisitFiring> firings, std::span<const TaskId> ids
) {
    std::vector<std::int64_t> wanted;
    for (const VisitFiring& firing : firings) wanted.push_back(firing.schedule.value());
    std::map<ScheduleId, Schedule> locked = Lock(transaction, wanted);
    std::map<VisitKey, Time> there = VisitsThere(transaction, firings);
    std::vector<FiringReply> replies(firings.size());
    std::vector<Deciding> runs;
    std::vector<Moved> moved;
    for (std::size_t i = 0; i < firings.size(); ++i) {
        const VisitFiring& firing = firings[i];
        TaskId id;
        if (firing.run && firing.run->task) {
            id = ids.front();
            ids = ids.subspan(1);
        }
        auto schedule = locked.find(firing.schedule);
        auto visit = there.find({firing.schedule, firing.entity});
        if (schedule == locked.end() || visit == there.end()) {
            replies[i].kind = FiringReply::Kind::kGone;
            continue;
        }
        if (schedule->second.revision != firing.revision || schedule->second.paused ||
            visit->second != firing.expected_next_at) {
            replies[i].kind = FiringReply::Kind::kLost;
            continue;
        }
        visit->second = firing.next_at;  // for another one of it in this batch
        moved.push_back({&firing, &replies[i]});
        if (!firing.run) continue;
        replies[i].runs.resize(1);
        runs.push_back({firing.schedule, firing.entity, &*firing.run, id, &replies[i].runs[0]});
    }
    Decide(transaction, std::move(runs));
    AdvanceVisits(transaction, moved);
    return replies;
}

std::vector<FiringReply> PostgresSchedules::FireVisits(std::span<const VisitFiring> firings) {
    if (firings.empty()) return {};
    int tasks = 0;
    for (const VisitFiring& firing : firings) tasks += firing.run && firing.run->task ? 1 : 0;
    std::vector<TaskId> ids = IdsFor(tasks);
    return Submitting([&](Transaction& transaction) {
        return FireVisitsIn(transaction, firings, ids);
    });
}

}  // namespace stint::store::pg
