// Accepting tasks: keys first, then the queue's cap, then the row.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/text.h"
#include "model/batch_order.h"
#include "model/placement.h"
#include "sqlite/transaction.h"
#include "store/sqlite/events.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/queries.h"

namespace stint::store::lite {

namespace {

bool IsWaiting(State state) {
    return state == State::kOpen || state == State::kError;
}

Time DueAt(const NewTask& task, Time now) {
    if (task.debounce) return now + task.debounce->wait;
    if (task.delay) return now + *task.delay;
    return task.run_at.value_or(now);
}

// A row and nothing else: nobody finds it by another name, and it looks for nothing.
bool IsPlain(const NewTask& task) {
    constexpr std::size_t kSmall = 16 << 10;  // of input: it is copied
    return task.idempotency_key.empty() && task.unique_key.empty() && task.order_key.empty() &&
           !task.debounce && !task.throttle && !task.after && !task.cause.valid() &&
           task.input.size() <= kSmall;
}

SubmitReply Existing(TaskId id, SubmitReply::Kind kind = SubmitReply::Kind::kExisting) {
    SubmitReply reply;
    reply.kind = kind;
    reply.id = id;
    return reply;
}

}  // namespace

std::vector<PreparedTask> Prepare(std::span<const NewTask> tasks) {
    std::vector<PreparedTask> prepared;
    prepared.reserve(tasks.size());
    BatchOrder order;
    if (AnyAfter(tasks) && tasks.size() <= limits::kSubmitBatch) order = OrderOf(tasks);
    auto prepare = [&](std::size_t index) {
        const NewTask& task = tasks[index];
        PreparedTask& one = prepared.emplace_back();
        one.task = &task;
        one.index = index;
        auto cycle = order.refused.find(index);
        if (cycle != order.refused.end()) {
            one.invalid = cycle->second;
        } else if (tasks.size() > limits::kSubmitBatch) {
            one.invalid = fmt::format(
                "the batch has {} tasks; the limit is {}", tasks.size(), limits::kSubmitBatch
            );
        } else if (auto valid = Validate(task); !valid) {
            one.invalid = valid.error().message;
        } else if (!task.idempotency_key.empty()) {
            one.hash = RequestHash(task);
        }
    };
    if (order.order.empty() && order.refused.empty()) {
        for (std::size_t i = 0; i < tasks.size(); ++i) prepare(i);
    } else {
        for (const auto& [i, why] : order.refused) prepare(i);
        for (std::size_t i : order.order) prepare(i);
    }
    return prepared;
}

bool ArePlain(std::span<const NewTask> tasks) {
    constexpr std::size_t kFew = 16;
    return tasks.size() <= kFew && std::ranges::all_of(tasks, IsPlain);
}

std::vector<SubmitReply> Ops::Submit(std::span<const PreparedTask> tasks) {
    std::vector<SubmitReply> replies = SubmitPlain(tasks);
    WriteOwnArrivals();
    return replies;
}

std::vector<SubmitReply> Ops::SubmitPlain(std::span<const PreparedTask> tasks) {
    std::vector<SubmitReply> replies(tasks.size());
    const bool chained = std::ranges::any_of(tasks, [](const PreparedTask& one) {
        return one.task->after.has_value();
    });
    Beside beside;
    for (const PreparedTask& one : tasks) {
        SubmitReply& reply = replies[one.index] = SubmitOne(one, beside);
        const bool taken =
            reply.kind == SubmitReply::Kind::kCreated || reply.kind == SubmitReply::Kind::kReplaced;
        if (one.task->cause.valid() && taken) {
            EventOps(*this).Follow(one.task->cause, reply.id, one.task->tenant);
        }
        if (chained && one.task->id.valid()) beside[one.task->id] = replies[one.index];
    }
    return replies;
}

std::vector<SubmitReply> Ops::SubmitAll(std::span<const PreparedTask> tasks) {
    WriteMember();  // what was only counted so far must not be forgotten with a rollback
    sqlite::Savepoint savepoint(db_);
    std::vector<SubmitReply> replies = Submit(tasks);
    if (RefuseAll(replies)) {
        savepoint.Rollback();
        Forget();
    } else {
        savepoint.Release();
    }
    return replies;
}

SubmitReply Ops::SubmitOne(const PreparedTask& prepared, const Beside& beside) {
    SubmitReply reply;
    if (!prepared.invalid.empty()) {
        reply.kind = SubmitReply::Kind::kInvalid;
        reply.message = prepared.invalid;
        return reply;
    }
    const NewTask& task = *prepared.task;
    if (!IsPlain(task)) WriteOwnArrivals();  // it may look at them
    if (auto known = KnownByKey(prepared)) return *known;
    std::optional<SubmitReply> known = KnownByUnique(task);
    if (!known) known = KnownByDebounce(task);
    if (known) {
        if (known->accepted()) Remember(prepared, *known);
        return *known;
    }
    std::vector<WaitMember> after;
    if (task.after) {
        auto members = MembersOf(task.after->on, task.tenant, beside);
        if (!members) {
            reply.kind = SubmitReply::Kind::kInvalid;
            reply.message = "after names " + members.error().message;
            return reply;
        }
        after = std::move(*members);
    }
    Resolved resolved = Resolve(task, TypeOf(task.type));
    const QueueSettings* settings = QueueOf(resolved.queue);
    if (settings != nullptr && settings->cap && WaitingIn(resolved.queue) >= *settings->cap) {
        reply.kind = SubmitReply::Kind::kQueueFull;
        reply.queue = resolved.queue;
        reply.message = fmt::format(
            "queue {} is full: its cap is {} waiting tasks; try later or raise the cap",
            base::Quoted(resolved.queue),
            *settings->cap
        );
        return reply;
    }
    return Insert(prepared, resolved, after);
}

// The id, the idempotency key and the throttle: who asked this before?
std::optional<SubmitReply> Ops::KnownByKey(const PreparedTask& prepared) {
    const NewTask& task = *prepared.task;
    if (!task.idempotency_key.empty()) {
        sqlite::Rows rows =
            Sql("idem_find").Query(task.tenant.value(), task.idempotency_key, Micros(now_));
        if (rows.Next()) {
            TaskId id(rows.Int(0));
            if (rows.Text(1) == prepared.hash ||
                base::Planted(base::Bug::kIdempotencyWithoutHash)) {
                return Existing(id);
            }
            SubmitReply reply = Existing(id, SubmitReply::Kind::kConflict);
            reply.message = fmt::format(
                "idempotency key {} was used for task {} with another request: use a new key, or "
                "send "
                "the same request",
                base::Quoted(task.idempotency_key),
                id.value()
            );
            return reply;
        }
    }
    // A reserved id that is there already: the same submit, sent again after an unknown commit.
    if (task.id.valid() && Exists(task.id)) return Existing(task.id);
    if (task.throttle) {
        auto last = Sql("throttle_find")
                        .Scalar(task.tenant.value(), task.type, task.throttle->key, Micros(now_));
        if (last) {
            SubmitReply reply = Existing(TaskId(*last), SubmitReply::Kind::kThrottled);
            Remember(prepared, reply);
            return reply;
        }
    }
    return std::nullopt;
}

std::optional<SubmitReply> Ops::KnownByUnique(const NewTask& task) {
    if (task.unique_key.empty()) return std::nullopt;
    auto found = Sql("unique_find").Scalar(task.tenant.value(), task.type, task.unique_key);
    if (!found) return std::nullopt;
    TaskId id(*found);
    if (task.unique_policy == UniquePolicy::kError) {
        SubmitReply reply = Existing(id, SubmitReply::Kind::kConflict);
        reply.message = fmt::format(
            "task {} with unique key {} is not finished yet: wait for it or cancel it",
            id.value(),
            base::Quoted(task.unique_key)
        );
        return reply;
    }
    TaskRow row;
    if (task.unique_policy == UniquePolicy::kReplaceIfNotStarted && Load(id, row) &&
        IsWaiting(row.state) && row.stage() == Stage::kStart) {
        return Replace(row, task, DueAt(task, now_));
    }
    return Existing(id);
}

std::optional<SubmitReply> Ops::KnownByDebounce(const NewTask& task) {
    if (!task.debounce) return std::nullopt;
    auto id = Sql("debounce_find").Scalar(task.tenant.value(), task.type, task.debounce->key);
    TaskRow row;
    if (!id || !Load(TaskId(*id), row) || !IsWaiting(row.state)) return std::nullopt;
    Time due_at = DueAt(task, now_);
    if (task.debounce->max_wait > Duration::zero()) {
        due_at = std::min(due_at, row.created_at + task.debounce->max_wait);
    }
    return Replace(row, task, due_at);
}

// A waiting task takes over a new request: everything but its identity.
SubmitReply Ops::Replace(TaskRow& row, const NewTask& task, Time due_at) {
    Resolved resolved = Resolve(task, TypeOf(task.type));
    Move(
        row,
        Event::kEdit,
        {.actor = task.actor, .reason = "replaced by a new request", .session = {}}
    );
    ChangeLane(row, resolved.queue, resolved.placement);
    row.priority = resolved.priority;
    row.retry = RetryText(resolved.retry);
    row.timeout = resolved.timeout;
    row.start_by = task.start_by;
    row.tags = TagsText(task.tags);
    row.flags = (row.flags & ~(0xf << kExplicitShift)) | ExplicitMask(task) << kExplicitShift;
    row.Set(kTypeUnknown, !resolved.type_known);
    ToWaiting(row, due_at);
    Persist(row);
    Sql("task_save_input").Run(task.input, row.id.value());
    SubmitReply reply = Existing(row.id, SubmitReply::Kind::kReplaced);
    reply.queue = resolved.queue;
    reply.due_now = row.wait == Wait::kReady;
    return reply;
}

SubmitReply Ops::Insert(
    const PreparedTask& prepared, const Resolved& resolved, const std::vector<WaitMember>& after
) {
    const NewTask& task = *prepared.task;
    TaskRow row;
    row.id = task.id.valid() ? task.id : TaskId(TakeIds(1));
    if (task.id.valid()) RaiseIds(task.id);
    row.lane = lanes_.Of(task.tenant, resolved.queue, task.type, resolved.placement).id;
    row.priority = resolved.priority;
    row.timeout = resolved.timeout;
    row.retry = RetryText(resolved.retry);
    row.tags = TagsText(task.tags);
    row.flags = ExplicitMask(task) << kExplicitShift | (resolved.type_known ? 0 : kTypeUnknown);
    row.Set(kWaitedFor, prepared.waited_for);
    row.parent = task.parent;
    row.start_by = task.start_by;
    row.unique_key = task.unique_key;
    row.idem_key = task.idempotency_key;
    row.debounce_key = task.debounce ? task.debounce->key : std::string();
    row.created_at = now_;
    row.input = task.input;
    Place(row, resolved.placement);
    Move(row, std::nullopt, Event::kSubmit, {.actor = task.actor, .reason = {}, .session = {}});
    row.position = NextSeq();
    if (task.after && Await(row, *task.after, after, false) != WaitVerdict::kSucceeded) {
        Move(row, Event::kBlock, {.actor = "store", .reason = {}, .session = {}});
        row.due_at = DueAt(task, now_);
        InsertTask(Sql("task_insert"), row);
        EndWaitIfOver(row);
    } else {
        ToWaiting(row, DueAt(task, now_));
        if (!IsPlain(task)) InsertTask(Sql("task_insert"), row);
    }
    SubmitReply reply;
    reply.id = row.id;
    reply.queue = resolved.queue;
    reply.due_now = row.wait == Wait::kReady;
    if (IsPlain(task)) Arrive(std::move(row));
    Remember(prepared, reply);
    return reply;
}

void Ops::Arrive(TaskRow row) {
    arrivals_bytes_ += row.input.size();
    arrivals_.push_back(std::move(row));
    const bool many = arrivals_.size() - arrivals_before_ >= kRowsAtOnce;
    if (many) WriteOwnArrivals();
}

// With this member, and undone with it: those of others stay where they are.
void Ops::WriteOwnArrivals() {
    if (arrivals_.size() == arrivals_before_) return;
    std::span<const TaskRow> own = std::span(arrivals_).subspan(arrivals_before_);
    InsertRows("task_insert", own, FillTask);
    arrivals_.resize(arrivals_before_);
}

// By which keys this request is known from now on.
void Ops::Remember(const PreparedTask& prepared, const SubmitReply& reply) {
    const NewTask& task = *prepared.task;
    const std::int64_t tenant = task.tenant.value();
    const std::int64_t id = reply.id.value();
    if (!task.idempotency_key.empty()) {
        Time expires_at = now_ + limits::kIdempotencyRetention;
        Sql("idem_set").Run(tenant, task.idempotency_key, id, prepared.hash, Micros(expires_at));
    }
    if (reply.kind == SubmitReply::Kind::kThrottled) return;
    if (!task.unique_key.empty()) Sql("unique_set").Run(tenant, task.type, task.unique_key, id);
    if (task.debounce) Sql("debounce_set").Run(tenant, task.type, task.debounce->key, id);
    if (task.throttle && reply.kind != SubmitReply::Kind::kExisting) {
        Time until = now_ + task.throttle->period;
        Sql("throttle_set").Run(tenant, task.type, task.throttle->key, id, Micros(until));
    }
}

// ---- types ----

void Ops::PublishTypes(std::span<const TypeDefaults> types) {
    for (const TypeDefaults& defaults : types) {
        const TypeDefaults* known = TypeOf(defaults.type);
        if (known == nullptr || !(*known == defaults)) {
            Sql("type_set")
                .Run(
                    defaults.type,
                    defaults.queue,
                    defaults.priority,
                    RetryText(defaults.retry),
                    std::int64_t{defaults.timeout.count()},
                    defaults.isolated,
                    PlacementText({.needs = defaults.needs, .labels = defaults.labels}),
                    Micros(now_)
                );
            types_.reset();
        }
    }
}

int Ops::ResolveUnknown(std::span<const TypeDefaults> types, int limit) {
    int resolved = 0;
    TaskRow row;
    for (const TypeDefaults& defaults : types) {
        std::vector<std::int64_t> unknown;
        for (const Lane* lane : lanes_.OfTypes({defaults.type})) {
            int left = limit - resolved - static_cast<int>(unknown.size());
            sqlite::Rows rows = Sql("unknown_of_lane").Query(lane->id, left);
            while (rows.Next()) unknown.push_back(rows.Int(0));
        }
        for (std::int64_t id : unknown) {
            bool found = Load(TaskId(id), row);
            CHECK(found);
            ApplyDefaults(row, defaults);
        }
        resolved += static_cast<int>(unknown.size());
    }
    return resolved;
}

void Ops::ApplyDefaults(TaskRow& row, const TypeDefaults& defaults) {
    int given = row.flags >> kExplicitShift;
    if ((given & kExplicitPriority) == 0) row.priority = defaults.priority;
    if ((given & kExplicitRetry) == 0) row.retry = RetryText(defaults.retry);
    if ((given & kExplicitTimeout) == 0) row.timeout = defaults.timeout;
    const Lane& lane = lanes_.At(row.lane);
    Placement placement = lane.placement;
    if (placement.needs.empty()) placement.needs = defaults.needs;
    if (placement.labels.empty()) placement.labels = defaults.labels;
    bool given_queue = (given & kExplicitQueue) != 0;
    ChangeLane(row, given_queue ? std::string(lane.queue) : defaults.queue, placement);
    row.Set(kTypeUnknown, false);
    NoteWaiting(row);
    SaveTask(Sql("task_save"), row);
}

}  // namespace stint::store::lite
