// The attempts this process holds: claimed, running, or being stopped.
#pragma once

#include <stint/context.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "engine/aside.h"
#include "engine/registry.h"
#include "store/store.h"

namespace stint::engine {

class Desk;
class FlightRecord;

// Attempts that one thread runs together, in one call of a batch handler. Whoever gives one of them
// up takes the thread from all.
class Crew {
public:
    // By the runner, when the handler has returned. False: it was given up, and so was the thread.
    bool Return() { return Move(State::kReturned); }
    // True also when it was given up before.
    bool Abandon() { return Move(State::kAbandoned) || state_ == State::kAbandoned; }
    // True once: for whoever counts the lost thread.
    bool CountLoss() { return !counted_.exchange(true); }

private:
    enum class State : std::uint8_t { kRunning, kReturned, kAbandoned };
    bool Move(State to) {
        State running = State::kRunning;
        return state_.compare_exchange_strong(running, to);
    }
    std::atomic<State> state_{State::kRunning};
    std::atomic<bool> counted_{false};
};

// One held lease. Shared by the table, the thread that runs it and whoever stops it; a thread that
// was left behind holds nothing of the worker but this.
class Attempt {
public:
    Attempt(
        store::Lease lease_in, SessionId session_in, std::shared_ptr<const HandlerEntry> handler_in
    )
        : lease(std::move(lease_in)), session(session_in), handler(std::move(handler_in)) {}

    const store::Lease lease;
    const SessionId session;
    const std::shared_ptr<const HandlerEntry> handler;  // null: claimed a type we do not have
    base::Instant claim_sent{};   // set before it is shared; the store counts timeouts from there
    base::Instant waits_since{};  // set before it is shared: when the claim was answered

    // ---- its life: held → running → ended, and exactly one party ends it and may report it ----
    // The handler is about to be called. False: it was given up or forbidden before.
    bool Begin(base::Instant now, Duration timeout_grace);
    // By whoever says of it that it has not started: from then on that stays true, and its runner
    // only hands it back. False: it has begun, or it is over.
    bool Forbid() { return Move(Phase::kHeld, Phase::kForbidden) || phase_ == Phase::kForbidden; }
    // By its runner.
    bool Return() {
        return Move(Phase::kRunning, Phase::kReturned) || Move(Phase::kHeld, Phase::kReturned) ||
               Move(Phase::kForbidden, Phase::kReturned);
    }
    // It runs with others. Before Begin.
    void Join(std::shared_ptr<Crew> crew);
    std::shared_ptr<Crew> crew() const;
    // By anybody else. kRunning: the runner's thread is lost with it.
    enum class Abandoned : std::uint8_t { kNo, kUnstarted, kRunning };
    Abandoned Abandon();
    bool ended() const { return phase_ >= Phase::kReturned; }
    bool running() const { return phase_ == Phase::kRunning; }
    bool began() const { return began_.load(); }  // the handler was called, whatever came of it
    bool left_behind() const { return left_behind_.load(); }  // a thread still runs it, or did

    // ---- stopping: the first reason stays ----
    // The handler's stop callbacks run aside where there is somebody to run them, else here.
    void RequestStop(StopReason reason);
    StopReason why() const { return why_.load(); }
    std::stop_token stop_token() const { return stop_.get_token(); }

    // ---- its own time ----
    std::optional<base::Instant> timeout_at() const;
    std::optional<base::Instant> hung_at() const;  // its thread is given up then

    // ---- progress: the last value, taken by the next heartbeat ----
    void SetProgress(store::Progress progress);
    std::optional<store::Progress> TakeProgress();
    void KeepProgress(store::Progress older
    );  // taken, but not stored: put back unless there is news

    std::shared_ptr<Desk> desk = nullptr;    // set before it is shared; null: nothing can be asked
    std::shared_ptr<Aside> aside = nullptr;  // set before it is shared; null: stop here and now

    // Its session's, whatever session is current when it begins: set before it is shared. The slot
    // is set by its runner before it begins, used by whoever ends it.
    std::shared_ptr<FlightRecord> flight = nullptr;
    int flight_slot = -1;

