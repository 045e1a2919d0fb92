#include "engine/attempts.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/planted_bug.h"

namespace stint::engine {

void Attempt::RequestStop(StopReason reason) {
    StopReason none = StopReason::kNone;
    // The reason first: whoever sees the token requested must find it.
    if (!why_.compare_exchange_strong(none, reason)) return;
    auto stop = [source = stop_]() mutable { source.request_stop(); };
    if (aside) {
        aside->Do(std::move(stop));
    } else {
        stop();
    }
}

bool Attempt::Begin(base::Instant now, Duration timeout_grace) {
    if (lease.timeout > Duration::zero()) {
        std::lock_guard guard(mutex_);
        timeout_at_ = now + lease.timeout;
        hung_at_ = *timeout_at_ + timeout_grace;
    }
    if (!Move(Phase::kHeld, Phase::kRunning)) return false;
    began_ = true;
    return true;
}

Attempt::Abandoned Attempt::Abandon() {
    if (Move(Phase::kHeld, Phase::kAbandoned) || Move(Phase::kForbidden, Phase::kAbandoned)) {
        return Abandoned::kUnstarted;
    }
    std::shared_ptr<Crew> together = crew();
    if (together && running() && !together->Abandon()) return Abandoned::kNo;
    if (!Move(Phase::kRunning, Phase::kAbandoned)) return Abandoned::kNo;
    left_behind_ = true;
    return Abandoned::kRunning;
}

void Attempt::Join(std::shared_ptr<Crew> crew) {
    std::lock_guard guard(mutex_);
    crew_ = std::move(crew);
}

std::shared_ptr<Crew> Attempt::crew() const {
    std::lock_guard guard(mutex_);
    return crew_;
}

std::optional<base::Instant> Attempt::timeout_at() const {
    std::lock_guard guard(mutex_);
    return timeout_at_;
}

std::optional<base::Instant> Attempt::hung_at() const {
    std::lock_guard guard(mutex_);
    return hung_at_;
}

void Attempt::SetProgress(store::Progress progress) {
    std::lock_guard guard(mutex_);
    progress_ = std::move(progress);
}

std::optional<store::Progress> Attempt::TakeProgress() {
    std::lock_guard guard(mutex_);
    return std::exchange(progress_, std::nullopt);
}

void Attempt::KeepProgress(store::Progress older) {
    std::lock_guard guard(mutex_);
    if (!progress_) progress_ = std::move(older);
}

// One executor at a time is woken; it wakes the next if there is more. Short tasks are over before
// a crowd of threads could be woken, which would only be in each other's way.
bool AttemptTable::ShouldWake() {
    if (waiting_.empty() || woken_ || sleeping_ == 0) return false;
    woken_ = true;
    return true;
}

void AttemptTable::Add(const std::vector<AttemptPtr>& attempts) {
    bool wake = false;
    {
        std::lock_guard guard(mutex_);
        for (const AttemptPtr& attempt : attempts) {
            attempt->aside = aside_;
            attempt->desk = desk_;
            bool fresh = held_.emplace(attempt->lease.token, attempt).second;
            CHECK_WHY(fresh, "two leases with one token");
            if (attempt->lease.group != 0) {
                Group& group = groups_[attempt->lease.group];
                group.seats = attempt->lease.seats;
                ++group.members;
            }
            waiting_.push_back(attempt);
        }
        wake = ShouldWake();
    }
    if (wake) work_.notify_one();
}

// False: those of its group that run have all the units that it needs.
bool AttemptTable::TakeSeat(Attempt& attempt) {
    if (attempt.lease.group == 0) return true;
    Group& group = groups_.at(attempt.lease.group);
    if (group.seated >= group.seats && !base::Planted(base::Bug::kRunsWithoutSeat)) return false;
    ++group.seated;
    attempt.seated = true;
    return true;
}

// Whoever has waited longest for the seat goes to the head of all that wait. True: somebody does.
// One that was left behind keeps its seat: its thread may still use what the units stand for.
bool AttemptTable::LeaveSeat(const Attempt& attempt) {
    auto found = groups_.find(attempt.lease.group);
    if (found == groups_.end()) return false;
    Group& group = found->second;
    const bool frees = attempt.seated && !attempt.left_behind();
    if (frees) --group.seated;
    if (--group.members == 0) {
        groups_.erase(found);
        return false;
    }
    if (!frees || group.waiting.empty()) return false;
    waiting_.push_front(std::move(group.waiting.front()));
    group.waiting.pop_front();
    return true;
}

// Those that find no seat are out of the way until there is one.
AttemptPtr AttemptTable::PopNext() {
    while (!waiting_.empty()) {
        AttemptPtr next = std::move(waiting_.front());
        waiting_.pop_front();
        if (TakeSeat(*next)) return next;
        groups_.at(next->lease.group).waiting.push_back(std::move(next));
    }
    return nullptr;
}

std::vector<AttemptPtr> AttemptTable::PopCrew() {
    AttemptPtr next = PopNext();
    if (!next) return {};
    std::vector<AttemptPtr> crew{std::move(next)};
    const Attempt& first = *crew.front();
    if (!first.handler || !first.handler->batch || first.lease.alone) return crew;
    auto most = static_cast<std::size_t>(first.handler->batch_most);
    std::erase_if(waiting_, [&](const AttemptPtr& other) {
        if (crew.size() >= most || other->lease.type != first.lease.type || other->lease.alone) {
            return false;
        }
        if (!TakeSeat(*other)) return false;
        crew.push_back(other);
        return true;
    });
    return crew;
}

std::vector<AttemptPtr> AttemptTable::TakeCrew() {
    std::lock_guard guard(mutex_);
    return PopCrew();
}

std::vector<AttemptPtr> AttemptTable::WaitForCrew(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    std::vector<AttemptPtr> crew;
    while (!stop.stop_requested()) {
        crew = PopCrew();
        if (!crew.empty()) break;
        ++sleeping_;
        work_.wait(lock, stop, [&] { return woken_ || !waiting_.empty(); });
        --sleeping_;
        // Whoever wakes up is the one, or has come before it; then a second one comes for nothing.
        woken_ = false;
    }
    bool wake = ShouldWake();
    lock.unlock();
    if (wake) work_.notify_one();
    return crew;
}

std::vector<AttemptPtr> AttemptTable::TakeAllWaiting() {
    std::lock_guard guard(mutex_);
    return TakeWaiting([](const Attempt&) { return true; });
}

std::vector<AttemptPtr> AttemptTable::TakeStalled(base::Instant before) {
    std::lock_guard guard(mutex_);
    return TakeWaiting([&](const Attempt& attempt) { return attempt.waits_since <= before; });
}

std::vector<AttemptPtr> AttemptTable::TakeWaitingWith(const Attempt& attempt) {
    if (attempt.lease.group == 0) return {};
    std::lock_guard guard(mutex_);
    return TakeWaiting([&](const Attempt& other) {
        return other.lease.group == attempt.lease.group;
    });
}

template <class Which>
std::vector<AttemptPtr> AttemptTable::TakeWaiting(const Which& which) {
    std::vector<AttemptPtr> taken;
    auto take = [&](std::deque<AttemptPtr>& waiting) {
        std::erase_if(waiting, [&](AttemptPtr& attempt) {
            if (!which(*attempt)) return false;
            taken.push_back(attempt);
            return true;
        });
    };
    for (auto& [name, group] : groups_) take(group.waiting);
    take(waiting_);
    return taken;
}

std::optional<base::Instant> AttemptTable::oldest_waiting() const {
    std::lock_guard guard(mutex_);
    std::optional<base::Instant> oldest;
    // Each in the order in which they were claimed.
    auto look = [&](const std::deque<AttemptPtr>& waiting) {
        if (waiting.empty()) return;
        base::Instant since = waiting.front()->waits_since;
        oldest = std::min(oldest.value_or(since), since);
    };
    for (const auto& [name, group] : groups_) look(group.waiting);
    look(waiting_);
    return oldest;
}

int AttemptTable::WaitingNow() const {
    std::size_t all = waiting_.size();
    for (const auto& [name, group] : groups_) all += group.waiting.size();
    return static_cast<int>(all);
}

int AttemptTable::seats() const {
    std::lock_guard guard(mutex_);
    int seats = 0;
    for (const auto& [name, group] : groups_) seats += std::min(group.seats, group.members);
    return seats;
}

AttemptTable::Sizes AttemptTable::sizes() const {
    std::lock_guard guard(mutex_);
    return {static_cast<int>(held_.size()), WaitingNow()};
}

void AttemptTable::Remove(const Attempt& attempt) {
    bool empty = false;
    bool wake = false;
    {
        std::lock_guard guard(mutex_);
        // Whoever hands it back and whoever ran it may both come by.
        const bool was_held = held_.erase(attempt.lease.token) > 0;
        wake = was_held && LeaveSeat(attempt) && ShouldWake();
        empty = held_.empty();
    }
    if (wake) work_.notify_one();
    if (empty) emptied_.notify_all();
}

int AttemptTable::size() const {
    std::lock_guard guard(mutex_);
    return static_cast<int>(held_.size());
}

bool AttemptTable::Busy() const {
    std::lock_guard guard(mutex_);
    return std::any_of(held_.begin(), held_.end(), [](const auto& held) {
        return held.second->why() != StopReason::kLeaseLost;
    });
}

int AttemptTable::waiting() const {
    std::lock_guard guard(mutex_);
    return WaitingNow();
}

std::vector<AttemptPtr> AttemptTable::All() const {
    std::lock_guard guard(mutex_);
    std::vector<AttemptPtr> all;
    all.reserve(held_.size());
    for (const auto& [token, attempt] : held_) all.push_back(attempt);
    return all;
}

std::vector<AttemptPtr> AttemptTable::Of(SessionId session) const {
    std::vector<AttemptPtr> all = All();
    std::erase_if(all, [&](const AttemptPtr& attempt) { return attempt->session != session; });
    return all;
}

void AttemptTable::StopAll(StopReason reason) const {
    // Outside the lock: stop callbacks are the handler's own code.
    for (const AttemptPtr& attempt : All()) attempt->RequestStop(reason);
}

void AttemptTable::StopSession(SessionId session, StopReason reason) const {
    for (const AttemptPtr& attempt : Of(session)) attempt->RequestStop(reason);
}

bool AttemptTable::WaitEmpty(base::Clock& clock, std::stop_token stop, base::Instant until) {
    for (;;) {
        bool late = clock.Now() >= until;
        std::unique_lock lock(mutex_);
        if (held_.empty()) return true;
        if (late || stop.stop_requested()) return false;
        clock.WaitUntil(lock, emptied_, stop, until);
    }
}

}  // namespace stint::engine
