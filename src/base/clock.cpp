#include "base/clock.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace stint::base {

namespace {

class MachineClock final : public Clock {
public:
    Instant Now() override {
        timespec now{};
        clock_gettime(CLOCK_BOOTTIME, &now);
        return Instant{std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec}};
    }

    Time WallTime() override {
        return std::chrono::time_point_cast<Time::duration>(std::chrono::system_clock::now());
    }

    void WaitUntil(
        std::unique_lock<std::mutex>& lock,
        std::condition_variable_any& wake,
        std::stop_token stop,
        Instant until
    ) override {
        auto left = until - Now();
        if (left <= std::chrono::nanoseconds::zero() || stop.stop_requested()) return;
        // A false predicate would loop; returning early is allowed and the caller re-checks.
        bool woken = false;
        wake.wait_for(lock, stop, left, [&woken] { return std::exchange(woken, true); });
    }
};

}  // namespace

Clock& SystemClock() {
    static MachineClock clock;
    return clock;
}

Instant ManualClock::Now() {
    std::lock_guard guard(mutex_);
    return now_;
}

Time ManualClock::WallTime() {
    std::lock_guard guard(mutex_);
    return wall_;
}

void ManualClock::WaitUntil(
    std::unique_lock<std::mutex>& lock,
    std::condition_variable_any& wake,
    std::stop_token stop,
    Instant until
) {
    // Virtual time is advanced by another thread that knows nothing of this waiter: look again
    // often.
    if (Now() >= until || stop.stop_requested()) return;
    bool woken = false;
    wake.wait_for(lock, stop, std::chrono::milliseconds{1}, [&woken] {
        return std::exchange(woken, true);
    });
}

void ManualClock::Advance(std::chrono::nanoseconds by) {
    std::lock_guard guard(mutex_);
    now_ += by;
    wall_ += std::chrono::duration_cast<Time::duration>(by);
}

}  // namespace stint::base
