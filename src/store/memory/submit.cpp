// Accepting tasks: known by a key? Is there room? Then a new one.
#include <algorithm>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/result.h"
#include "base/text.h"
#include "model/batch_order.h"
#include "model/placement.h"
#include "store/memory/event_ops.h"
#include "store/memory/ops.h"

namespace stint::store::memory {

namespace {

using Kind = SubmitReply::Kind;

Time DueAt(const NewTask& task, Time now) {
    if (task.debounce) return now + task.debounce->wait;
    if (task.delay) return now + *task.delay;
    return task.run_at.value_or(now);
}

// Its first attempt is still to come, or to be made again.
bool NotStarted(const Task& task) {
    return IsWaiting(task.record.state) && task.record.stage == Stage::kStart;
}

SubmitReply Refused(Kind kind, TaskId id, std::string message) {
    return {.kind = kind, .id = id, .message = std::move(message)};
}

}  // namespace

TaskId Ops::ReserveIds(int count) {
    CHECK(count >= 1 && count <= limits::kIdBlock);
    TaskId first(data_.next_id);
    data_.next_id += count;
    return first;
}

std::vector<SubmitReply> Ops::Submit(std::span<const NewTask> tasks) {
    if (AnyAfter(tasks) && tasks.size() <= limits::kSubmitBatch) return SubmitInOrder(tasks);
    std::vector<SubmitReply> replies;
    for (const NewTask& task : tasks) {
        if (tasks.size() > limits::kSubmitBatch) {
            replies.push_back(Refused(
                Kind::kInvalid,
                {},
                fmt::format(
                    "the batch has {} tasks; the limit is {}", tasks.size(), limits::kSubmitBatch
                )
            ));
        } else {
            replies.push_back(SubmitOne(task, {}));
        }
    }
    return replies;
}

std::vector<SubmitReply> Ops::SubmitAll(std::span<const NewTask> tasks) {
    Data before = data_;
    std::size_t commits = commits_.size();
    std::vector<SubmitReply> replies = Submit(tasks);
    if (RefuseAll(replies)) {
        before.next_id = data_.next_id;  // somebody may have seen them
        data_ = std::move(before);
        commits_.resize(commits);
    }
    return replies;
}

// Some wait for others of the same batch, which they name by the ids that were reserved for them.
std::vector<SubmitReply> Ops::SubmitInOrder(std::span<const NewTask> tasks) {
    std::vector<SubmitReply> replies(tasks.size());
    Beside beside;
    BatchOrder batch = OrderOf(tasks);
    for (const auto& [i, why] : batch.refused) {
        replies[i] = Refused(Kind::kInvalid, {}, why);
        beside[tasks[i].id] = replies[i];
    }
    for (std::size_t i : batch.order) {
        replies[i] = SubmitOne(tasks[i], beside);
        if (tasks[i].id.valid()) beside[tasks[i].id] = replies[i];
    }
    return replies;
}

SubmitReply Ops::SubmitOne(const NewTask& task, const Beside& beside) {
    if (auto valid = Validate(task); !valid) {
        return Refused(Kind::kInvalid, {}, valid.error().message);
    }
    // Only needed where there is a key that may be used again.
    const std::string hash = task.idempotency_key.empty() ? "" : RequestHash(task);
    if (auto known = KnownByKey(task, hash)) return *known;

    std::optional<SubmitReply> known = KnownByUnique(task);
    if (!known) known = KnownByDebounce(task);
    if (known) {
        if (known->accepted()) Remember(task, hash, *known);
        return *known;
    }
    std::vector<WaitMember> members;
    if (task.after) {
        auto found = MembersOf(task.after->on, task.tenant, beside);
        if (!found) return Refused(Kind::kInvalid, {}, "after names " + found.error().message);
        members = *found;
    }
    Resolved resolved = Resolve(task, TypeOf(task.type));
    auto queue = data_.queues.find(resolved.queue);
    if (queue != data_.queues.end() && queue->second.cap &&
        WaitingIn(resolved.queue) >= *queue->second.cap) {
        SubmitReply reply = Refused(
            Kind::kQueueFull,
            {},
            fmt::format(
                "queue {} is full: its cap is {} waiting tasks; try later or raise the cap",
                base::Quoted(resolved.queue),
                *queue->second.cap
            )
        );
        reply.queue = resolved.queue;
        return reply;
    }
    SubmitReply reply = Insert(task, resolved);
    Remember(task, hash, reply);
    if (task.after && !StartAfter(reply.id, *task.after, std::move(members))) reply.due_now = false;
    return reply;
}

// The idempotency key, the id, the throttle: who asked this before?
std::optional<SubmitReply> Ops::KnownByKey(const NewTask& task, const std::string& hash) {
    if (auto found = data_.idempotency.find({task.tenant, task.idempotency_key});
        !task.idempotency_key.empty() && found != data_.idempotency.end() &&
        found->second.expires_at > now_) {
        const IdempotencyKey& known = found->second;
        if (known.hash == hash || base::Planted(base::Bug::kIdempotencyWithoutHash)) {
            return SubmitReply{.kind = Kind::kExisting, .id = known.task};
        }
        return Refused(
            Kind::kConflict,
            known.task,
            fmt::format(
                "idempotency key {} stands for task {} with another request: use a new key, or "
                "repeat "
                "the same request",
                base::Quoted(task.idempotency_key),
                known.task.value()
            )
        );
    }
    // A reserved id that is there already: the same submit, sent again after an unknown commit.
    if (task.id.valid() && Find(task.id) != nullptr) {
        return SubmitReply{.kind = Kind::kExisting, .id = task.id};
    }
    if (!task.throttle) return std::nullopt;
    auto last = data_.throttle.find({task.tenant, task.type, task.throttle->key});
    if (last == data_.throttle.end() || last->second.until <= now_) return std::nullopt;
    SubmitReply reply{.kind = Kind::kThrottled, .id = last->second.task};
    Remember(task, hash, reply);
    return reply;
}

std::optional<SubmitReply> Ops::KnownByUnique(const NewTask& task) {
    if (task.unique_key.empty()) return std::nullopt;
    auto found = data_.unique.find({task.tenant, task.type, task.unique_key});
    if (found == data_.unique.end()) return std::nullopt;
    Task* live = Find(found->second);
    if (live == nullptr) return std::nullopt;
    if (task.unique_policy == UniquePolicy::kError) {
        return Refused(
            Kind::kConflict,
            found->second,
            fmt::format(
                "task {} with unique key {} is not finished: wait for it or cancel it",
                found->second.value(),
                base::Quoted(task.unique_key)
            )
        );
    }
    if (task.unique_policy == UniquePolicy::kReplaceIfNotStarted && NotStarted(*live)) {
        return Replace(*live, task, DueAt(task, now_));
    }
    return SubmitReply{.kind = Kind::kExisting, .id = found->second};
}

std::optional<SubmitReply> Ops::KnownByDebounce(const NewTask& task) {
    if (!task.debounce) return std::nullopt;
    auto found = data_.debounce.find({task.tenant, task.type, task.debounce->key});
    if (found == data_.debounce.end()) return std::nullopt;
    Task* waiting = Find(found->second);
    if (waiting == nullptr || !IsWaiting(waiting->record.state)) return std::nullopt;
    Time due_at = DueAt(task, now_);
    if (task.debounce->max_wait > Duration::zero()) {
        due_at = std::min(due_at, waiting->record.created_at + task.debounce->max_wait);
    }
    return Replace(*waiting, task, due_at);
}

// A waiting task takes over a new request: everything but its identity, its turn and its history.
SubmitReply Ops::Replace(Task& waiting, const NewTask& task, Time due_at) {
    Resolved resolved = Resolve(task, TypeOf(task.type));
    TouchQueue(resolved.queue);
    Move(waiting, Event::kEdit, {.actor = task.actor, .reason = "replaced by a new request"});
    TaskRecord& record = waiting.record;
    record.input = task.input;
    record.queue = resolved.queue;
    record.priority = resolved.priority;
    record.retry = resolved.retry;
    record.max_attempts = resolved.retry.max_attempts;
    record.timeout = resolved.timeout;
    record.type_known = resolved.type_known;
    record.start_by = task.start_by;
    record.tags = task.tags;
    record.due_at = due_at;
    record.placement.needs = resolved.placement.needs;
    record.placement.labels = resolved.placement.labels;
    waiting.explicit_mask = ExplicitMask(task);
    if (task.cause.valid()) {
        EventOps(*this, data_, now_).Follow(task.cause, record.id, record.tenant);
    }
    return {
        .kind = Kind::kReplaced,
        .id = record.id,
        .message = {},
        .queue = record.queue,
        .due_now = due_at <= now_,
    };
}

SubmitReply Ops::Insert(const NewTask& task, const Resolved& resolved) {
    const TaskId id = task.id.valid() ? task.id : ReserveIds(1);
    data_.next_id = std::max(data_.next_id, id.value() + 1);
    TouchQueue(resolved.queue);
    Task& added = data_.live[id];
    added.position = data_.next_position++;
    added.explicit_mask = ExplicitMask(task);
    if (task.debounce) added.debounce_key = task.debounce->key;
    TaskRecord& record = added.record;
    record.id = id;
    record.tenant = task.tenant;
    record.parent = task.parent;
    record.type = task.type;
    record.queue = resolved.queue;
    record.priority = resolved.priority;
    record.input = task.input;
    record.type_known = resolved.type_known;
    record.max_attempts = resolved.retry.max_attempts;
    record.tags = task.tags;
    record.unique_key = task.unique_key;
    record.idempotency_key = task.idempotency_key;
    record.retry = resolved.retry;
    record.timeout = resolved.timeout;
    record.created_at = now_;
    record.start_by = task.start_by;
    record.due_at = DueAt(task, now_);
    Place(added, resolved.placement);
    CHECK(Next(std::nullopt, Event::kSubmit) == record.state);
    Audit(added, std::nullopt, Event::kSubmit, {.actor = task.actor});
    if (task.cause.valid()) EventOps(*this, data_, now_).Follow(task.cause, id, task.tenant);
    return {
        .kind = Kind::kCreated,
        .id = id,
        .message = {},
        .queue = record.queue,
        .due_now = record.due_at <= now_,
    };
}

// By which keys this request is known from now on.
void Ops::Remember(const NewTask& task, const std::string& hash, const SubmitReply& reply) {
    if (!task.idempotency_key.empty()) {
        data_.idempotency[{task.tenant, task.idempotency_key}] = {
            reply.id, hash, now_ + limits::kIdempotencyRetention};
    }
    if (reply.kind == Kind::kThrottled) return;
    if (!task.unique_key.empty())
        data_.unique[{task.tenant, task.type, task.unique_key}] = reply.id;
    if (task.debounce) data_.debounce[{task.tenant, task.type, task.debounce->key}] = reply.id;
    if (task.throttle && reply.kind != Kind::kExisting) {
        data_.throttle[{task.tenant, task.type, task.throttle->key}] = {
            reply.id, now_ + task.throttle->period};
    }
}

// ---- types ----

const TypeDefaults* Ops::TypeOf(const std::string& type) const {
    auto found = data_.types.find(type);
    return found == data_.types.end() ? nullptr : &found->second.defaults;
}

void Ops::PublishTypes(std::span<const TypeDefaults> types) {
    for (const TypeDefaults& defaults : types) {
        TypeRecord& record = data_.types[defaults.type];
        if (record.revision == 0 || record.defaults != defaults) {
            record = {defaults, record.revision + 1, now_};
        }
        for (auto& [id, task] : data_.live) {
            bool unknown = task.record.type == defaults.type && !task.record.type_known;
            if (unknown && IsWaiting(task.record.state)) ApplyDefaults(task, defaults);
        }
    }
}

// It was accepted before its type was known: what was not given explicitly comes from the type now.
void Ops::ApplyDefaults(Task& task, const TypeDefaults& defaults) {
    TaskRecord& record = task.record;
    auto given = [&](ExplicitBits bit) { return (task.explicit_mask & bit) != 0; };
    if (!given(kExplicitQueue)) record.queue = defaults.queue;
    if (!given(kExplicitPriority)) record.priority = defaults.priority;
    if (!given(kExplicitTimeout)) record.timeout = defaults.timeout;
    if (!given(kExplicitRetry)) {
        record.retry = defaults.retry;
        record.max_attempts = defaults.retry.max_attempts;
    }
    if (record.placement.needs.empty()) record.placement.needs = Canonical(defaults.needs);
    if (record.placement.labels.empty()) {
        record.placement.labels = CanonicalLabels(defaults.labels);
    }
    record.type_known = true;
    TouchQueue(record.queue);
}

}  // namespace stint::store::memory
