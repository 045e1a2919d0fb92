#include "engine/execute.h"

#include <algorithm>

#include "base/check.h"
#include "base/test_point.h"
#include "engine/context.h"
#include "engine/isolate/isolate.h"

namespace stint::engine {

Executor::Executor(
    const Parts& parts,
    AttemptTable& attempts,
    Session& session,
    Settler& settler,
    const SafeHooks& hooks,
    Duration timeout_grace,
    Duration kill_grace
)
    : parts_(parts.For("execute")),
      attempts_(attempts),
      session_(session),
      settler_(settler),
      hooks_(hooks),
      timeout_grace_(timeout_grace),
      kill_grace_(kill_grace) {
}

bool Executor::Run(const AttemptPtr& attempt) {
    base::TestPoint("execute.before");
    if (ShouldNotStart(attempt)) {
        if (!attempt->Return()) return true;  // nothing ran here: the thread is not lost
        auto settlement =
            Conclude(attempt->lease, attempt->session, AttemptResult{}, attempt->why(), 0);
        Report(attempt, std::move(settlement), Told::kNobody);
        return true;
    }
    SafeHooks::Detached before = hooks_.Before();
    // Before the handler can do harm: what is not noted here is not suspected after a crash.
    attempt->flight = flight();
    if (attempt->flight) attempt->flight_slot = attempt->flight->Start(attempt->lease.task);
    ++parts_.metrics.started;
    if (!attempt->Begin(parts_.clock.Now(), timeout_grace_)) {
        if (attempt->flight) attempt->flight->End(attempt->flight_slot);
        return true;
    }
    // From Begin on we may be left behind: nothing of the worker may be touched …
    bool hook_was_well = before(Info(*attempt));
    AttemptResult result = Call(attempt);

    // … until it is certain that we are not.
    if (!attempt->Return()) return false;
    hooks_.Count(hook_was_well);
    auto settlement = Conclude(
        attempt->lease, attempt->session, result, attempt->why(), parts_.random.Fraction()
    );
    Report(attempt, std::move(settlement), Told::kHere, result.completed_in);
    base::TestPoint("execute.after");
    return true;
}

// Told to stop before it began, or claimed so long ago that it may be somebody else's.
bool Executor::ShouldNotStart(const AttemptPtr& attempt) const {
    if (attempt->why() != StopReason::kNone) return true;
    base::Instant now = parts_.clock.Now();
    // The store counts an attempt's timeout from the claim: after a long wait for a slot a sweeper
    // would end it while the handler still believes in its time.
    bool waited_too_long =
        attempt->lease.timeout > Duration::zero() && now - attempt->claim_sent > timeout_grace_ / 2;
    if (session_.Live(attempt->session, now) && !waited_too_long) return false;
    attempt->RequestStop(StopReason::kLeaseLost);
    return true;
}

// Touches only what the attempt owns: the handler may outlive the worker.
AttemptResult Executor::Call(const AttemptPtr& attempt) const {
    AttemptResult result;
    AttemptContext context(attempt);
    try {
        if (!attempt->handler) {
            throw Retryable("this worker has no handler for type " + attempt->lease.type);
        }
        if (attempt->handler->isolation.enabled) {
            result = isolate::RunChild(*attempt, context, kill_grace_);
        } else {
            result.end = attempt->handler->handler(context, attempt->lease.input);
        }
    } catch (...) {
        result.end = Classify(std::current_exception());
    }
    std::move(context).Into(result);
    return result;
}

void Executor::TellHost(const AttemptPtr& attempt, const store::Settlement& settlement, Told told) {
    std::string error = settlement.error ? settlement.error->message : "";
    auto info = [attempt, name = OutcomeName(settlement), error] {
        AttemptInfo about = Info(*attempt);
        about.outcome = name;
        about.error = error;
        return about;
    };
    if (told == Told::kHere) {
        hooks_.After(info());
    } else if (told == Told::kAside) {
        attempts_.aside().Do([after = hooks_.AfterDetached(), info] { after(info()); });
    }
}

void Executor::Report(
    const AttemptPtr& attempt, store::Settlement settlement, Told told, bool uncertain
) {
    if (settlement.end == model::AttemptEnd::kTimedOut) ++parts_.metrics.timed_out;
    TellHost(attempt, settlement, told);
    if (settlement.error) {
        parts_.log.Info(
            "attempt failed",
            {{"task", attempt->lease.task.ToString()},
             {"type", attempt->lease.type},
             {"attempt", std::to_string(attempt->lease.attempt)},
             {"class", settlement.error->klass},
             {"error", settlement.error->message},
             {"stack", settlement.error->stack}}
        );
    }
    // Queued before it is no longer held: who counts both never misses one.
    Ran trace;
    if (told != Told::kNobody) trace = {attempt->flight, attempt->flight_slot, true};
    settler_.Push({std::move(settlement), attempt->lease.queue, uncertain}, std::move(trace));
    attempts_.Remove(*attempt);
    if (ended_) ended_();
}

base::Instant Executor::Watch() {
    base::Instant now = parts_.clock.Now();
    base::Instant next = base::Instant::max();
    for (const AttemptPtr& attempt : attempts_.All()) {
        if (attempt->lease.timeout <= Duration::zero() || attempt->ended()) continue;
        if (!attempt->running()) {  // may begin at any moment
            next = std::min<base::Instant>(next, now + attempt->lease.timeout);
            continue;
        }
        auto timeout_at = attempt->timeout_at();
        if (now < *timeout_at) {
            next = std::min(next, *timeout_at);
            continue;
        }
        attempt->RequestStop(StopReason::kTimeout);
        // A child is killed by its own keeper, which then returns.
        if (attempt->handler && attempt->handler->isolation.enabled) continue;
        base::Instant hung_at = attempt->hung_at().value();
        if (now < hung_at) {
            next = std::min(next, hung_at);
        } else {
            GiveUp(attempt);
        }
    }
    return next;
}

void Executor::GiveUp(const AttemptPtr& attempt) {
    if (attempt->Abandon() == Attempt::Abandoned::kNo) return;
    ++threads_lost_;
    ++parts_.metrics.hung;
    parts_.log.Error(
        "a handler ignored its timeout; its thread is given up",
        {{"task", attempt->lease.task.ToString()}, {"type", attempt->lease.type}}
    );
    auto settlement = HungUp(attempt->lease, attempt->session, parts_.random.Fraction());
    Report(attempt, std::move(settlement), Told::kAside);
}

void Executor::HandBack(const AttemptPtr& attempt) {
    Attempt::Abandoned how = attempt->Abandon();
    if (how == Attempt::Abandoned::kNo) return;  // it has just ended by itself
    bool ran = how == Attempt::Abandoned::kRunning;
    if (ran) {
        ++threads_lost_;
        parts_.log.Error(
            "a handler ignored the request to stop; its thread is left behind, its task handed "
            "back",
            {{"task", attempt->lease.task.ToString()}, {"type", attempt->lease.type}}
        );
    }
    Report(attempt, Release(attempt->lease, attempt->session), ran ? Told::kAside : Told::kNobody);
}

AttemptInfo Executor::Info(const Attempt& attempt) {
    return {
        .task = attempt.lease.task,
        .type = attempt.lease.type,
        .queue = attempt.lease.queue,
        .attempt = attempt.lease.attempt,
        .outcome = {},
        .error = {}};
}

void Executor::UseFlight(std::shared_ptr<FlightRecord> flight) {
    std::lock_guard guard(flight_mutex_);
    flight_ = std::move(flight);
}

std::shared_ptr<FlightRecord> Executor::flight() const {
    std::lock_guard guard(flight_mutex_);
    return flight_;
}

}  // namespace stint::engine
