#include "model/worker_state.h"

#include <array>

namespace stint::model {

namespace {

using enum WorkerState;

constexpr std::array kStateNames = {
    std::string_view{"startup"},
    std::string_view{"connecting"},
    std::string_view{"recovery"},
    std::string_view{"polling"},
    std::string_view{"backoff"},
    std::string_view{"idle"},
    std::string_view{"claiming"},
    std::string_view{"processing"},
    std::string_view{"reporting_success"},
    std::string_view{"reporting_failure"},
    std::string_view{"error_wait"},
    std::string_view{"draining"},
    std::string_view{"stopped"},
};
constexpr std::array kEventNames = {
    std::string_view{"started"},
    std::string_view{"connected"},
    std::string_view{"connected_skip_recovery"},
    std::string_view{"recovered"},
    std::string_view{"found_work"},
    std::string_view{"found_nothing"},
    std::string_view{"interval_computed"},
    std::string_view{"sleep_elapsed"},
    std::string_view{"claimed"},
    std::string_view{"claim_failed"},
    std::string_view{"succeeded"},
    std::string_view{"failed"},
    std::string_view{"reported"},
    std::string_view{"broke"},
    std::string_view{"error_wait_elapsed"},
    std::string_view{"stop_requested"},
    std::string_view{"drained"},
    std::string_view{"slots_free"},
};
static_assert(kStateNames.size() == kWorkerStateCount);
static_assert(kEventNames.size() == kWorkerEventCount);

struct Move {
    WorkerState from;
    WorkerEvent event;
    WorkerState to;
};
constexpr std::array kMoves = {
    Move{kStartup, WorkerEvent::kStarted, kConnecting},
    Move{kConnecting, WorkerEvent::kConnected, kRecovery},
    Move{kConnecting, WorkerEvent::kConnectedSkip, kPolling},
    Move{kRecovery, WorkerEvent::kRecovered, kPolling},
    Move{kPolling, WorkerEvent::kFoundWork, kClaiming},
    Move{kPolling, WorkerEvent::kFoundNothing, kBackoff},
    Move{kBackoff, WorkerEvent::kIntervalComputed, kIdle},
    Move{kIdle, WorkerEvent::kSleepElapsed, kConnecting},
    Move{kClaiming, WorkerEvent::kClaimed, kProcessing},
    Move{kClaiming, WorkerEvent::kClaimFailed, kPolling},
    Move{kProcessing, WorkerEvent::kSucceeded, kReportingSuccess},
    Move{kProcessing, WorkerEvent::kFailed, kReportingFailure},
    Move{kProcessing, WorkerEvent::kSlotsFree, kPolling},
    Move{kReportingSuccess, WorkerEvent::kReported, kPolling},
    Move{kReportingFailure, WorkerEvent::kReported, kPolling},
    Move{kErrorWait, WorkerEvent::kErrorWaitElapsed, kConnecting},
    Move{kDraining, WorkerEvent::kDrained, kStopped},
};

constexpr bool IsRunning(WorkerState state) {
    return state != kDraining && state != kStopped;
}

}  // namespace

std::string_view WorkerStateName(WorkerState state) {
    return kStateNames.at(static_cast<std::size_t>(state));
}
std::string_view WorkerEventName(WorkerEvent event) {
    return kEventNames.at(static_cast<std::size_t>(event));
}

std::optional<WorkerState> Next(WorkerState from, WorkerEvent event) {
    if (event == WorkerEvent::kBroke && IsRunning(from)) return kErrorWait;
    if (event == WorkerEvent::kStopRequested && IsRunning(from)) return kDraining;
    for (const Move& move : kMoves) {
        if (move.from == from && move.event == event) return move.to;
    }
    return std::nullopt;
}

}  // namespace stint::model
