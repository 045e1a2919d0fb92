// One judgement per process about its store: how long to leave it alone, and who may ask first.
//
//   closed ── failure ──▶ waiting (backoff with jitter) ── failures ≥ kOpenAfter ──▶ open
//     ▲                        │ time over: everybody tries      time over: one prober │
//     └──────── success ───────┴───────────────────────────────────────────────────────┘
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "base/clock.h"
#include "base/random.h"
#include "engine/metrics.h"

namespace stint::engine {

class Breaker {
public:
    static constexpr int kOpenAfter = 3;  // failures in a row
    static constexpr Duration kFirstWait = std::chrono::milliseconds{50};

    Breaker(base::Clock& clock, base::Random& random, Metrics& metrics, Duration longest_wait);

    // A heartbeat is urgent: it waits out the backoff, but not a prober that may hang for longer
    // than our leases live.
    enum class Caller : std::uint8_t { kOrdinary, kUrgent };
    // nullopt: go ahead, and report with Succeeded or Failed. Else: ask again then.
    std::optional<base::Instant> Blocked(Caller caller = Caller::kOrdinary);
    void Succeeded();
    base::Instant Failed();  // returns when to try again

    bool closed() const;
    bool open() const;

private:
    base::Clock& clock_;
    base::Random& random_;
    Metrics& metrics_;
    const Duration longest_wait_;
    mutable std::mutex mutex_;
    int failures_ = 0;  // in a row
    bool probing_ = false;
    base::Instant retry_at_{};
    base::Instant probe_until_{};  // a prober that never came back is replaced then
};

}  // namespace stint::engine
