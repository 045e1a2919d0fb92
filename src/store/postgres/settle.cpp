// Ending attempts: by their holder, or from outside. Every write of a holder needs the token.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "base/result.h"
#include "base/test_point.h"
#include "base/text.h"
#include "model/decide.h"
#include "model/placement.h"
#include "store/claimer_offer.h"
#include "store/postgres/pieces.h"
#include "store/postgres/store_impl.h"
#include "store/postgres/submit.h"
#include "store/result_rules.h"

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
        case Kind::kBlocked:
            return Event::kBlock;
    }
    base::CheckFailed(__FILE__, __LINE__, "EventOf", "not a kind");
}

// How long a batch waits for locks that others hold, and one of several that go one by one.
constexpr Duration kSettlePatience = std::chrono::seconds{2};
constexpr Duration kShortPatience = std::chrono::milliseconds{250};

// Batches that are not tried as plain successes, after one in which a task was different.
constexpr int kPauseAfterOther = 20;

const postgres::Statement kSavepoint{"", "SAVEPOINT stint_children"};
const postgres::Statement kBack{"", "ROLLBACK TO SAVEPOINT stint_children"};
const postgres::Statement kRelease{"", "RELEASE SAVEPOINT stint_children"};

std::size_t IndexOf(std::span<const Settlement> settlements, TaskId task) {
    auto found = std::ranges::find_if(settlements, [&](const Settlement& settlement) {
        return settlement.task == task && settlement.kind == Kind::kBlocked;
    });
    return static_cast<std::size_t>(found - settlements.begin());
}

// Where, in the order of the tasks' ids, the next audit entry begins.
std::vector<std::int64_t> EntryBounds(
    std::span<const Settlement> settlements, std::span<const std::size_t> which
) {
    std::vector<std::int64_t> bounds;
    if (which.size() <= kTasksPerEntry) return bounds;
    std::vector<std::int64_t> tasks;
    for (std::size_t i : which) tasks.push_back(settlements[i].task.value());
    std::ranges::sort(tasks);
    for (std::size_t at = kTasksPerEntry; at < tasks.size(); at += kTasksPerEntry) {
        bounds.push_back(tasks[at]);
    }
    return bounds;
}

// Two holders of one task, one of which has lost it, may both say how it went.
bool EachOnce(std::span<const Settlement> settlements, std::span<const std::size_t> which) {
    std::unordered_set<TaskId> tasks;
    return std::ranges::all_of(which, [&](std::size_t i) {
        return tasks.insert(settlements[i].task).second;
    });
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
    std::vector<SettleReply> replies(settlements.size());
    // A wait by itself: it submits, and may have to wait for keys that others hold.
    std::vector<std::size_t> together, alone;
    for (std::size_t i = 0; i < settlements.size(); ++i) {
        (settlements[i].kind == Kind::kBlocked ? alone : together).push_back(i);
    }
    bool committed = !together.empty() && SettleTogether(settlements, together, replies);
    if (!committed) alone.insert(alone.begin(), together.begin(), together.end());
    SettleEach(settlements, alone, committed, replies);
    CancelRest();
    return replies;
}

// False: nothing was changed, because others hold a lock that one of them needs.
bool PostgresStore::SettleTogether(
    std::span<const Settlement> settlements,
    std::span<const std::size_t> which,
    std::vector<SettleReply>& replies
) {
    TransactionOptions options;
    options.lock_timeout = kSettlePatience;
    try {
        if (which.size() == settlements.size()) {
            replies = db_.Run(
                [&](Transaction& transaction) { return SettleIn(transaction, settlements); },
                options
            );
            return true;
        }
        std::vector<Settlement> some;
        for (std::size_t i : which) some.push_back(settlements[i]);
        std::vector<SettleReply> answers =
            db_.Run([&](Transaction& transaction) { return SettleIn(transaction, some); }, options);
        for (std::size_t k = 0; k < which.size(); ++k) replies[which[k]] = std::move(answers[k]);
        return true;
    } catch (const LockHeld&) {
        return false;
    }
}

