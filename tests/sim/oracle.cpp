// What every commit must satisfy.
#include "sim/oracle.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "sim/clock.h"
#include "sim/plans.h"

namespace stint::sim {

using model::AuditEntry;
using model::Event;
using model::IsTerminal;
using model::State;
using model::TaskRecord;

namespace {

constexpr std::size_t kTraceLines = 60;

bool IsLive(State state) {
    return !IsTerminal(state);
}

bool Has(const Change& change, Event event) {
    return std::any_of(
        change.transitions.begin(),
        change.transitions.end(),
        [&](const store::CommittedTransition& transition) {
            return transition.entry.event == event;
        }
    );
}

// What the calling fiber is doing inside the store. Each has its own: a bug may let one in while
// another is there.
thread_local Call call_now = Call::kNone;

// Which events an operation may make.
bool MayMake(Call call, Event event) {
    switch (call) {
        case Call::kSubmit:
            return event == Event::kSubmit || event == Event::kEdit || event == Event::kBlock ||
                   event == Event::kUnblock || event == Event::kCancel;
        case Call::kClaim:
            return event == Event::kClaim || event == Event::kRetryDue;
        case Call::kSettle:
        case Call::kWrite:
            return event == Event::kComplete || event == Event::kFailRetryable ||
                   event == Event::kFailFinal || event == Event::kSnooze ||
                   event == Event::kRelease || event == Event::kBackground ||
                   event == Event::kCancel || event == Event::kQuarantine ||
                   event == Event::kReclaim || event == Event::kBlock || event == Event::kUnblock ||
                   event == Event::kSubmit || (call == Call::kWrite && event == Event::kEdit);
        case Call::kReclaim:
            return event == Event::kReclaim || event == Event::kQuarantine ||
                   event == Event::kFailFinal || event == Event::kFailRetryable ||
                   event == Event::kCancel || event == Event::kBackgroundTimeout ||
                   event == Event::kUnblock;
        case Call::kFinish:
            return event == Event::kComplete || event == Event::kFailRetryable ||
                   event == Event::kFailFinal || event == Event::kCancel ||
                   event == Event::kUnblock;
        case Call::kCancel:
            return event == Event::kCancel || event == Event::kUnblock;
        case Call::kRetry:
            return event == Event::kOperatorRetry;
        case Call::kDiscard:
            return event == Event::kFailFinal || event == Event::kUnblock ||
                   event == Event::kCancel;
        case Call::kEdit:
            return event == Event::kEdit;
        case Call::kHousekeep:
            return event == Event::kExpire || event == Event::kUnblock || event == Event::kCancel;
        case Call::kPublish:
        case Call::kSession:
        case Call::kNone:
            return false;
    }
    return false;
}

}  // namespace

std::string_view CallName(Call call) {
    constexpr std::array<std::string_view, 14> kNames = {
        "none",
        "submit",
        "claim",
        "settle",
        "reclaim",
        "finish",
        "cancel",
        "retry",
        "discard",
        "edit",
        "housekeep",
        "write",
        "publish",
        "session"};
    return kNames.at(static_cast<std::size_t>(call));
}

Time Oracle::now() const {
    return TrueTime(world_);
}

void Oracle::Violate(std::string_view invariant, TaskId task, std::string what) {
    if (violation_) return;  // the first one tells the story
    for (const std::string& text : ignored_) {
        if (what.find(text) != std::string::npos) return;
    }
    violation_.emplace();
    violation_->invariant = invariant;
    violation_->task = task;
    violation_->what = std::move(what);
    if (auto shadow = shadows_.find(task); shadow != shadows_.end()) {
        violation_->history = shadow->second.history;
    }
    violation_->trace = world_.RecentTrace(kTraceLines);
    world_.Stop();
}

Oracle::Oracle(World& world, store::MemoryStore& store, Duration lease)
    : world_(world), store_(store), lease_(lease) {
    store_.SetCommitListener([this](const store::CommittedTransition& transition) {
        committed_.push_back(transition);
    });
}

void Oracle::Begin(Call call) {
    call_now = call;
}

void Oracle::End() {
    Digest();
    call_now = Call::kNone;
    staged_effects_.clear();
    before_.clear();
}

void Oracle::Digest() {
    if (committed_.empty()) return;
    ++commits_;
    std::map<TaskId, Change> changes;
    for (store::CommittedTransition& transition : committed_) {
        TaskId task = transition.entry.task;
        changes[task].transitions.push_back(std::move(transition));
    }
    committed_.clear();
    for (auto& [task, change] : changes) {
        auto record = store_.Get(task);
        if (!record) {
            Violate("I1", task, "a task is gone");
            continue;
        }
        change.after = std::move(*record);
        bool held =
            change.after.state == State::kInProgress || change.after.state == State::kBackground;
        if (held) change.token = change.transitions.back().token;
        Judge(change);
    }
    JudgeWaits(changes);
}

void Oracle::Refresh(TaskId task) {
    auto shadow = shadows_.find(task);
    if (shadow == shadows_.end()) return;
    auto record = store_.Get(task);
    if (!record) return Violate("I1", task, "a task is gone");
    if (record->state != shadow->second.record.state ||
        record->claim_no != shadow->second.record.claim_no) {
        Violate("I15", task, "the state changed without an audit entry");
    }
    shadow->second.record = std::move(*record);
}

void Oracle::Judge(const Change& change) {
    const TaskRecord& after = change.after;
    auto [place, fresh] = shadows_.try_emplace(after.id);
    Shadow& shadow = place->second;
    if (fresh) {
        shadow.record = after;
        shadow.record.attempt = 0;
        shadow.record.claim_no = 0;
        if (change.transitions.front().entry.event != Event::kSubmit) {
            Violate("I15", after.id, "a new task without an audit entry");
        }
        // The same step is asked for with every execution.
        if (!JudgeStep(after)) JudgeRequest(after);
        JudgeScheduled(after);
    }
    std::optional<State> state;
    if (!fresh) state = shadow.record.state;
    for (const store::CommittedTransition& transition : change.transitions) {
        if (transition.entry.from != state) {
            Violate("I15", after.id, "an audit entry from another state");
        }
        JudgeTransition(shadow, transition, change);
        state = transition.entry.to;
    }
    if (state != after.state) Violate("I15", after.id, "the state changed without an audit entry");
    if (after.claim_no != shadow.record.claim_no && !Has(change, Event::kClaim)) {
        Violate("I4", after.id, "the claim number moved without a claim");
    }
    JudgeKeys(shadow, change);
    JudgeEffects(change);
    if (shadow.token.valid() && shadow.token != change.token) shadow.spent.insert(shadow.token);
    shadow.record = after;
    shadow.token = change.token;
}

void Oracle::JudgeTransition(
    Shadow& shadow, const store::CommittedTransition& transition, const Change& change
) {
    const AuditEntry& entry = transition.entry;
    const TaskRecord& after = change.after;
    shadow.history.push_back(fmt::format(
        "{:>12.6f} {:<9} {:<18} {} -> {}  attempt {} claim {} generation {} session {} by {}{}{}",
        std::chrono::duration<double>(world_.now()).count(),
        CallName(call_now),
        model::EventName(entry.event),
        entry.from ? model::StateName(*entry.from) : "-",
        model::StateName(entry.to),
        after.attempt,
        after.claim_no,
        after.generation,
        entry.session.valid() ? entry.session.ToString().substr(0, 6) : "-",
        entry.actor,
        entry.reason.empty() ? "" : ": ",
        entry.reason
    ));
    ++transitions_;
    ++shadow.entries;
    if (!transition.audited) Violate("I15", after.id, "a transition without its audit entry");
    if (model::Next(entry.from, entry.event) != entry.to) {
        Violate("I2", after.id, "a transition that the table refuses");
    }
    if (!MayMake(call_now, entry.event)) {
        Violate(
            "I2",
            after.id,
            fmt::format(
                "{} made the transition {}", CallName(call_now), model::EventName(entry.event)
            )
        );
    }
    if (entry.from == State::kInProgress && transition.token != shadow.token) {
        Violate("I3", after.id, "left its holder under another token than the holder's");
    }
    JudgeEvent(shadow, entry, change);
}

void Oracle::JudgeEvent(Shadow& shadow, const AuditEntry& entry, const Change& change) {
    const TaskRecord& before = shadow.record;
    if (entry.from && IsTerminal(*entry.from) && change.after.generation == before.generation) {
        Violate("I2", before.id, "left a terminal state within its generation");
    }
    if (IsTerminal(entry.to)) {
        if (shadow.terminal_in_generation == change.after.generation) {
            Violate("I2", before.id, "ended twice in one generation");
        }
        shadow.terminal_in_generation = change.after.generation;
    }
    switch (entry.event) {
        case Event::kClaim:
            JudgeClaim(shadow, change);
            break;
        case Event::kOperatorRetry:
            JudgeOperator(shadow, change);
            break;
        case Event::kBackgroundTimeout:
            if (before.expires_at && *before.expires_at > now()) {
                Violate("I14", before.id, "its background time was not over");
            }
            break;
        case Event::kExpire:
            if (!before.start_by || *before.start_by > now()) {
                Violate("I14", before.id, "expired before its start-by deadline");
            }
            break;
        default:
            if (entry.from != State::kInProgress) break;
            if (call_now == Call::kReclaim) {
                JudgeReclaim(shadow, entry, change);
            } else {
                JudgeHolder(shadow, entry, change);
            }
    }
}

void Oracle::JudgeClaim(const Shadow& shadow, const Change& change) {
    const TaskRecord& before = shadow.record;
    const TaskRecord& after = change.after;
    if (after.attempt != before.attempt + 1 || after.claim_no != before.claim_no + 1) {
        Violate(
            "I4",
            after.id,
            fmt::format(
                "claimed: attempt {} -> {}, claim {} -> {}",
                before.attempt,
                after.attempt,
                before.claim_no,
                after.claim_no
            )
        );
    }
    if (after.max_attempts > 0 && after.attempt > after.max_attempts) {
        Violate("I4", after.id, "claimed beyond its attempts");
    }
    if (before.due_at > now()) {
        auto early = std::chrono::duration<double>(before.due_at - now()).count();
        Violate("I14", after.id, fmt::format("claimed {:.3f} s before it was due", early));
    }
    if (before.start_by && *before.start_by < now()) {
        Violate("I14", after.id, "claimed after its start-by deadline");
    }
    if (before.cancel_requested) Violate("I13", after.id, "claimed after a cancel");
    if (!change.token.valid() || shadow.spent.contains(change.token) ||
        change.token == shadow.token) {
        Violate("I3", after.id, "claimed without a fresh token");
    }
    if (SessionDead(after.session)) {
        Violate("I5", after.id, "claimed by a session whose lease is over");
    }
}

// The holder's own writes: its token was compared when the call began; here, what they may change.
void Oracle::JudgeHolder(const Shadow& shadow, const AuditEntry& entry, const Change& change) {
    const TaskRecord& before = shadow.record;
    bool refunds = entry.event == Event::kSnooze || entry.event == Event::kRelease ||
                   entry.event == Event::kBlock;
    if (refunds && change.after.attempt != before.attempt - 1) {
        Violate(
            "I4",
            before.id,
            fmt::format("{} did not refund the attempt", model::EventName(entry.event))
        );
    }
    if (!refunds && change.after.attempt != before.attempt) {
        Violate("I4", before.id, "settling changed the attempt number");
    }
    bool failed = entry.event == Event::kFailFinal || entry.event == Event::kFailRetryable;
    if (failed && succeeded_.contains({before.id, before.claim_no})) {
        Violate("I2", before.id, "its handler succeeded and a failure was recorded");
    }
    bool goes_on = entry.event == Event::kFailRetryable || entry.event == Event::kSnooze ||
                   entry.event == Event::kRelease;
    if (before.cancel_requested && goes_on) {
        Violate("I13", before.id, "a cancelled task was put back to be tried again");
    }
    JudgeRunningHandler(shadow);
}

// A lease may be taken only when its session's time is over, or the attempt's own.
void Oracle::JudgeReclaim(const Shadow& shadow, const AuditEntry& entry, const Change& change) {
    const TaskRecord& before = shadow.record;
    bool timed_out = before.timeout > Duration::zero() && before.claimed_at &&
                     *before.claimed_at + before.timeout <= now();
    if (!SessionDead(before.session) && !timed_out) {
        Violate("I5", before.id, "taken from a session whose lease is not over");
    }
    // Refunded when it had not begun, or had been told to stop and obeyed.
    std::pair attempt{before.id, before.claim_no};
    bool refunded = change.after.attempt == before.attempt - 1;
    bool counts = spent_attempts_.contains(attempt) || running_.contains(attempt);
    if (change.after.attempt != before.attempt && (!refunded || counts)) {
        Violate("I4", before.id, "reclaiming changed the attempt number: a crash is an attempt");
    }
    if (before.cancel_requested && entry.to == State::kOpen) {
        Violate("I13", before.id, "a cancelled task was reclaimed to be tried again");
    }
    bool crashed_alone = shadow.alone && !timed_out && !refunded && entry.event == Event::kReclaim;
    if (crashed_alone && change.after.crash_count != before.crash_count + 1) {
        Violate("I4", before.id, "a crash while alone was not counted");
    }
    if (entry.event == Event::kReclaim && change.after.crash_count >= model::limits::kMaxCrashes) {
        Violate("I4", before.id, "crashed too often alone and was not quarantined");
    }
    JudgeRunningHandler(shadow);
}

// A worker that can act has told its handler to stop before the lease is taken from it.
void Oracle::JudgeRunningHandler(const Shadow& shadow) {
    if (call_now != Call::kReclaim) return;
    auto running = running_.find({shadow.record.id, shadow.record.claim_no});
    if (running == running_.end()) return;
    const Process& process = *running->second.process;
    // Nor could it know that the store's clock was set forward.
    Virtual since = std::max(process.last_pause_end(), world_.clock_stepped_at());
    bool could_act = !process.dead() && world_.now() > since + lease_;
    if (could_act && !running->second.stop.stop_requested()) {
        Violate(
            "I5",
            shadow.record.id,
            "its lease was taken while its handler had not been told to stop"
        );
    }
}

void Oracle::JudgeOperator(const Shadow& shadow, const Change& change) {
    const TaskRecord& before = shadow.record;
    int expected = IsTerminal(before.state) ? before.generation + 1 : before.generation;
    if (change.after.generation != expected) {
        Violate("I2", before.id, "an operator's retry did not count the generation");
    }
    if (change.after.generation > before.generation && change.after.attempt != 0) {
        Violate("I4", before.id, "a new generation did not begin with fresh attempts");
    }
}

void Oracle::JudgeKeys(const Shadow& shadow, const Change& change) {
    const TaskRecord& after = change.after;
    const TaskRecord& before = shadow.record;
    auto key_of = [](const TaskRecord& task) {
        return UniqueKey{task.tenant.value(), task.type, task.unique_key};
    };
    if (!before.unique_key.empty()) {
        auto held = unique_.find(key_of(before));
        if (held != unique_.end() && held->second == before.id) unique_.erase(held);
    }
    if (after.unique_key.empty() || !IsLive(after.state)) return;
    auto [held, free] = unique_.emplace(key_of(after), after.id);
    if (!free && held->second != after.id) {
        Violate(
            "I7",
            after.id,
            fmt::format("two live tasks with one unique key: {} too", held->second.value())
        );
    }
}

// A client writes a fresh marker into each request: two tasks with one marker are one request,
// stored twice.
void Oracle::JudgeRequest(const TaskRecord& fresh) {
    std::int64_t marker = PlanBook::Marker(fresh.input);
    if (marker < 0) return;
    auto [known, first] = markers_.emplace(marker, fresh.id);
    if (!first) {
        Violate(
            "I8",
            fresh.id,
            fmt::format("one request was stored twice: {} too", known->second.value())
        );
    }
}

void Oracle::JudgeScheduled(const TaskRecord& fresh) {
    constexpr std::string_view kBegins = "{\"at\":\"";
    if (fresh.tags.empty() || !fresh.tags.back().starts_with("schedule:")) return;
    if (!fresh.input.starts_with(kBegins)) return;
    std::string at = fresh.input.substr(kBegins.size(), fresh.input.size() - kBegins.size() - 2);
    auto [known, first] = runs_.emplace(ScheduledRun{fresh.tags.back(), at}, fresh.id);
    if (first) return;
    Violate(
        "I11",
        fresh.id,
        fmt::format(
            "{} at {} became a task twice: {} too", fresh.tags.back(), at, known->second.value()
        )
    );
}

void Oracle::JudgeEffects(const Change& change) {
    if (change.after.type != "sim.tx" || change.after.state != State::kComplete) return;
    auto staged = std::count(staged_effects_.begin(), staged_effects_.end(), change.after.id);
    if (staged != 1) {
        Violate("I16", change.after.id, fmt::format("completed with {} effects", staged));
    }
}

bool Oracle::SessionDead(SessionId session) const {
    auto found = sessions_.find(session);
    return found == sessions_.end() || found->second.over || found->second.lease_until <= now();
}

}  // namespace stint::sim
