// Accepting tasks. Most need one statement; those with keys, or for queues with caps, are decided
// one by one under locks on their keys and queues, and then stored by the same statement.
#include "store/postgres/submit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <unordered_set>

#include "base/check.h"
#include "base/json.h"
#include "base/text.h"
#include "model/batch_order.h"
#include "model/placement.h"
#include "store/postgres/pieces.h"

namespace stint::store::pg {

namespace {

using Kind = SubmitReply::Kind;

constexpr int kIdsAtOnce = 1024;
constexpr std::size_t kFreshRanges = 10'000;
// A submit of ours holds its keys and queues for the time of a commit or two; whoever holds them
// for longer may do so for ever.
constexpr std::chrono::milliseconds kLockPatience{500};
constexpr std::chrono::milliseconds kBetweenLooks{200};
// After a submit to a queue with a cap, so many are expected to be likewise.
constexpr int kCapsKept = 50;
// Those who wait for the disk with a notification wait for each other.
constexpr std::chrono::milliseconds kAnnouncePatience{50};
constexpr std::size_t kAnnouncedTasks = 100;
constexpr std::size_t kAnnouncedQueues = 8;

// Nothing was stored, and the transaction is over: a queue has a cap.
class Capped : public std::exception {};

bool WaitsForKeys(const NewTask& task) {
    return !task.idempotency_key.empty() || !task.unique_key.empty() || task.debounce ||
           task.throttle;
}

// Something has to be looked up before it is stored.
bool IsKeyed(const Incoming& one) {
    return one.brought_id || one.task->after || WaitsForKeys(*one.task);
}

// Nothing is left to be written once its row is there.
bool IsWhole(const Incoming& one) {
    return one.task->order_key.empty() && !one.task->cause.valid();
}

// Whether all that FindPlace looks at is the same: those of a batch are often alike.
bool HaveOnePlace(const NewTask& a, const NewTask& b) {
    auto place = [](const NewTask& task) {
        return std::tie(
            task.type,
            task.tenant,
            task.queue,
            task.priority,
            task.retry,
            task.timeout,
            task.needs,
            task.labels,
            task.order_key,
            task.on_failed_head
        );
    };
    return place(a) == place(b);
}

// Of those that may run at once, as far as can be told before they are stored; none where there are
// so many that somebody else may tell of them.
std::vector<std::string> QueuesToTellOf(std::span<const Incoming> incoming) {
    std::vector<std::string> queues;
    if (incoming.size() > kAnnouncedTasks) return queues;
    for (const Incoming& one : incoming) {
        if (IsKeyed(one) || !IsWhole(one)) return {};
        const bool later = one.task->delay.value_or(Duration::zero()) > Duration::zero();
        if (later || one.task->run_at) continue;
        const std::string& queue = one.resolved.queue;
        if (std::ranges::find(queues, queue) == queues.end()) queues.push_back(queue);
    }
    if (queues.size() > kAnnouncedQueues) queues.clear();
    return queues;
}

SubmitReply Refused(Kind kind, TaskId id, std::string message) {
    SubmitReply reply;
    reply.kind = kind;
    reply.id = id;
    reply.message = std::move(message);
    return reply;
}

int FlagsOf(const NewTask& task, const Resolved& resolved) {
    return (!task.unique_key.empty() || task.debounce ? kHasKey : 0) |
           (resolved.timeout > Duration::zero() ? kHasTimeout : 0) |
           (task.start_by ? kHasStartBy : 0) | (resolved.type_known ? 0 : kTypeUnknown) |
           (task.order_key.empty() ? 0 : kOrdered);
}

}  // namespace

std::string TagsJson(const std::vector<std::string>& tags) {
    return base::JsonList(tags);
}

namespace {

void AddAudit(Params& params, std::span<const Incoming> incoming) {
    std::map<std::pair<TenantId, std::string_view>, std::vector<std::int64_t>> who;
    for (const Incoming& one : incoming) {
        who[{one.task->tenant, one.task->actor}].push_back(one.id.value());
    }
    ArrayOf tenant(oid::kInt8), actor(oid::kText), low(oid::kInt8), high(oid::kInt8),
        first(oid::kInt4), last(oid::kInt4), ids(oid::kInt8);
    std::int64_t place = 0;
    for (const auto& [whose, tasks] : who) {
        for (std::size_t from = 0; from < tasks.size(); from += kTasksPerEntry) {
            auto entry = std::span(tasks).subspan(from);
            entry = entry.first(std::min(entry.size(), kTasksPerEntry));
            auto [lowest, highest] = std::ranges::minmax(entry);
            tenant.Int(whose.first.value());
            actor.TextOrNull(whose.second);
            low.Int(lowest);
            high.Int(highest);
            first.Int(place + 1);
            place += static_cast<std::int64_t>(entry.size());
            last.Int(place);
        }
        if (who.size() == 1) continue;  // they are in the order of the tasks
        for (std::int64_t id : tasks) ids.Int(id);
    }
    tenant.AddTo(params);
    actor.AddUnlessNothing(params);
    for (ArrayOf* column : {&low, &high, &first, &last}) column->AddTo(params);
    ids.AddUnlessNothing(params);
}

}  // namespace

Params InsertParams(std::span<const Incoming> incoming, bool caps_checked) {
    ArrayOf id(oid::kInt8), lane(oid::kInt4), policy(oid::kInt4), flags(oid::kInt2),
        mask(oid::kInt2), timeout(oid::kInt8), parent(oid::kInt8), delay(oid::kInt8),
        run_at(oid::kTimestamptz), start_by(oid::kTimestamptz), tags(oid::kText),
        unique(oid::kText), idem(oid::kText), debounce(oid::kText), input(oid::kText),
        type(oid::kText), revision(oid::kInt4);
    std::map<std::string, int> revisions;
    for (const Incoming& one : incoming) {
        const NewTask& task = *one.task;
        id.Int(one.id.value());
        lane.Int(one.lane);
        policy.Int(one.policy);
        flags.Int(one.flags);
        mask.Int(ExplicitMask(task));
        Duration limit = one.resolved.timeout;
        limit > Duration::zero() ? timeout.Int(limit.count()) : timeout.Null();
        task.parent.valid() ? parent.Int(task.parent.value()) : parent.Null();
        std::optional<Duration> wait = task.debounce ? task.debounce->wait : task.delay;
        wait ? delay.Int(wait->count()) : delay.Null();
        task.run_at && !task.debounce ? run_at.At(*task.run_at) : run_at.Null();
        task.start_by ? start_by.At(*task.start_by) : start_by.Null();
        task.tags.empty() ? tags.Null() : tags.Text(TagsJson(task.tags));
        unique.TextOrNull(task.unique_key);
        idem.TextOrNull(task.idempotency_key);
        debounce.TextOrNull(task.debounce ? task.debounce->key : std::string());
        input.Text(task.input);
        revisions[task.type] = one.revision;
    }
    Params params;
    for (ArrayOf* column : {&id, &lane, &policy, &flags, &mask}) column->AddTo(params);
    for (ArrayOf* column :
         {&timeout, &parent, &delay, &run_at, &start_by, &tags, &unique, &idem, &debounce}) {
        column->AddUnlessNothing(params);
    }
    input.AddTo(params);
    for (const auto& [name, number] : revisions) {
        type.Text(name);
        revision.Int(number);
    }
    type.AddTo(params);
    revision.AddTo(params);
    params.Bool(caps_checked);
    AddAudit(params, incoming);
    return params;
}

// ---- ids ---------------------------------------------------------------------------------------

TaskId PostgresStore::ReserveIds(int count) {
    CHECK(count >= 1 && count <= limits::kIdBlock);
    std::int64_t first = db_.RunAside([&](Transaction& transaction) {
        return transaction.Query(db_.sql.reserve_ids, Params().Int4(count)).Int(0, 0);
    });
    std::lock_guard guard(ids_mutex_);
    if (fresh_.size() >= kFreshRanges) fresh_.clear();
    fresh_[first] = first + count - 1;
    return TaskId(first);
}

// An id that was reserved here and not used yet cannot be in the database; every other one that a
// caller brings may be a submit sent again.
bool PostgresStore::IsFresh(TaskId id) {
    std::lock_guard guard(ids_mutex_);
    auto range = fresh_.upper_bound(id.value());
    if (range == fresh_.begin()) return false;
    --range;
    auto [first, last] = *range;
    if (id.value() > last) return false;
    fresh_.erase(range);
    if (first < id.value()) fresh_[first] = id.value() - 1;
    if (id.value() < last) fresh_[id.value() + 1] = last;
    return true;
}

TaskId PostgresStore::TakeId() {
    {
        std::lock_guard guard(ids_mutex_);
        bool old = base::SystemClock().Now() - ids_taken_ >= options_.ids_kept;
        if (next_id_ <= last_id_ && !old) return TaskId(next_id_++);
    }
    base::Instant asked = base::SystemClock().Now();
    std::int64_t first = db_.RunAside([&](Transaction& transaction) {
        return transaction.Query(db_.sql.reserve_ids, Params().Int4(kIdsAtOnce)).Int(0, 0);
    });
    std::lock_guard guard(ids_mutex_);
    // Two threads may both have fetched a block: one is lost, ids are plenty.
    next_id_ = first;
    last_id_ = first + kIdsAtOnce - 1;
    ids_taken_ = asked;
    return TaskId(next_id_++);
}

// ---- submit ------------------------------------------------------------------------------------

// Its lane, its policy, and of which defaults they come.
void PostgresStore::FindPlace(Incoming& one) {
    const NewTask& task = *one.task;
    Catalog::Type type = catalog_.TypeNamed(task.type);
    one.revision = type.revision;
    one.resolved = Resolve(task, type.defaults ? &*type.defaults : nullptr);
    one.lane = catalog_.LaneId(
        {one.resolved.queue,
         task.type,
         task.tenant,
         one.resolved.priority,
         false,
         PlacementText(one.resolved.placement)}
    );
    one.policy = catalog_.PolicyId(one.resolved.retry);
}

// Checks and resolves; needs no transaction. Refusals are final, the rest goes on in `incoming`.
void PostgresStore::Prepare(
    std::span<const NewTask> tasks,
    std::vector<SubmitReply>& replies,
    std::vector<Incoming>& incoming
) {
    incoming.reserve(tasks.size());
    BatchOrder order;
    if (AnyAfter(tasks) && tasks.size() <= limits::kSubmitBatch) {
        order = OrderOf(tasks);
        for (const auto& [i, why] : order.refused) replies[i] = Refused(Kind::kInvalid, {}, why);
    } else {
        order.order.resize(tasks.size());
        std::iota(order.order.begin(), order.order.end(), 0);
    }
    for (std::size_t i : order.order) {
        const NewTask& task = tasks[i];
        if (tasks.size() > limits::kSubmitBatch) {
            replies[i] = Refused(
                Kind::kInvalid,
                {},
                fmt::format(
                    "the batch has {} tasks; the limit is {}", tasks.size(), limits::kSubmitBatch
                )
            );
            continue;
        }
        if (auto valid = Validate(task); !valid) {
            replies[i] = Refused(Kind::kInvalid, {}, valid.error().message);
            continue;
        }
        Incoming& one = incoming.emplace_back();
        one.task = &task;
        one.index = i;
        if (incoming.size() > 1 && HaveOnePlace(task, *incoming.rbegin()[1].task)) {
            const Incoming& before = incoming.rbegin()[1];
            one.revision = before.revision;
            one.resolved = before.resolved;
            one.lane = before.lane;
            one.policy = before.policy;
        } else {
            FindPlace(one);
        }
        one.flags = FlagsOf(task, one.resolved);
        one.brought_id = task.id.valid() && !IsFresh(task.id);
        one.id = task.id.valid() ? task.id : TakeId();
        if (!task.idempotency_key.empty()) one.hash = RequestHash(task);
    }
}

std::vector<SubmitReply> PostgresStore::Submit(std::span<const NewTask> tasks) {
    bool keyed = std::any_of(tasks.begin(), tasks.end(), WaitsForKeys);
    try {
        // Those of a batch that wait for each other stay together.
        if (AnyAfter(tasks)) return SubmitTogether(tasks);
        return (keyed ? keyed_group_ : group_).Submit(tasks);
    } catch (const LockHeld&) {
        return SubmitHeld(tasks);
    }
}

std::vector<SubmitReply> PostgresStore::SubmitAll(std::span<const NewTask> tasks) {
    try {
        return SubmitTogether(tasks, Which::kAllOrNone);
    } catch (const LockHeld&) {
        return SubmitHeld(tasks, Which::kAllOrNone);
    }
}

// An open transaction of others holds a key or a queue with a cap. All who wait for such things
// share one connection, each for a while: the others are for those who need not wait.
std::vector<SubmitReply> PostgresStore::SubmitHeld(std::span<const NewTask> tasks, Which which) {
    base::Clock& clock = base::SystemClock();
    base::Instant until = clock.Now() + options_.held_patience;
    for (;;) {
        Pause(kBetweenLooks);
        try {
            std::lock_guard turn(held_mutex_);
            return SubmitTogether(tasks, which);
        } catch (const LockHeld&) {
            if (clock.Now() < until) continue;
            throw Unavailable(fmt::format(
                "an open transaction holds a key of this request, or its queue, which has a cap, "
                "for more than {} ms: end that transaction and try again; nothing was stored",
                options_.held_patience.count()
            ));
        }
    }
}

std::vector<SubmitReply> PostgresStore::SubmitTogether(
    std::span<const NewTask> tasks, Which which
) {
    bool may_announce = true;
    for (int tries = 1;; ++tries) {
        std::vector<SubmitReply> refusals(tasks.size());
        std::vector<Incoming> incoming;
        Prepare(tasks, refusals, incoming);
        bool refused = which == Which::kAllOrNone && incoming.size() < tasks.size();
        if (refused) RefuseAll(refusals);
        if (incoming.empty() || refused) return refusals;
        int capped = caps_.load();
        const bool at_once = capped == 0;
        if (!at_once) caps_.compare_exchange_strong(capped, capped - 1);
        std::vector<std::string> queues;
        if (at_once && may_announce) queues = QueuesToTellOf(incoming);
        Announcement announcement(announcements_, !queues.empty());
        if (!announcement) queues.clear();
        TransactionOptions options;
        options.lock_timeout = announcement ? kAnnouncePatience : kLockPatience;
        // Nothing was stored. If it was because of the announcement it is not the caller's concern.
        auto without = [&] {
            if (!announcement) throw;
            announcement.Refused();
            may_announce = false;
            --tries;
        };
        try {
            return db_.Run(
                [&](Transaction& transaction) {
                    Submission submission(*this, transaction, tasks, incoming, refusals);
                    submission.WaitForRegistrations();
                    if (at_once) submission.CommitAtOnce(queues);
                    std::vector<SubmitReply> replies = submission.Run();
                    if (which == Which::kAllOrNone && RefuseAll(replies)) transaction.Rollback();
                    return replies;
                },
                options
            );
        } catch (const OutdatedTypes& outdated) {
            if (tries == kTypeTries) throw Unavailable(outdated.what());
            catalog_.ReloadTypes();
        } catch (const Capped&) {
            caps_ = kCapsKept;
            --tries;
        } catch (const LockHeld&) {
            without();
        } catch (const postgres::SqlError&) {
            without();
        }
    }
}

// The caller's transaction may stay open for long: a type that is being registered is not kept
// waiting. Housekeeping finds the tasks that its registration did not see.
std::vector<SubmitReply> PostgresStore::SubmitIn(
    Transaction& transaction, std::span<const NewTask> tasks, int flags
) {
    std::vector<SubmitReply> refusals(tasks.size());
    std::vector<Incoming> incoming;
    Prepare(tasks, refusals, incoming);
    for (Incoming& one : incoming) one.flags |= flags;
    if (incoming.empty()) return refusals;
    return Submission(*this, transaction, tasks, incoming, refusals).Run();
}

void Submission::WaitForRegistrations() {
    std::vector<std::string> unknown;
    for (const Incoming& one : incoming_) {
        if (one.revision == 0) unknown.push_back(one.task->type);
    }
    if (unknown.empty()) return;
    std::sort(unknown.begin(), unknown.end());
    unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
    Params types;
    AddTexts(types, unknown);
    transaction_.Defer(sql_.types_lock_shared, std::move(types));
}

std::vector<SubmitReply> Submission::Run() {
    if (std::ranges::none_of(incoming_, IsKeyed)) {
        for (const Incoming& one : incoming_) pending_.push_back(one);
        commits_ = commits_ && std::ranges::all_of(incoming_, IsWhole);
        if (Store(false)) {
            JoinOrders();
            FollowCauses();
            return std::move(replies_);
        }
        if (transaction_.over()) throw Capped();
    }
    commits_ = false;
    DecideAll();
    FollowCauses();
    return std::move(replies_);
}

void Submission::FollowCauses() {
    ArrayOf task(oid::kInt8), cause(oid::kInt8), tenant(oid::kInt8);
    bool any = false;
    for (const Incoming& one : incoming_) {
        const SubmitReply& reply = replies_[one.index];
        const bool taken = reply.kind == Kind::kCreated || reply.kind == Kind::kReplaced;
        if (!one.task->cause.valid() || !taken) continue;
        any = true;
        task.Int(reply.id.value());
        cause.Int(one.task->cause.value());
        tenant.Int(one.task->tenant.value());
    }
    if (!any) return;
    Params params;
    for (ArrayOf* column : {&task, &cause, &tenant}) column->AddTo(params);
    transaction_.Defer(sql_.events_follow, std::move(params));
}

// They were stored like the others; those that are not the first of their order key leave the line
// again before anybody sees them there.
void Submission::JoinOrders() {
    ArrayOf task(oid::kInt8), tenant(oid::kInt8), key(oid::kText), policy(oid::kInt2);
    std::map<TaskId, std::size_t> index;
    for (const Incoming& one : incoming_) {
        const SubmitReply& reply = replies_[one.index];
        bool created = reply.kind == Kind::kCreated && reply.id == one.id;
        if (one.task->order_key.empty() || !created) continue;
        index[one.id] = one.index;
        task.Int(one.id.value());
        tenant.Int(one.task->tenant.value());
        key.Text(one.task->order_key);
        policy.Int(static_cast<int>(one.task->on_failed_head));
    }
    if (index.empty()) return;
    Params params;
    for (ArrayOf* column : {&task, &tenant, &key, &policy}) column->AddTo(params);
    Rows parked = transaction_.Query(sql_.order_join, params);
    for (int i = 0; i < parked.size(); ++i) {
        replies_[index.at(TaskId(parked.Int(i, 0)))].due_now = false;
    }
}

bool Submission::Store(bool caps_checked) {
    std::vector<Incoming> pending;
    pending.swap(pending_);
    auto bytes_of = [](const Incoming& one) { return one.task->input.size(); };
    const std::vector<Piece> pieces = Pieces(pending, bytes_of);
    commits_ = commits_ && pieces.size() == 1;
    for (const Piece& piece : pieces) {
        std::span<const Incoming> part(pending.data() + piece.from, piece.count);
        // A cap that comes after the first piece comes after the batch.
        if (!StorePiece(part, caps_checked || piece.from > 0)) return false;
    }
    return true;
}

Rows Submission::CommitPiece(std::span<const Incoming> piece, const Params& params) {
    if (announced_.empty()) return transaction_.QueryAndCommit(sql_.submit_plain, params);
    Params queues;
    AddTexts(queues, announced_);
    std::array<postgres::Command, 2> commands = {
        {{&sql_.submit_plain, &params}, {&sql_.announce, &queues}}};
    std::vector<Rows> rows = transaction_.Batch(commands, true);
    for (const Incoming& one : piece) {
        const bool told = std::ranges::find(announced_, one.resolved.queue) != announced_.end();
        replies_[one.index].announced = told;
    }
    return std::move(rows.front());
}

bool Submission::StorePiece(std::span<const Incoming> piece, bool caps_checked) {
    const Params params = InsertParams(piece, caps_checked);
    Rows rows =
        commits_ ? CommitPiece(piece, params) : transaction_.Query(sql_.submit_plain, params);
    if (rows.Bool(0, 0)) throw OutdatedTypes();
    if (rows.Bool(0, 1)) return false;
    CHECK(rows.Int(0, 2) == static_cast<std::int64_t>(piece.size()));
    for (const Incoming& one : piece) {
        SubmitReply& reply = replies_[one.index];
        reply.kind = Kind::kCreated;
        reply.id = one.id;
        reply.queue = one.resolved.queue;
        reply.due_now = true;
    }
    if (!rows.IsNull(0, 3)) {
        std::vector<std::int64_t> later = rows.Ints(0, 3);
        std::unordered_set<std::int64_t> ids(later.begin(), later.end());
        for (const Incoming& one : piece) {
            if (ids.contains(one.id.value())) replies_[one.index].due_now = false;
        }
    }
    return true;
}

}  // namespace stint::store::pg
