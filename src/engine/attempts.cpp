#include "engine/attempts.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

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
    if (Move(Phase::kHeld, Phase::kAbandoned)) return Abandoned::kUnstarted;
    if (!Move(Phase::kRunning, Phase::kAbandoned)) return Abandoned::kNo;
    left_behind_ = true;
    return Abandoned::kRunning;
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

void AttemptTable::Add(AttemptPtr attempt) {
    attempt->aside = aside_;
    {
        std::lock_guard guard(mutex_);
        bool fresh = held_.emplace(attempt->lease.token, attempt).second;
        CHECK_WHY(fresh, "two leases with one token");
        waiting_.push_back(std::move(attempt));
    }
    changed_.notify_all();
}

AttemptPtr AttemptTable::TakeWaiting() {
    std::lock_guard guard(mutex_);
    if (waiting_.empty()) return nullptr;
    AttemptPtr attempt = std::move(waiting_.front());
    waiting_.pop_front();
    return attempt;
}

AttemptPtr AttemptTable::WaitForWaiting(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [this] { return !waiting_.empty(); });
    if (stop.stop_requested() || waiting_.empty()) return nullptr;
    AttemptPtr attempt = std::move(waiting_.front());
    waiting_.pop_front();
    return attempt;
}

std::vector<AttemptPtr> AttemptTable::TakeAllWaiting() {
    std::lock_guard guard(mutex_);
    std::deque<AttemptPtr> taken = std::exchange(waiting_, {});
    return {taken.begin(), taken.end()};
}

void AttemptTable::Remove(const Attempt& attempt) {
    {
        std::lock_guard guard(mutex_);
        held_.erase(attempt.lease.token);
    }
    changed_.notify_all();
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
    return static_cast<int>(waiting_.size());
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
        clock.WaitUntil(lock, changed_, stop, until);
    }
}

void AttemptTable::Notify() {
    changed_.notify_all();
}

}  // namespace stint::engine
