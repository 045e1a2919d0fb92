// The order of tasks of one key, and what is known of resources.
#include <algorithm>

#include "base/planted_bug.h"
#include "base/text.h"
#include "model/limits.h"
#include "store/memory/ops.h"

namespace stint::store::memory {

using base::Bug;
using base::Planted;

void Ops::Place(Task& task, const Placement& placement) {
    task.record.placement = placement;
    JoinOrder(task);
}

void Ops::JoinOrder(Task& task) {
    const TaskRecord& record = task.record;
    if (record.placement.order_key.empty() || task.order_no != 0) return;
    task.order_no = data_.next_order++;
    data_.ordered[{record.tenant, record.placement.order_key}][task.order_no] = record.id;
}

void Ops::LeaveOrder(Task& task) {
    if (task.order_no == 0) return;
    auto line = data_.ordered.find({task.record.tenant, task.record.placement.order_key});
    line->second.erase(task.order_no);
    if (line->second.empty()) data_.ordered.erase(line);
    task.order_no = 0;
}

bool Ops::IsBehind(const Task& task) const {
    if (task.order_no == 0) return false;
    auto line = data_.ordered.find({task.record.tenant, task.record.placement.order_key});
    for (const auto& [number, id] : line->second) {
        if (number == task.order_no) return false;
        auto other = data_.live.find(id);
        bool waits = other != data_.live.end() && other->second.record.state == State::kError;
        if (waits && Planted(Bug::kOrderKeyOvertaken)) continue;
        return true;
    }
    return false;
}

void Ops::EndOrder(Task& task) {
    if (task.order_no == 0) return;
    const Placement& placement = task.record.placement;
    const bool dead = task.record.state == State::kDead;
    // Those behind wait until it is tried again.
    if (dead && placement.on_failed_head == OnFailedHead::kBlock && !dead_letters_) return;
    std::vector<TaskId> behind;
    if (dead && placement.on_failed_head == OnFailedHead::kDeadLetter && !dead_letters_) {
        for (const auto& [number, id] : data_.ordered.at({task.record.tenant, placement.order_key}))
            if (number > task.order_no) behind.push_back(id);
    }
    LeaveOrder(task);
    dead_letters_ = !behind.empty() || dead_letters_;
    for (TaskId id : behind) {
        Task* other = Find(id);
        if (other == nullptr || !IsWaiting(other->record.state)) continue;
        std::string reason = fmt::format(
            "task {} before it, of order key {}, is dead",
            task.record.id.value(),
            base::Quoted(placement.order_key)
        );
        Move(*other, Event::kExpire, {.actor = "store", .reason = reason});
        other->record.reason = reason;
    }
    if (!behind.empty()) dead_letters_ = false;
}

void Ops::AdoptRunning() {
    for (const auto& [id, task] : data_.live) {
        const TaskRecord& record = task.record;
        if (record.state != State::kInProgress) continue;
        data_.resources.Adopt(
            id, data_.resources.NeedsOf(record.placement.needs, record.queue, record.type)
        );
    }
}

std::set<std::string> Ops::HeldBy(TaskId task) const {
    std::set<std::string> names;
    auto held = data_.resources.held.find(task);
    if (held == data_.resources.held.end()) return names;
    for (const Need& need : held->second) names.insert(need.resource);
    return names;
}

void Ops::OpenForFreed() {
    if (freed_.empty()) return;
    constexpr int kLooks = 10'000;
    std::set<std::string> queues;
    int looks = 0;
    for (const auto& [id, task] : data_.live) {
        if (++looks > kLooks || queues.size() >= limits::kFreedQueues) break;
        const TaskRecord& record = task.record;
        if (!IsWaiting(record.state) || record.due_at > now_ || queues.contains(record.queue)) {
            continue;
        }
        Needs needs = data_.resources.NeedsOf(record.placement.needs, record.queue, record.type);
        bool wants = std::ranges::any_of(needs, [&](const Need& need) {
            return freed_.contains(need.resource);
        });
        if (wants) queues.insert(record.queue);
    }
    opened_.insert(opened_.end(), queues.begin(), queues.end());
    freed_.clear();
}

int Ops::ForgetIdleResources(int limit) {
    std::set<std::string> wanted;
    for (const auto& [id, task] : data_.live) {
        const TaskRecord& record = task.record;
        if (data_.resources.entries.empty() || !IsWaiting(record.state)) continue;
        for (const Need& need :
             data_.resources.NeedsOf(record.placement.needs, record.queue, record.type)) {
            wanted.insert(need.resource);
        }
    }
    std::vector<std::string> idle = data_.resources.Idle(wanted, now_, limit);
    for (const std::string& name : idle) data_.resources.Forget(name);
    return static_cast<int>(idle.size());
}

std::int64_t Ops::WaitingFor(const std::string& resource) const {
    return std::count_if(data_.live.begin(), data_.live.end(), [&](const auto& item) {
        const TaskRecord& record = item.second.record;
        if (!IsWaiting(record.state)) return false;
        Needs needs = data_.resources.NeedsOf(record.placement.needs, record.queue, record.type);
        return std::any_of(needs.begin(), needs.end(), [&](const Need& need) {
            return need.resource == resource;
        });
    });
}

}  // namespace stint::store::memory
