#include "engine/execute.h"

#include <algorithm>
#include <deque>

#include "base/check.h"
#include "base/test_point.h"
#include "engine/acting.h"
#include "engine/context.h"
#include "engine/isolate/isolate.h"

namespace stint::engine {

Executor::Executor(
    const Parts& parts,
    AttemptTable& attempts,
    Ahead& ahead,
    Session& session,
    Settler& settler,
    const SafeHooks& hooks,
    Duration timeout_grace,
    Duration kill_grace
)
    : parts_(parts.For("execute")),
      attempts_(attempts),
      ahead_(ahead),
      session_(session),
      settler_(settler),
      hooks_(hooks),
      timeout_grace_(timeout_grace),
      kill_grace_(kill_grace) {
}

bool Executor::Run(const std::vector<AttemptPtr>& crew) {
    base::TestPoint("execute.before");
    SafeHooks::Detached before = hooks_.Before();
    std::vector<AttemptPtr> begun = BeginAll(crew);
    if (begun.empty()) return true;
    const base::Instant begun_at = parts_.clock.Now();
    // From Begin on we may be left behind: nothing of the worker may be touched …
    std::shared_ptr<Crew> together = begun.front()->crew();
    bool hook_was_well = true;
    for (const AttemptPtr& attempt : begun) hook_was_well &= before(Info(*attempt));
    std::vector<AttemptResult> results = CallAll(begun);

    // … until it is certain that we are not.
    if (together && !together->Return()) return false;
    if (!together && !begun.front()->Return()) return false;
    hooks_.Count(hook_was_well);
    ahead_.Ran(parts_.clock.Now() - begun_at, static_cast<int>(begun.size()));
    for (std::size_t i = 0; i < begun.size(); ++i) {
        const AttemptPtr& attempt = begun[i];
        if (together && !attempt->Return()) continue;  // given up alone, before the others began
        auto settlement = Conclude(
            attempt->lease, attempt->session, results[i], attempt->why(), parts_.random.Fraction()
        );
        const bool down = model::Covers(attempt->lease.placement.needs, settlement.unavailable, 1);
        Report(attempt, std::move(settlement), Told::kHere, results[i].completed_in);
        // They would find out one by one; the store keeps them until it works.
        if (down) HandBackBehind(*attempt);
    }
    if (ended_) ended_();
    base::TestPoint("execute.after");
    return true;
}

std::vector<AttemptPtr> Executor::BeginAll(const std::vector<AttemptPtr>& crew) {
    auto together =
        crew.front()->handler && crew.front()->handler->batch ? std::make_shared<Crew>() : nullptr;
    std::vector<AttemptPtr> begun;
    for (const AttemptPtr& attempt : crew) {
        if (ShouldNotStart(attempt)) {
            ReturnUnstarted(attempt);
            continue;
        }
        attempt->Join(together);
        // Before the handler can do harm: what is not noted here is not suspected after a crash.
        if (attempt->flight) attempt->flight_slot = attempt->flight->Start(attempt->lease.task);
        ++parts_.metrics.started;
        if (attempt->Begin(parts_.clock.Now(), timeout_grace_)) {
            begun.push_back(attempt);
            continue;
        }
        if (attempt->flight) attempt->flight->End(attempt->flight_slot);
        ReturnUnstarted(attempt);
    }
    return begun;
}

void Executor::ReturnUnstarted(const AttemptPtr& attempt) {
    if (!attempt->Return()) return;  // nothing ran here: the thread is not lost
    // One that was forbidden to start belongs to a session that is over.
    auto why = attempt->why() == StopReason::kNone ? StopReason::kLeaseLost : attempt->why();
    auto settlement = Conclude(attempt->lease, attempt->session, AttemptResult{}, why, 0);
    Report(attempt, std::move(settlement), Told::kNobody);
    if (ended_) ended_();
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

std::vector<AttemptResult> Executor::CallAll(const std::vector<AttemptPtr>& crew) const {
    if (crew.front()->crew()) return CallBatch(crew);
    return {Call(crew.front())};
}

// Touches only what the attempts own, as the next.
std::vector<AttemptResult> Executor::CallBatch(const std::vector<AttemptPtr>& crew) {
    std::deque<AttemptContext> contexts;  // they do not move
    std::vector<detail::ErasedItem> items;
    for (const AttemptPtr& attempt : crew) {
        items.push_back({&contexts.emplace_back(attempt), attempt->lease.input});
    }
    std::vector<detail::ErasedEnd> ends;
    try {
        // One of them has to stand for all: the newest, since what follows from others comes late.
        auto newest = std::ranges::max_element(crew, {}, [](const AttemptPtr& attempt) {
            return attempt->lease.task;
        });
        Acting acting((*newest)->lease.task, (*newest)->desk);
        ends = crew.front()->handler->batch(items);
    } catch (...) {
        ends.assign(crew.size(), {.thrown = std::current_exception()});
    }
    std::vector<AttemptResult> results(crew.size());
    for (std::size_t i = 0; i < crew.size(); ++i) {
        results[i].end = std::move(ends.at(i).outcome);
        if (ends[i].thrown) results[i].end = EndOf(ends[i].thrown);
        contexts[i].HearItems(results[i]);
        std::move(contexts[i]).Into(results[i]);
    }
    return results;
}

// Touches only what the attempt owns: the handler may outlive the worker.
AttemptResult Executor::Call(const AttemptPtr& attempt) const {
    AttemptResult result;
    AttemptContext context(attempt);
    try {
        if (!attempt->handler) {
            throw Retryable("this worker has no handler for type " + attempt->lease.type);
        }
        Acting acting(attempt->lease.task, attempt->desk);
        if (attempt->handler->isolation.enabled) {
            result = isolate::RunChild(*attempt, context, kill_grace_);
        } else {
            result.end = attempt->handler->handler(context, attempt->lease.input);
        }
    } catch (...) {
        result.end = EndOf(std::current_exception());
    }
    context.HearItems(result);
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
    struct Report report {
        .settlement = std::move(settlement), .queue = attempt->lease.queue, .uncertain = uncertain
    };
    if (report.settlement.kind == store::Settlement::Kind::kBlocked) {
        report.if_refused = std::make_shared<store::Settlement>(
            IfRefused(attempt->lease, attempt->session, parts_.random.Fraction())
        );
    }
    const model::Placement& placement = attempt->lease.placement;
    report.frees = !placement.needs.empty() || !placement.order_key.empty();
    settler_.Push(std::move(report), std::move(trace));
    attempts_.Remove(*attempt);
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
    CountLostThread(*attempt);
    ++parts_.metrics.hung;
    parts_.log.Error(
        "a handler ignored its timeout; its thread is given up",
        {{"task", attempt->lease.task.ToString()}, {"type", attempt->lease.type}}
    );
    auto settlement = HungUp(attempt->lease, attempt->session, parts_.random.Fraction());
    Report(attempt, std::move(settlement), Told::kAside);
    HandBackCrew(*attempt);
    HandBackBehind(*attempt);  // nobody leaves the seat any more that they wait for
    if (ended_) ended_();
}

// Those that wait for a seat of its group.
void Executor::HandBackBehind(const Attempt& attempt) {
    for (const AttemptPtr& other : attempts_.TakeWaitingWith(attempt)) HandBack(other);
}

// Its thread ran others in the same call: they are given up with it, without blame.
void Executor::HandBackCrew(const Attempt& given_up) {
    std::shared_ptr<Crew> together = given_up.crew();
    if (!together) return;
    for (const AttemptPtr& other : attempts_.All()) {
        if (other->crew() == together) HandBack(other);
    }
}

void Executor::CountLostThread(const Attempt& attempt) {
    std::shared_ptr<Crew> together = attempt.crew();
    if (!together || together->CountLoss()) ++threads_lost_;
}

void Executor::HandBack(const AttemptPtr& attempt) {
    Attempt::Abandoned how = attempt->Abandon();
    if (how == Attempt::Abandoned::kNo) return;  // it has just ended by itself
    bool ran = how == Attempt::Abandoned::kRunning;
    if (ran) {
        CountLostThread(*attempt);
        parts_.log.Error(
            "a handler ignored the request to stop; its thread is left behind, its task handed "
            "back",
            {{"task", attempt->lease.task.ToString()}, {"type", attempt->lease.type}}
        );
    }
    Report(attempt, Release(attempt->lease, attempt->session), ran ? Told::kAside : Told::kNobody);
    if (ran) HandBackBehind(*attempt);  // as in GiveUp: it keeps its seat
    if (ended_) ended_();
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

}  // namespace stint::engine
