// Waiting for other tasks.
//
// A task that is waited for cannot end unnoticed: whoever begins to wait locks its row and leaves a
// flag there, whoever ends it finds the flag and, in a statement of its own behind that, the wait.
// Locks are taken in one order: leases, then waits, then the places of blocked tasks.
#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/result.h"
#include "base/test_point.h"
#include "store/postgres/store_impl.h"

namespace stint::store::pg {

namespace {

// A task that is being moved by others may have to be looked for again.
constexpr int kLooks = 20;
constexpr int kCancelAtOnce = 1000;
constexpr int kChainLooks = 1000;

NewWait ReadWait(const Rows& rows, int i) {
    NewWait wait;
    wait.waiter = TaskId(rows.Int(i, 0));
    wait.tally.pending = static_cast<int>(rows.Int(i, 1));
    wait.tally.failed = static_cast<int>(rows.Int(i, 2));
    wait.tally.total = static_cast<int>(rows.Int(i, 3));
    wait.policy.on_failure = static_cast<OnFailure>(rows.Int(i, 4));
    wait.policy.any = rows.Bool(i, 5);
    wait.policy.need_success = rows.Bool(i, 6);
    wait.started = rows.Bool(i, 7);
    return wait;
}

std::map<TaskId, State> EndedBy(const Changes& changes) {
    std::map<TaskId, State> ended;
    for (const Changes::Finish& finish : changes.finished()) ended[finish.after.id] = finish.state;
    return ended;
}

}  // namespace

PostgresStore::Opened PostgresStore::Apply(Transaction& transaction, const Changes& changes) {
    Opened opened = Send(transaction, changes);
    Opened more = TellWaiters(transaction, EndedBy(changes));
    opened.insert(opened.end(), more.begin(), more.end());
    return opened;
}

// Without telling those who wait for what has ended.
PostgresStore::Opened PostgresStore::Send(Transaction& transaction, const Changes& changes) {
    changes.Defer(transaction, db_.sql);
    Ready(transaction, changes);
    Opened opened = LetGo(transaction, changes.released(), changes.reports());
    KeepOrder(transaction, changes);
    std::map<TaskId, State> ordered;
    for (const Changes::Finish& finish : changes.finished()) {
        if ((finish.after.flags & kOrdered) != 0) ordered[finish.after.id] = finish.state;
    }
    Opened more = EndOrder(transaction, ordered);
    opened.insert(opened.end(), more.begin(), more.end());
    return opened;
}

// ---- beginning to wait -------------------------------------------------------------------------

PostgresStore::HeldTasks PostgresStore::Hold(
    Transaction& transaction, std::vector<std::int64_t> tasks
) {
    HeldTasks held;
    std::vector<std::int64_t> open = Sorted(std::move(tasks));
    for (int look = 0; !open.empty(); ++look) {
        if (look == kLooks)
            throw Unavailable("tasks that are waited for were being moved by others");
        Params params;
        AddInts(params, open);
        Rows live = transaction.Query(db_.sql.hold_live, params);
        for (int i = 0; i < live.size(); ++i) {
            held[TaskId(live.Int(i, 0))] = {TenantId(live.Int(i, 1)), std::nullopt};
            std::erase(open, live.Int(i, 0));
        }
        std::vector<TaskId> others(open.begin(), open.end());
        open.clear();
        for (const TaskRecord& record : RecordsIn(transaction, others)) {
            if (IsTerminal(record.state)) {
                held[record.id] = {record.tenant, record.state};
            } else {
                open.push_back(record.id.value());  // it came between the two looks
            }
        }
    }
    return held;
}

void PostgresStore::WriteWaits(Transaction& transaction, std::span<const NewWait> waits) {
    if (waits.empty()) return;
    ArrayOf task(oid::kInt8), pending(oid::kInt4), failed(oid::kInt4), total(oid::kInt4),
        on_failure(oid::kInt2), any(oid::kBool), need(oid::kBool), started(oid::kBool),
        open(oid::kBool), waiter(oid::kInt8), no(oid::kInt4), asked(oid::kInt8), member(oid::kInt8),
        ended(oid::kInt2);
    std::vector<std::int64_t> waiters;
    for (const NewWait& wait : waits) {
        waiters.push_back(wait.waiter.value());
        task.Int(wait.waiter.value());
        pending.Int(wait.tally.pending);
        failed.Int(wait.tally.failed);
        total.Int(wait.tally.total);
        on_failure.Int(static_cast<int>(wait.policy.on_failure));
        any.Bool(wait.policy.any);
        need.Bool(wait.policy.need_success);
        started.Bool(wait.started);
        open.Bool(wait.blocks());
        int number = 0;
        for (const WaitMember& one : wait.members) {
            waiter.Int(wait.waiter.value());
            no.Int(number++);
            asked.Int(one.asked.value());
            member.Int(one.task.value());
            one.ended ? ended.Int(static_cast<int>(*one.ended)) : ended.Null();
        }
    }
    Params lock, forget, write, members;
    AddInts(lock, Sorted(waiters));
    AddInts(forget, waiters);
    for (ArrayOf* column :
         {&task, &pending, &failed, &total, &on_failure, &any, &need, &started, &open}) {
        column->AddTo(write);
    }
    for (ArrayOf* column : {&waiter, &no, &asked, &member, &ended}) column->AddTo(members);
    // Before its members: so does whoever ends one of them.
    transaction.Defer(db_.sql.lock_waits, std::move(lock));
    transaction.Defer(db_.sql.wait_forget, std::move(forget));
    transaction.Defer(db_.sql.wait_write, std::move(write));
    transaction.Defer(db_.sql.wait_members, std::move(members));
}

// Who is meant by the names of a wait. An error says what one of them is, behind "names ".
Result<std::vector<WaitMember>> PostgresStore::MembersOf(
    std::span<const TaskId> tasks, TenantId tenant, const Beside& beside, const HeldTasks& held
) {
    std::vector<WaitMember> members;
    for (TaskId asked : tasks) {
        auto found = beside.find(asked);
        if (found == beside.end()) {
            auto other = held.find(asked);
            if (other == held.end() || other->second.tenant != tenant)
                return Error{Code::kInvalid, NamedAsMissing(asked)};
            members.push_back({asked, asked, other->second.ended});
            continue;
        }
        const SubmitReply& reply = found->second;
        if (!reply.accepted()) return Error{Code::kInvalid, NamedAsRefused(asked, reply)};
        auto other = held.find(reply.id);
        members.push_back(
            {asked, reply.id, other == held.end() ? std::nullopt : other->second.ended}
        );
    }
    return members;
}

// The subtasks that a holder waits for. An error: nothing may remain of this.
Result<NewWait> PostgresStore::MakeChildren(
    Transaction& transaction, const Facts& facts, const Settlement& settlement
) {
    TenantId tenant = catalog_.LaneOf(facts.lane).tenant;
    auto children = ChildrenOf(settlement, tenant);
    if (!children) return children.error();
    std::vector<SubmitReply> replies;
    if (!children->empty()) replies = SubmitIn(transaction, *children, kWaitedFor);
    auto beside = AllAccepted(*children, replies);
    if (!beside) return beside.error();
    // A key may have stood for a task that was there before.
    std::vector<std::int64_t> others = Values(settlement.wait.on);
    for (const auto& [asked, reply] : *beside) {
        if (reply.kind != SubmitReply::Kind::kCreated) others.push_back(reply.id.value());
    }
    HeldTasks held;
    if (!others.empty()) held = Hold(transaction, others);
    auto members = MembersOf(Awaited(settlement), tenant, *beside, held);
    if (!members) {
        return base::MakeError(Code::kInvalid, "the wait names {}", members.error().message);
    }
    std::vector<TaskId> may_wait = MayWait(*children, *beside, *members);
    if (Reaches(transaction, may_wait, facts.id)) {
        return WaitsForItself(facts.id, ChainTo(transaction, may_wait, facts.id));
    }
    WaitTally tally = TallyOf(*members);
    return NewWait{facts.id, settlement.wait, std::move(*members), tally, true};
}

// Whether one of the tasks cannot go on before `target` is over.
bool PostgresStore::Reaches(
    Transaction& transaction, const std::vector<TaskId>& tasks, TaskId target
) {
    if (tasks.empty()) return false;
    transaction.Defer(db_.sql.wait_lock, Params());
    Params params;
    AddInts(params, Sorted(Values(tasks)));
    params.Number(target);
    return transaction.Query(db_.sql.wait_reaches, params).Bool(0, 0);
}

// Only for telling it: one task after the other, and not for ever.
std::vector<WaitStep> PostgresStore::ChainTo(
    Transaction& transaction, const std::vector<TaskId>& tasks, TaskId target
) {
    int looks = 0;
    return ChainOfWaits(target, tasks, [&](TaskId task) {
        std::vector<WaitLink> links;
        if (++looks > kChainLooks) return links;
        Rows rows = transaction.Query(db_.sql.wait_links, Params().Number(task));
        for (int i = 0; i < rows.size(); ++i) {
            links.push_back({TaskId(rows.Int(i, 0)), rows.IsNull(i, 1) ? "" : rows.Text(i, 1)});
        }
        return links;
    });
}

// ---- the end of waits --------------------------------------------------------------------------

PostgresStore::Opened PostgresStore::TellWaiters(
    Transaction& transaction, const std::map<TaskId, State>& ended
) {
    return EndWaits(transaction, Tell(transaction, ended));
}

// The waits that are over now.
std::vector<NewWait> PostgresStore::Tell(
    Transaction& transaction, const std::map<TaskId, State>& ended
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
    Rows rows = transaction.Query(db_.sql.tell_waiters, params);
    std::vector<NewWait> over;
    for (int i = 0; i < rows.size(); ++i) {
        NewWait wait = ReadWait(rows, i);
        bool open = rows.Bool(i, 8);
        if (open && wait.verdict() != WaitVerdict::kGoesOn) over.push_back(std::move(wait));
    }
    return over;
}

// A waiter that ends with its wait ends the waits for itself, and so on: round by round, since a
// chain may be as long as a graph is large.
PostgresStore::Opened PostgresStore::EndWaits(Transaction& transaction, std::vector<NewWait> over) {
    Opened opened;
    while (!over.empty()) {
        std::map<TaskId, State> ended = EndThese(transaction, std::move(over), opened);
        over = Tell(transaction, ended);
    }
    return opened;
}

// Returns those that are terminal with it.
std::map<TaskId, State> PostgresStore::EndThese(
    Transaction& transaction, std::vector<NewWait> over, Opened& opened
) {
    std::map<TaskId, NewWait> waits;
    std::vector<std::int64_t> ids, rest, failing;
    for (NewWait& wait : over) {
        WaitEnd end = EndOf(wait.policy, wait.verdict(), wait.started);
        ids.push_back(wait.waiter.value());
        if (end.cancel_rest) rest.push_back(wait.waiter.value());
        if (end.event == Event::kCancel) failing.push_back(wait.waiter.value());
        TaskId waiter = wait.waiter;
        waits.emplace(waiter, std::move(wait));
    }
    Params close;
    AddInts(close, Sorted(ids));
    AddInts(close, rest);
    transaction.Defer(db_.sql.wait_close, std::move(close));
    if (!rest.empty()) transaction.OnCommit([this] { rest_due_ = true; });
    std::map<TaskId, std::string> reasons = FirstFailures(transaction, failing);
    Params take;
    AddInts(take, Sorted(ids));
    Changes changes(catalog_);
    for (Facts& facts : ReadFacts(transaction.Query(db_.sql.take_outside, take))) {
        const NewWait& wait = waits.at(facts.id);
        EndWait(
            facts, EndOf(wait.policy, wait.verdict(), wait.started), reasons[facts.id], changes
        );
    }
    Opened more = Send(transaction, changes);
    opened.insert(opened.end(), more.begin(), more.end());
    for (const Changes::Waiting& waiting : changes.waiting()) {
        opened.push_back(catalog_.LaneOf(waiting.after.lane).queue);
    }
    return EndedBy(changes);
}

void PostgresStore::EndWait(
    Facts& facts, const WaitEnd& end, const std::string& reason, Changes& changes
) {
    CHECK(facts.state == State::kBlocked);
    const bool cancelled = end.event == Event::kCancel;
    changes.AddAudit(
        {facts.id,
         catalog_.LaneOf(facts.lane).tenant,
         end.event,
         State::kBlocked,
         cancelled ? State::kCancelled : State::kOpen,
         facts.attempt,
         facts.generation,
         {},
         "store",
         reason}
    );
    if (cancelled) {
        changes.AddFinish({facts, State::kCancelled, std::nullopt, {}, false, facts.error, reason});
        return;
    }
    if (end.stage != Stage::kStart) facts.flags = WithStage(facts.flags, end.stage);
    facts.flags |= kHasWait;
    facts.state = State::kOpen;
    changes.AddWaiting({facts, std::max(facts.now, facts.due_at)});
}

std::map<TaskId, std::string> PostgresStore::FirstFailures(
    Transaction& transaction, const std::vector<std::int64_t>& waiters
) {
    std::map<TaskId, std::string> reasons;
    if (waiters.empty()) return reasons;
    Params params;
    AddInts(params, waiters);
    Rows rows = transaction.Query(db_.sql.wait_failed, params);
    for (int i = 0; i < rows.size(); ++i) {
        WaitMember failed{
            TaskId(rows.Int(i, 1)), TaskId(rows.Int(i, 2)), static_cast<State>(rows.Int(i, 3))};
        reasons[TaskId(rows.Int(i, 0))] = WhyCancelled(failed);
    }
    return reasons;
}

// In transactions of its own, again and again until it is done, by whoever comes first.
void PostgresStore::CancelWhatIsDue() {
    for (;;) {
        Rows rows = db_.Read(db_.sql.cancel_due, Params().Int4(kCancelAtOnce));
        if (rows.empty()) return;
        base::TestPoint("store_postgres.cancel_due");
        std::map<TaskId, std::vector<TaskId>> by_waiter;
        for (int i = 0; i < rows.size(); ++i) {
            by_waiter[TaskId(rows.Int(i, 1))].emplace_back(rows.Int(i, 0));
        }
        for (const auto& [waiter, tasks] : by_waiter) {
            CancelTrees(tasks, "store", WhyRestCancelled(waiter));
            Params done;
            AddInts(done, Values(tasks));
            done.Number(waiter);
            db_.Run([&](Transaction& transaction) { transaction.Query(db_.sql.cancel_done, done); }
            );
        }
    }
}

// Behind a commit that the caller must hear of. What fails here is in cancel_due and is done by the
// next one, or by a sweep.
void PostgresStore::CancelRest() noexcept {
    if (!rest_due_.exchange(false)) return;
    try {
        CancelWhatIsDue();
    } catch (const std::exception&) {
        rest_due_ = true;
    }
}

std::vector<WaitMember> PostgresStore::Waited(TaskId task) {
    Rows rows = db_.Read(db_.sql.wait_of, Params().Number(task));
    std::vector<WaitMember> members;
    for (int i = 0; i < rows.size(); ++i) {
        std::optional<State> ended;
        if (!rows.IsNull(i, 2)) ended = static_cast<State>(rows.Int(i, 2));
        members.push_back({TaskId(rows.Int(i, 0)), TaskId(rows.Int(i, 1)), ended});
    }
    return members;
}

}  // namespace stint::store::pg
