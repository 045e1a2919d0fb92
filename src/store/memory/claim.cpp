// Claiming, and explaining why a claim would skip a task: the same list of conditions.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/text.h"
#include "store/memory/ops.h"

namespace stint::store::memory {

namespace {

constexpr std::array kConditions = {
    Condition::kNotWaiting,
    Condition::kNotDue,
    Condition::kStartByPassed,
    Condition::kQueuePaused,
    Condition::kQueueNotServed,
    Condition::kTypeNotHandled,
    Condition::kCancelRequested,
    Condition::kSuspectMustBeAlone,
    Condition::kSessionNotLive,
};
static_assert(kConditions.size() + 1 == kConditionCount);

bool Contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool Ops::Applies(Condition condition, const Task& task, const ClaimRequest& claimer) const {
    const TaskRecord& record = task.record;
    switch (condition) {
        case Condition::kEligible:
            return false;
        case Condition::kNotWaiting:
            return !IsWaiting(record.state);
        case Condition::kNotDue:
            return record.due_at > now_ && !base::Planted(base::Bug::kClaimIgnoresDue);
        case Condition::kStartByPassed:
            return record.start_by && *record.start_by <= now_;
        case Condition::kQueuePaused: {
            auto queue = data_.queues.find(record.queue);
            return queue != data_.queues.end() && queue->second.paused;
        }
        case Condition::kQueueNotServed:
            return !claimer.queues.empty() && !Contains(claimer.queues, record.queue);
        case Condition::kTypeNotHandled:
            // Without a session it is the general question; then no types means any type.
            if (!claimer.session.valid() && claimer.types.empty()) return false;
            return !Contains(claimer.types, record.type);
        case Condition::kCancelRequested:
            return record.cancel_requested;
        case Condition::kSuspectMustBeAlone:
            return record.suspect && !claimer.suspect;
        case Condition::kSessionNotLive:
            return claimer.session.valid() && !IsLive(claimer.session) &&
                   !base::Planted(base::Bug::kClaimIgnoresSession);
    }
    base::CheckFailed(__FILE__, __LINE__, "Applies", "not a condition");
}

bool Ops::Skips(const Task& task, const ClaimRequest& claimer) const {
    return std::any_of(kConditions.begin(), kConditions.end(), [&](Condition condition) {
        return Applies(condition, task, claimer);
    });
}

bool Ops::OnlyNotDue(const Task& task, const ClaimRequest& claimer) const {
    return std::all_of(kConditions.begin(), kConditions.end(), [&](Condition condition) {
        return Applies(condition, task, claimer) == (condition == Condition::kNotDue);
    });
}

ClaimReply Ops::Claim(const ClaimRequest& request) {
    ClaimReply reply;
    bool live = IsLive(request.session);
    if (base::Planted(base::Bug::kClaimIgnoresSession))
        live = data_.sessions.contains(request.session);
    if (!live) {
        reply.session_live = false;
        return reply;
    }
    ClaimRequest as_suspect = request;
    as_suspect.suspect = true;
    std::vector<Task*> ready;
    for (auto& [id, task] : data_.live) {
        if (task.lost) continue;
        if (OnlyNotDue(task, request)) {
            auto left = std::chrono::ceil<Duration>(task.record.due_at - now_);
            reply.next_due = std::min(reply.next_due.value_or(left), left);
        }
        if (task.record.suspect && !Skips(task, as_suspect)) reply.suspects_waiting = true;
        if (request.suspect && !task.record.suspect) continue;
        if (!Skips(task, request)) ready.push_back(&task);
    }
    std::sort(ready.begin(), ready.end(), [](const Task* a, const Task* b) {
        return std::pair(-a->record.priority, a->position) <
               std::pair(-b->record.priority, b->position);
    });
    int limit = std::clamp(request.limit, 0, request.suspect ? 1 : limits::kClaimBatch);
    if (ready.size() > static_cast<std::size_t>(limit))
        ready.resize(static_cast<std::size_t>(limit));
    for (Task* task : ready) reply.leases.push_back(Take(*task, request));
    return reply;
}

Lease Ops::Take(Task& task, const ClaimRequest& request) {
    TaskRecord& record = task.record;
    const SessionRecord& session = data_.sessions.at(request.session).record;
    Why why{.actor = "worker", .reason = {}, .session = session.id};
    if (record.state == State::kError) Move(task, Event::kRetryDue, why);
    ++record.attempt;
    ++record.claim_no;
    task.token = random_.MakeId<LeaseToken>();
    task.alone = request.suspect;
    Move(task, Event::kClaim, why);
    record.session = session.id;
    record.node = session.node;
    record.claimed_at = now_;
    record.progress.reset();
    record.reason.clear();
    task.deadline.reset();
    if (record.timeout > Duration::zero()) task.deadline = now_ + record.timeout;
    task.attempts.push_back(
        {.task = record.id,
         .claim_no = record.claim_no,
         .attempt = record.attempt,
         .generation = record.generation,
         .session = session.id,
         .node = session.node,
         .started_at = now_,
         .alone = task.alone}
    );
    return {
        .task = record.id,
        .token = task.token,
        .tenant = record.tenant,
        .parent = record.parent,
        .type = record.type,
        .queue = record.queue,
        .priority = record.priority,
        .input = record.input,
        .attempt = record.attempt,
        .claim_no = record.claim_no,
        .generation = record.generation,
        .crash_count = record.crash_count,
        .alone = task.alone,
        .retry = record.retry,
        .timeout = record.timeout,
        .idempotency_key = "task-" + record.id.ToString(),
        .claimed_at = now_,
    };
}

std::vector<Explanation> Ops::Explain(TaskId id, const ClaimRequest& claimer) {
    Task* task = Find(id);
    if (task == nullptr) return {};
    std::vector<Explanation> reasons;
    for (Condition condition : kConditions) {
        if (Applies(condition, *task, claimer))
            reasons.push_back({condition, Detail(condition, *task)});
        // Of a task that does not wait there is nothing more to say.
        if (condition == Condition::kNotWaiting && !reasons.empty()) return reasons;
    }
    if (reasons.empty())
        reasons.push_back({Condition::kEligible, Detail(Condition::kEligible, *task)});
    return reasons;
}

std::string Ops::Detail(Condition condition, const Task& task) const {
    const TaskRecord& record = task.record;
    switch (condition) {
        case Condition::kNotWaiting:
            return "it is " + std::string(StateName(record.state));
        case Condition::kNotDue:
            return "due at " + base::Iso8601(record.due_at);
        case Condition::kStartByPassed:
            return "start-by was " + base::Iso8601(*record.start_by);
        case Condition::kQueuePaused:
        case Condition::kQueueNotServed:
            return "queue " + base::Quoted(record.queue);
        case Condition::kTypeNotHandled:
            return "type " + base::Quoted(record.type);
        default:
            return {};
    }
}

}  // namespace stint::store::memory
