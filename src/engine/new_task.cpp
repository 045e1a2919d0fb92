#include "engine/new_task.h"

#include "base/result.h"
#include "model/placement.h"

namespace stint::engine {

namespace {

bool SameRetry(const Retry& a, const Retry& b) {
    return ToModel(a) == ToModel(b);
}

void TakeFromToken(const TaskDefaults& token, model::NewTask& task) {
    const TaskDefaults global;
    if (!task.queue && token.queue != global.queue) task.queue = std::string(token.queue);
    if (!task.priority && token.priority != global.priority) task.priority = token.priority;
    if (!task.timeout && token.timeout != global.timeout) task.timeout = token.timeout;
    model::Placement placement = PlacementOf(token);
    if (!task.needs && !placement.needs.empty()) task.needs = std::move(placement.needs);
    if (!task.labels && !placement.labels.empty()) task.labels = std::move(placement.labels);
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

std::string LimitOfType(std::string_view type) {
    return model::ResourceName("type:" + std::string(type));
}

model::Placement PlacementOf(const TaskDefaults& defaults) {
    model::Placement placement;
    for (const detail::LiteralNeed& need : defaults.needs) {
        placement.needs.push_back({std::string(need.resource), need.units});
    }
    placement.needs = model::Canonical(std::move(placement.needs));
    placement.labels = model::CanonicalLabels({defaults.labels.begin(), defaults.labels.end()});
    return placement;
}

namespace {

void TakePlacement(const SubmitOptions& options, model::NewTask& task) {
    if (options.needs) {
        task.needs.emplace();
        for (const ResourceNeed& need : *options.needs) {
            task.needs->push_back({need.resource, need.units});
        }
        task.needs = model::Canonical(std::move(*task.needs));
    }
    if (options.labels) {
        task.labels = model::CanonicalLabels(*options.labels);
    }
    task.order_key = options.order_key;
    task.on_failed_head = static_cast<model::OnFailedHead>(options.on_failed_head);
}

}  // namespace

static_assert(
    static_cast<int>(FailedHead::kDeadLetter) == static_cast<int>(model::OnFailedHead::kDeadLetter)
);

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
    TakePlacement(options, task);
    if (options.after) {
        task.after = model::WaitOn{
            .on = options.after->tasks,
            .on_failure = options.after->on_failure,
            .any = options.after->any,
            .need_success = options.after->need_success};
    }
    if (auto keys = TakeKeys(options, task); !keys) return keys.error();
    if (token != nullptr) TakeFromToken(*token, task);
    return task;
}

}  // namespace stint::engine
