// Where a task stands in a plan that takes all it can.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "model/claim_plan.h"
#include "store/store.h"

namespace stint::store {

struct PlaceAsked {
    std::size_t line = 0;  // its own
    std::int64_t position = 0;
    std::size_t depth = std::numeric_limits<std::size_t>::max();  // that was read of each line
};

// How many the plan takes before it. Of lines that were read in part and taken whole, what was not
// read is `count`ed: (line, after this position, before that one), or nullopt where it cannot be.
template <class Count>
Explanation StandsAt(
    std::span<const WaitingLine> lines, const ClaimPlan& plan, const PlaceAsked& asked, Count count
) {
    Explanation place{.condition = Condition::kEligible};
    const int priority = lines[asked.line].priority;
    auto position_of = [&](const ClaimPlan::Pick& pick) {
        return lines[pick.line].waiting[pick.waiter].position;
    };
    auto own = std::ranges::find_if(plan.picks, [&](const ClaimPlan::Pick& pick) {
        return pick.line == asked.line && position_of(pick) == asked.position;
    });
    std::vector<std::size_t> taken(lines.size());
    for (auto pick = plan.picks.begin(); pick != own; ++pick) {
        const WaitingLine& line = lines[pick->line];
        // It stands behind what was read: only those of its own order are certain.
        bool after = line.priority < priority ||
                     (line.priority == priority && position_of(*pick) > asked.position);
        if (own == plan.picks.end() && after) continue;
        ++place.ahead;
        ++taken[pick->line];
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::vector<Waiter>& read = lines[i].waiting;
        if (read.size() < asked.depth || taken[i] < read.size()) continue;
        std::int64_t until = std::numeric_limits<std::int64_t>::max();
        if (lines[i].priority == priority) until = asked.position;
        if (until <= read.back().position) continue;
        std::optional<std::int64_t> rest = count(i, read.back().position, until);
        place.ahead += rest.value_or(0);
        place.more_ahead = place.more_ahead || !rest;
    }
    return place;
}

}  // namespace stint::store
