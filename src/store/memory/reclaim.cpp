// Recovering: leases of dead sessions, attempts over their time, background work nobody completed.
#include <algorithm>

#include "base/planted_bug.h"
#include "base/text.h"
#include "store/memory/ops.h"

namespace stint::store::memory {

namespace {

using base::Bug;
using base::Planted;

constexpr std::string_view kSweeper = "sweeper";

}  // namespace

std::vector<Ops::Doomed> Ops::FindDoomed(const ReclaimRequest& request, ReclaimReply& reply) {
    for (auto& [id, session] : data_.sessions) {
        if (session.over || session.record.lease_until > now_) continue;
        session.over = true;
        session.record.state = SessionState::kExpired;
        reply.expired.push_back(id);
    }
    std::vector<Doomed> doomed;
    for (const auto& [id, task] : data_.live) {
        const TaskRecord& record = task.record;
        if (record.state == State::kInProgress) {
            if (!IsLive(record.session)) {
                doomed.push_back({id, task.token, Doomed::Why::kSessionOver});
            } else if (task.deadline && *task.deadline + request.timeout_grace <= now_) {
                doomed.push_back({id, task.token, Doomed::Why::kTimedOut});
            }
        }
        bool outside = record.state == State::kBackground && record.expires_at;
        if (outside && *record.expires_at <= now_) {
            doomed.push_back({id, task.token, Doomed::Why::kBackgroundOver});
        }
    }
    std::stable_sort(doomed.begin(), doomed.end(), [](const Doomed& a, const Doomed& b) {
        return a.why < b.why;
    });
    auto limit = static_cast<std::size_t>(std::clamp(request.limit, 1, limits::kReclaimBatch));
    reply.more = doomed.size() > limit;
    if (doomed.size() > limit) doomed.resize(limit);
    return doomed;
}

void Ops::MoveDoomed(const Doomed& doomed, const ReclaimRequest& request, ReclaimReply& reply) {
    Task* task = Find(doomed.task);
    if (task == nullptr) return;
    if (task->token != doomed.token && !Planted(Bug::kUnguardedReclaim)) return;

    SessionId from = task->record.session;
    Reclaimed report{.task = doomed.task, .from = from};
    if (auto session = data_.sessions.find(from); session != data_.sessions.end()) {
        report.hostname = session->second.record.hostname;
    }
    switch (doomed.why) {
        case Doomed::Why::kSessionOver: {
            auto flight = request.flights.find(from);
            bool started = flight == request.flights.end() ||
                           std::find(flight->second.begin(), flight->second.end(), doomed.task) !=
                               flight->second.end();
            started ? ReclaimCrashed(*task, report) : ReclaimUnstarted(*task, report);
            break;
        }
        case Doomed::Why::kTimedOut:
            ReclaimTimedOut(*task, report);
            break;
        case Doomed::Why::kBackgroundOver:
            ReclaimBackground(*task, report);
            break;
    }
    report.to = task->record.state;
    report.suspect = task->record.suspect;
    reply.tasks.push_back(std::move(report));
}

// It had started in a process that is gone: the attempt counts, and it is a suspect from now on.
// Only a crash while alone is its own.
void Ops::ReclaimCrashed(Task& task, Reclaimed& report) {
    TaskRecord& record = task.record;
    const bool alone = task.alone;
    if (alone) CountCrash(task);
    Disposition what = DecideCrash(
        {.attempt = std::max(record.attempt, 1),
         .max_attempts = record.max_attempts,
         .alone = alone,
         .crashes_alone = record.crash_count,
         .cancel_requested = record.cancel_requested && !Planted(Bug::kCancelForgotten)}
    );
    if (what.event == Event::kCancel) what.reason = task.cancel_reason;
    record.error = TaskError{
        .message = "its process on " + base::Quoted(report.hostname) + " ended without an outcome",
        .klass = "crash",
        .stack = {},
        .retryable = true,
    };
    EndAttempt(task, {.end = AttemptEnd::kCrashed, .error = record.error});
    Move(task, what.event, {.actor = kSweeper, .reason = what.reason, .session = report.from});
    record.reason = what.reason;
    if (what.to == State::kOpen) {
        record.suspect = true;
        BackToWaiting(task, what.delay);
    }
    report.end = AttemptEnd::kCrashed;
    report.reason = what.reason;
}

// It was handed to a process that died before it ran it: back as it was, the attempt refunded.
void Ops::ReclaimUnstarted(Task& task, Reclaimed& report) {
    TaskRecord& record = task.record;
    bool cancel = record.cancel_requested && !Planted(Bug::kCancelForgotten);
    EndAttempt(task, {.end = AttemptEnd::kReleased});
    report.end = AttemptEnd::kReleased;
    report.reason = cancel ? task.cancel_reason : "not started by its process";
    Move(
        task,
        cancel ? Event::kCancel : Event::kReclaim,
        {.actor = kSweeper, .reason = report.reason, .session = report.from}
    );
    if (cancel) {
        record.reason = report.reason;
    } else {
        --record.attempt;
        BackToWaiting(task, Duration::zero());
    }
}

void Ops::ReclaimTimedOut(Task& task, Reclaimed& report) {
    TaskRecord& record = task.record;
    record.error = TaskError{
        .message = "not finished within its timeout of " + base::DurationText(record.timeout),
        .klass = "timeout",
        .stack = {},
        .retryable = true,
    };
    Disposition what = DecideFailure(record.retry, record.attempt, *record.error, 0.5);
    if (record.cancel_requested && !Planted(Bug::kCancelForgotten)) {
        what = {Event::kCancel, State::kCancelled, Duration::zero(), task.cancel_reason};
    }
    EndAttempt(task, {.end = AttemptEnd::kTimedOut, .error = record.error});
    Move(task, what.event, {.actor = kSweeper, .reason = what.reason, .session = report.from});
    record.reason = what.reason;
    if (IsWaiting(what.to)) BackToWaiting(task, what.delay);
    report.end = AttemptEnd::kTimedOut;
    report.reason = what.reason;
}

void Ops::ReclaimBackground(Task& task, Reclaimed& report) {
    TaskRecord& record = task.record;
    bool again = AttemptsLeft(record.retry, record.attempt);
    report.end = AttemptEnd::kBackground;
    report.reason = again ? "not completed from outside in time"
                          : "not completed from outside in time; attempts exhausted";
    Move(
        task,
        again ? Event::kBackgroundTimeout : Event::kFailFinal,
        {.actor = kSweeper, .reason = report.reason}
    );
    record.reason = again ? std::string() : report.reason;
    if (again) BackToWaiting(task, Duration::zero());
}

void Ops::BackToWaiting(Task& task, Duration delay) {
    Wait(task, now_ + delay);
    task.record.reason.clear();
    if (Planted(Bug::kCancelForgotten)) task.record.cancel_requested = false;
    if (Planted(Bug::kReclaimLosesTask)) task.lost = true;
}

}  // namespace stint::store::memory