// Each in a transaction of its own. One that others keep waiting holds up the rest for no longer
// than the patience is; once something is committed the caller must hear of it, so that what fails
// then is for later.
void PostgresStore::SettleEach(
    std::span<const Settlement> settlements,
    std::span<const std::size_t> which,
    bool committed,
    std::vector<SettleReply>& replies
) {
    base::Clock& clock = base::SystemClock();
    const base::Instant until = clock.Now() + kSettlePatience;
    for (std::size_t i : which) {
        Duration left = std::chrono::floor<Duration>(until - clock.Now());
        if (left <= Duration::zero()) {
            replies[i] = {SettleReply::Kind::kBusy, State::kInProgress, "others are waiting", {}};
            continue;
        }
        Duration patience = which.size() == 1 ? left : std::min(left, kShortPatience);
        try {
            replies[i] = SettleAlone(settlements[i], patience);
            committed = true;
        } catch (const LockHeld& held) {
            replies[i] = {SettleReply::Kind::kBusy, State::kInProgress, held.what(), {}};
        } catch (const Unavailable& away) {
            if (!committed) throw;
            replies[i] = {SettleReply::Kind::kBusy, State::kInProgress, away.what(), {}};
        }
    }
}

SettleReply PostgresStore::SettleAlone(const Settlement& settlement, Duration patience) {
    TransactionOptions options;
    options.lock_timeout = patience;
    for (int tries = 1;; ++tries) {
        try {
            return db_.Run(
                [&](Transaction& transaction) {
                    return SettleIn(transaction, {&settlement, 1}).at(0);
                },
                options
            );
        } catch (const OutdatedTypes& outdated) {
            if (tries == kTypeTries) throw Unavailable(outdated.what());
            catalog_.ReloadTypes();
        }
    }
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
    Completed completed;
    const bool plain = others.empty() && pieces.size() == 1 && !releases_ &&
                       seen.size() == settlements.size() &&
                       SettlePlain(transaction, settlements, replies, completed);
    if (plain) {
        pieces.clear();
        locked.clear();
    }
    if (!locked.empty()) {
        Params params;
        AddInts(params, Sorted(std::move(locked)));
        transaction.Defer(db_.sql.lock_leases, std::move(params));
    }
    Opened opened;
    auto add = [&](Opened&& more) { opened.insert(opened.end(), more.begin(), more.end()); };
    // Where tasks hold resources, those of the last ones did too: one trip less.
    const bool release =
        releases_ && others.empty() && pieces.size() == 1 && EachOnce(settlements, successes);
    for (const Piece& piece : pieces) {
        std::span<const std::size_t> which(successes.data() + piece.from, piece.count);
        SettleComplete(transaction, settlements, which, replies, release, completed);
    }
    if (!successes.empty()) releases_ = !completed.released.empty();
    if (completed.freed) {
        const auto ended = std::exchange(completed.released, {});
        add(LetGo(transaction, FreedOf(*completed.freed, ended), ended, {}));
    }
    const std::map<TaskId, ItemCounts> in_error =
        HearItemsOf(transaction, settlements, replies, successes, others);
    // What all of them held is let go of together: resources are locked in one order. (Not if that
    // was done above and one of them turns out to have items in error: then it may come to a
    // deadlock, which the server ends, and all of this is done again.)
    if (others.empty()) add(LetGo(transaction, completed.released, {}));
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
        std::vector<NewWait> waits;
        std::vector<Facts> held = ReadFacts(transaction.Query(db_.sql.lease_facts, params));
        std::vector<std::int64_t> sleepy;
        for (std::size_t i : others) {
            if (settlements[i].kind == Kind::kSnooze) sleepy.push_back(settlements[i].task.value());
        }
        const std::set<TaskId> awake = flows_.Awake(transaction, std::move(sleepy));
        for (const Facts& facts : held) {
            std::size_t i = seen.at(facts.token);
            if (settlements[i].task != facts.id) continue;
            if (settlements[i].kind == Kind::kSnooze && awake.contains(facts.id)) {
                Settlement at_once = settlements[i];
                at_once.delay = Duration::zero();
                replies[i] = SettleOne(facts, at_once, changes);
                opened.push_back(catalog_.LaneOf(facts.lane).queue);
                continue;
            }
            if (auto items = in_error.find(facts.id); items != in_error.end()) {
                Settlement heard = settlements[i];
                HearItems(items->second, catalog_.PolicyOf(facts.policy), facts.attempt + 1, heard);
                replies[i] = SettleOne(facts, heard, changes);
                continue;
            }
            replies[i] = settlements[i].kind == Kind::kBlocked
                             ? SettleBlocked(transaction, facts, settlements[i], changes, waits)
                             : SettleOne(facts, settlements[i], changes);
        }
        changes.AddReleased(std::move(completed.released));
        add(Apply(transaction, changes));
        WriteWaits(transaction, waits);
        std::erase_if(waits, [](const NewWait& wait) {
            return wait.verdict() == WaitVerdict::kGoesOn;
        });
        for (const NewWait& over : waits) {
            replies[IndexOf(settlements, over.waiter)].state = State::kOpen;
        }
        add(EndWaits(transaction, std::move(waits)));
    }
    add(EndOrder(transaction, completed.ordered));
    add(TellWaiters(transaction, completed.waited_for));
    if (!opened.empty()) replies.front().opened = std::move(opened);
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

