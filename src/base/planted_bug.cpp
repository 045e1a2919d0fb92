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
