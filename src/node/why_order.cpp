#include "node/why_order.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "base/text.h"

namespace stint::node {

namespace {

using model::State;
using model::TaskRecord;

constexpr std::size_t kLookedAt = 200;

bool SameKey(const TaskRecord& a, const TaskRecord& b) {
    return a.tenant == b.tenant && a.placement.order_key == b.placement.order_key;
}

// Of those that `waiter` waits for, directly or through others, the first that waits behind it.
std::optional<TaskId> WaitsBehind(store::Store& store, const TaskRecord& waiter) {
    std::set<TaskId> seen;
    std::vector<TaskId> open = {waiter.id};
    while (!open.empty() && seen.size() < kLookedAt) {
        TaskId next = open.back();
        open.pop_back();
        for (const model::WaitMember& member : store.Waited(next)) {
            if (member.ended || seen.size() >= kLookedAt) continue;
            if (!seen.insert(member.task).second) continue;
            auto other = store.Get(member.task);
            if (!other) continue;
            bool waits = other->state == State::kOpen || other->state == State::kError;
            if (waits && SameKey(*other, waiter)) return other->id;
            if (other->state == State::kBlocked) open.push_back(other->id);
        }
    }
    return std::nullopt;
}

WhyReason Deadlock(const TaskRecord& waiter, TaskId behind) {
    return {
        .condition = model::Condition::kBehindInOrder,
        .name = "order_deadlock",
        .text = "It never runs: a task waits for one that comes after it in their order.",
        .detail = fmt::format(
            "order key {}: task {} waits for task {}, which is behind it",
            base::Quoted(waiter.placement.order_key),
            waiter.id.value(),
            behind.value()
        ),
        .cure = fmt::format("stint task cancel {}, or {}", behind.value(), waiter.id.value())};
}

}  // namespace

std::optional<WhyReason> OrderDeadlock(store::Store& store, const TaskRecord& task) {
    if (task.placement.order_key.empty()) return std::nullopt;
    if (task.state == State::kBlocked) {
        auto behind = WaitsBehind(store, task);
        if (behind) return Deadlock(task, *behind);
        return std::nullopt;
    }
    // Whoever made it, or made who made it, waits for it most likely.
    std::optional<TaskRecord> above = task;
    for (std::size_t i = 0; i < kLookedAt && above && above->parent.valid(); ++i) {
        above = store.Get(above->parent);
        if (!above || above->state != State::kBlocked || !SameKey(*above, task)) continue;
        if (WaitsBehind(store, *above) == task.id) return Deadlock(*above, task.id);
    }
    return std::nullopt;
}

}  // namespace stint::node
