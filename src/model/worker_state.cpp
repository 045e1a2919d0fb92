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

struct Step {
    WorkerState from;
    WorkerEvent event;
    WorkerState to;
};
constexpr std::array kSteps = {
    Step{kStartup, WorkerEvent::kStarted, kConnecting},
    Step{kConnecting, WorkerEvent::kConnected, kRecovery},
    Step{kConnecting, WorkerEvent::kConnectedSkip, kPolling},
    Step{kRecovery, WorkerEvent::kRecovered, kPolling},
    Step{kPolling, WorkerEvent::kFoundWork, kClaiming},
    Step{kPolling, WorkerEvent::kFoundNothing, kBackoff},
    Step{kBackoff, WorkerEvent::kIntervalComputed, kIdle},
    Step{kIdle, WorkerEvent::kSleepElapsed, kConnecting},
    Step{kClaiming, WorkerEvent::kClaimed, kProcessing},
    Step{kClaiming, WorkerEvent::kClaimFailed, kPolling},
    Step{kProcessing, WorkerEvent::kSucceeded, kReportingSuccess},
    Step{kProcessing, WorkerEvent::kFailed, kReportingFailure},
    Step{kProcessing, WorkerEvent::kSlotsFree, kPolling},
    Step{kReportingSuccess, WorkerEvent::kReported, kPolling},
    Step{kReportingFailure, WorkerEvent::kReported, kPolling},
    Step{kErrorWait, WorkerEvent::kErrorWaitElapsed, kConnecting},
    Step{kDraining, WorkerEvent::kDrained, kStopped},
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
    for (const Step& step : kSteps) {
        if (step.from == from && step.event == event) return step.to;
    }
    return std::nullopt;
}

}  // namespace stint::model
