#include "engine/core.h"

#include <algorithm>

#include "base/check.h"
#include "engine/new_task.h"
#include "model/limits.h"
#include "model/worker_note.h"
#include "store/resources.h"

namespace stint::engine {

using model::WorkerEvent;
using model::WorkerState;

namespace {

constexpr int kLeastSettleQueue = 64;
// What was claimed ahead and waits for so long for a slot is handed back.
constexpr Duration kStalledAfter = std::chrono::seconds{1};

store::NewSession Identity(const WorkerOptions& options, const Registry& registry) {
    store::NewSession identity;
    identity.hostname = options.hostname;
    identity.pid = options.pid;
    identity.slots = options.slots;
    identity.queues = options.queues;
    identity.types = registry.Types();
    identity.labels = options.labels;
    identity.version = options.version;
    identity.exclusive = options.exclusive;
    return identity;
}

}  // namespace

Worker::Core::Core(WorkerParts given, WorkerOptions options_in)
    : options(std::move(options_in)),
      registry(given.registry),
      parts{
          given.store,
          given.wake,
          given.clock,
          given.random,
          base::Logger(options.log, "worker"),
          given.metrics != nullptr ? *given.metrics : own_metrics},
      hooks(options.hooks, parts.log, parts.metrics),
      machine(parts.log),
      // Not longer than a heartbeat: a store that came back must hear from us before our leases
      // end.
      breaker(
          given.clock,
          given.random,
          parts.metrics,
          std::min(options.error_wait, options.lease.heartbeat_every)
      ),
      desk(std::make_shared<StoreDesk>(
          given.store,
          given.clock,
          [&wake = given.wake](const std::string& queue) {
              wake::Hint hint{wake::Hint::Kind::kTaskAvailable, queue, {}};
              wake.Signal({&hint, 1});
          }
      )),
      ahead(options.slots, options.claim_ahead),
      settler(parts, given.reserved, options.state_dir, hooks),
      session(
          parts,
          attempts,
          options.lease,
          Identity(options, given.registry),
          [this](SessionId id) { return settler.Holds(id); }
      ),
      executor(
          parts,
          attempts,
          ahead,
          session,
          settler,
          hooks,
          options.timeout_grace,
          options.stop_grace / 2
      ),
      claimer(
          parts,
          given.registry,
          attempts,
          ahead,
          session,
          machine,
          hooks,
          {.queues = options.queues,
           .poll = options.poll,
           .clear_for = options.lease.lease,
           .slots = options.slots,
           .labels = options.labels,
           .queue_limits = options.at_once_of_queue,
           .type_limits = given.registry.LimitsHere(),
           .resource_limits = options.at_once_of_resource,
           .withheld = options.withheld}
      ),
      recoverer(parts, attempts, session, settler, hooks, options.state_dir, options.timeout_grace),
      housekeeper(parts, options.housekeep_every, options.history_every) {
    CHECK(options.slots > 0 && options.slots <= model::limits::kSlots);
    CHECK(options.claim_ahead.value_or(0) >= 0);
    attempts.UseDesk(desk);
    settler.OnPush([this] { settle_pulse.Poke(); });
    settler.OnGiveUp([this](SessionId id) {
        session.Retire(id);
        renew_pulse.Poke();
        claim_pulse.Poke();
    });
    claimer.OnHint([this] { claim_pulse.Poke(); });
    executor.OnEnd([this] {
        if (claimer.wants_room() && Room() > 0) claim_pulse.Poke();
    });
}

// A handler that was left behind asks in vain from now on.
Worker::Core::~Core() {
    desk->Close();
}

template <class Work>
base::Instant Worker::Core::Step(std::string_view what, Work work, Breaker::Caller caller) {
    if (auto until = breaker.Blocked(caller)) return *until;
    try {
        base::Instant next = work();
        breaker.Succeeded();
        return next;
    } catch (const std::exception& error) {
        return Broken(what, error);
    }
}

base::Instant Worker::Core::Broken(std::string_view what, const std::exception& error) {
    base::Instant retry_at = breaker.Failed();
    parts.log.Warn(
        "the store failed; waiting",
        {{"step", std::string(what)},
         {"error", error.what()},
         {"breaker", breaker.open() ? "open" : "waiting"}}
    );
    return retry_at;
}

base::Instant Worker::Core::Later(Duration time, double jitter) {
    double share = 1 - jitter + 2 * jitter * parts.random.Fraction();
    return parts.clock.Now() +
           Duration{static_cast<std::int64_t>(static_cast<double>(time.count()) * share)};
}

// ---- claiming ----

base::Instant Worker::Core::ClaimOnce() {
    std::lock_guard guard(claim_mutex);
    if (stopping || unhealthy) return base::Instant::max();
    bool fresh = !session.id().valid() || !recovered;
    int limit = fresh ? 0 : claimer.Ready(Room());
    // Again: now that it is known that we want room, every attempt's end wakes us; one that ended a
    // moment ago did not.
    if (!fresh && limit == 0) limit = claimer.Ready(Room());
    if (!fresh && limit == 0) return claimer.look_at();
    base::Instant next = Step("claim", [&] {
        if (fresh || machine.state() == WorkerState::kErrorWait) Connect();
        if (limit == 0) limit = claimer.Ready(Room());
        return limit == 0 ? base::Instant::max() : claimer.Once(limit);
    });
    if (!breaker.closed() && machine.state() != WorkerState::kErrorWait) {
        machine.TryFire(WorkerEvent::kBroke);
    }
    watch_pulse.Poke();
    if (stopping) HandBackWaiting();  // claimed while the stop began: nobody else will start them
    return next;
}

// Startup, ErrorWait, or a lost session: Connecting → (Recovery →) Polling.
void Worker::Core::Connect() {
    Reach(WorkerState::kConnecting);
    if (!published) {
        parts.store.PublishTypes(registry.Defaults());
        MakeTypeLimits();
        published = true;
    }
    if (!session.id().valid()) {
        // What is known of earlier attempts, ours and dead processes', before any is taken over.
        if (!connected) settler.ReplayOrphans();
        if (!settler.idle()) settler.Once();
        recovered = false;
        UseFreshFlight(session.Open());
        renew_pulse.Poke();
    }
    if (recovered) {
        machine.Fire(WorkerEvent::kConnectedSkip);
        return;
    }
    machine.Fire(WorkerEvent::kConnected);
    recoverer.Once();
    recovered = true;
    connected = true;
    machine.Fire(WorkerEvent::kRecovered);
}

// What is there already is the operator's: a worker that starts does not change it back.
void Worker::Core::MakeTypeLimits() {
    for (const auto& [type, at_once] : registry.LimitsOverAll()) {
        store::ResourceStore& resources = parts.store.Resources();
        std::string name = LimitOfType(type);
        auto there = resources.Find(name);
        if (there && there->settings.changed_at && there->pattern.empty()) continue;
        auto made = resources.Change({.name = name, .capacity = at_once}, "worker");
        if (made) continue;
        parts.log.Error(
            "the limit of a type could not be set",
            {{"type", type}, {"error", made.error().message}}
        );
    }
}

// By the shortest way that the table has.
void Worker::Core::Reach(WorkerState goal) {
    CHECK(goal == WorkerState::kConnecting);
    WorkerState now = machine.state();
    if (now == goal) return;
    if (now == WorkerState::kStartup) {
        machine.Fire(WorkerEvent::kStarted);
        return;
    }
    if (now == WorkerState::kIdle) {
        machine.Fire(WorkerEvent::kSleepElapsed);
        return;
    }
    if (now != WorkerState::kErrorWait) machine.Fire(WorkerEvent::kBroke);  // the session was lost
    machine.Fire(WorkerEvent::kErrorWaitElapsed);
}

void Worker::Core::UseFreshFlight(SessionId id) {
    if (options.state_dir.empty()) return;
    try {
        // A place is kept until the outcome is with the store.
        int places = 2 * options.slots + OutcomeRoom();
        session.UseFlight(id, std::make_shared<FlightRecord>(options.state_dir, id, places));
    } catch (const std::exception& error) {
        parts.log.Warn(
            "no flight record: after a crash all that this process held is suspect",
            {{"error", error.what()}}
        );
    }
}

int Worker::Core::Room() const {
    auto [held, waiting] = attempts.sizes();
    int room = ahead.Room(options.slots - executor.threads_lost(), held, waiting);
    // Every lease must find room for its outcome.
    return std::min(room, OutcomeRoom() - held - settler.size());
}

int Worker::Core::OutcomeRoom() const {
    return std::max(2 * options.slots, kLeastSettleQueue) + 2 * ahead.most();
}

void Worker::Core::HandBackWaiting() {
    for (const AttemptPtr& attempt : attempts.TakeAllWaiting()) executor.HandBack(attempt);
}

// Who asked for a number gets it; what was taken by our own choice must not lie here. Returns when
// to look again.
base::Instant Worker::Core::HandBackStalled() {
    if (!ahead.chosen()) return base::Instant::max();
    base::Instant now = parts.clock.Now();
    std::vector<AttemptPtr> stalled = attempts.TakeStalled(now - kStalledAfter);
    if (!stalled.empty()) {
        ahead.Stalled();
        parts.metrics.stalled += stalled.size();
    }
    for (const AttemptPtr& attempt : stalled) executor.HandBack(attempt);
    auto oldest = attempts.oldest_waiting();
    return oldest ? *oldest + kStalledAfter : base::Instant::max();
}

// ---- the other steps ----

bool Worker::Core::RunOneAttempt() {
    std::vector<AttemptPtr> crew = attempts.TakeCrew();
    if (crew.empty()) return false;
    executor.Run(crew);
    return true;
}

base::Instant Worker::Core::SettleOnce() {
    base::Instant now = parts.clock.Now();
    // Another thread may have them now, and they may come back.
    base::Instant due = settler.sending() ? now + Duration{10} : settler.next_try();
    if (due > now) return due;
    base::Instant next = Step("settle", [&] {
        bool success = settler.next_is_success();
        machine.TryFire(success ? WorkerEvent::kSucceeded : WorkerEvent::kFailed);
        bool did = settler.Once();
        machine.TryFire(WorkerEvent::kReported);
        if (did) settled_pulse.Poke();
        return did ? settler.next_try() : parts.clock.Now() + Duration{10};
    });
    if (claimer.wants_room()) claim_pulse.Poke();
    return next;
}

// For those who explain from outside why a task is not taken here.
std::string Worker::Core::Note() const {
    store::ClaimRequest offered = claimer.Offered();
    return model::NoteText(
        {.doing = std::string(model::WorkerStateName(machine.state())),
         .withheld = std::move(offered.withheld),
         .queue_room = std::move(offered.queue_room),
         .type_room = std::move(offered.type_room),
         .resource_room = std::move(offered.resource_room)}
    );
}

base::Instant Worker::Core::RenewOnce() {
    if (session.renew_at() == base::Instant::max()) {
        return parts.clock.Now() + options.lease.heartbeat_every;
    }
    bool had_session = session.id().valid();
    base::Instant next = Step(
        "renew",
        [&] {
            session.Renew(Note(), stopping);
            return session.renew_at();
        },
        Breaker::Caller::kUrgent
    );
    if (had_session && !session.id().valid()) claim_pulse.Poke();
    return next;
}

base::Instant Worker::Core::WatchOnce() {
    bool had_session = session.id().valid();
    session.Watch();
    if (had_session && !session.id().valid()) claim_pulse.Poke();
    base::Instant next = executor.Watch();
    CheckHealth();
    return std::min({next, session.deadline(), HandBackStalled()});
}

void Worker::Core::CheckHealth() {
    if (executor.threads_lost() * 2 < options.slots || unhealthy.exchange(true)) return;
    HandBackWaiting();
    SayUnhealthy();
}

base::Instant Worker::Core::SweepOnce() {
    // Start-up has its own order: spools first, then what is left.
    if (!connected) return Later(options.sweep_every, 0.2);
    return Step("sweep", [&] {
        if (!settler.idle()) settler.Once();  // before anybody decides without them
        recoverer.Once();
        return Later(options.sweep_every, 0.2);
    });
}

base::Instant Worker::Core::HousekeepOnce() {
    if (!connected) return Later(options.housekeep_every, 0.2);
    return Step("housekeep", [&] {
        bool more = housekeeper.Once();
        return Later(more ? options.sweep_every : options.housekeep_every, 0.2);
    });
}

// ---- the end ----

void Worker::Core::Shut(Duration drain, std::stop_token now) {
    machine.TryFire(WorkerEvent::kStopRequested);
    stopping = true;
    std::unique_lock(claim_mutex).unlock();  // a claim on its way hands back what it gets
    HandBackWaiting();
    if (session.id().valid()) RenewOnce();  // tells the store that we drain
    if (!attempts.WaitEmpty(parts.clock, now, parts.clock.Now() + drain)) {
        attempts.StopAll(StopReason::kShutdown);
        attempts.WaitEmpty(parts.clock, now, parts.clock.Now() + options.stop_grace);
        if (now.stop_requested()) WaitForTheObedient();
        HandBackWaiting();
        for (const AttemptPtr& attempt : attempts.All()) executor.HandBack(attempt);
        // Those that ended by themselves at this very moment are about to push their outcome.
        attempts.WaitEmpty(parts.clock, {}, parts.clock.Now() + options.stop_grace);
    }
    Flush(now);
    CloseSession();
    machine.TryFire(WorkerEvent::kDrained);
}

// In a hurry, too, a handler that obeys gets the moment that obeying takes. Real time: it is about
// threads that run, and a hurry does not wait for any other clock.
void Worker::Core::WaitForTheObedient() {
    base::Clock& clock = base::SystemClock();
    attempts.WaitEmpty(clock, {}, clock.Now() + model::limits::kHurryGrace);
}

void Worker::Core::Flush(std::stop_token now) {
    base::Instant end = parts.clock.Now() + options.stop_grace;
    while (settler.size() > 0) {
        base::Instant next = SettleOnce();
        base::Instant time = parts.clock.Now();
        if (settler.size() == 0) break;
        if (time >= end || (now.stop_requested() && !breaker.closed())) {
            parts.log.Error(
                "stopping with outcomes that the store did not take; their leases will end",
                {{"count", std::to_string(settler.size())}}
            );
            return;
        }
        // Or until the settling thread, which has them now, is through.
        if (next > time) settled_pulse.Wait(parts.clock, {}, std::min(next, end));
    }
}

void Worker::Core::CloseSession() {
    try {
        if (settler.spooled()) settler.Once();
        session.Close();
    } catch (const std::exception& error) {
        parts.log.Warn(
            "the session could not be closed; it will expire", {{"error", error.what()}}
        );
    }
}

// ---- Worker ----

Worker::Worker(WorkerParts parts, WorkerOptions options)
    : core_(std::make_unique<Core>(parts, std::move(options))) {
}

Worker::~Worker() {
    bool started = false;
    {
        std::lock_guard guard(core_->life_mutex);
        started = core_->life != Core::Life::kNew;
    }
    if (started) StopNow();
}

void Worker::Open() {
    core_->ClaimOnce();
}
base::Instant Worker::ClaimOnce() {
    return core_->ClaimOnce();
}
bool Worker::RunOneAttempt() {
    return core_->RunOneAttempt();
}
base::Instant Worker::SettleOnce() {
    return core_->SettleOnce();
}
base::Instant Worker::RenewOnce() {
    return core_->RenewOnce();
}
base::Instant Worker::WatchOnce() {
    return core_->WatchOnce();
}
base::Instant Worker::SweepOnce() {
    return core_->SweepOnce();
}
base::Instant Worker::HousekeepOnce() {
    return core_->HousekeepOnce();
}
void Worker::Drain() {
    core_->Shut(core_->options.drain, {});
}

void Worker::Look() {
    core_->claimer.Hint();
    core_->claim_pulse.Poke();
}

model::WorkerState Worker::state() const {
    return core_->machine.state();
}
SessionId Worker::session() const {
    return core_->session.id();
}
store::ClaimRequest Worker::offered() const {
    return core_->claimer.Offered();
}
int Worker::running() const {
    return core_->attempts.size();
}
int Worker::unsettled() const {
    return core_->settler.size();
}
bool Worker::healthy() const {
    return !core_->unhealthy;
}
const Metrics& Worker::metrics() const {
    return core_->parts.metrics;
}

}  // namespace stint::engine