std::map<TaskId, ItemCounts> PostgresStore::ItemsInError(
    Transaction& transaction, std::vector<std::int64_t> tasks
) {
    std::map<TaskId, ItemCounts> found;
    if (tasks.empty()) return found;
    Params params;
    AddInts(params, Sorted(std::move(tasks)));
    Rows rows = transaction.Query(db_.sql.items_in_error, params);
    for (int i = 0; i < rows.size(); ++i) {
        found[TaskId(rows.Int(i, 0))] = {rows.Int(i, 1), rows.Int(i, 2)};
    }
    return found;
}

// Of those that would complete. Successes that are not plain ones because of them join the others.
std::map<TaskId, ItemCounts> PostgresStore::HearItemsOf(
    Transaction& transaction,
    std::span<const Settlement> settlements,
    std::span<const SettleReply> replies,
    std::span<const std::size_t> successes,
    std::vector<std::size_t>& others
) {
    std::vector<std::int64_t> tasks;
    std::vector<std::size_t> left_out;
    for (std::size_t i : successes) {
        if (replies[i].kind == SettleReply::Kind::kLost) left_out.push_back(i);
    }
    for (std::size_t i : left_out) tasks.push_back(settlements[i].task.value());
    for (std::size_t i : others) {
        if (settlements[i].kind == Kind::kComplete) tasks.push_back(settlements[i].task.value());
    }
    auto in_error = ItemsInError(transaction, std::move(tasks));
    for (std::size_t i : left_out) {
        if (in_error.contains(settlements[i].task)) others.push_back(i);
    }
    return in_error;
}

