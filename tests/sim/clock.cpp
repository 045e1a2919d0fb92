#include "sim/clock.h"

#include <algorithm>

namespace stint::sim {

namespace {

// A notification cannot be seen from here, and returning early is allowed: look again this often.
constexpr Virtual kLookAgain = std::chrono::milliseconds{20};

void LetOthersRun(World& world, std::unique_lock<std::mutex>& lock, Virtual left) {
    lock.unlock();
    world.Point("clock.wait");
    world.Sleep(std::clamp(left, Virtual{1'000}, kLookAgain));
    lock.lock();
}

}  // namespace

base::Instant SimClock::Read() const {
    double scaled = static_cast<double>(world_.now().count()) * rate_;
    return base::Instant{std::chrono::nanoseconds{static_cast<std::int64_t>(scaled)}};
}

base::Instant SimClock::Now() {
    world_.Point("clock.now");
    return Read();
}

Time SimClock::WallTime() {
    world_.Point("clock.wall");
    return TrueTime(world_) + offset_;
}

void SimClock::WaitUntil(
    std::unique_lock<std::mutex>& lock,
    std::condition_variable_any& /*wake*/,
    std::stop_token stop,
    base::Instant until
) {
    auto left = until - Read();
    if (left <= Virtual::zero() || stop.stop_requested()) return;
    LetOthersRun(world_, lock, left);
}

void StoreClock::WaitUntil(
    std::unique_lock<std::mutex>& lock,
    std::condition_variable_any& /*wake*/,
    std::stop_token stop,
    base::Instant until
) {
    auto left = until - base::Instant{world_.now()};
    if (left <= Virtual::zero() || stop.stop_requested()) return;
    LetOthersRun(world_, lock, left);
}

}  // namespace stint::sim
