// Clocks of the simulated world. Each node has its own, wrong in its own way; the store's is true.
#pragma once

#include "base/clock.h"
#include "sim/world.h"

namespace stint::sim {

// 2023-11-14 22:13:20 UTC: when every simulated run begins.
inline constexpr Time kBegin{std::chrono::seconds{1'700'000'000}};

// The store's time: the only one that counts. It steps, too.
inline Time TrueTime(const World& world) {
    return kBegin + std::chrono::duration_cast<Time::duration>(world.now() + world.clock_step());
}

// What a node reads: the steady clock runs a little fast or slow; the wall clock is off by a
// constant and steps when the nemesis says so. Reading either is a point.
class SimClock final : public base::Clock {
public:
    SimClock(World& world, double rate) : world_(world), rate_(rate) {}

    base::Instant Now() override;
    Time WallTime() override;
    void WaitUntil(
        std::unique_lock<std::mutex>& lock,
        std::condition_variable_any& wake,
        std::stop_token stop,
        base::Instant until
    ) override;

    void Step(std::chrono::microseconds by) { offset_ += by; }

private:
    base::Instant Read() const;

    World& world_;
    const double rate_;
    std::chrono::microseconds offset_{};
};

// What the store reads: the world's own time, no points (it is read inside transactions).
class StoreClock final : public base::Clock {
public:
    explicit StoreClock(World& world) : world_(world) {}
    base::Instant Now() override { return base::Instant{world_.now()}; }
    Time WallTime() override { return TrueTime(world_); }
    void WaitUntil(
        std::unique_lock<std::mutex>& lock,
        std::condition_variable_any& wake,
        std::stop_token stop,
        base::Instant until
    ) override;

private:
    World& world_;
};

}  // namespace stint::sim
