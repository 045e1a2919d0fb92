// Whether a service may leave out its look, because a claim has just seen that it would find
// nothing.
#pragma once

#include <functional>
#include <optional>

#include "base/clock.h"
#include "store/store.h"

namespace stint::store {

// A look is believed for so long; less than it looked ahead. An idle worker looks more often.
inline constexpr Duration kQuietBelieved = std::chrono::seconds{8};

// For how much longer `holds` (of a Quiet) means that nothing is to be done, or nothing: look.
// `own`: when the service last looked by itself, of the real clock. An older look of others does
// not know what it found.
template <class Holds>
std::optional<Duration> QuietFor(Store& store, Holds holds, base::Instant own) {
    std::optional<Quiet> quiet = store.LastQuiet();
    if (!quiet || quiet->seen <= own || !std::invoke(holds, *quiet)) return {};
    auto age = std::chrono::floor<Duration>(base::SystemClock().Now() - quiet->seen);
    if (age >= kQuietBelieved) return {};
    return kQuietBelieved - age;
}

}  // namespace stint::store
