// Requests that may be known already: by an idempotency key, an id, a throttle, a unique or a
// debounce key. And queues that may be full.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "store/postgres/submit.h"

namespace stint::store::pg {

namespace {

using Kind = SubmitReply::Kind;

SubmitReply Existing(TaskId id, Kind kind = Kind::kExisting) {
    SubmitReply reply;
    reply.kind = kind;
    reply.id = id;
    return reply;
}

}  // namespace

Submission::Submission(
    PostgresStore& store,
    Transaction& transaction,
    std::span<const NewTask> tasks,
    std::span<const Incoming> incoming,
    std::vector<SubmitReply> replies
)
    : store_(store),
      transaction_(transaction),
      sql_(store.db().sql),
      tasks_(tasks),
      incoming_(incoming),
      replies_(std::move(replies)) {
}

std::vector<Submission::Key> Submission::KeysOf(const Incoming& one) {
    const NewTask& task = *one.task;
    std::vector<Key> keys;
    if (!task.unique_key.empty())
        keys.emplace_back(kUnique, task.tenant, task.type, task.unique_key);
    if (task.debounce) keys.emplace_back(kDebounce, task.tenant, task.type, task.debounce->key);
    if (task.throttle) keys.emplace_back(kThrottle, task.tenant, task.type, task.throttle->key);
    // An idempotency key is the tenant's, whatever the type.
    if (!task.idempotency_key.empty()) {
        keys.emplace_back(kIdempotency, task.tenant, "", task.idempotency_key);
    }
    return keys;
}

void Submission::DecideAll() {
    ReadKeys();
    ReadIds();
    ReadCaps();
    HoldDependencies();
    for (const Incoming& one : incoming_) Decide(one);
    Store(true);
    WriteKeys();
    JoinOrders();  // one that ends at once, as what it waits for has failed, leaves its line again
    BlockNew();
}

void Submission::ReadKeys() {
    std::vector<Key> keys;
    for (const Incoming& one : incoming_) {
        for (Key& key : KeysOf(one)) keys.push_back(std::move(key));
    }
    if (keys.empty()) return;
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    ArrayOf names(oid::kText), kind(oid::kInt2), tenant(oid::kInt8), type(oid::kText),
        key(oid::kText);
    for (const auto& [k, t, y, n] : keys) {
        names.Text(fmt::format("{} {} {} {}", k, t.value(), y, n));
        kind.Int(k);
        tenant.Int(t.value());
        type.Text(y);
        key.Text(n);
    }
    Params lock, read;
    names.AddTo(lock);
    for (ArrayOf* column : {&kind, &tenant, &type, &key}) column->AddTo(read);
    // Two statements: what is read must be what the last holder of the locks committed.
    transaction_.Defer(sql_.keys_lock, std::move(lock));
    Rows rows = transaction_.Query(sql_.keys_read, read);
    for (int i = 0; i < rows.size(); ++i) {
        if (rows.IsNull(i, 0)) continue;
        const Key& found = keys.at(static_cast<std::size_t>(rows.Int(i, 0) - 1));
        keys_[found] = {TaskId(rows.Int(i, 1)), rows.Text(i, 2)};
    }
}

void Submission::ReadIds() {
    std::vector<TaskId> ids;
    for (const Incoming& one : incoming_) {
        if (one.brought_id) ids.push_back(one.id);
    }
    for (TaskId id : store_.Existing(transaction_, ids)) there_.insert(id);
}

void Submission::ReadCaps() {
    std::vector<std::string> names;
    for (const Incoming& one : incoming_) names.push_back(one.resolved.queue);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    Params params;
    AddTexts(params, names);
    Rows caps = transaction_.Query(sql_.queue_caps, params);
    if (caps.empty()) return;
    std::map<std::int64_t, std::string> by_id;
    ArrayOf ids(oid::kInt4);
    for (int i = 0; i < caps.size(); ++i) {
        by_id[caps.Int(i, 1)] = caps.Text(i, 0);
        room_[caps.Text(i, 0)] = caps_[caps.Text(i, 0)] = caps.Int(i, 2);
        ids.Int(caps.Int(i, 1));
    }
    Params queues;
    ids.AddTo(queues);
    Rows waiting = transaction_.Query(sql_.waiting_of, queues);
    for (int i = 0; i < waiting.size(); ++i) room_[by_id[waiting.Int(i, 0)]] -= waiting.Int(i, 1);
}

void Submission::Decide(const Incoming& one) {
    SubmitReply& reply = replies_[one.index];
    if (auto known = KnownByKey(one)) {
        reply = *known;
        return;
    }
    std::optional<SubmitReply> known = KnownByUnique(one);
    if (!known) known = KnownByDebounce(one);
    if (known) {
        if (known->accepted()) Remember(one, *known);
        reply = *known;
        return;
    }
    if (one.task->after && !AddWait(one)) return;
    if (auto room = room_.find(one.resolved.queue); room != room_.end() && room->second-- <= 0) {
        reply = Existing({}, Kind::kQueueFull);
        reply.queue = one.resolved.queue;
        reply.message = fmt::format(
            "queue {} is full: its cap is {} waiting tasks; try later or raise the cap",
            base::Quoted(one.resolved.queue),
            caps_.at(one.resolved.queue)
        );
        if (one.task->after) waits_.pop_back();
        return;
    }
    pending_.push_back(one);
    there_.insert(one.id);
    reply = Existing(one.id, Kind::kCreated);
    Remember(one, reply);
}

std::optional<SubmitReply> Submission::KnownByKey(const Incoming& one) {
    const NewTask& task = *one.task;
    auto idem = keys_.find({kIdempotency, task.tenant, "", task.idempotency_key});
    if (!task.idempotency_key.empty() && idem != keys_.end()) {
        const Meaning& known = idem->second;
        if (known.hash == one.hash) return Existing(known.task);
        SubmitReply reply = Existing(known.task, Kind::kConflict);
        reply.message = fmt::format(
            "idempotency key {} stands for task {} with another request: use a new key, or repeat "
            "the "
            "same request",
            base::Quoted(task.idempotency_key),
            known.task.value()
        );
        return reply;
    }
    // A reserved id that is there already: the same submit, sent again after an unknown commit.
    if (task.id.valid() && there_.contains(task.id)) return Existing(task.id);
    if (!task.throttle) return std::nullopt;
    auto last = keys_.find({kThrottle, task.tenant, task.type, task.throttle->key});
    if (last == keys_.end()) return std::nullopt;
    SubmitReply reply = Existing(last->second.task, Kind::kThrottled);
    Remember(one, reply);
    return reply;
}

std::optional<SubmitReply> Submission::KnownByUnique(const Incoming& one) {
    const NewTask& task = *one.task;
    if (task.unique_key.empty()) return std::nullopt;
    auto found = keys_.find({kUnique, task.tenant, task.type, task.unique_key});
    if (found == keys_.end()) return std::nullopt;
    TaskId live = found->second.task;
    if (task.unique_policy == UniquePolicy::kError) {
        SubmitReply reply = Existing(live, Kind::kConflict);
        reply.message = fmt::format(
            "task {} with unique key {} is not finished: wait for it or cancel it",
            live.value(),
            base::Quoted(task.unique_key)
        );
        return reply;
    }
    if (task.unique_policy == UniquePolicy::kReplaceIfNotStarted) {
        if (auto replaced = Replace(live, one)) return replaced;
    }
    return Existing(live);
}

std::optional<SubmitReply> Submission::KnownByDebounce(const Incoming& one) {
    const NewTask& task = *one.task;
    if (!task.debounce) return std::nullopt;
    auto found = keys_.find({kDebounce, task.tenant, task.type, task.debounce->key});
    if (found == keys_.end()) return std::nullopt;
    return Replace(found->second.task, one);
}

// A waiting task takes over a new request: everything but its identity and its history, to which
// the suspicion belongs.
std::optional<SubmitReply> Submission::Replace(TaskId waiting, const Incoming& one) {
    const NewTask& task = *one.task;
    Store(true);  // it may be one of this very batch
    std::vector<Facts> taken =
        store_.TakeWaiting(transaction_, {waiting.value()}, {State::kOpen, State::kError});
    if (taken.empty()) return std::nullopt;
    Facts facts = taken.front();
    if (StageOf(facts.flags) != Stage::kStart) {
        // It has started. Back to where it was.
        Changes changes(store_.catalog());
        changes.AddWaiting({facts, facts.due_at});
        store_.Apply(transaction_, changes);
        return std::nullopt;
    }
    Time due = facts.now + task.delay.value_or(Duration::zero());
    if (task.run_at) due = *task.run_at;
    if (task.debounce) {
        due = facts.now + task.debounce->wait;
        if (task.debounce->max_wait > Duration::zero()) {
            due = std::min<Time>(due, facts.created_at + task.debounce->max_wait);
        }
    }
    bool suspect = store_.catalog().LaneOf(facts.lane).suspect;
    facts.lane = store_.LaneWith(one.lane, suspect);
    constexpr int kKept = kWaitedFor | kHasWait | kOrdered;
    facts.flags = (one.flags & ~kOrdered) | kHasKey | (facts.flags & kKept);
    LiveEdit edit;
    edit.id = facts.id;
    edit.policy = one.policy;
    edit.flags = facts.flags;
    edit.explicit_mask = ExplicitMask(task);
    edit.timeout = one.resolved.timeout;
    edit.set_start_by = edit.set_tags = true;
    edit.start_by = task.start_by;
    edit.tags = task.tags;
    edit.input = task.input;
    transaction_.Defer(sql_.edit_live, EditParams({&edit, 1}));
    Changes changes(store_.catalog());
    changes.AddWaiting({facts, due});
    changes.AddAudit(
        {facts.id,
         task.tenant,
         Event::kEdit,
         facts.state,
         facts.state,
         facts.attempt,
         facts.generation,
         {},
         task.actor,
         "replaced by a new request"}
    );
    store_.Apply(transaction_, changes);
    SubmitReply reply = Existing(facts.id, Kind::kReplaced);
    reply.queue = one.resolved.queue;
    reply.due_now = due <= facts.now;
    return reply;
}

// By which keys this request is known from now on.
void Submission::Remember(const Incoming& one, const SubmitReply& reply) {
    const NewTask& task = *one.task;
    for (const Key& key : KeysOf(one)) {
        Duration lasts{};
        switch (std::get<0>(key)) {
            case kIdempotency:
                lasts = limits::kIdempotencyRetention;
                break;
            case kThrottle:
                if (reply.kind == Kind::kExisting || reply.kind == Kind::kThrottled) continue;
                lasts = task.throttle->period;
                break;
            default:
                if (reply.kind == Kind::kThrottled) continue;
                // It stands for that task already.
                if (auto known = keys_.find(key);
                    known != keys_.end() && known->second.task == reply.id)
                    continue;
        }
        keys_[key] = {reply.id, one.hash};
        changed_[key] = {reply.id, one.hash, lasts};
    }
}

void Submission::WriteKeys() {
    if (changed_.empty()) return;
    ArrayOf kind(oid::kInt2), tenant(oid::kInt8), type(oid::kText), key(oid::kText),
        task(oid::kInt8), hash(oid::kText), lasts(oid::kInt8);
    for (const auto& [name, change] : changed_) {
        kind.Int(std::get<0>(name));
        tenant.Int(std::get<1>(name).value());
        type.Text(std::get<2>(name));
        key.Text(std::get<3>(name));
        task.Int(change.task.value());
        hash.Text(change.hash);
        lasts.Int(change.lasts.count());
    }
    Params params;
    for (ArrayOf* column : {&kind, &tenant, &type, &key, &task, &hash, &lasts})
        column->AddTo(params);
    transaction_.Defer(sql_.keys_write, std::move(params));
}

}  // namespace stint::store::pg
