// When a schedule fires: its instants, what to do with those that were missed, and what a person is
// shown of it. Pure: zones are given, time is a parameter.
#pragma once

#include <stint/result.h>
#include <stint/time.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "model/calendar/occurrences.h"

namespace stint::model {

struct CronTiming {
    Cron cron;
    Zone zone;
    ClockChangePolicy changes;
};
// anchor, anchor + every, anchor + 2 · every, … however long the runs take.
struct IntervalTiming {
    Duration every{};
    Time anchor{};
};
// So long after the end of the run before, or after its start but not before its end; the first at
// `first`.
struct DelayTiming {
    Duration delay{};
    Time first{};
    bool from_start = false;
};
struct OnceTiming {
    Time at{};
};
using Timing = std::variant<CronTiming, IntervalTiming, DelayTiming, OnceTiming>;

// What becomes of instants that passed while nobody looked.
struct MisfirePolicy {
    enum class Kind : std::uint8_t {
        kSkip,  // they are left out
        kOnce,  // the latest of them stands for all
        kAll,   // those of the last `window`, the latest `limit` of them, in their order
    };
    Kind kind = Kind::kOnce;
    Duration grace = std::chrono::minutes{1};  // an instant that is no later than this is on time
    Duration window = std::chrono::hours{24};
    int limit = 100;  // what is on time counts, and is never left out for it
};

// What happens when an instant comes while a run of the same schedule is not over.
enum class OverlapPolicy : std::uint8_t { kAllow, kSkip, kQueueOne, kCancelRunning };

// Days of a zone's calendar on which nothing fires.
struct ExcludedDays {
    Zone zone;
    std::set<std::chrono::local_days> days;

    bool Has(Time at) const;
    // The end of the day of `at`: midnight, or where midnight does not exist the end of that gap.
    Time EndOfDay(Time at) const;
    // `at`, or the same time on the first day after it that is not excluded.
    Time FirstAllowed(Time at) const;
};

struct FirePlan {
    std::vector<Time> fire;          // in order
    std::optional<Time> skipped_to;  // some were left out, the last of them at this instant
    std::optional<Time> next;        // when to look again; none: never, or when the run has ended
};

// Intervals of a second or more, limits of 1 or more, durations that are not negative: what the
// functions below rely on. The message names the field, the value and the cure.
Result<void> Validate(const Timing& timing);
Result<void> Validate(const MisfirePolicy& policy);

// Everything after `considered` and up to `now`: which instants fire, and when the next one is.
// Never more than limits::kCatchUp instants, and work that does not grow with the time that was
// missed.
FirePlan PlanFires(
    const Timing& timing,
    const MisfirePolicy& policy,
    Time considered,
    Time now,
    const ExcludedDays& excluded = {}
);

// The first instant after `after`, strictly. For a delay: the first one only, later ones depend on
// the runs.
std::optional<Time> NextInstant(
    const Timing& timing, Time after, const ExcludedDays& excluded = {}
);

}  // namespace stint::model
