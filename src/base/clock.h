// Time is given, never taken: everything time-dependent receives a Clock&, so that tests and the
// simulator own it. Only this room reads the machine's clocks.
#pragma once

#include <stint/time.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace stint::base {

// Instants of the process's own steady time. CLOCK_BOOTTIME: a suspended machine sees time pass.
struct BootClock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<BootClock, duration>;
    static constexpr bool is_steady = true;
};
using Instant = BootClock::time_point;

class Clock {
public:
    virtual ~Clock() = default;

    // For measuring: never steps, counts suspended time.
    virtual Instant Now() = 0;

    // For showing to people and for file names. Never compared with the database's time.
    virtual Time WallTime() = 0;

    // Sleeps until `until`, until `wake` is notified, or until `stop` is requested, whichever is
    // first. May return early. The caller holds `lock` and re-checks its condition.
    virtual void WaitUntil(
        std::unique_lock<std::mutex>& lock,
        std::condition_variable_any& wake,
        std::stop_token stop,
        Instant until
    ) = 0;
};

// The machine's clocks.
Clock& SystemClock();

// A clock that moves only when told. Waiters are woken when time passes their instant.
class ManualClock : public Clock {
public:
    explicit ManualClock(Time wall = Time{std::chrono::seconds{1'700'000'000}}) : wall_(wall) {}
    Instant Now() override;
    Time WallTime() override;
    void WaitUntil(
        std::unique_lock<std::mutex>& lock,
        std::condition_variable_any& wake,
        std::stop_token stop,
        Instant until
    ) override;
    void Advance(std::chrono::nanoseconds by);

private:
    std::mutex mutex_;
    Instant now_{};
    Time wall_;
};

}  // namespace stint::base
