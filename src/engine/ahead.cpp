#include "engine/ahead.h"

#include <algorithm>

#include "model/limits.h"

namespace stint::engine {

namespace {

constexpr double kTrips = 2;        // worth of work ahead
constexpr double kShortest = 1e-6;  // of an attempt; what a clock cannot tell takes no time
constexpr double kNews = 0.25;      // share of what was seen last

double InSeconds(Ahead::Time time) {
    return std::chrono::duration<double>(time).count();
}

double Smoothed(double before, double now) {
    return before == 0 ? now : before + kNews * (now - before);
}

}  // namespace

Ahead::Ahead(int slots, std::optional<int> fixed)
    : slots_(slots), fixed_(fixed), limit_(fixed.value_or(0)) {
}

int Ahead::most() const {
    return fixed_.value_or(model::limits::kClaimAhead);
}

int Ahead::Room(int slots, int held, int waiting) const {
    int ahead = limit();
    if (!fixed_ && ahead > 0 && waiting > ahead / 2) return 0;
    return slots + ahead - held;
}

void Ahead::Ran(Time together, int count) {
    if (fixed_) return;
    ran_time_ += together.count();
    ran_count_ += count;
}

void Ahead::Claimed(Time trip) {
    if (fixed_) return;
    auto count = static_cast<double>(ran_count_.exchange(0));
    double time = InSeconds(Time(ran_time_.exchange(0)));
    trip_ = Smoothed(trip_, InSeconds(trip));
    // None has ended since: nothing is known that was not known before.
    if (count > 0) each_ = Smoothed(each_, std::max(time / count, kShortest));
    if (each_ == 0 || (count == 0 && limit_ == 0)) return;
    double ahead = kTrips * slots_ * trip_ / each_;
    limit_ = static_cast<int>(std::min(ahead, static_cast<double>(model::limits::kClaimAhead)));
}

}  // namespace stint::engine
