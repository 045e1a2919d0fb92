#include "model/calendar/occurrences.h"

#include <algorithm>

#include "base/planted_bug.h"

namespace stint::model {

namespace {

// Two changes of clocks a year for longer than the calendar's own cycle.
constexpr int kPeriodsMax = 1'000;

// The stretch between two changes of clocks, with what its neighbours do to its local times.
class Stretch {
public:
    Stretch(const Cron& cron, const Zone& zone, ClockChangePolicy policy, const ZonePeriod& period)
        : cron_(cron),
          policy_(policy),
          period_(period),
          begin_(period.ToLocal(period.begin)),
          end_(period.ToLocal(period.end)),
          // Local times the clocks showed before the change at its begin, and show after its end.
          before_(zone.At(period.begin - Seconds{1}).ToLocal(period.begin)),
          after_(zone.At(period.end).ToLocal(period.end)) {}

    // The first one after `after`, which is not before the stretch.
    std::optional<Occurrence> Next(Instant after) const {
        if (after < period_.begin) {
            if (auto moved = AtTheGap()) return moved;
        }
        Local from = after < period_.begin ? begin_ - Seconds{1} : period_.ToLocal(after);
        while (auto local = cron_.Next(from)) {
            if (*local >= end_) return std::nullopt;
            Occurrence found{period_.ToInstant(*local), *local, OddityOf(*local)};
            if (Taken(found.oddity)) return found;
            from = *local;
            // No need to go through a repeated hour second by second.
            if (found.oddity == Occurrence::Oddity::kSecond) from = before_ - Seconds{1};
            if (found.oddity == Occurrence::Oddity::kFirst) return std::nullopt;
        }
        return std::nullopt;
    }

private:
    bool Taken(Occurrence::Oddity oddity) const {
        if (cron_.every_hour() || policy_.fold == FoldPolicy::kBoth) return true;
        if (base::Planted(base::Bug::kFoldFiresTwice)) return true;
        if (oddity == Occurrence::Oddity::kFirst) return policy_.fold == FoldPolicy::kFirst;
        if (oddity == Occurrence::Oddity::kSecond) return policy_.fold == FoldPolicy::kLast;
        return true;
    }
    Occurrence::Oddity OddityOf(Local local) const {
        if (local < before_) return Occurrence::Oddity::kSecond;
        if (local >= after_) return Occurrence::Oddity::kFirst;
        return Occurrence::Oddity::kNone;
    }
    // Something that the clocks jumped over at the begin.
    std::optional<Occurrence> AtTheGap() const {
        if (cron_.every_hour() || policy_.gap == GapPolicy::kSkip || before_ >= begin_) return {};
        auto missed = cron_.Next(before_ - Seconds{1});
        if (!missed || *missed >= begin_) return {};
        return Occurrence{period_.begin, begin_, Occurrence::Oddity::kMoved};
    }

    const Cron& cron_;
    const ClockChangePolicy policy_;
    const ZonePeriod& period_;
    const Local begin_, end_, before_, after_;
};

}  // namespace

std::optional<Occurrence> NextOccurrence(
    const Cron& cron, const Zone& zone, ClockChangePolicy policy, Instant after
) {
    ZonePeriod period = zone.At(after);
    for (int i = 0; i < kPeriodsMax; ++i) {
        auto found = Stretch(cron, zone, policy, period).Next(after);
        if (found) return found;
        Instant end = period.end;
        period = zone.At(end);
        if (period.begin < end) return std::nullopt;  // the last one
        after = end - Seconds{1};
    }
    return std::nullopt;
}

std::optional<Occurrence> NextInGap(
    const Cron& cron, const Zone& zone, Instant after, Instant until
) {
    ZonePeriod period = zone.At(after);
    for (int i = 0; i < kPeriodsMax && period.end <= until; ++i) {
        Instant change = period.end;
        ZonePeriod next = zone.At(change);
        if (next.begin < change) break;  // the last one
        Local from = period.ToLocal(change), to = next.ToLocal(change);
        if (from < to) {
            auto missed = cron.Next(from - Seconds{1});
            if (missed && *missed < to) {
                return Occurrence{change, *missed, Occurrence::Oddity::kMoved};
            }
        }
        period = next;
    }
    return std::nullopt;
}

}  // namespace stint::model
