// Ending attempts: by their holder, or from outside.
#include <utility>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/result.h"
#include "model/placement.h"
#include "store/claimer_offer.h"
#include "store/memory/ops.h"
#include "store/result_rules.h"

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
        case Kind::kBlocked:
            return Event::kBlock;
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
    Duration delay = settlement.delay;
    if (event == Event::kSnooze && SignalCame(record.id)) {
        delay = Duration::zero();
        opened_.push_back(record.queue);
    }
    return {event, *Next(State::kInProgress, event), delay, settlement.reason};
}

ItemCounts Ops::ItemsOf(TaskId task) const {
    auto found = data_.results.of.find(task);
    return found == data_.results.of.end() ? ItemCounts{} : found->second.counts;
}

SettleReply Ops::Settle(const Settlement& settlement) {
    Task* found = Find(settlement.task);
    if (found == nullptr) return {SettleReply::Kind::kLost, State::kOpen};
    if (!Holds(*found, settlement)) return {SettleReply::Kind::kLost, found->record.state};
    const ItemCounts items = ItemsOf(settlement.task);
    if (items.errors == 0) return Settle(*found, settlement);
    Settlement heard = settlement;
    HearItems(items, found->record.retry, found->record.attempt, heard);
    return Settle(*found, heard);
}

SettleReply Ops::Settle(Task& task, const Settlement& settlement) {
    TaskRecord& record = task.record;
    const LeaseToken token = task.token;
    if (auto valid = CheckResources(settlement); !valid) {
        return {SettleReply::Kind::kRefused, State::kInProgress, valid.error().message, {}};
    }
    Disposition what = Decide(task, settlement);
    if (what.to == State::kBlocked) {
        Data before = data_;
        std::size_t commits = commits_.size();
        if (auto made = BlockOn(task, settlement); !made) {
            data_ = std::move(before);
            commits_.resize(commits);
            return {SettleReply::Kind::kRefused, State::kInProgress, made.error().message, {}};
        }
    }
    if (settlement.crashed) task.attempts.back().alone = true;
    if (!settlement.unavailable.empty()) {
        data_.resources.Report(
            ResourceName(settlement.unavailable),
            EvidenceOf(settlement, record.type, record.node, now_),
            settlement.closed_for
        );
    }
    if (settlement.needs && what.event == Event::kRelease) {
        record.placement.needs = Together(record.placement.needs, *settlement.needs);
    }
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
                    (what.event == Event::kBlock && !Planted(Bug::kBlockBurnsAttempt)) ||
                    (what.event == Event::kRelease && !Planted(Bug::kDrainBurnsAttempt) &&
                     !(Planted(Bug::kBreakerBurnsAttempt) && !settlement.unavailable.empty()));
    if (refunded) --record.attempt;
    if (what.event != Event::kRelease && !settlement.crashed) record.suspect = false;
    if (Planted(Bug::kCancelForgotten)) record.cancel_requested = false;

    if (what.to == State::kComplete) {
        record.output = settlement.output;
        record.warning = settlement.warning;
        record.error.reset();
    } else if (what.to == State::kBlocked) {
        record.expires_at.reset();
        task.token = {};
        EndWaitIfOver(task);
        OpenForFreed();
        return {SettleReply::Kind::kAccepted, record.state, {}, std::exchange(opened_, {})};
    } else if (what.to == State::kBackground) {
        record.expires_at.reset();
        if (what.delay > Duration::zero()) record.expires_at = now_ + what.delay;
    } else if (IsWaiting(what.to)) {
        Wait(task, now_ + what.delay);
        record.reason.clear();
    }
    OpenForFreed();
    return {SettleReply::Kind::kAccepted, what.to, {}, std::exchange(opened_, {})};
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
    bool fenced = finish.token && !Planted(Bug::kCompletionUnfenced);
    if (fenced && *finish.token != task->token) {
        return MakeError(
            Code::kLeaseLost, "task {} is in background under another token", finish.task.value()
        );
    }
    const HeardFinish heard =
        HearFinish(finish, ItemsOf(finish.task), record.retry, record.attempt);
    const Disposition& what = heard.what;
    if (heard.error) record.error = heard.error;
    std::string reason = what.reason;
    if (!finish.token) reason += reason.empty() ? "override" : " (override)";
    Move(*task, what.event, {.actor = finish.actor, .reason = reason});
    record.reason = what.reason;
    if (what.to == State::kComplete) {
        record.output = finish.output;
        record.warning = heard.warning;
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
