#include "store/sqlite/conditions.h"

#include "base/planted_bug.h"

namespace stint::store::lite {

using base::Bug;
using base::Planted;

Claimer::Claimer(const ClaimRequest& request, bool is_live)
    : live(is_live),
      any_type(!request.session.valid() && request.types.empty()),
      suspects(request.suspect),
      named(request.session.valid()),
      queues(request.queues.begin(), request.queues.end()),
      types(request.types.begin(), request.types.end()) {
}

Sieve SieveOf(Condition condition) {
    switch (condition) {
        case Condition::kSessionNotLive:
            return Sieve::kSession;
        case Condition::kQueuePaused:
        case Condition::kQueueNotServed:
        case Condition::kTypeNotHandled:
            return Sieve::kLane;
        default:
            return IsOfThePlan(condition) ? Sieve::kPlan : Sieve::kTask;
    }
}

bool Applies(Condition condition, const Situation& situation) {
    const auto& [claimer, now, lane, task] = situation;
    switch (condition) {
        case Condition::kEligible:
            return false;
        case Condition::kNotWaiting:
            return task.state != State::kOpen && task.state != State::kError;
        case Condition::kNotDue:
            return task.due_at > now && !Planted(Bug::kClaimIgnoresDue);
        case Condition::kStartByPassed:
            return task.start_by && *task.start_by <= now;
        case Condition::kQueuePaused:
            return lane.paused;
        case Condition::kQueueNotServed:
            return !claimer.queues.empty() && !claimer.queues.contains(lane.queue);
        case Condition::kTypeNotHandled:
            return !claimer.any_type && !claimer.types.contains(lane.type);
        case Condition::kCancelRequested:
            return task.cancel_requested;
        case Condition::kSuspectMustBeAlone:
            return task.suspect && !claimer.suspects;
        case Condition::kSessionNotLive:
            return claimer.named && !claimer.live && !Planted(Bug::kClaimIgnoresSession);
        case Condition::kBehindInOrder:
            return task.behind;
        default:
            return false;
    }
}

bool Skips(Sieve sieve, const Situation& situation) {
    for (int i = 0; i < kConditionCount; ++i) {
        auto condition = static_cast<Condition>(i);
        if (SieveOf(condition) == sieve && Applies(condition, situation)) return true;
    }
    return false;
}

}  // namespace stint::store::lite
