// Ending attempts: by their holder, or from outside. Every write of a holder needs the token.
#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "base/result.h"
#include "base/text.h"
#include "model/decide.h"
#include "store/postgres/pieces.h"
#include "store/postgres/store_impl.h"

namespace stint::store::pg {

namespace {

using Kind = Settlement::Kind;
using base::MakeError;

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

Evidence EvidenceOf(const Settlement& settlement) {
    Evidence evidence;
    evidence.end = settlement.crashed ? AttemptEnd::kCrashed : settlement.end;
    evidence.error = WriteError(settlement.error);
    evidence.exit_code = settlement.exit_code;
    evidence.exit_signal = settlement.exit_signal;
    evidence.stderr_tail = base::CleanText(settlement.stderr_tail, limits::kStderrTail);
    return evidence;
}

// Success without anything unusual takes one statement.
bool IsPlainSuccess(const Settlement& settlement) {
    return settlement.kind == Kind::kComplete && !settlement.crashed && !settlement.error &&
           !settlement.exit_signal && settlement.end == AttemptEnd::kComplete &&
           settlement.reason.empty();
}

// What the outcome leads to: itself, unless a cancel was requested or a crash was one too many.
// `after` has the attempt and the crash counted.
Disposition Decide(const Facts& after, const Settlement& settlement) {
    bool cancel = after.cancel_asked();
    if (settlement.kind == Kind::kCancelled || (cancel && settlement.kind != Kind::kComplete)) {
        std::string reason = cancel ? after.cancel_reason : settlement.reason;
        return {Event::kCancel, State::kCancelled, Duration::zero(), std::move(reason)};
    }
    if (settlement.crashed && settlement.kind != Kind::kComplete) {
        Disposition crash = DecideCrash(
            {.attempt = after.attempt, .alone = true, .crashes_alone = after.crash_count}
        );
        if (crash.event == Event::kQuarantine) return crash;
    }
    Event event = EventOf(settlement.kind);
    return {event, *Next(State::kInProgress, event), settlement.delay, settlement.reason};
}

}  // namespace

void CountCrash(Facts& facts) {
    if (!facts.crash_from || facts.now - *facts.crash_from > limits::kCrashWindow) {
        facts.crash_from = facts.now;
        facts.crash_count = 0;
    }
    ++facts.crash_count;
}

std::vector<SettleReply> PostgresStore::Settle(std::span<const Settlement> settlements) {
    if (settlements.empty()) return {};
    return db_.Run([&](Transaction& transaction) { return SettleIn(transaction, settlements); });
}

std::vector<SettleReply> PostgresStore::SettleIn(
    Transaction& transaction, std::span<const Settlement> settlements
) {
    std::vector<SettleReply> replies(
        settlements.size(), SettleReply{SettleReply::Kind::kLost, State::kOpen}
    );
    // Only the first outcome of a holder can be accepted; those behind it have lost by then. Of one
    // task there may be two holders, one of which has lost it.
    std::vector<std::size_t> successes, others;
    std::unordered_map<LeaseToken, std::size_t> seen;
    std::vector<std::int64_t> locked;
    for (std::size_t i = 0; i < settlements.size(); ++i) {
        const Settlement& settlement = settlements[i];
        if (!settlement.token.valid() || !seen.emplace(settlement.token, i).second) continue;
        (IsPlainSuccess(settlement) ? successes : others).push_back(i);
        locked.push_back(KeyOf(settlement.token));
    }
    std::vector<Piece> pieces =
        Pieces(successes, [&](std::size_t i) { return settlements[i].output.size(); });
    if (!locked.empty()) {
        Params params;
        AddInts(params, Sorted(std::move(locked)));
        transaction.Defer(db_.sql.lock_leases, std::move(params));
    }
    for (const Piece& piece : pieces) {
        std::span<const std::size_t> which(successes.data() + piece.from, piece.count);
        SettleComplete(transaction, settlements, which, replies);
    }
    if (!others.empty()) {
        std::vector<std::int64_t> tasks, keys, secrets;
        for (std::size_t i : others) {
            tasks.push_back(settlements[i].task.value());
            keys.push_back(KeyOf(settlements[i].token));
            secrets.push_back(SecretOf(settlements[i].token));
        }
        Params params;
        AddInts(params, Sorted(keys));
        AddInts(params, tasks);
        AddInts(params, keys);
        AddInts(params, secrets);
        Changes changes(catalog_);
        for (const Facts& facts : ReadFacts(transaction.Query(db_.sql.lease_facts, params))) {
            std::size_t i = seen.at(facts.token);
            if (settlements[i].task != facts.id) continue;
            replies[i] = SettleOne(facts, settlements[i], changes);
        }
        changes.Defer(transaction, db_.sql);
        Ready(transaction, changes);
    }
    // The state that a lost one is in now, for the caller's log.
    std::vector<TaskId> lost;
    for (std::size_t i = 0; i < settlements.size(); ++i) {
        if (replies[i].kind == SettleReply::Kind::kLost) lost.push_back(settlements[i].task);
    }
    if (lost.empty()) return replies;
    std::unordered_map<TaskId, State> states;
    for (const TaskRecord& record : RecordsIn(transaction, lost)) states[record.id] = record.state;
    for (std::size_t i = 0; i < settlements.size(); ++i) {
        auto found = states.find(settlements[i].task);
        if (replies[i].kind == SettleReply::Kind::kLost && found != states.end()) {
            replies[i].state = found->second;
        }
    }
    return replies;
}

void PostgresStore::SettleComplete(
    Transaction& transaction,
    std::span<const Settlement> settlements,
    std::span<const std::size_t> which,
    std::vector<SettleReply>& replies
) {
    ArrayOf task(oid::kInt8), key(oid::kInt8), secret(oid::kInt8), period(oid::kInt4),
        output(oid::kText), warning(oid::kBool), code(oid::kInt4), tail(oid::kText);
    std::vector<std::int64_t> keys;
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> index;  // by task and key
    for (std::size_t i : which) {
        const Settlement& settlement = settlements[i];
        index[{settlement.task.value(), KeyOf(settlement.token)}] = i;
        keys.push_back(KeyOf(settlement.token));
        task.Int(settlement.task.value());
        key.Int(KeyOf(settlement.token));
        secret.Int(SecretOf(settlement.token));
        period.Int(catalog_.PeriodOf(settlement.task));
        output.TextOrNull(settlement.output);
        warning.Bool(settlement.warning);
        settlement.exit_code ? code.Int(*settlement.exit_code) : code.Null();
        tail.TextOrNull(base::CleanText(settlement.stderr_tail, limits::kStderrTail));
    }
    Params params;
    for (ArrayOf* column : {&task, &key, &secret, &period, &output, &warning, &code, &tail}) {
        column->AddTo(params);
    }
    AddInts(params, Sorted(keys));
    Rows rows = transaction.Query(db_.sql.complete, params);
    for (int i = 0; i < rows.size(); ++i) {
        std::size_t of = index.at({rows.Int(i, 0), rows.Int(i, 1)});
        replies[of] = {SettleReply::Kind::kAccepted, State::kComplete};
    }
}

SettleReply PostgresStore::SettleOne(
    const Facts& facts, const Settlement& settlement, Changes& changes
) {
    Facts after = facts;
    ++after.attempt;
    ++after.claim_no;
    if (settlement.crashed) {
        CountCrash(after);
        after.flags |= kAlone;  // its process was its own
    }
    Disposition what = Decide(after, settlement);
    Evidence evidence = EvidenceOf(settlement);
    Facts attempt = facts;
    attempt.flags = after.flags;
    Lane lane = catalog_.LaneOf(facts.lane);
    changes.LeaveLease(facts);
    changes.AddAudit(
        {facts.id,
         lane.tenant,
         what.event,
         State::kInProgress,
         what.to,
         after.attempt,
         after.generation,
         facts.session,
         "worker",
         what.reason}
    );
    if (settlement.error) after.error = evidence.error;
    if (IsTerminal(what.to)) {
        bool complete = what.to == State::kComplete;
        changes.AddFinish(
            {after,
             what.to,
             evidence,
             complete ? settlement.output : std::string(),
             complete && settlement.warning,
             complete ? std::string() : after.error,
             what.reason}
        );
        return {SettleReply::Kind::kAccepted, what.to};
    }
    changes.AddAttempt(attempt, evidence, what.to);
    bool refunded = what.event == Event::kSnooze || what.event == Event::kRelease;
    if (refunded) --after.attempt;
    // It has shown that it does not take its process with it, or never had the chance to.
    if (what.event != Event::kRelease && !settlement.crashed)
        after.lane = LaneWith(after.lane, false);
    if (what.to == State::kBackground) {
        std::optional<Time> expires;
        if (what.delay > Duration::zero()) expires = facts.now + what.delay;
        changes.AddOutside({after, what.to, expires, what.reason});
    } else {
        after.state = what.to;
        changes.AddWaiting({after, facts.now + what.delay});
    }
    return {SettleReply::Kind::kAccepted, what.to};
}

Result<State> PostgresStore::FinishBackground(const BackgroundFinish& finish) {
    using Reply = Result<State>;
    return db_.Run([&](Transaction& transaction) -> Reply {
        Rows outside = transaction.Query(db_.sql.outside_of, Params().Number(finish.task));
        if (outside.empty() || static_cast<State>(outside.Int(0, 0)) != State::kBackground) {
            std::vector<TaskRecord> there = RecordsIn(transaction, {&finish.task, 1});
            if (there.empty()) {
                return MakeError(Code::kNotFound, "there is no task {}", finish.task.value());
            }
            return MakeError(
                Code::kConflict,
                "task {} is {}, not in background",
                finish.task.value(),
                StateName(there.front().state)
            );
        }
        if (finish.token && *finish.token != TokenOf(outside.Int(0, 1), outside.Int(0, 2))) {
            return MakeError(
                Code::kLeaseLost,
                "task {} is in background under another token",
                finish.task.value()
            );
        }
        Params ids;
        AddInts(ids, std::vector<std::int64_t>{finish.task.value()});
        Facts facts = ReadFacts(transaction.Query(db_.sql.take_outside, ids)).at(0);
        Disposition what{Event::kComplete, State::kComplete, Duration::zero(), {}};
        if (!finish.success) {
            what = DecideFailure(
                catalog_.PolicyOf(facts.policy), facts.attempt, finish.error, finish.jitter
            );
            facts.error = WriteError(finish.error);
        }
        std::string reason = what.reason;
        if (!finish.token) reason += reason.empty() ? "override" : " (override)";
        Changes changes(catalog_);
        changes.AddAudit(
            {facts.id,
             catalog_.LaneOf(facts.lane).tenant,
             what.event,
             State::kBackground,
             what.to,
             facts.attempt,
             facts.generation,
             {},
             finish.actor,
             reason}
        );
        if (what.to == State::kError) {
            facts.state = State::kError;
            changes.AddWaiting({facts, facts.now + what.delay});
        } else {
            bool complete = what.to == State::kComplete;
            changes.AddFinish(
                {facts,
                 what.to,
                 std::nullopt,
                 complete ? finish.output : std::string(),
                 false,
                 complete ? std::string() : facts.error,
                 what.reason}
            );
        }
        changes.Defer(transaction, db_.sql);
        Ready(transaction, changes);
        return what.to;
    });
}

std::optional<SettleReply> PostgresStore::SettledBy(TaskId task, LeaseToken token) {
    Params params;
    params.Number(task).Int(KeyOf(token)).Int(SecretOf(token));
    ArrayOf periods(oid::kInt4), parts(oid::kInt4);
    for (int period : PeriodsOf(task)) periods.Int(period);
    for (int part : PartsOf({&task, 1})) parts.Int(part);
    periods.AddTo(params);
    parts.AddTo(params);
    Rows rows = db_.ReadPlanned(db_.sql.settled_by, params);
    if (!rows.IsNull(0, 0)) {
        return SettleReply{SettleReply::Kind::kAccepted, static_cast<State>(rows.Int(0, 0))};
    }
    if (rows.Bool(0, 1)) return std::nullopt;
    std::optional<TaskRecord> record = Get(task);
    return SettleReply{SettleReply::Kind::kLost, record ? record->state : State::kOpen};
}

}  // namespace stint::store::pg