// Successes of which nothing is to be said but their outputs. False: nothing was done, because one
// of them has more to it; the next ones are not asked then.
bool PostgresStore::SettlePlain(
    Transaction& transaction,
    std::span<const Settlement> settlements,
    std::vector<SettleReply>& replies,
    Completed& completed
) {
    auto is_plain = [](const Settlement& settlement) {
        return !settlement.warning && !settlement.exit_code && settlement.stderr_tail.empty();
    };
    if (!std::ranges::all_of(settlements, is_plain)) return false;
    if (plain_pause_ > 0) {
        --plain_pause_;
        return false;
    }
    ArrayOf task(oid::kInt8), key(oid::kInt8), secret(oid::kInt8), period(oid::kInt4),
        output(oid::kText);
    std::vector<std::int64_t> keys;
    std::vector<std::size_t> all(settlements.size());
    for (std::size_t i = 0; i < settlements.size(); ++i) {
        const Settlement& settlement = settlements[i];
        all[i] = i;
        keys.push_back(KeyOf(settlement.token));
        task.Int(settlement.task.value());
        key.Int(keys.back());
        secret.Int(SecretOf(settlement.token));
        period.Int(catalog_.PeriodOf(settlement.task));
        output.TextOrNull(settlement.output);
    }
    Params params;
    for (ArrayOf* column : {&task, &key, &secret, &period}) column->AddTo(params);
    output.AddUnlessNothing(params);
    AddInts(params, Sorted(std::move(keys)));
    AddInts(params, EntryBounds(settlements, all));
    Rows rows = transaction.Query(db_.sql.complete_plain, params);
    if (!rows.Bool(0, 0)) {
        plain_pause_ = kPauseAfterOther;
        return false;
    }
    base::TestPoint("store_postgres.settled_plain");
    std::ranges::fill(replies, SettleReply{SettleReply::Kind::kAccepted, State::kComplete});
    if (rows.IsNull(0, 1)) return true;
    for (std::int64_t id : rows.Ints(0, 1)) completed.waited_for[TaskId(id)] = State::kComplete;
    return true;
}

void PostgresStore::SettleComplete(
    Transaction& transaction,
    std::span<const Settlement> settlements,
    std::span<const std::size_t> which,
    std::vector<SettleReply>& replies,
    bool release,
    Completed& completed
) {
    ArrayOf task(oid::kInt8), key(oid::kInt8), secret(oid::kInt8), period(oid::kInt4),
        output(oid::kText), warning(oid::kBool), code(oid::kInt4), tail(oid::kText);
    std::vector<std::int64_t> keys;
    for (std::size_t i : which) {
        const Settlement& settlement = settlements[i];
        keys.push_back(KeyOf(settlement.token));
        task.Int(settlement.task.value());
        key.Int(KeyOf(settlement.token));
        secret.Int(SecretOf(settlement.token));
        period.Int(catalog_.PeriodOf(settlement.task));
        output.TextOrNull(settlement.output);
        settlement.warning ? warning.Bool(true) : warning.Null();
        settlement.exit_code ? code.Int(*settlement.exit_code) : code.Null();
        tail.TextOrNull(base::CleanText(settlement.stderr_tail, limits::kStderrTail));
    }
    Params params;
    for (ArrayOf* column : {&task, &key, &secret, &period}) column->AddTo(params);
    for (ArrayOf* column : {&output, &warning, &code, &tail}) column->AddUnlessNothing(params);
    AddInts(params, Sorted(keys));
    AddInts(params, EntryBounds(settlements, which));
    std::vector<postgres::Command> commands = {{&db_.sql.complete, &params}};
    Params held;
    if (release) {
        std::vector<std::int64_t> tasks, leases;
        for (std::size_t i : which) {
            tasks.push_back(settlements[i].task.value());
            leases.push_back(KeyOf(settlements[i].token));
        }
        held = ReleaseParams(tasks, leases, true);
        commands.push_back({&db_.sql.slots_release, &held});
    }
    std::vector<Rows> answers = transaction.Batch(commands, false);
    if (release) completed.freed = std::move(answers[1]);
    auto places = [&](int column) {
        std::vector<std::size_t> found;
        if (answers[0].IsNull(0, column)) return found;
        for (std::int64_t place : answers[0].Ints(0, column)) {
            found.push_back(which[static_cast<std::size_t>(place - 1)]);
        }
        return found;
    };
    auto task_at = [&](std::size_t i) { return settlements[i].task; };
    for (std::size_t i : places(0)) replies[i] = {SettleReply::Kind::kAccepted, State::kComplete};
    for (std::size_t i : places(1)) completed.waited_for[task_at(i)] = State::kComplete;
    for (std::size_t i : places(2)) {
        completed.released[task_at(i)] = {AttemptEnd::kComplete, KeyOf(settlements[i].token)};
    }
    for (std::size_t i : places(3)) completed.ordered[task_at(i)] = State::kComplete;
}

