#include "node/convert.h"

#include "base/result.h"
#include "model/worker_note.h"

namespace stint::node {

Result<model::NewTask> ToNewTask(const TaskToCome& task, TenantId tenant) {
    if (task.options.in != nullptr) {
        return base::MakeError(
            Code::kInvalid, "{}: options.in is given; it is submitted later", task.type
        );
    }
    return ToNewTask(task.type, &task.defaults, task.input.text, task.options, tenant);
}

model::LeasePolicy ToModel(const LeaseOptions& lease) {
    return {
        .lease = lease.lease,
        .heartbeat_every = lease.heartbeat_every,
        .self_stop = lease.self_stop};
}

model::TypeDefaults ToModel(std::string_view name, const TaskDefaults& defaults) {
    return {
        .type = std::string(name),
        .queue = std::string(defaults.queue),
        .priority = defaults.priority,
        .retry = ToModel(defaults.retry),
        .timeout = defaults.timeout,
        .isolated = defaults.isolation.enabled,
        .needs = engine::PlacementOf(defaults).needs,
        .labels = engine::PlacementOf(defaults).labels,
    };
}

TaskInfo ToPublic(const model::TaskRecord& task) {
    TaskInfo record;
    record.id = task.id;
    record.tenant = task.tenant;
    record.type = task.type;
    record.queue = task.queue;
    record.state = model::StateName(task.state);
    record.finished = model::IsTerminal(task.state);
    record.priority = task.priority;
    record.input = task.input;
    record.output = task.output;
    if (task.error) {
        record.error = task.error->message;
        record.error_class = task.error->klass;
    }
    record.reason = task.reason;
    record.warning = task.warning;
    record.cancel_requested = task.cancel_requested;
    record.attempt = task.attempt;
    record.max_attempts = task.max_attempts;
    record.generation = task.generation;
    record.waiting_for = task.waiting_for;
    record.tags = task.tags;
    record.idempotency_key = task.idempotency_key;
    record.unique_key = task.unique_key;
    if (task.progress) {
        const model::Progress& at = *task.progress;
        record.progress = ProgressInfo{at.step, at.done, at.total, at.message};
    }
    if (task.session.valid()) record.session = task.session;
    record.created_at = task.created_at;
    record.due_at = task.due_at;
    record.started_at = task.claimed_at;
    record.finished_at = task.finished_at;
    return record;
}

NodeInfo ToPublic(const model::NodeRecord& node) {
    return {.id = node.id, .name = node.hostname, .last_seen = node.last_seen};
}

SessionInfo ToPublic(const model::SessionRecord& session) {
    bool over = session.state == model::SessionState::kClosed ||
                session.state == model::SessionState::kExpired;
    return {
        .id = session.id,
        .node = session.node,
        .node_name = session.hostname,
        .pid = session.pid,
        .state = std::string(model::SessionStateName(session.state)),
        .doing = over ? std::string() : model::NoteOf(session.worker_state).doing,
        .slots = session.slots,
        .running = over ? 0 : session.running,
        .queues = session.queues,
        .types = session.types,
        .labels = session.labels,
        .version = session.version,
        .started_at = session.started_at,
        .last_seen = session.renewed_at,
    };
}

}  // namespace stint::node
