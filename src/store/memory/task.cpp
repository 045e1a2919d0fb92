// What every operation of the memory store is made of.
#include <algorithm>

#include "base/check.h"
#include "base/planted_bug.h"
#include "store/claimer_offer.h"
#include "store/memory/event_ops.h"
#include "store/memory/ops.h"

namespace stint::store::memory {

using base::Bug;
using base::Planted;

Task* Ops::Find(TaskId task) {
    if (auto found = data_.live.find(task); found != data_.live.end()) return &found->second;
    if (auto found = data_.finished.find(task); found != data_.finished.end())
        return &found->second;
    return nullptr;
}

void Ops::Move(Task& task, Event event, const Why& why) {
    const State from = task.record.state;
    std::optional<State> to = Next(from, event);
    if (!to && Planted(Bug::kUnguardedReclaim)) to = State::kOpen;
    CHECK_WHY(to.has_value(), EventName(event));

    const TaskId id = task.record.id;
    task.record.state = *to;
    if (from == State::kBlocked) task.record.waiting_for = 0;  // by whichever way it went on
    Audit(task, from, event, why);
    if (IsTerminal(*to) && !IsTerminal(from)) {
        data_.finished.insert(data_.live.extract(id));
        Finish(task);
        EndOrder(task);
        TellWaiters(task);
    } else if (!IsTerminal(*to) && IsTerminal(from)) {
        data_.live.insert(data_.finished.extract(id));
        task.record.finished_at.reset();
        JoinOrder(task);
    }
}

void Ops::Audit(Task& task, std::optional<State> from, Event event, const Why& why) {
    TaskRecord& record = task.record;
    record.updated_at = now_;
    AuditEntry entry{
        .seq = data_.next_seq++,
        .task = record.id,
        .tenant = record.tenant,
        .from = from,
        .to = record.state,
        .event = event,
        .attempt = record.attempt,
        .generation = record.generation,
        .session = why.session,
        .actor = std::string(why.actor),
        .reason = why.reason,
        .at = now_,
    };
    bool audited = !Planted(Bug::kAuditOutsideTransaction) || random_.Below(16) != 0;
    if (audited) data_.audit.push_back(entry);
    commits_.push_back({std::move(entry), task.token, audited});
}

void Ops::Finish(Task& task) {
    TaskRecord& record = task.record;
    record.finished_at = now_;
    record.session = {};
    record.expires_at.reset();
    record.progress.reset();
    record.suspect = false;
    task.token = {};
    task.deadline.reset();

    const QueueSettings& queue = data_.queues[record.queue];
    const auto& keep = record.state == State::kComplete ? queue.keep_complete
                       : record.state == State::kDead   ? queue.keep_dead
                                                        : queue.keep_cancelled;
    task.keep = keep.value_or(limits::kRetention);

    TypedKey key{record.tenant, record.type, record.unique_key};
    if (!record.unique_key.empty() && !Planted(Bug::kUniqueKeyNotReleased)) data_.unique.erase(key);
    auto burst = data_.debounce.find({record.tenant, record.type, task.debounce_key});
    if (burst != data_.debounce.end() && burst->second == record.id) data_.debounce.erase(burst);
    if (record.state == State::kComplete) EventOps(*this, data_, now_).TaskComplete(record);
}

void Ops::EndAttempt(Task& task, const Ending& ending) {
    CHECK(!task.attempts.empty());
    AttemptRecord& attempt = task.attempts.back();
    CHECK(attempt.end == AttemptEnd::kRunning || Planted(Bug::kUnguardedReclaim));
    attempt.end = ending.end;
    attempt.finished_at = now_;
    attempt.error = ending.error;
    attempt.exit_code = ending.exit_code;
    attempt.exit_signal = ending.exit_signal;
    attempt.stderr_tail = ending.stderr_tail;
    task.record.session = {};
    task.record.progress.reset();
    task.deadline.reset();
    task.alone = false;
    // Every way out of a lease comes by here.
    if (Planted(Bug::kSlotLeakedOnReclaim) && ending.end == AttemptEnd::kCrashed) return;
    std::set<std::string> freed = HeldBy(task.record.id);
    auto heir = data_.resources.Release(task.record.id, OutcomeOf(ending.end));
    if (!heir) freed_.merge(freed);
}

void Ops::CountCrash(Task& task) {
    if (Planted(Bug::kCrashNotCounted)) return;
    if (!task.crash_from || now_ - *task.crash_from > limits::kCrashWindow) {
        task.crash_from = now_;
        task.record.crash_count = 0;
    }
    ++task.record.crash_count;
}

void Ops::Wait(Task& task, Time due_at) {
    task.record.due_at = due_at;
    task.record.expires_at.reset();
    task.token = {};
}

bool Ops::IsLive(SessionId session) const {
    auto found = data_.sessions.find(session);
    return found != data_.sessions.end() && !found->second.over &&
           found->second.record.lease_until > now_;
}

std::int64_t Ops::WaitingIn(const std::string& queue) const {
    return std::count_if(data_.live.begin(), data_.live.end(), [&](const auto& item) {
        return item.second.record.queue == queue && IsWaiting(item.second.record.state);
    });
}

void Ops::TouchQueue(const std::string& queue) {
    data_.queues.try_emplace(queue, QueueSettings{.name = queue});
}

}  // namespace stint::store::memory
