// Why a claim may skip a task. The claim composes these and explain evaluates the same list, so the
// two cannot disagree: each store has one fragment per condition.
#pragma once

#include <cstdint>
#include <string_view>

namespace stint::model {

enum class Condition : std::uint8_t {
    kEligible,            // none of the below: the next claim may return it
    kNotWaiting,          // it is not OPEN or ERROR at all
    kNotDue,              // its due time is in the future
    kStartByPassed,       // its start-by deadline is over
    kQueuePaused,         // an operator paused its queue
    kQueueNotServed,      // the claimer does not serve this queue
    kTypeNotHandled,      // the claimer has no handler for this type
    kCancelRequested,     // a cancel was acknowledged
    kSuspectMustBeAlone,  // it was running in a process that crashed: only an idle worker takes it
    kSessionNotLive,      // the claimer's own session is not live
    kBehindInOrder,       // an earlier task of its order key is not over
    // Of these the claim's plan knows (model/claim_plan.h).
    kLabelMissing,      // it requires a label that the claimer does not carry
    kNoRoom,            // the claimer has no room for more of its queue, type or resource
    kResourceWithheld,  // the claimer's node cannot offer a resource that it needs
    kResourceClosed,    // a resource that it needs does not work, as tasks have found
    kRateLimited,       // so many have started with a resource that it has to wait
    kResourceFull,      // others hold what it needs of a resource, or are before it in line
};
inline constexpr int kConditionCount = 17;
// Whether the claim's plan decides it, not what is written with the task and its line.
constexpr bool IsOfThePlan(Condition condition) {
    return condition >= Condition::kLabelMissing;
}

std::string_view ConditionName(Condition condition);
std::string_view ConditionText(Condition condition);  // a sentence for a person

}  // namespace stint::model
