// Ending attempts: by their holder, from outside, by an operator.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/result.h"
#include "base/text.h"
#include "model/decide.h"
#include "model/placement.h"
#include "store/claimer_offer.h"
#include "store/result_rules.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/queries.h"

namespace stint::store::lite {

namespace {

using base::MakeError;

Event EventOf(Settlement::Kind kind) {
    switch (kind) {
        case Settlement::Kind::kComplete:
            return Event::kComplete;
        case Settlement::Kind::kRetry:
            return Event::kFailRetryable;
        case Settlement::Kind::kDead:
            return Event::kFailFinal;
        case Settlement::Kind::kSnooze:
            return Event::kSnooze;
        case Settlement::Kind::kRelease:
            return Event::kRelease;
        case Settlement::Kind::kBackground:
            return Event::kBackground;
        case Settlement::Kind::kCancelled:
            return Event::kCancel;
        case Settlement::Kind::kBlocked:
            return Event::kBlock;
    }
    base::CheckFailed(__FILE__, __LINE__, "EventOf", "not a kind");
}

}  // namespace

std::vector<SettleReply> Ops::Settle(std::span<const Settlement> settlements) {
    std::vector<SettleReply> replies;
    replies.reserve(settlements.size());
    SettleReply* last = nullptr;
    for (const Settlement& settlement : settlements) {
        BeginEnd(settlement);
        SettleReply& reply = replies.emplace_back(SettleNext(settlement));
        if (reply.kind == SettleReply::Kind::kAccepted) last = &reply;
    }
    WriteEnds();
    gathers_ends_ = false;
    OpenForFreed();  // once for all of them: what they held, others are told of together
    if (last != nullptr) std::ranges::move(opened_, std::back_inserter(last->opened));
    opened_.clear();
    return replies;
}

SettleReply Ops::SettleOne(const Settlement& settlement) {
    return Settle({&settlement, 1}).front();
}

// What only ends can be written with others that do. One that names a task again looks at it.
void Ops::BeginEnd(const Settlement& settlement) {
    auto names_it = [&](const AttemptRow& row) { return row.task == settlement.task; };
    gathers_ends_ = settlement.kind == Settlement::Kind::kComplete && !settlement.crashed;
    if (!gathers_ends_ || std::ranges::any_of(attempts_, names_it)) WriteEnds();
}

bool Ops::HeldBy(const TaskRow& row, const Settlement& settlement) {
    if (row.state != State::kInProgress) return false;
    if (base::Planted(base::Bug::kNoFence)) return true;
    if (base::Planted(base::Bug::kOwnerFence)) {
        const SessionFacts* holder = SessionAt(row.session);
        return holder != nullptr && holder->id == settlement.session;
    }
    return settlement.token.valid() && row.token == settlement.token;
}

SettleReply Ops::SettleNext(const Settlement& settlement) {
    SettleReply reply;
    TaskRow& row = row_;
    if (!Load(settlement.task, row)) {
        reply.kind = SettleReply::Kind::kLost;
        TaskRow finished;
        if (LoadFinished(settlement.task, finished)) reply.state = finished.state;
        return reply;
    }
    if (!HeldBy(row, settlement)) {
        reply.kind = SettleReply::Kind::kLost;
        reply.state = row.state;
        return reply;
    }
    if ((row.flags & (kHasWait | kWaitedFor | kOrdered)) != 0) {
        gathers_ends_ = false;  // others are looked at
        WriteEnds();
    }
    if (settlement.kind == Settlement::Kind::kComplete) return SettleComplete(row, settlement);
    return ApplySettlement(row, settlement);
}

// What the outcome leads to: itself, unless a cancel was requested or a crash was one too many.
Disposition Ops::Decide(TaskRow& row, const Settlement& settlement) {
    bool cancel = row.Has(kCancelRequested) && !base::Planted(base::Bug::kCancelForgotten);
    if (settlement.crashed) CountCrash(row);
    bool complete = settlement.kind == Settlement::Kind::kComplete;
    if (settlement.kind == Settlement::Kind::kCancelled || (cancel && !complete)) {
        std::string reason = cancel ? row.reason : settlement.reason;
        return {Event::kCancel, State::kCancelled, Duration::zero(), std::move(reason)};
    }
    if (settlement.crashed && !complete) {
        Disposition crash =
            DecideCrash({.attempt = row.attempt, .alone = true, .crashes_alone = row.crashes});
        if (crash.event == Event::kQuarantine) return crash;
    }
    Event event = EventOf(settlement.kind);
    Duration delay = settlement.delay;
    if (event == Event::kSnooze && SignalCame(row.id)) {
        delay = Duration::zero();
        opened_.push_back(lanes_.At(row.lane).queue);
    }
    return {event, *Next(State::kInProgress, event), delay, settlement.reason};
}

ItemCounts Ops::ItemsOf(TaskId task) {
    // Most stores have none.
    if (!any_results_) any_results_ = Sql("result_any").Scalar().has_value();
    if (!*any_results_) return {};
    sqlite::Rows rows = Sql("result_items").Query(task.value());
    return rows.Next() ? ItemCounts{rows.Int(0), rows.Int(1)} : ItemCounts{};
}

SettleReply Ops::SettleComplete(TaskRow& row, const Settlement& settlement) {
    const ItemCounts items = ItemsOf(row.id);
    if (items.errors == 0) return ApplySettlement(row, settlement);
    Settlement heard = settlement;
    HearItems(items, RetryOf(row.retry), row.attempt, heard);
    return ApplySettlement(row, heard);
}

SettleReply Ops::ApplySettlement(TaskRow& row, const Settlement& settlement) {
    if (auto valid = CheckResources(settlement); !valid) {
        return {SettleReply::Kind::kRefused, State::kInProgress, valid.error().message, {}};
    }
    Disposition what = Decide(row, settlement);
    std::vector<WaitMember> members;
    if (what.to == State::kBlocked) {
        auto made = TryMakeChildren(row, settlement);
        if (!made) {
            return {SettleReply::Kind::kRefused, State::kInProgress, made.error().message, {}};
        }
        members = std::move(*made);
    }
    if (settlement.crashed) row.Set(kAlone, true);
    Ending ending{
        .end = settlement.crashed ? AttemptEnd::kCrashed : settlement.end,
        .error = settlement.error ? ErrorText(*settlement.error) : std::string(),
        .exit_code = settlement.exit_code,
        .exit_signal = settlement.exit_signal,
        .stderr_tail = settlement.stderr_tail,
        .by_holder = true,
    };
    const SessionFacts* holder = SessionAt(row.session);
    SessionId session = holder != nullptr ? holder->id : SessionId();
    Move(row, what.event, {.actor = "worker", .reason = what.reason, .session = session});
    if (!settlement.unavailable.empty()) {
        Book().Report(
            ResourceName(settlement.unavailable),
            EvidenceOf(settlement, lanes_.At(row.lane).type, row.node, now_),
            settlement.closed_for
        );
    }
    EndAttempt(row, ending);
    if (settlement.needs && what.event == Event::kRelease) {
        const Lane& lane = lanes_.At(row.lane);
        Placement placement = lane.placement;
        placement.needs = Together(placement.needs, *settlement.needs);
        ChangeLane(row, std::string(lane.queue), placement);
    }
    if (settlement.error) row.error = ending.error;
    row.progress.clear();
    row.reason = what.reason;
    bool refunded =
        what.event == Event::kSnooze || what.event == Event::kBlock ||
        (what.event == Event::kRelease && !base::Planted(base::Bug::kDrainBurnsAttempt));
    if (refunded) --row.attempt;
    if (what.event != Event::kRelease && !settlement.crashed) row.Set(kSuspect, false);
    if (base::Planted(base::Bug::kCancelForgotten)) row.Set(kCancelRequested, false);

    if (row.state == State::kComplete) {
        row.output = settlement.output;
        row.Set(kWarning, settlement.warning);
        row.error.clear();
    } else if (row.state == State::kBlocked) {
        row.session = 0;
        row.token = {};
        row.Set(kAlone, false);
        row.deadline_at.reset();
        Await(row, settlement.wait, members, true);
    } else if (row.state == State::kBackground) {
        row.session = 0;
        row.Set(kAlone, false);
        row.deadline_at.reset();
        if (what.delay > Duration::zero()) row.deadline_at = now_ + what.delay;
    } else if (!IsTerminal(row.state)) {
        row.reason.clear();
        ToWaiting(row, now_ + what.delay);
    }
    Persist(row);
    if (row.state == State::kBlocked) EndWaitIfOver(row);
    return {SettleReply::Kind::kAccepted, row.state, {}, std::exchange(opened_, {})};
}

// ---- from outside ----

Result<State> Ops::FinishBackground(const BackgroundFinish& finish) {
    TaskRow row;
    if (!Load(finish.task, row) && !LoadFinished(finish.task, row)) {
        return MakeError(Code::kNotFound, "there is no task {}", finish.task.value());
    }
    if (row.state != State::kBackground) {
        return MakeError(
            Code::kConflict,
            "task {} is {}, not in background",
            finish.task.value(),
            StateName(row.state)
        );
    }
    if (finish.token && *finish.token != row.token) {
        return MakeError(
            Code::kLeaseLost, "task {} is in background under another token", finish.task.value()
        );
    }
    const HeardFinish heard = HearFinish(finish, ItemsOf(row.id), RetryOf(row.retry), row.attempt);
    const Disposition& what = heard.what;
    if (heard.error) row.error = ErrorText(*heard.error);
    std::string reason = what.reason;
    if (!finish.token) reason += reason.empty() ? "override" : " (override)";
    Move(row, what.event, {.actor = finish.actor, .reason = reason, .session = {}});
    row.deadline_at.reset();
    row.token = {};
    row.reason = what.reason;
    if (row.state == State::kComplete) {
        row.output = finish.output;
        row.Set(kWarning, heard.warning);
        row.error.clear();
    }
    if (row.state == State::kError) ToWaiting(row, now_ + what.delay);
    Persist(row);
    return row.state;
}

}  // namespace stint::store::lite
