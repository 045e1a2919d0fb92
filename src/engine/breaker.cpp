#include "engine/breaker.h"

#include <algorithm>

namespace stint::engine {

namespace {
// A store call that neither returns nor throws within this is given up as the prober.
constexpr Duration kProbePatience = std::chrono::seconds{30};
}  // namespace

Breaker::Breaker(base::Clock& clock, base::Random& random, Metrics& metrics, Duration longest_wait)
    : clock_(clock),
      random_(random),
      metrics_(metrics),
      longest_wait_(std::max(longest_wait, kFirstWait)) {
}

std::optional<base::Instant> Breaker::Blocked(Caller caller) {
    if (closed()) return std::nullopt;
    base::Instant now = clock_.Now();
    std::lock_guard guard(mutex_);
    if (failures_ == 0) return std::nullopt;
    if (now < retry_at_) return retry_at_;
    if (failures_ < kOpenAfter || caller == Caller::kUrgent) return std::nullopt;
    if (probing_ && now < probe_until_) return std::min(now + kFirstWait, probe_until_);
    probing_ = true;
    probe_until_ = now + kProbePatience;
    return std::nullopt;
}

void Breaker::Succeeded() {
    std::lock_guard guard(mutex_);
    failures_ = 0;
    probing_ = false;
}

base::Instant Breaker::Failed() {
    ++metrics_.store_errors;
    base::Instant now = clock_.Now();
    double fraction = random_.Fraction();
    std::lock_guard guard(mutex_);
    probing_ = false;
    // Several loops fail in one outage, each for its own reason: one failure per wait counts.
    if (failures_ > 0 && now < retry_at_) return retry_at_;
    if (++failures_ == kOpenAfter) ++metrics_.breaker_opened;
    Duration wait = kFirstWait;
    for (int i = 1; i < failures_ && wait < longest_wait_; ++i) wait *= 2;
    wait = std::min(wait, longest_wait_);
    // Half fixed, half random: processes that fell together do not come back together.
    auto jittered = std::chrono::duration_cast<std::chrono::nanoseconds>(wait) / 2;
    retry_at_ = now + jittered +
                std::chrono::nanoseconds(
                    static_cast<std::int64_t>(static_cast<double>(jittered.count()) * fraction)
                );
    return retry_at_;
}

bool Breaker::closed() const {
    std::lock_guard guard(mutex_);
    return failures_ == 0;
}

bool Breaker::open() const {
    std::lock_guard guard(mutex_);
    return failures_ >= kOpenAfter;
}

}  // namespace stint::engine
