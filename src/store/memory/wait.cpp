// Waiting for other tasks.
#include <algorithm>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/result.h"
#include "model/limits.h"
#include "store/memory/ops.h"

namespace stint::store::memory {

using base::Bug;
using base::MakeError;
using base::Planted;

// Who is meant by the names of a wait. An error says what one of them is, behind "names ".
Result<std::vector<WaitMember>> Ops::MembersOf(
    std::span<const TaskId> tasks, TenantId tenant, const Beside& beside
) {
    std::vector<WaitMember> members;
    for (TaskId asked : tasks) {
        TaskId task = asked;
        if (auto found = beside.find(asked); found != beside.end()) {
            const SubmitReply& reply = found->second;
            if (!reply.accepted()) return Error{Code::kInvalid, NamedAsRefused(asked, reply)};
            task = reply.id;
        }
        Task* other = Find(task);
        if (other == nullptr || other->record.tenant != tenant)
            return Error{Code::kInvalid, NamedAsMissing(asked)};
        State state = other->record.state;
        members.push_back({asked, task, IsTerminal(state) ? std::optional(state) : std::nullopt});
    }
    return members;
}

void Ops::Await(Task& task, const WaitOn& policy, std::vector<WaitMember> members) {
    std::multimap<TaskId, std::size_t> places;
    for (const WaitMember& member : members) {
        if (Planted(Bug::kWaitLosesMember) && members.size() > 1 && &member == &members.back()) {
            continue;
        }
        if (member.ended) continue;
        data_.waiters[member.task].insert(task.record.id);
        places.emplace(member.task, static_cast<std::size_t>(&member - members.data()));
    }
    const bool started = task.record.state == State::kInProgress;
    WaitTally tally = TallyOf(members);
    task.wait = WaitState{policy, std::move(members), started, tally, std::move(places)};
}

bool Ops::StartAfter(TaskId id, const WaitOn& wait, std::vector<WaitMember> members) {
    Task& task = *Find(id);
    Await(task, wait, std::move(members));
    if (Judge(wait, task.wait->tally) == WaitVerdict::kSucceeded) return true;
    Move(task, Event::kBlock, {.actor = "store"});
    EndWaitIfOver(task);
    return task.record.state == State::kOpen && task.record.due_at <= now_;
}

// Makes the children and the wait. An error: one was refused; nothing may remain of this.
Result<void> Ops::BlockOn(Task& task, const Settlement& settlement) {
    auto children = ChildrenOf(settlement, task.record.tenant);
    if (!children) return children.error();
    auto beside = AllAccepted(*children, Submit(*children));
    if (!beside) return beside.error();
    auto members = MembersOf(Awaited(settlement), task.record.tenant, *beside);
    if (!members) return MakeError(Code::kInvalid, "the wait names {}", members.error().message);
    auto chain =
        ChainOfWaits(task.record.id, MayWait(*children, *beside, *members), [this](TaskId other) {
            return LinksOf(other);
        });
    if (!chain.empty()) return WaitsForItself(task.record.id, chain);
    Await(task, settlement.wait, std::move(*members));
    return {};
}

// Who ends with its wait ends the waits for itself, and so on: one after the other, since a chain
// may be as long as a graph is large.
void Ops::TellWaiters(const Task& ended) {
    if (Planted(Bug::kWaitMissesCancel) && ended.record.state == State::kCancelled) return;
    ended_.push_back(ended.record.id);
    if (ended_.size() > 1) return;  // whoever began this goes on with it
    // NOLINTNEXTLINE(modernize-loop-convert): it grows meanwhile
    for (std::size_t i = 0; i < ended_.size(); ++i) TellWaitersOf(*Find(ended_[i]));
    ended_.clear();
}

void Ops::TellWaitersOf(const Task& ended) {
    auto found = data_.waiters.extract(ended.record.id);
    if (!found) return;
    for (TaskId id : found.mapped()) {
        Task* waiter = Find(id);
        if (waiter == nullptr || !waiter->wait) continue;
        WaitState& wait = *waiter->wait;
        auto [from, to] = wait.places.equal_range(ended.record.id);
        for (auto place = from; place != to; ++place) wait.End(place->second, ended.record.state);
        if (Planted(Bug::kWaitCountsTwice)) {
            auto next = std::ranges::find_if(wait.members, [](const WaitMember& one) {
                return !one.ended;
            });
            auto place = static_cast<std::size_t>(next - wait.members.begin());
            if (next != wait.members.end()) wait.End(place, ended.record.state);
        }
        if (waiter->record.state == State::kBlocked) EndWaitIfOver(*waiter);
    }
}

void Ops::EndWaitIfOver(Task& waiter) {
    const WaitState& wait = *waiter.wait;
    TaskRecord& record = waiter.record;
    record.waiting_for = wait.tally.pending;
    WaitVerdict verdict = Judge(wait.policy, wait.tally);
    if (verdict == WaitVerdict::kGoesOn) return;
    record.waiting_for = 0;
    WaitEnd end = EndOf(wait.policy, verdict, wait.started);
    if (end.event == Event::kCancel) {
        CancelWaiter(waiter);
    } else {
        if (wait.started) record.stage = end.stage;
        record.reason.clear();
        Move(waiter, Event::kUnblock, {.actor = "store"});
        Wait(waiter, std::max(now_, record.due_at));
        opened_.push_back(record.queue);
    }
    if (end.cancel_rest) CancelRest(waiter);
}

// Before what it cannot go on.
std::vector<WaitLink> Ops::LinksOf(TaskId id) {
    std::vector<WaitLink> links;
    const Task& task = *Find(id);
    if (task.record.state == State::kBlocked) {
        for (const WaitMember& member : task.wait->members) {
            if (!member.ended) links.push_back({member.task});
        }
    }
    if (task.order_no == 0) return links;
    const std::string& key = task.record.placement.order_key;
    const auto& line = data_.ordered.at({task.record.tenant, key});
    auto own = line.find(task.order_no);
    if (own != line.begin()) links.push_back({std::prev(own)->second, key});
    return links;
}

void Ops::CancelWaiter(Task& waiter) {
    auto which = std::ranges::find_if(waiter.wait->members, &HasFailed);
    std::string reason = WhyCancelled(*which);
    waiter.record.reason = reason;
    Move(waiter, Event::kCancel, {.actor = "store", .reason = reason});
}

void Ops::CancelRest(const Task& waiter) {
    std::vector<TaskId> rest;
    for (const WaitMember& member : waiter.wait->members) {
        if (!member.ended) rest.push_back(member.task);
    }
    for (TaskId task : rest) CancelTree(task, "store", WhyRestCancelled(waiter.record.id));
}

std::vector<WaitMember> Ops::Waited(TaskId id) {
    auto found = data_.live.find(id);
    if (found == data_.live.end() || !found->second.wait) return {};
    return found->second.wait->members;
}

// All live ones, the nearest first. What is finished in between does not hide what is below it.
std::vector<TaskId> Ops::Descendants(TaskId task) const {
    if (Planted(Bug::kCancelStopsAtRoot)) return {};
    std::map<TaskId, std::vector<TaskId>> children;
    for (const auto* tasks : {&data_.live, &data_.finished}) {
        for (const auto& [id, other] : *tasks) {
            if (other.record.parent.valid()) children[other.record.parent].push_back(id);
        }
    }
    std::vector<TaskId> found, open{task};
    std::set<TaskId> seen{task};
    int finished = 0;
    for (std::size_t i = 0; i < open.size(); ++i) {
        auto below = children.find(open[i]);
        if (below == children.end()) continue;
        for (TaskId id : below->second) {
            const bool live = data_.live.contains(id);
            if (!live && ++finished > limits::kTreeFinished) continue;
            if (!seen.insert(id).second) continue;
            open.push_back(id);
            if (live) found.push_back(id);
        }
    }
    return found;
}

}  // namespace stint::store::memory
