#include "engine/session.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/test_point.h"
#include "model/limits.h"

namespace stint::engine {

namespace {
constexpr std::size_t kEndedKept = 64;  // more are swept long before
}

Session::Session(
    const Parts& parts,
    AttemptTable& attempts,
    model::LeasePolicy policy,
    store::NewSession identity,
    std::function<bool(SessionId)> unreported
)
    : parts_(parts.For("session")),
      attempts_(attempts),
      policy_(policy),
      identity_(std::move(identity)),
      unreported_(std::move(unreported)) {
}

SessionId Session::Open() {
    store::NewSession fresh = identity_;
    fresh.id = parts_.random.MakeId<SessionId>();
    fresh.lease = policy_.lease;
    // Only the first: later it would declare dead what we still run under a retired session.
    fresh.exclusive = identity_.exclusive && !opened_;
    base::Instant sent = parts_.clock.Now();
    parts_.store.OpenSession(fresh);
    opened_ = true;
    ++parts_.metrics.sessions_opened;
    {
        std::lock_guard guard(mutex_);
        CHECK_WHY(!current_.valid(), "one current session at a time");
        current_ = fresh.id;
        seats_[fresh.id] = {
            .deadline = sent + policy_.self_stop, .renew_at = sent + policy_.heartbeat_every};
    }
    parts_.log.Info("opened", {{"session", fresh.id.ToString()}});
    return fresh.id;
}

void Session::Renew(std::string_view worker_state, bool draining) {
    for (auto [session, retired] : Seats()) {
        if (retired && attempts_.Of(session).empty() && !unreported_(session)) {
            LeaveToExpire(session, worker_state);
        } else if (!RenewOne(session, worker_state, draining, policy_.lease)) {
            Lose(session, "the store ended the session");
        }
    }
}

// Renewed once more, for as short as can be: what it holds without our knowledge is recovered soon.
void Session::LeaveToExpire(SessionId session, std::string_view worker_state) {
    RenewOne(session, worker_state, true, model::limits::kLeaseMin);
    Forget(session);
    parts_.log.Info("a retired session is left to expire", {{"session", session.ToString()}});
}

bool Session::RenewOne(
    SessionId session, std::string_view worker_state, bool draining, Duration lease
) {
    std::vector<AttemptPtr> held = attempts_.Of(session);
    store::RenewRequest request = Request(session, held);
    request.worker_state = worker_state;
    request.draining = draining;
    request.lease = lease;
    base::Instant sent = parts_.clock.Now();
    store::RenewReply reply;
    try {
        base::TestPoint("renew.sent");
        reply = parts_.store.Renew(request);
        base::TestPoint("renew.done");
    } catch (const std::exception&) {
        ++parts_.metrics.heartbeats_failed;
        KeepProgress(request, held);
        throw;
    }
    if (!reply.live) return false;
    if (base::Planted(base::Bug::kSelfStopFromReply)) sent = parts_.clock.Now();
    ++parts_.metrics.heartbeats;
    Renewed(session, sent, reply.store_time);
    Obey(reply, held);
    return true;
}

store::RenewRequest Session::Request(SessionId session, const std::vector<AttemptPtr>& held) const {
    store::RenewRequest request;
    request.session = session;
    request.held.reserve(held.size());
    for (const AttemptPtr& attempt : held) {
        if (attempt->running()) ++request.running;
        // Known to be lost: there is nothing more to ask.
        if (attempt->why() == StopReason::kLeaseLost) continue;
        request.held.push_back({attempt->lease.task, attempt->lease.token});
        if (auto progress = attempt->TakeProgress()) {
            request.progress.push_back(
                {attempt->lease.task, attempt->lease.token, std::move(*progress)}
            );
        }
    }
    return request;
}

// Not known to be stored: the next heartbeat carries it again, unless there is news.
void Session::KeepProgress(store::RenewRequest& request, const std::vector<AttemptPtr>& held)
    const {
    for (store::ProgressUpdate& update : request.progress) {
        for (const AttemptPtr& attempt : held) {
            if (attempt->lease.token == update.token) {
                attempt->KeepProgress(std::move(update.progress));
                break;
            }
        }
    }
}

void Session::Renewed(SessionId session, base::Instant sent, Time store_time) {
    // ± 10 %: workers that started together do not beat together.
    double share = 0.9 + 0.2 * parts_.random.Fraction();
    auto wait = std::chrono::duration_cast<std::chrono::nanoseconds>(policy_.heartbeat_every);
    bool drifted = false;
    {
        std::lock_guard guard(mutex_);
        auto seat = seats_.find(session);
        if (seat == seats_.end()) return;  // given up meanwhile: a late answer revives nothing
        seat->second.deadline = std::max(seat->second.deadline, sent + policy_.self_stop);
        seat->second.renew_at =
            sent + std::chrono::nanoseconds(
                       static_cast<std::int64_t>(static_cast<double>(wait.count()) * share)
                   );
        drifted = Drifted(seat->second, sent, store_time);
    }
    if (!drifted) return;
    ++parts_.metrics.clock_drift;
    parts_.log.Warn("the store's clock and this machine's disagree: leases may end early or late");
}

bool Session::Drifted(Seat& seat, base::Instant sent, Time store_time) const {
    auto last = std::exchange(seat.last_times, std::pair{sent, store_time});
    if (!last) return false;
    auto ours = std::chrono::duration_cast<Duration>(sent - last->first);
    auto theirs = std::chrono::duration_cast<Duration>(store_time - last->second);
    return std::chrono::abs(theirs - ours) > policy_.lease / 4;
}

void Session::Obey(const store::RenewReply& reply, const std::vector<AttemptPtr>& held) {
    if (reply.cancel_requested.empty() && reply.lost.empty()) return;
    std::unordered_set<LeaseToken> cancelled, lost;
    for (const store::Held& one : reply.cancel_requested) cancelled.insert(one.token);
    for (const store::Held& one : reply.lost) lost.insert(one.token);
    for (const AttemptPtr& attempt : held) {
        LeaseToken token = attempt->lease.token;
        if (attempt->ended()) continue;  // its outcome is on its way
        if (lost.contains(token)) {
            attempt->RequestStop(StopReason::kLeaseLost);
        } else if (cancelled.contains(token) && attempt->why() == StopReason::kNone) {
            parts_.log.Info("cancel requested", {{"task", attempt->lease.task.ToString()}});
            attempt->RequestStop(StopReason::kCancelled);
        }
    }
}

void Session::Watch() {
    base::Instant now = parts_.clock.Now();
    for (auto [session, retired] : Seats()) {
        if (Live(session, now)) continue;
        ++parts_.metrics.self_stops;
        Lose(session, "no renewal succeeded in time; stopping our own tasks");
    }
}

void Session::Lose(SessionId session, std::string_view why) {
    if (!Forget(session)) return;
    // After it is forgotten: a claim that adds leases of it later sees that and stops them itself.
    ++parts_.metrics.sessions_lost;
    parts_.log.Warn(why, {{"session", session.ToString()}});
    attempts_.StopSession(session, StopReason::kLeaseLost);
}

bool Session::Forget(SessionId session) {
    std::lock_guard guard(mutex_);
    if (current_ == session) current_ = SessionId{};
    if (seats_.erase(session) == 0) return false;
    ended_.push_back(session);
    if (ended_.size() > kEndedKept) ended_.pop_front();
    return true;
}

void Session::UseFlight(SessionId session, std::shared_ptr<FlightRecord> flight) {
    std::lock_guard guard(mutex_);
    auto seat = seats_.find(session);
    if (seat != seats_.end()) seat->second.flight = std::move(flight);
}

std::shared_ptr<FlightRecord> Session::FlightOf(SessionId session) const {
    std::lock_guard guard(mutex_);
    auto seat = seats_.find(session);
    return seat != seats_.end() ? seat->second.flight : nullptr;
}

void Session::Retire(SessionId session) {
    std::lock_guard guard(mutex_);
    if (current_ == session) current_ = SessionId{};
    auto seat = seats_.find(session);
    if (seat == seats_.end()) return;
    seat->second.retired = true;
    seat->second.renew_at = {};
}

void Session::Close() {
    for (auto [session, retired] : Seats()) {
        if (!attempts_.Of(session).empty() || unreported_(session)) continue;
        if (retired) {
            LeaveToExpire(session, "stopped");
            continue;
        }
        parts_.store.CloseSession(session);
        if (auto flight = FlightOf(session)) flight->Remove();
        std::lock_guard guard(mutex_);
        seats_.erase(session);
        if (current_ == session) current_ = SessionId{};
    }
}

std::vector<std::pair<SessionId, bool>> Session::Seats() const {
    std::lock_guard guard(mutex_);
    std::vector<std::pair<SessionId, bool>> seats;
    seats.reserve(seats_.size());
    for (const auto& [session, seat] : seats_) seats.emplace_back(session, seat.retired);
    return seats;
}

SessionId Session::id() const {
    std::lock_guard guard(mutex_);
    return current_;
}

bool Session::Live(SessionId session, base::Instant now) const {
    std::lock_guard guard(mutex_);
    auto seat = seats_.find(session);
    return seat != seats_.end() && now < seat->second.deadline;
}

base::Instant Session::renew_at() const {
    std::lock_guard guard(mutex_);
    base::Instant first = base::Instant::max();
    for (const auto& [session, seat] : seats_) first = std::min(first, seat.renew_at);
    return first;
}

base::Instant Session::deadline() const {
    std::lock_guard guard(mutex_);
    base::Instant first = base::Instant::max();
    for (const auto& [session, seat] : seats_) first = std::min(first, seat.deadline);
    return first;
}

std::vector<SessionId> Session::ended() const {
    std::lock_guard guard(mutex_);
    return {ended_.begin(), ended_.end()};
}

}  // namespace stint::engine