    bool seated = false;  // by the table, under its lock: it has a seat of its group

private:
    enum class Phase : std::uint8_t { kHeld, kForbidden, kRunning, kReturned, kAbandoned };
    bool Move(Phase from, Phase to) { return phase_.compare_exchange_strong(from, to); }

    std::atomic<Phase> phase_{Phase::kHeld};
    std::atomic<StopReason> why_{StopReason::kNone};
    std::atomic<bool> left_behind_{false};
    std::atomic<bool> began_{false};
    std::stop_source stop_;
    mutable std::mutex mutex_;
    std::shared_ptr<Crew> crew_;               // guarded by mutex_; null: it runs by itself
    std::optional<base::Instant> timeout_at_;  // guarded by mutex_
    std::optional<base::Instant> hung_at_;     // guarded by mutex_
    std::optional<store::Progress> progress_;  // guarded by mutex_
};
using AttemptPtr = std::shared_ptr<Attempt>;

class AttemptTable {
public:
    AttemptTable() : aside_(std::make_shared<Aside>()) {}

    // Where the handlers of all that is added from now on may ask.
    void UseDesk(std::shared_ptr<Desk> desk) { desk_ = std::move(desk); }

    // Whoever runs the host's code for the loops that must go on.
    Aside& aside() { return *aside_; }

    // Held, and waiting for an executor.
    void Add(AttemptPtr attempt) { Add(std::vector{std::move(attempt)}); }
    void Add(const std::vector<AttemptPtr>& attempts);
    // The next one that waits, and where its handler takes batches others of its type; empty when
    // none waits. They stay in the table.
    std::vector<AttemptPtr> TakeCrew();
    // Blocks for one; empty when `stop` is requested.
    std::vector<AttemptPtr> WaitForCrew(std::stop_token stop);
    // Takes all that wait, so that none of them starts any more.
    std::vector<AttemptPtr> TakeAllWaiting();
    void Remove(const Attempt& attempt);

    // Those of them that have waited since `before` or longer.
    std::vector<AttemptPtr> TakeStalled(base::Instant before);
    std::optional<base::Instant> oldest_waiting() const;  // since when
    // Those of them that share units with this one.
    std::vector<AttemptPtr> TakeWaitingWith(const Attempt& attempt);

    struct Sizes {
        int held;  // waiting ones included
        int waiting;
    };
    Sizes sizes() const;
    int size() const;   // held by us, waiting ones included
    bool Busy() const;  // holds any whose lease is not known to be lost
    int waiting() const;
    int seats() const;  // that are held for the groups of leases
    std::vector<AttemptPtr> All() const;
    std::vector<AttemptPtr> Of(SessionId session) const;
    void StopAll(StopReason reason) const;
    void StopSession(SessionId session, StopReason reason) const;

    // Until nothing is held, `until`, or `stop`; true when nothing is held.
    bool WaitEmpty(base::Clock& clock, std::stop_token stop, base::Instant until);

private:
    // Leases that share units: so many of them run at once as there are seats.
    struct Group {
        int seats = 0;
        int members = 0;  // held
        int seated = 0;
        std::deque<AttemptPtr> waiting;  // for a seat; they have been passed over in waiting_
    };

    // All under mutex_.
    std::vector<AttemptPtr> PopCrew();
    AttemptPtr PopNext();
    bool TakeSeat(Attempt& attempt);
    bool LeaveSeat(const Attempt& attempt);
    template <class Which>
    std::vector<AttemptPtr> TakeWaiting(const Which& which);
    int WaitingNow() const;
    bool ShouldWake();  // true: notify work_

    const std::shared_ptr<Aside> aside_;
    std::shared_ptr<Desk> desk_;  // set at start
    mutable std::mutex mutex_;
    std::condition_variable_any work_;                 // something waits for an executor
    std::condition_variable_any emptied_;              // nothing is held any more
    std::unordered_map<LeaseToken, AttemptPtr> held_;  // guarded by mutex_
    std::deque<AttemptPtr> waiting_;                   // guarded by mutex_
    std::map<std::int64_t, Group> groups_;             // guarded by mutex_
    int sleeping_ = 0;    // guarded by mutex_: executors in WaitForCrew
    bool woken_ = false;  // guarded by mutex_: one of them is on its way
};

}  // namespace stint::engine
