// This process's sessions: one lease row for all that is held under it.
//
// There is one current session, under which is claimed. A session whose claim ended unknown is
// retired: it may hold leases that we never heard of, so nothing is claimed under it any more; it
// lives on until what we know of is settled and is then left to expire, which recovers the rest.
//
// The deadline by which the worker stops its own tasks counts from when the last successful renewal
// was *sent*, on a clock that counts suspended time: the store's count began later, so ours ends
// first.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/attempts.h"
#include "engine/flight.h"
#include "engine/parts.h"
#include "model/lease.h"

namespace stint::engine {

class Session {
public:
    // `identity`: everything of NewSession but its id and lease. `unreported`: does this session
    // have outcomes on their way?
    Session(
        const Parts& parts,
        AttemptTable& attempts,
        model::LeasePolicy policy,
        store::NewSession identity,
        std::function<bool(SessionId)> unreported
    );

    // A fresh random id, current from now on. Throws what the store throws.
    SessionId Open();

    // Heartbeats of every session: progress in, cancellations and lost leases out, in one trip
    // each. Requests the stops. Throws what the store throws.
    void Renew(std::string_view worker_state, bool draining);

    // Gives up what has not been renewed for self_stop. Never touches the store.
    void Watch();

    // The store said it is over. All it held is told to stop; nothing is resurrected.
    void Lose(SessionId session, std::string_view why);
    // Claims nothing more under it.
    void Retire(SessionId session);
    // Ends those that hold nothing; others are left to expire.
    void Close();

    // What of a session had started; null: nobody notes it. Set by who opens it, before it claims;
    // removed when it is closed.
    void UseFlight(SessionId session, std::shared_ptr<FlightRecord> flight);
    std::shared_ptr<FlightRecord> FlightOf(SessionId session) const;

    SessionId id() const;  // the current one, or none
    bool Live(SessionId session, base::Instant now) const;
    base::Instant renew_at() const;  // of the first that is due; Instant::max() when there is none
    base::Instant deadline() const;  // likewise
    // Sessions of this process that have ended otherwise than by Close, newest last. Our flight
    // record is no dead process's, but we know ourselves what had started.
    std::vector<SessionId> ended() const;

private:
    struct Seat {
        base::Instant deadline{};
        base::Instant renew_at{};
        bool retired = false;
        std::optional<std::pair<base::Instant, Time>> last_times;  // ours and the store's
        std::shared_ptr<FlightRecord> flight = nullptr;
    };

    std::vector<std::pair<SessionId, bool>> Seats() const;  // and whether it is retired
    bool RenewOne(SessionId session, std::string_view worker_state, bool draining, Duration lease);
    void LeaveToExpire(SessionId session, std::string_view worker_state);
    store::RenewRequest Request(SessionId session, const std::vector<AttemptPtr>& held) const;
    void KeepProgress(store::RenewRequest& request, const std::vector<AttemptPtr>& held) const;
    void Renewed(SessionId session, base::Instant sent, Time store_time);
    bool Drifted(Seat& seat, base::Instant sent, Time store_time) const;
    void Obey(const store::RenewReply& reply, const std::vector<AttemptPtr>& held);
    bool Forget(SessionId session);

    Parts parts_;
    AttemptTable& attempts_;
    const model::LeasePolicy policy_;
    const store::NewSession identity_;
    const std::function<bool(SessionId)> unreported_;

    std::atomic<bool> opened_{false};  // a session was asked for before

    mutable std::mutex mutex_;
    SessionId current_;                // guarded by mutex_, as all below
    std::map<SessionId, Seat> seats_;  // the current one included
    std::deque<SessionId> ended_;
};

}  // namespace stint::engine
