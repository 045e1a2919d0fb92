// The worker's own machine: what its loop is doing, visible in logs, metrics and `stint worker
// list`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stint::model {

enum class WorkerState : std::uint8_t {
    kStartup,
    kConnecting,
    kRecovery,
    kPolling,
    kBackoff,
    kIdle,
    kClaiming,
    kProcessing,
    kReportingSuccess,
    kReportingFailure,
    kErrorWait,
    kDraining,
    kStopped,
};
inline constexpr int kWorkerStateCount = 13;

enum class WorkerEvent : std::uint8_t {
    kStarted,           // Startup → Connecting
    kConnected,         // Connecting → Recovery (its timer has elapsed) …
    kConnectedSkip,     // … or straight to Polling (it has not)
    kRecovered,         // Recovery → Polling
    kFoundWork,         // Polling → Claiming
    kFoundNothing,      // Polling → Backoff
    kIntervalComputed,  // Backoff → Idle
    kSleepElapsed,      // Idle → Connecting: the connection is checked again
    kClaimed,           // Claiming → Processing
    kClaimFailed,       // Claiming → Polling: somebody else took it
    kSucceeded,         // Processing → ReportingSuccess
    kFailed,            // Processing → ReportingFailure
    kReported,          // Reporting… → Polling
    kBroke,             // any running state → ErrorWait
    kErrorWaitElapsed,  // ErrorWait → Connecting
    kStopRequested,     // any running state → Draining
    kDrained,           // Draining → Stopped
    kSlotsFree,         // Processing → Polling: attempts run, and there is room for more
};
inline constexpr int kWorkerEventCount = 18;

std::string_view WorkerStateName(WorkerState state);
std::string_view WorkerEventName(WorkerEvent event);
std::optional<WorkerState> Next(WorkerState from, WorkerEvent event);

}  // namespace stint::model
