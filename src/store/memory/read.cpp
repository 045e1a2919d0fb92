// Looking at tasks: live and finished alike.
#include <algorithm>

#include "store/finished.h"
#include "store/memory/ops.h"

namespace stint::store::memory {

std::optional<TaskRecord> Ops::Get(TaskId id) {
    Task* task = Find(id);
    if (task == nullptr) return std::nullopt;
    TaskRecord record = task->record;
    if (record.state == State::kInProgress) {
        // The lease of a task is its session's.
        auto session = data_.sessions.find(record.session);
        if (session != data_.sessions.end()) record.expires_at = session->second.record.lease_until;
    }
    return record;
}

std::optional<TaskId> Ops::FindByIdempotencyKey(TenantId tenant, std::string_view key) {
    auto found = data_.idempotency.find({tenant, std::string(key)});
    if (found == data_.idempotency.end() || found->second.expires_at <= now_) return std::nullopt;
    return found->second.task;
}

TaskPage Ops::List(const ListRequest& request) {
    std::vector<TaskId> ids;
    auto collect = [&](const std::map<TaskId, Task>& tasks) {
        for (const auto& [id, task] : tasks) {
            bool after = !request.before || id < *request.before;
            if (after && Matches(request.filter, task.record)) ids.push_back(id);
        }
    };
    collect(data_.live);
    collect(data_.finished);
    std::sort(ids.begin(), ids.end(), std::greater<>());

    TaskPage page;
    auto limit = static_cast<std::size_t>(std::clamp(request.limit, 1, limits::kListPage));
    if (ids.size() > limit) {
        ids.resize(limit);
        page.next = ids.back();
    }
    for (TaskId id : ids) page.tasks.push_back(*Get(id));
    return page;
}

std::map<CountKey, std::int64_t> Ops::Counts(const TaskFilter& filter) {
    TaskFilter counted{
        .tenant = filter.tenant,
        .states = filter.states,
        .types = filter.types,
        .queues = filter.queues};
    std::map<CountKey, std::int64_t> counts;
    for (const auto* tasks : {&data_.live, &data_.finished}) {
        for (const auto& [id, task] : *tasks) {
            const TaskRecord& record = task.record;
            if (Matches(counted, record)) ++counts[{record.state, record.queue, record.type}];
        }
    }
    return counts;
}

std::vector<AttemptRecord> Ops::Attempts(TaskId id) {
    Task* task = Find(id);
    return task == nullptr ? std::vector<AttemptRecord>() : task->attempts;
}

std::vector<AuditEntry> Ops::Audit(const AuditRequest& request) {
    std::vector<AuditEntry> entries;
    auto limit = static_cast<std::size_t>(std::clamp(request.limit, 1, limits::kListPage));
    for (const AuditEntry& entry : data_.audit) {
        if (entry.seq <= request.after) continue;
        if (request.task.valid() && entry.task != request.task) continue;
        if (entries.size() == limit) break;
        entries.push_back(entry);
    }
    return entries;
}

std::vector<FinishedTask> Ops::Finished(std::span<const TaskId> tasks) {
    std::vector<FinishedTask> finished;
    std::size_t bytes = 0;
    for (TaskId id : tasks) {
        if (bytes >= limits::kFinishedBytes) break;
        auto found = data_.finished.find(id);
        if (found == data_.finished.end()) continue;
        const TaskRecord& record = found->second.record;
        finished.push_back(
            {id,
             record.type,
             record.state,
             record.output,
             record.error,
             record.reason,
             record.warning}
        );
        bytes += BytesOf(finished.back());
    }
    return finished;
}

std::vector<QueueRecord> Ops::Queues() {
    std::vector<QueueRecord> queues;
    for (const auto& [name, settings] : data_.queues) {
        QueueRecord& queue = queues.emplace_back(QueueRecord{.settings = settings});
        queue.settings.name = name;
        queue.waiting = WaitingIn(name);
        for (const auto& [id, task] : data_.live) {
            if (task.record.queue == name && task.record.state == State::kInProgress)
                ++queue.running;
        }
    }
    return queues;
}

}  // namespace stint::store::memory
