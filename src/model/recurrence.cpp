#include "model/recurrence.h"

#include <algorithm>

#include "base/result.h"
#include "model/limits.h"
#include "model/time_text.h"

namespace stint::model {

namespace {

using std::chrono::floor;

// The first instant after `after`.
struct Next {
    Time after;

    std::optional<Time> operator()(const CronTiming& timing) const {
        // An occurrence is a whole second; one at `after` itself is over.
        auto found =
            NextOccurrence(timing.cron, timing.zone, timing.changes, floor<Seconds>(after));
        if (!found) return std::nullopt;
        return Time(found->at);
    }
    std::optional<Time> operator()(const IntervalTiming& timing) const {
        if (after < timing.anchor) return timing.anchor;
        auto every = std::chrono::microseconds(timing.every);
        return timing.anchor + ((after - timing.anchor) / every + 1) * every;
    }
    std::optional<Time> operator()(const DelayTiming& timing) const { return Single(timing.first); }
    std::optional<Time> operator()(const OnceTiming& timing) const { return Single(timing.at); }

private:
    std::optional<Time> Single(Time at) const {
        if (at <= after) return std::nullopt;
        return at;
    }
};

// The instants in (from, to], the latest `limit` of them. Looks back from `to` in growing steps
// until it has enough, so that a year that was missed costs no more than a day. `limit` is small.
std::vector<Time> LatestIn(
    const Timing& timing, const ExcludedDays& excluded, Time from, Time to, std::size_t limit
) {
    auto within = [&](Time begin) {
        std::vector<Time> found;
        for (auto at = NextInstant(timing, begin, excluded); at && *at <= to;
             at = NextInstant(timing, *at, excluded)) {
            found.push_back(*at);
            // More than asked for: the older half is of no use.
            if (found.size() > 2 * limit) {
                found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(limit));
            }
        }
        return found;
    };
    std::vector<Time> found;
    for (std::chrono::microseconds back = std::chrono::seconds{8};; back *= 4) {
        Time begin = std::max(from, to - back);
        found = within(begin);
        if (found.size() >= limit || begin == from) break;
    }
    if (found.size() > limit) {
        found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(limit));
    }
    return found;
}

std::optional<Time> FirstIn(
    const Timing& timing, const ExcludedDays& excluded, Time from, Time to
) {
    auto first = NextInstant(timing, from, excluded);
    return first && *first <= to ? first : std::nullopt;
}

Result<void> CheckRange(std::string_view field, Duration value, Duration low, Duration high) {
    if (value >= low && value <= high) return {};
    return base::MakeError(
        Code::kInvalid,
        "{} is {}; it must be between {} and {}",
        field,
        FormatDuration(value),
        FormatDuration(low),
        FormatDuration(high)
    );
}

}  // namespace

Result<void> Validate(const Timing& timing) {
    if (const auto* interval = std::get_if<IntervalTiming>(&timing)) {
        return CheckRange("every", interval->every, limits::kIntervalMin, limits::kDelayMax);
    }
    if (const auto* delay = std::get_if<DelayTiming>(&timing)) {
        return CheckRange(
            delay->from_start ? "after_start" : "after_end",
            delay->delay,
            Duration::zero(),
            limits::kDelayMax
        );
    }
    return {};
}

Result<void> Validate(const MisfirePolicy& policy) {
    if (policy.limit < 1 || policy.limit > limits::kCatchUp) {
        return base::MakeError(
            Code::kInvalid,
            "misfire.limit is {}; it must be between 1 and {}",
            policy.limit,
            limits::kCatchUp
        );
    }
    auto grace = CheckRange("misfire.grace", policy.grace, Duration::zero(), limits::kDelayMax);
    if (!grace) return grace;
    return CheckRange("misfire.window", policy.window, Duration::zero(), limits::kDelayMax);
}

bool ExcludedDays::Has(Time at) const {
    if (days.empty()) return false;
    Instant instant = floor<Seconds>(at);
    return days.contains(floor<std::chrono::days>(zone.At(instant).ToLocal(instant)));
}

Time ExcludedDays::EndOfDay(Time at) const {
    Instant instant = floor<Seconds>(at);
    ZonePeriod period = zone.At(instant);
    Local midnight = floor<std::chrono::days>(period.ToLocal(instant)) + std::chrono::days{1};
    while (period.ToInstant(midnight) >= period.end) {
        Instant change = period.end;
        period = zone.At(change);
        if (period.begin < change) break;
        if (period.ToInstant(midnight) < change) return change;
    }
    return period.ToInstant(midnight);
}

Time ExcludedDays::FirstAllowed(Time at) const {
    while (Has(at)) at += std::chrono::days{1};
    return at;
}

std::optional<Time> NextInstant(const Timing& timing, Time after, const ExcludedDays& excluded) {
    // As often as there are excluded days at most: each time one of them is behind.
    for (;;) {
        auto next = std::visit(Next{after}, timing);
        if (!next || !excluded.Has(*next)) return next;
        after = excluded.EndOfDay(*next) - std::chrono::microseconds{1};
    }
}

FirePlan PlanFires(
    const Timing& timing,
    const MisfirePolicy& policy,
    Time considered,
    Time now,
    const ExcludedDays& excluded
) {
    FirePlan plan;
    plan.next = NextInstant(timing, std::max(considered, now), excluded);
    if (considered >= now) return plan;

    // Missed is what lies before the grace; what lies within it is on time.
    Time grace_begin = std::max(considered, now - policy.grace);
    std::vector<Time> on_time = LatestIn(timing, excluded, grace_begin, now, limits::kCatchUp);
    std::vector<Time> missed;
    switch (policy.kind) {
        case MisfirePolicy::Kind::kSkip:
            break;
        case MisfirePolicy::Kind::kOnce:
            // What is on time stands for what was missed as well.
            if (on_time.empty()) missed = LatestIn(timing, excluded, considered, grace_begin, 1);
            break;
        case MisfirePolicy::Kind::kAll: {
            auto limit = static_cast<std::size_t>(policy.limit);
            Time window = std::max(considered, now - policy.window);
            if (on_time.size() < limit && window < grace_begin) {
                missed = LatestIn(timing, excluded, window, grace_begin, limit - on_time.size());
            }
            break;
        }
    }
    plan.fire = std::move(missed);
    plan.fire.insert(plan.fire.end(), on_time.begin(), on_time.end());

    // Was anything left out before the first that fires?
    Time until = plan.fire.empty() ? grace_begin : plan.fire.front() - std::chrono::microseconds{1};
    if (until > considered && FirstIn(timing, excluded, considered, until)) {
        plan.skipped_to = LatestIn(timing, excluded, considered, until, 1).back();
    }
    return plan;
}

}  // namespace stint::model
