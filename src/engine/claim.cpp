#include "engine/claim.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/test_point.h"
#include "model/limits.h"

namespace stint::engine {

using model::WorkerEvent;

namespace {
constexpr int kLongestClearPause = 16;  // times clear_for
constexpr int kFirstClaim = 64;
// Where nobody can wake us, polling is all there is: unless something else was asked for.
constexpr Duration kLongestUnheard = std::chrono::seconds{2};
}  // namespace

Claimer::Claimer(
    const Parts& parts,
    const Registry& registry,
    AttemptTable& attempts,
    Ahead& ahead,
    Session& session,
    Machine& machine,
    const SafeHooks& hooks,
    Settings settings
)
    : parts_(parts.For("claim")),
      registry_(registry),
      attempts_(attempts),
      ahead_(ahead),
      session_(session),
      machine_(machine),
      hooks_(hooks),
      settings_(std::move(settings)),
      types_(registry.Types()),
      clear_pause_(settings_.clear_for),
      interval_(settings_.poll.min) {
    subscription_ = parts_.wake.Subscribe([this](const wake::Hint& hint) { Hear(hint); });
}

Claimer::~Claimer() {
    parts_.wake.Unsubscribe(subscription_);
}

void Claimer::OnHint(std::function<void()> listener) {
    std::lock_guard guard(listener_mutex_);
    listener_ = std::move(listener);
}

void Claimer::Hear(const wake::Hint& hint) {
    if (hint.kind != wake::Hint::Kind::kTaskAvailable || !Serves(hint.queue)) return;
    ++parts_.metrics.hints;
    hinted_ = true;
    std::lock_guard guard(listener_mutex_);
    if (listener_) listener_();
}

bool Claimer::Serves(std::string_view queue) const {
    // An empty name is a hint without details.
    return queue.empty() || settings_.queues.empty() ||
           std::find(settings_.queues.begin(), settings_.queues.end(), queue) !=
               settings_.queues.end();
}

base::Instant Claimer::Once(int limit) {
    CHECK(limit > 0);
    SessionId session = session_.id();
    base::Instant now = parts_.clock.Now();
    const bool hinted = hinted_.exchange(false);
    const bool told = wants_room_.exchange(false) || hinted;
    if (base::Planted(base::Bug::kWakeOnly) && !told && mode_ == Mode::kOrdinary) {
        return base::Instant::max();
    }
    if (!session.valid() || !machine_.ToPolling()) return now;

    store::ClaimReply reply = Ask(session, limit, hinted);
    if (!reply.session_live) {
        session_.Lose(session, "the store refused a claim: the session is over");
        return now;
    }
    auto taken = static_cast<int>(reply.leases.size());
    CHECK(taken <= limit);
    parts_.metrics.claimed += reply.leases.size();
    if (taken > 0 || hinted) hints_pay_ = taken > 0;
    if (mode_ == Mode::kOrdinary && !limited_) likely_ = std::max(taken, likely_ / 2);
    if (taken == 0) return Rest(reply);
    ahead_.Claimed(parts_.clock.Now() - now);

    machine_.Fire(WorkerEvent::kFoundWork);
    machine_.Fire(WorkerEvent::kClaimed);
    interval_ = settings_.poll.min;
    poll_at_ = now + interval_;
    if (mode_ == Mode::kClearing) {
        mode_ = Mode::kAlone;
        clear_pause_ = settings_.clear_for;
    } else {
        wants_room_ = taken == limit || limited_;
    }
    Take(session, now, std::move(reply.leases));
    if (mode_ == Mode::kOrdinary && reply.suspects_waiting) HearOfSuspects(now);
    return cautious_ && taken == limit ? now : poll_at_;
}

int Claimer::Ready(int room) {
    if (types_.empty()) return 0;
    bool busy = attempts_.Busy();
    base::Instant now = parts_.clock.Now();
    if (mode_ == Mode::kAlone && !busy) {
        mode_ = Mode::kOrdinary;
        hinted_ = true;  // what came meanwhile was not looked at
    }
    if (mode_ == Mode::kClearing && busy && now >= clear_until_) {
        StopClearing(now, clear_pause_);
        clear_pause_ = std::min(2 * clear_pause_, kLongestClearPause * settings_.clear_for);
    }
    int limit = std::clamp(room, 0, model::limits::kClaimBatch);
    if (mode_ == Mode::kAlone || (mode_ == Mode::kClearing && busy)) limit = 0;
    if (mode_ == Mode::kClearing) limit = std::min(limit, 1);
    // What a claim costs the store grows with what it asks for, and little is there where little
    // was found.
    const int careful = std::max({kFirstClaim, Seats(), 2 * likely_});
    cautious_ = limit > careful;
    limit = std::min(limit, careful);
    if (limit == 0) wants_room_ = true;
    return limit;
}

base::Instant Claimer::look_at() const {
    base::Instant later = parts_.clock.Now() + settings_.poll.max;
    return mode_ == Mode::kClearing ? std::min(later, clear_until_) : later;
}

// When nothing runs here there is nothing to wait for, and no harm in asking at once.
void Claimer::HearOfSuspects(base::Instant now) {
    if (attempts_.Busy() && now < clear_again_at_) return;
    mode_ = Mode::kClearing;
    clear_until_ = now + settings_.clear_for;
}

void Claimer::StopClearing(base::Instant now, Duration pause) {
    mode_ = Mode::kOrdinary;
    clear_again_at_ = now + pause;
    hinted_ = true;  // what came meanwhile was not looked at
}

store::ClaimRequest Claimer::Offered() const {
    store::ClaimRequest request;
    request.session = session_.id();
    request.queues = settings_.queues;
    request.types = types_;
    request.labels = settings_.labels;
    if (settings_.withheld) request.withheld = settings_.withheld();
    LeaveRoom(request);
    return request;
}

store::ClaimReply Claimer::Ask(SessionId session, int limit, bool hinted) {
    store::ClaimRequest request = Offered();
    request.session = session;
    request.limit = limit;
    request.suspect = mode_ == Mode::kClearing;
    request.at_once = AtOnce();
    // Where others are always faster, a small question first.
    request.hinted = hinted && hints_pay_;
    limited_ =
        !request.queue_room.empty() || !request.type_room.empty() || !request.resource_room.empty();
    ++parts_.metrics.claims;
    base::TestPoint("claim.before");
    try {
        store::ClaimReply reply = parts_.store.Claim(request);
        base::TestPoint("claim.after");
        return reply;
    } catch (const store::Unavailable&) {
        throw;  // nothing was changed
    } catch (const std::exception&) {
        // It may hold leases now that we will never hear of.
        session_.Retire(session);
        throw;
    }
}

// Beside the seats that are held already; but some, so that what they carry is followed by more
// before it is used up.
int Claimer::AtOnce() const {
    return std::max({Seats() - attempts_.seats(), Seats() / 4, 1});
}

int Claimer::Seats() const {
    return settings_.slots * registry_.LargestBatch();
}

// What is limited here and may not fill all of the claim.
void Claimer::LeaveRoom(store::ClaimRequest& request) const {
    if (settings_.queue_limits.empty() && settings_.type_limits.empty() &&
        settings_.resource_limits.empty()) {
        return;
    }
    request.queue_room = settings_.queue_limits;
    request.type_room = settings_.type_limits;
    request.resource_room = settings_.resource_limits;
    auto count = [](std::map<std::string, int>& room, const std::string& name) {
        auto found = room.find(name);
        if (found != room.end()) found->second = std::max(0, found->second - 1);
    };
    for (const AttemptPtr& attempt : attempts_.All()) {
        count(request.queue_room, attempt->lease.queue);
        count(request.type_room, attempt->lease.type);
        for (const model::Need& need : attempt->lease.placement.needs) {
            model::TakeRoom(request.resource_room, need.resource);
        }
    }
}

void Claimer::Take(SessionId session, base::Instant sent, std::vector<store::Lease> leases) {
    std::vector<AttemptPtr> taken;
    taken.reserve(leases.size());
    const base::Instant now = parts_.clock.Now();
    const auto flight = session_.FlightOf(session);
    for (store::Lease& lease : leases) {
        auto handler = registry_.Share(lease.type);
        taken.push_back(std::make_shared<Attempt>(std::move(lease), session, std::move(handler)));
        taken.back()->claim_sent = sent;
        taken.back()->flight = flight;
        taken.back()->waits_since = now;
    }
    // All at once, so that a handler of batches finds them together.
    attempts_.Add(taken);
    for (const AttemptPtr& attempt : taken) {
        hooks_.Transition(
            attempt->lease.task,
            model::State::kOpen,
            model::State::kInProgress,
            model::Event::kClaim
        );
    }
    // The session may have been given up while the claim was on its way; who gave it up did not see
    // these.
    if (!session_.Live(session, parts_.clock.Now())) {
        attempts_.StopSession(session, StopReason::kLeaseLost);
    }
}

// We were told of a suspect and somebody else has taken it: look for other work at once.
base::Instant Claimer::LostTheRace() {
    base::Instant now = parts_.clock.Now();
    machine_.Fire(WorkerEvent::kFoundWork);
    machine_.Fire(WorkerEvent::kClaimFailed);
    clear_pause_ = settings_.clear_for;
    StopClearing(now, Duration::zero());
    raced_ = true;
    return now;
}

base::Instant Claimer::Rest(const store::ClaimReply& reply) {
    ++parts_.metrics.polls_empty;
    if (mode_ == Mode::kClearing) return LostTheRace();
    machine_.Fire(WorkerEvent::kFoundNothing);
    if (limited_) wants_room_ = true;
    base::Instant now = parts_.clock.Now();
    // Right after a lost race it may be the same one, on its way to somebody: not again at once.
    if (!std::exchange(raced_, false) && reply.suspects_waiting) HearOfSuspects(now);
    if (mode_ == Mode::kClearing) {
        poll_at_ = now;
    } else {
        // ± 20 %: idle workers that started together do not ask together.
        double share = 0.8 + 0.4 * parts_.random.Fraction();
        Duration wait{static_cast<std::int64_t>(static_cast<double>(interval_.count()) * share)};
        if (reply.next_due) {
            wait = std::clamp(*reply.next_due, Duration{1}, std::max(wait, Duration{1}));
        }
        poll_at_ = now + wait;
        Duration longest = settings_.poll.max;
        if (longest == PollOptions{}.max && !parts_.wake.Hears()) longest = kLongestUnheard;
        interval_ = std::min(interval_ * 2, longest);
    }
    machine_.Fire(WorkerEvent::kIntervalComputed);
    return poll_at_;
}

}  // namespace stint::engine
