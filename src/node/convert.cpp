#include "node/convert.h"

#include "base/result.h"

namespace stint::node {

namespace {

bool SameRetry(const Retry& a, const Retry& b) {
    return ToModel(a) == ToModel(b);
}

void TakeFromToken(const TaskDefaults& token, model::NewTask& task) {
    const TaskDefaults global;
    if (!task.queue && token.queue != global.queue) task.queue = std::string(token.queue);
    if (!task.priority && token.priority != global.priority) task.priority = token.priority;
    if (!task.timeout && token.timeout != global.timeout) task.timeout = token.timeout;
    if (!task.retry && !SameRetry(token.retry, global.retry)) task.retry = ToModel(token.retry);
}

Result<void> TakeKeys(const SubmitOptions& options, model::NewTask& task) {
    task.idempotency_key = options.idempotency_key;
    task.unique_key = options.unique_key;
    task.unique_policy = static_cast<model::UniquePolicy>(options.on_duplicate);
    if (!options.debounce_key.empty()) {
        task.debounce =
            model::Debounce{options.debounce_key, options.debounce, options.debounce_max};
    } else if (options.debounce != Duration::zero()) {
        return base::MakeError(
            Code::kInvalid,
            "debounce is {} ms but debounce_key is empty; name the key that bursts have in common",
            options.debounce.count()
        );
    }
    if (!options.throttle_key.empty()) {
        task.throttle = model::Throttle{options.throttle_key, options.throttle};
    } else if (options.throttle != Duration::zero()) {
        return base::MakeError(
            Code::kInvalid,
            "throttle is {} ms but throttle_key is empty; name the key that is limited",
            options.throttle.count()
        );
    }
    return {};
}

}  // namespace

static_assert(
    static_cast<int>(OnDuplicate::kError) == static_cast<int>(model::UniquePolicy::kError)
);
static_assert(
    static_cast<int>(OnDuplicate::kReplaceIfNotStarted) ==
    static_cast<int>(model::UniquePolicy::kReplaceIfNotStarted)
);

model::RetryPolicy ToModel(const Retry& retry) {
    model::RetryPolicy policy;
    policy.kind = static_cast<model::RetryPolicy::Kind>(retry.kind);
    policy.on = static_cast<model::RetryPolicy::On>(retry.on);
    policy.max_attempts = retry.max_attempts;
    policy.first_delay = retry.first_delay;
    policy.max_delay = retry.max_delay;
    policy.factor = retry.factor;
    policy.jitter = retry.jitter;
    policy.delays.assign(retry.delays.begin(), retry.delays.end());
    return policy;
}

static_assert(
    static_cast<int>(Retry::Kind::kList) == static_cast<int>(model::RetryPolicy::Kind::kList)
);
static_assert(
    static_cast<int>(Retry::On::kNone) == static_cast<int>(model::RetryPolicy::On::kNone)
);

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
    };
}

Result<model::NewTask> ToNewTask(
    std::string_view type,
    const TaskDefaults* token,
    std::string input,
    const SubmitOptions& options,
    TenantId default_tenant
) {
    model::NewTask task;
    task.type = std::string(type);
    task.input = std::move(input);
    task.tenant = options.tenant.value_or(default_tenant);
    task.queue = options.queue;
    task.priority = options.priority;
    if (options.retry) task.retry = ToModel(*options.retry);
    task.timeout = options.timeout;
    task.delay = options.delay;
    task.run_at = options.run_at;
    task.start_by = options.start_by;
    task.tags = options.tags;
    task.actor = options.actor;
    if (auto keys = TakeKeys(options, task); !keys) return keys.error();
    if (token != nullptr) TakeFromToken(*token, task);
    return task;
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
        .doing = over ? std::string() : session.worker_state,
        .slots = session.slots,
        .running = over ? 0 : session.running,
        .queues = session.queues,
        .types = session.types,
        .version = session.version,
        .started_at = session.started_at,
        .last_seen = session.renewed_at,
    };
}

}  // namespace stint::node
