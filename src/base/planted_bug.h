// Planted bugs prove the provers: each can be switched on in a dev build and must then be found by
// the simulator or the interleaving tests. In other builds the question is answered at compile
// time.
#pragma once

#include <cstdint>
#include <string_view>

namespace stint::base {

enum class Bug : std::uint8_t {
    kNone,
    kNoFence,                  // settle accepts any token
    kOwnerFence,               // settle compares the session instead of the token
    kUnguardedReclaim,         // reclaim moves a task even if it was settled meanwhile
    kCrashNotCounted,          // a crash while alone does not count towards quarantine
    kDrainBurnsAttempt,        // releasing on drain does not refund the attempt
    kClaimIgnoresDue,          // claims tasks before they are due
    kClaimIgnoresSession,      // claims under an expired session
    kCancelForgotten,          // a failure after a cancel request is retried
    kUnknownIsFailure,         // an unknown commit of a settle is treated as a failed attempt
    kUnknownResubmitted,       // an unknown commit of a submit is sent again without its key
    kIdempotencyWithoutHash,   // the same key returns the old task for any request
    kUniqueKeyNotReleased,     // a finished task keeps its unique key
    kAuditOutsideTransaction,  // the audit entry can be lost when the transition is not
    kSelfStopFromReply,        // the worker's deadline counts from the reply, not from the request
    kWakeOnly,                 // no polling: a lost hint is never made up for
    kReclaimLosesTask,         // a reclaimed task is not made ready again
    kSpoolUnfenced,            // the spool replays without its token
    kWaitMissesCancel,         // a cancelled task is not told to who waits for it
    kWaitCountsTwice,          // an end counts for two of those that are waited for
    kWaitLosesMember,          // the last of those that are waited for does not count
    kBlockBurnsAttempt,        // waiting costs an attempt
    kCancelStopsAtRoot,        // a cancel leaves the tasks below alone
    kFireWithoutMark,          // a schedule fires whether or not the instant was decided before
    kMarkDeletedEarly,         // the mark of a decided instant is forgotten at once
    kFoldFiresTwice,           // a local time that comes twice fires twice
    kFireWithoutRecord,        // nobody looks whether an event has fired its triggers
    kJoinWithoutGeneration,    // a join that has fired goes on with the members it had
    kJoinMaskOverwritten,      // a member that arrives at a join replaces the others
    kFlowStepUnfenced,         // a step is recorded whoever holds the task
    kFlowSignalLost,           // a signal that comes while its flow runs does not wake it
    kFlowStepAgain,            // a replay does a recorded step again
    kFlowSignalTwice,          // a signal that was taken can be taken again
    kClaimOverAdmits,          // a claim does not count what it has just taken of a resource
    kSlotLeakedOnReclaim,      // what a crashed task held is held for ever
    kSeatGivenBackEarly,       // units are free while others of the group run on them
    kRunsWithoutSeat,          // a worker runs more of a group than it has seats
    kHalfOpenLetsAllThrough,   // a resource that is to be tried by one task is used by all
    kBreakerBurnsAttempt,      // a task whose resource does not work loses an attempt
    kOrderKeyOvertaken,        // tasks of one order key pass one that waits for its next try
    kLabelsIgnored,            // any worker takes a task that requires labels
    kStepEndsEarly,            // the next step begins when one task of the step has ended
    kStepSkipped,              // a step that was about to begin is taken for done
    kCompletionUnfenced,       // a task in background is ended by whoever knows its id
    kEventIdIgnored,           // an event that is published again is another one
    kRateNotCounted,           // a start takes nothing of a resource's rate
    kResultsUnfenced,          // items and checkpoints are taken from whoever held the task before
};

std::string_view BugName(Bug bug);
Bug BugNamed(std::string_view name);  // kNone when there is no such bug

#ifdef STINT_PLANTED_BUGS
void PlantBug(Bug bug);  // replaces the one planted before; kNone removes it
bool Planted(Bug bug);
#else
constexpr bool Planted(Bug) {
    return false;
}
#endif

}  // namespace stint::base
