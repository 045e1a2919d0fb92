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
