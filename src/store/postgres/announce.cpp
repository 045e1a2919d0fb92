#include "store/postgres/announce.h"

#include <algorithm>
#include <utility>

namespace stint::store::pg {

namespace {

using namespace std::chrono_literals;

constexpr auto kShortestPause = 1ms;
constexpr auto kLongestPause = 10ms;  // because of others
constexpr auto kLongestRest = 1s;     // because it took long
constexpr auto kAfterRefusal = 10s;
constexpr int kRestsFor = 4;  // times as long as it took

}  // namespace

bool Announcements::Turn(base::Instant now) {
    std::lock_guard guard(mutex_);
    if (under_way_ || now < next_) {
        dense_ = true;
        return false;
    }
    pause_ = std::exchange(dense_, false) ? std::min<Time>(2 * pause_, kLongestPause)
                                          : Time(kShortestPause);
    begun_ = now;
    next_ = now + pause_;
    under_way_ = true;
    return true;
}

void Announcements::Over(base::Instant now) {
    std::lock_guard guard(mutex_);
    under_way_ = false;
    next_ = std::max(next_, now + std::min<Time>(kRestsFor * (now - begun_), kLongestRest));
}

void Announcements::Refused(base::Instant now) {
    std::lock_guard guard(mutex_);
    next_ = std::max<base::Instant>(next_, now + kAfterRefusal);
}

}  // namespace stint::store::pg
