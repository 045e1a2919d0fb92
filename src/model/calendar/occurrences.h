// When a cron expression happens in a zone: local times made instants, changes of clocks included.
//
// A schedule that names its hours promises local times. Where clocks jump forward, a time that does
// not exist is moved to the end of the gap or left out; where they are set back, a time that comes
// twice is taken at the first, the last or both. A schedule of every hour promises elapsed time: it
// happens whenever the clock on the wall shows a match, as often as it does.
#pragma once

#include <cstdint>
#include <optional>

#include "model/calendar/cron.h"
#include "model/calendar/zone.h"

namespace stint::model {

enum class GapPolicy : std::uint8_t { kEndOfGap, kSkip };
enum class FoldPolicy : std::uint8_t { kFirst, kLast, kBoth };

struct ClockChangePolicy {
    GapPolicy gap = GapPolicy::kEndOfGap;
    FoldPolicy fold = FoldPolicy::kFirst;
};

struct Occurrence {
    // What is odd about it, for people who look at a preview.
    enum class Oddity : std::uint8_t {
        kNone,
        kMoved,   // its local time does not exist on that day; this is the end of the gap
        kFirst,   // its local time comes twice; this is the first
        kSecond,  // … and this the second
    };
    Instant at;
    Local local;
    Oddity oddity = Oddity::kNone;

    friend bool operator==(const Occurrence&, const Occurrence&) = default;
};

// The first one after `after`, strictly. None when the search, which is bounded, finds none.
std::optional<Occurrence> NextOccurrence(
    const Cron& cron, const Zone& zone, ClockChangePolicy policy, Instant after
);

// The first change of clocks after `after` and not after `until` that jumps over a time of the
// expression, whatever the policy: `at` is the end of the gap, `local` the first time that is lost.
std::optional<Occurrence> NextInGap(
    const Cron& cron, const Zone& zone, Instant after, Instant until
);

}  // namespace stint::model
