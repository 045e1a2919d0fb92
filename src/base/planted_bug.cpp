#include "base/planted_bug.h"

#include <array>
#include <atomic>
#include <utility>

namespace stint::base {

namespace {

constexpr std::array kNames = {
    std::pair{Bug::kNone, std::string_view{"none"}},
    std::pair{Bug::kNoFence, std::string_view{"no-fence"}},
    std::pair{Bug::kOwnerFence, std::string_view{"owner-fence"}},
    std::pair{Bug::kUnguardedReclaim, std::string_view{"unguarded-reclaim"}},
    std::pair{Bug::kCrashNotCounted, std::string_view{"crash-not-counted"}},
    std::pair{Bug::kDrainBurnsAttempt, std::string_view{"drain-burns-attempt"}},
    std::pair{Bug::kClaimIgnoresDue, std::string_view{"claim-ignores-due"}},
    std::pair{Bug::kClaimIgnoresSession, std::string_view{"claim-ignores-session"}},
    std::pair{Bug::kCancelForgotten, std::string_view{"cancel-forgotten"}},
    std::pair{Bug::kUnknownIsFailure, std::string_view{"unknown-is-failure"}},
    std::pair{Bug::kUnknownResubmitted, std::string_view{"unknown-resubmitted"}},
    std::pair{Bug::kIdempotencyWithoutHash, std::string_view{"idempotency-without-hash"}},
    std::pair{Bug::kUniqueKeyNotReleased, std::string_view{"unique-key-not-released"}},
    std::pair{Bug::kAuditOutsideTransaction, std::string_view{"audit-outside-transaction"}},
    std::pair{Bug::kSelfStopFromReply, std::string_view{"self-stop-from-reply"}},
    std::pair{Bug::kWakeOnly, std::string_view{"wake-only"}},
    std::pair{Bug::kReclaimLosesTask, std::string_view{"reclaim-loses-task"}},
    std::pair{Bug::kSpoolUnfenced, std::string_view{"spool-unfenced"}},
    std::pair{Bug::kWaitMissesCancel, std::string_view{"wait-misses-cancel"}},
    std::pair{Bug::kWaitCountsTwice, std::string_view{"wait-counts-twice"}},
    std::pair{Bug::kWaitLosesMember, std::string_view{"wait-loses-member"}},
    std::pair{Bug::kBlockBurnsAttempt, std::string_view{"block-burns-attempt"}},
    std::pair{Bug::kCancelStopsAtRoot, std::string_view{"cancel-stops-at-root"}},
    std::pair{Bug::kFireWithoutMark, std::string_view{"fire-without-mark"}},
    std::pair{Bug::kMarkDeletedEarly, std::string_view{"mark-deleted-early"}},
    std::pair{Bug::kFoldFiresTwice, std::string_view{"fold-fires-twice"}},
    std::pair{Bug::kFireWithoutRecord, std::string_view{"fire-without-record"}},
    std::pair{Bug::kJoinWithoutGeneration, std::string_view{"join-without-generation"}},
    std::pair{Bug::kJoinMaskOverwritten, std::string_view{"join-mask-overwritten"}},
    std::pair{Bug::kFlowStepUnfenced, std::string_view{"flow-step-unfenced"}},
    std::pair{Bug::kFlowSignalLost, std::string_view{"flow-signal-lost"}},
    std::pair{Bug::kFlowStepAgain, std::string_view{"flow-step-again"}},
    std::pair{Bug::kFlowSignalTwice, std::string_view{"flow-signal-twice"}},
    std::pair{Bug::kClaimOverAdmits, std::string_view{"claim-over-admits"}},
    std::pair{Bug::kSlotLeakedOnReclaim, std::string_view{"slot-leaked-on-reclaim"}},
    std::pair{Bug::kSeatGivenBackEarly, std::string_view{"seat-given-back-early"}},
    std::pair{Bug::kRunsWithoutSeat, std::string_view{"runs-without-seat"}},
    std::pair{Bug::kHalfOpenLetsAllThrough, std::string_view{"half-open-lets-all-through"}},
    std::pair{Bug::kBreakerBurnsAttempt, std::string_view{"breaker-burns-attempt"}},
    std::pair{Bug::kOrderKeyOvertaken, std::string_view{"order-key-overtaken"}},
    std::pair{Bug::kLabelsIgnored, std::string_view{"labels-ignored"}},
    std::pair{Bug::kStepEndsEarly, std::string_view{"step-ends-early"}},
    std::pair{Bug::kStepSkipped, std::string_view{"step-skipped"}},
    std::pair{Bug::kCompletionUnfenced, std::string_view{"completion-unfenced"}},
    std::pair{Bug::kEventIdIgnored, std::string_view{"event-id-ignored"}},
    std::pair{Bug::kRateNotCounted, std::string_view{"rate-not-counted"}},
    std::pair{Bug::kResultsUnfenced, std::string_view{"results-unfenced"}},
};

}  // namespace

std::string_view BugName(Bug bug) {
    for (const auto& [value, name] : kNames) {
        if (value == bug) return name;
    }
    return "none";
}

Bug BugNamed(std::string_view name) {
    for (const auto& [value, text] : kNames) {
        if (text == name) return value;
    }
    return Bug::kNone;
}

#ifdef STINT_PLANTED_BUGS
namespace {
std::atomic<Bug> planted{Bug::kNone};
}

void PlantBug(Bug bug) {
    planted = bug;
}
bool Planted(Bug bug) {
    return planted.load(std::memory_order_relaxed) == bug;
}
#endif

}  // namespace stint::base
