// Waiting for other tasks. The writer is alone: what it reads here is what there is.
#include <map>
#include <set>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/result.h"
#include "model/limits.h"
#include "sqlite/transaction.h"
#include "store/sqlite/ops.h"

namespace stint::store::lite {

using base::Bug;
using base::MakeError;
using base::Planted;

std::optional<FlowTables::TaskState> Ops::StateAndTenant(TaskId task) {
    auto in = [&](sqlite::Rows rows) -> std::optional<FlowTables::TaskState> {
        if (!rows.Next()) return std::nullopt;
        return FlowTables::TaskState{
            static_cast<State>(rows.Int(0)), lanes_.At(rows.Int(1)).tenant};
    };
    if (auto live = in(Sql("task_state").Query(task.value()))) return live;
    for (const Period& period : periods_.Of(PeriodKind::kHistory)) {
        auto finished = in(Sql("history_state", period.id).Query(task.value()));
        if (finished) return finished;
    }
    return std::nullopt;
}

// Who is meant by the names of a wait. An error says what one of them is, behind "names ".
Result<std::vector<WaitMember>> Ops::MembersOf(
    std::span<const TaskId> tasks, TenantId tenant, const Beside& beside
) {
    std::vector<WaitMember> members;
    members.reserve(tasks.size());
    for (TaskId asked : tasks) {
        TaskId task = asked;
        if (auto other = beside.find(asked); other != beside.end()) {
            const SubmitReply& reply = other->second;
            if (!reply.accepted()) return Error{Code::kInvalid, NamedAsRefused(asked, reply)};
            task = reply.id;
        }
        auto found = StateAndTenant(task);
        // Others' tasks are not there for it.
        if (!found || found->tenant != tenant) return Error{Code::kInvalid, NamedAsMissing(asked)};
        State state = found->state;
        members.push_back({asked, task, IsTerminal(state) ? std::optional(state) : std::nullopt});
    }
    return members;
}

// The subtasks that a holder waits for, all or none of them.
Result<std::vector<WaitMember>> Ops::TryMakeChildren(
    const TaskRow& row, const Settlement& settlement
) {
    WriteMember();  // what was only counted so far must not be forgotten with a rollback
    sqlite::Savepoint savepoint(db_);
    auto members = MakeChildren(row, settlement);
    if (members) {
        savepoint.Release();
    } else {
        savepoint.Rollback();
        Forget();
    }
    return members;
}

Result<std::vector<WaitMember>> Ops::MakeChildren(
    const TaskRow& row, const Settlement& settlement
) {
    auto children = ChildrenOf(settlement, lanes_.At(row.lane).tenant);
    if (!children) return children.error();
    std::vector<PreparedTask> prepared = Prepare(*children);
    for (PreparedTask& one : prepared) one.waited_for = true;
    auto beside = AllAccepted(*children, Submit(prepared));
    if (!beside) return beside.error();
    auto members = MembersOf(Awaited(settlement), lanes_.At(row.lane).tenant, *beside);
    if (!members) return MakeError(Code::kInvalid, "the wait names {}", members.error().message);
    auto chain = ChainOfWaits(row.id, MayWait(*children, *beside, *members), [this](TaskId other) {
        return LinksOf(other);
    });
    if (!chain.empty()) return WaitsForItself(row.id, chain);
    return members;
}

// Writes the wait down; open unless it has succeeded already.
WaitVerdict Ops::Await(
    TaskRow& row, const WaitOn& wait, const std::vector<WaitMember>& members, bool started
) {
    if (row.Has(kHasWait)) Sql("wait_member_remove").Run(row.id.value());
    row.Set(kHasWait, true);
    int no = 0;
    for (const WaitMember& member : members) {
        if (Planted(Bug::kWaitLosesMember) && members.size() > 1 && &member == &members.back()) {
            continue;
        }
        auto ended = member.ended ? std::optional(static_cast<int>(*member.ended)) : std::nullopt;
        Sql("wait_member_add")
            .Run(row.id.value(), no++, member.asked.value(), member.task.value(), ended);
        if (!member.ended) {
            Sql("task_add_flags").Run(member.task.value(), static_cast<int>(kWaitedFor));
        }
    }
    WaitTally tally = TallyOf(members);
    WaitVerdict verdict = Judge(wait, tally);
    Sql("wait_set")
        .Run(
            row.id.value(),
            tally.pending,
            tally.failed,
            tally.total,
            static_cast<int>(wait.on_failure),
            wait.any,
            wait.need_success,
            started,
            started || verdict != WaitVerdict::kSucceeded
        );
    return verdict;
}

// Who ends with its wait ends the waits for itself, and so on: one after the other, since a chain
// may be as long as a graph is large.
void Ops::TellWaiters(const TaskRow& ended) {
    ended_.emplace_back(ended.id, ended.state);
    if (ended_.size() > 1) return;  // whoever began this goes on with it
    // NOLINTNEXTLINE(modernize-loop-convert): it grows meanwhile
    for (std::size_t i = 0; i < ended_.size(); ++i) {
        auto [task, state] = ended_[i];
        TellWaitersOf(task, state);
    }
    ended_.clear();
}

void Ops::TellWaitersOf(TaskId ended, State state) {
    std::map<std::int64_t, int> waiters;
    {
        sqlite::Rows rows = Sql("wait_member_end").Query(ended.value(), static_cast<int>(state));
        while (rows.Next()) ++waiters[rows.Int(0)];
    }
    const bool failed = state != State::kComplete;
    for (auto [waiter, times] : waiters) {
        if (Planted(Bug::kWaitCountsTwice)) ++times;
        Sql("wait_tell").Run(waiter, times, failed ? times : 0);
        TaskRow row;
        if (Load(TaskId(waiter), row) && row.state == State::kBlocked) EndWaitIfOver(row);
    }
}

void Ops::EndWaitIfOver(TaskRow& waiter) {
    WaitOn wait;
    WaitTally tally;
    bool started = false;
    {
        sqlite::Rows rows = Sql("wait_load").Query(waiter.id.value());
        bool found = rows.Next();
        CHECK_WHY(found, "a blocked task without a wait");
        tally.pending = static_cast<int>(rows.Int(0));
        tally.failed = static_cast<int>(rows.Int(1));
        tally.total = static_cast<int>(rows.Int(2));
        wait.on_failure = static_cast<OnFailure>(rows.Int(3));
        wait.any = rows.Int(4) != 0;
        wait.need_success = rows.Int(5) != 0;
        started = rows.Int(6) != 0;
    }
    WaitVerdict verdict = Judge(wait, tally);
    if (verdict == WaitVerdict::kGoesOn) return;
    WaitEnd end = EndOf(wait, verdict, started);
    if (!started) end.stage = waiter.stage();
    EndWait(waiter, end);
}

void Ops::EndWait(TaskRow& waiter, const WaitEnd& end) {
    std::vector<TaskId> rest;
    if (end.cancel_rest) {
        sqlite::Rows rows = Sql("wait_member_rest").Query(waiter.id.value());
        while (rows.Next()) rest.emplace_back(rows.Int(0));
    }
    Sql("wait_close").Run(waiter.id.value());
    if (end.event == Event::kCancel) {
        WaitMember failed;
        {
            sqlite::Rows rows = Sql("wait_member_failed").Query(waiter.id.value());
            CHECK(rows.Next());
            failed = {TaskId(rows.Int(0)), TaskId(rows.Int(1)), static_cast<State>(rows.Int(2))};
        }
        waiter.reason = WhyCancelled(failed);
        Move(waiter, Event::kCancel, {.actor = "store", .reason = waiter.reason, .session = {}});
    } else {
        waiter.SetStage(end.stage);
        waiter.reason.clear();
        Move(waiter, Event::kUnblock, {.actor = "store", .reason = {}, .session = {}});
        ToWaiting(waiter, std::max(now_, waiter.due_at));
        opened_.push_back(lanes_.At(waiter.lane).queue);
    }
    Persist(waiter);
    for (TaskId task : rest) CancelTree(task, "store", WhyRestCancelled(waiter.id));
}

// Before what it cannot go on.
std::vector<WaitLink> Ops::LinksOf(TaskId task) {
    std::vector<WaitLink> links;
    for (sqlite::Rows rows = Sql("wait_pending_on").Query(task.value()); rows.Next();) {
        links.push_back({TaskId(rows.Int(0))});
    }
    sqlite::Rows rows = Sql("ordered_before").Query(task.value());
    if (rows.Next()) links.push_back({TaskId(rows.Int(0)), rows.String(1)});
    return links;
}

// All live ones, the nearest first. What is finished in between does not hide what is below it.
std::vector<TaskId> Ops::Descendants(TaskId task) {
    std::vector<TaskId> found, open{task};
    std::set<TaskId> seen{task};
    std::vector<std::int64_t> periods = PeriodsSince(task);
    int finished = 0;
    auto follow = [&](sqlite::Rows rows, bool live) {
        while (rows.Next()) {
            TaskId child(rows.Int(0));
            if (!live && ++finished > limits::kTreeFinished) return;
            if (!seen.insert(child).second) continue;
            open.push_back(child);
            if (live) found.push_back(child);
        }
    };
    // NOLINTNEXTLINE(modernize-loop-convert): it grows meanwhile
    for (std::size_t i = 0; i < open.size(); ++i) {
        follow(Sql("task_children").Query(open[i].value()), true);
        for (std::int64_t period : periods) {
            follow(Sql("history_children", period).Query(open[i].value()), false);
        }
    }
    return found;
}

// Of history: those in which something may lie that was submitted after the task.
std::vector<std::int64_t> Ops::PeriodsSince(TaskId task) {
    TaskRow row;
    const bool known = Load(task, row) || LoadFinished(task, row);
    std::vector<std::int64_t> periods;
    for (const Period& period : periods_.Of(PeriodKind::kHistory)) {
        if (!known || period.ends_at >= row.created_at) periods.push_back(period.id);
    }
    return periods;
}

}  // namespace stint::store::lite
