// Ending attempts: by their holder, or from outside.
#include "base/check.h"
#include "base/planted_bug.h"
#include "base/result.h"
#include "store/memory/ops.h"

namespace stint::store::memory {

namespace {

using base::Bug;
using base::MakeError;
using base::Planted;
using Kind = Settlement::Kind;

Event EventOf(Kind kind) {
    switch (kind) {
        case Kind::kComplete:
            return Event::kComplete;
        case Kind::kRetry:
            return Event::kFailRetryable;
        case Kind::kDead:
            return Event::kFailFinal;
        case Kind::kSnooze:
            return Event::kSnooze;
        case Kind::kRelease:
            return Event::kRelease;
        case Kind::kBackground:
            return Event::kBackground;
        case Kind::kCancelled:
            return Event::kCancel;
    }
    base::CheckFailed(__FILE__, __LINE__, "EventOf", "not a kind");
}

}  // namespace

bool Ops::Holds(const Task& task, const Settlement& settlement) const {
    if (task.record.state != State::kInProgress) return false;
    if (Planted(Bug::kNoFence)) return true;
    if (Planted(Bug::kSpoolUnfenced) && !settlement.token.valid()) return true;
    if (Planted(Bug::kOwnerFence)) return task.record.session == settlement.session;
    return settlement.token.valid() && task.token == settlement.token;
}

// What the outcome leads to: itself, unless a cancel was requested or a crash was one too many.
Disposition Ops::Decide(Task& task, const Settlement& settlement) {
    const TaskRecord& record = task.record;
    bool cancel = record.cancel_requested && !Planted(Bug::kCancelForgotten);
    if (settlement.crashed) CountCrash(task);
    if (settlement.kind == Kind::kCancelled || (cancel && settlement.kind != Kind::kComplete)) {
        std::string reason = cancel ? task.cancel_reason : settlement.reason;
        return {Event::kCancel, State::kCancelled, Duration::zero(), std::move(reason)};
    }
    if (settlement.crashed && settlement.kind != Kind::kComplete) {
        Disposition crash = DecideCrash(
            {.attempt = record.attempt, .alone = true, .crashes_alone = record.crash_count}
        );
        if (crash.event == Event::kQuarantine) return crash;
    }
    Event event = EventOf(settlement.kind);
    return {event, *Next(State::kInProgress, event), settlement.delay, settlement.reason};
}

SettleReply Ops::Settle(const Settlement& settlement) {
    Task* found = Find(settlement.task);
    if (found == nullptr) return {SettleReply::Kind::kLost, State::kOpen};
    if (!Holds(*found, settlement)) return {SettleReply::Kind::kLost, found->record.state};

    Task& task = *found;
    TaskRecord& record = task.record;
    const LeaseToken token = task.token;
    Disposition what = Decide(task, settlement);
    if (settlement.crashed) task.attempts.back().alone = true;
    EndAttempt(
        task,
        {.end = settlement.crashed ? AttemptEnd::kCrashed : settlement.end,
         .error = settlement.error,
         .exit_code = settlement.exit_code,
         .exit_signal = settlement.exit_signal,
         .stderr_tail = settlement.stderr_tail}
    );
    SessionId session = task.attempts.back().session;
    Move(task, what.event, {.actor = "worker", .reason = what.reason, .session = session});
    task.settled[token] = what.to;
    record.reason = what.reason;
    if (settlement.error) record.error = settlement.error;
    bool refunded = what.event == Event::kSnooze ||
                    (what.event == Event::kRelease && !Planted(Bug::kDrainBurnsAttempt));
    if (refunded) --record.attempt;
    if (what.event != Event::kRelease && !settlement.crashed) record.suspect = false;
    if (Planted(Bug::kCancelForgotten)) record.cancel_requested = false;

    if (what.to == State::kComplete) {
        record.output = settlement.output;
        record.warning = settlement.warning;
        record.error.reset();
    } else if (what.to == State::kBackground) {
        record.expires_at.reset();
        if (what.delay > Duration::zero()) record.expires_at = now_ + what.delay;
    } else if (IsWaiting(what.to)) {
        Wait(task, now_ + what.delay);
        record.reason.clear();
    }
    return {SettleReply::Kind::kAccepted, what.to};
}

Result<State> Ops::FinishBackground(const BackgroundFinish& finish) {
    Task* task = Find(finish.task);
    if (task == nullptr) {
        return MakeError(Code::kNotFound, "there is no task {}", finish.task.value());
    }
    TaskRecord& record = task->record;
    if (record.state != State::kBackground) {
        return MakeError(
            Code::kConflict,
            "task {} is {}, not in background",
            finish.task.value(),
            StateName(record.state)
        );
    }
    if (finish.token && *finish.token != task->token) {
        return MakeError(
            Code::kLeaseLost, "task {} is in background under another token", finish.task.value()
        );
    }
    Disposition what{Event::kComplete, State::kComplete, Duration::zero(), {}};
    if (!finish.success) {
        what = DecideFailure(record.retry, record.attempt, finish.error, finish.jitter);
        record.error = finish.error;
    }
    std::string reason = what.reason;
    if (!finish.token) reason += reason.empty() ? "override" : " (override)";
    Move(*task, what.event, {.actor = finish.actor, .reason = reason});
    record.reason = what.reason;
    if (what.to == State::kComplete) {
        record.output = finish.output;
        record.error.reset();
    } else if (what.to == State::kError) {
        Wait(*task, now_ + what.delay);
    }
    return what.to;
}

std::optional<SettleReply> Ops::SettledBy(TaskId id, LeaseToken token) {
    Task* task = Find(id);
    if (task == nullptr) return SettleReply{SettleReply::Kind::kLost, State::kOpen};
    if (auto settled = task->settled.find(token); settled != task->settled.end()) {
        return SettleReply{SettleReply::Kind::kAccepted, settled->second};
    }
    if (task->record.state == State::kInProgress && task->token == token) return std::nullopt;
    return SettleReply{SettleReply::Kind::kLost, task->record.state};
}

}  // namespace stint::store::memory
