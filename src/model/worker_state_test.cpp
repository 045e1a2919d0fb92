#include "model/worker_state.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace stint::model {
namespace {

using enum WorkerState;

TEST(WorkerStates, EveryPairOfStateAndEventIsDecided) {
    std::map<std::pair<WorkerState, WorkerEvent>, WorkerState> expected = {
        {{kStartup, WorkerEvent::kStarted}, kConnecting},
        {{kConnecting, WorkerEvent::kConnected}, kRecovery},
        {{kConnecting, WorkerEvent::kConnectedSkip}, kPolling},
        {{kRecovery, WorkerEvent::kRecovered}, kPolling},
        {{kPolling, WorkerEvent::kFoundWork}, kClaiming},
        {{kPolling, WorkerEvent::kFoundNothing}, kBackoff},
        {{kBackoff, WorkerEvent::kIntervalComputed}, kIdle},
        {{kIdle, WorkerEvent::kSleepElapsed}, kConnecting},
        {{kClaiming, WorkerEvent::kClaimed}, kProcessing},
        {{kClaiming, WorkerEvent::kClaimFailed}, kPolling},
        {{kProcessing, WorkerEvent::kSucceeded}, kReportingSuccess},
        {{kProcessing, WorkerEvent::kFailed}, kReportingFailure},
        {{kProcessing, WorkerEvent::kSlotsFree}, kPolling},
        {{kReportingSuccess, WorkerEvent::kReported}, kPolling},
        {{kReportingFailure, WorkerEvent::kReported}, kPolling},
        {{kErrorWait, WorkerEvent::kErrorWaitElapsed}, kConnecting},
        {{kDraining, WorkerEvent::kDrained}, kStopped},
    };
    for (WorkerState running :
         {kStartup,
          kConnecting,
          kRecovery,
          kPolling,
          kBackoff,
          kIdle,
          kClaiming,
          kProcessing,
          kReportingSuccess,
          kReportingFailure,
          kErrorWait}) {
        expected[{running, WorkerEvent::kBroke}] = kErrorWait;
        expected[{running, WorkerEvent::kStopRequested}] = kDraining;
    }
    for (int s = 0; s < kWorkerStateCount; ++s) {
        for (int e = 0; e < kWorkerEventCount; ++e) {
            auto from = static_cast<WorkerState>(s);
            auto event = static_cast<WorkerEvent>(e);
            auto found = expected.find({from, event});
            auto want = found == expected.end() ? std::nullopt : std::optional(found->second);
            EXPECT_EQ(Next(from, event), want)
                << WorkerStateName(from) << " + " << WorkerEventName(event);
        }
    }
}

TEST(WorkerStates, NothingLeavesStoppedAndEveryStateCanReachIt) {
    for (int e = 0; e < kWorkerEventCount; ++e) {
        EXPECT_EQ(Next(kStopped, static_cast<WorkerEvent>(e)), std::nullopt);
    }
    for (int s = 0; s < kWorkerStateCount; ++s) {
        auto state = static_cast<WorkerState>(s);
        if (state == kStopped) continue;
        if (state != kDraining) state = Next(state, WorkerEvent::kStopRequested).value();
        EXPECT_EQ(Next(state, WorkerEvent::kDrained), kStopped);
    }
}

TEST(WorkerStates, EveryOneHasItsOwnName) {
    std::set<std::string_view> names;
    for (int s = 0; s < kWorkerStateCount; ++s)
        names.insert(WorkerStateName(static_cast<WorkerState>(s)));
    for (int e = 0; e < kWorkerEventCount; ++e)
        names.insert(WorkerEventName(static_cast<WorkerEvent>(e)));
    EXPECT_EQ(names.size(), static_cast<std::size_t>(kWorkerStateCount + kWorkerEventCount));
    EXPECT_FALSE(names.contains(""));
}

}  // namespace
}  // namespace stint::model