SettleReply PostgresStore::SettleOne(
    const Facts& facts, const Settlement& settlement, Changes& changes
) {
    if (auto valid = CheckResources(settlement); !valid) {
        return {SettleReply::Kind::kRefused, State::kInProgress, valid.error().message, {}};
    }
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
    if (!settlement.unavailable.empty()) {
        changes.AddReport(
            {ResourceName(settlement.unavailable),
             store::EvidenceOf(settlement, lane.type, facts.node, facts.now),
             settlement.closed_for}
        );
    }
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
    bool refunded = what.event == Event::kSnooze || what.event == Event::kRelease ||
                    what.event == Event::kBlock;
    if (refunded) --after.attempt;
    // It has shown that it does not take its process with it, or never had the chance to.
    if (what.event != Event::kRelease && !settlement.crashed)
        after.lane = LaneWith(after.lane, false);
    if (settlement.needs && what.event == Event::kRelease) {
        after.lane = LaneNeeding(after.lane, *settlement.needs);
    }
    if (what.to == State::kBlocked) {
        changes.AddOutside({after, what.to, std::nullopt, what.reason});
    } else if (what.to == State::kBackground) {
        std::optional<Time> expires;
        if (what.delay > Duration::zero()) expires = facts.now + what.delay;
        changes.AddOutside({after, what.to, expires, what.reason});
    } else {
        after.state = what.to;
        changes.AddWaiting({after, facts.now + what.delay});
    }
    return {SettleReply::Kind::kAccepted, what.to};
}

SettleReply PostgresStore::SettleBlocked(
    Transaction& transaction,
    const Facts& facts,
    const Settlement& settlement,
    Changes& changes,
    std::vector<NewWait>& waits
) {
    // What it is to wait for is not made when it is to stop.
    if (facts.cancel_asked()) return SettleOne(facts, settlement, changes);
    transaction.Defer(kSavepoint);
    auto wait = MakeChildren(transaction, facts, settlement);
    transaction.Defer(wait ? kRelease : kBack);
    if (!wait) return {SettleReply::Kind::kRefused, State::kInProgress, wait.error().message, {}};
    waits.push_back(std::move(*wait));
    return SettleOne(facts, settlement, changes);
}

Result<State> PostgresStore::FinishBackground(const BackgroundFinish& finish) {
    Result<State> state =
        db_.Run([&](Transaction& transaction) { return FinishBackgroundIn(transaction, finish); });
    CancelRest();
    return state;
}

Result<State> PostgresStore::FinishBackgroundIn(
    Transaction& transaction, const BackgroundFinish& finish
) {
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
            Code::kLeaseLost, "task {} is in background under another token", finish.task.value()
        );
    }
    Params ids;
    AddInts(ids, std::vector<std::int64_t>{finish.task.value()});
    Facts facts = ReadFacts(transaction.Query(db_.sql.take_outside, ids)).at(0);
    const auto in_error = ItemsInError(transaction, {finish.task.value()});
    const HeardFinish heard = HearFinish(
        finish,
        in_error.empty() ? ItemCounts{} : in_error.begin()->second,
        catalog_.PolicyOf(facts.policy),
        facts.attempt
    );
    const Disposition& what = heard.what;
    if (heard.error) facts.error = WriteError(heard.error);
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
             complete && heard.warning,
             complete ? std::string() : facts.error,
             what.reason}
        );
    }
    Apply(transaction, changes);
    return what.to;
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
