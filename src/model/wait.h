// Waiting for other tasks: what is waited for, when it is over, and what it leads to. Pure; the
// stores share it.
#pragma once

#include <stint/ids.h>
#include <stint/result.h>
#include <stint/wait.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/state.h"

namespace stint::model {

using stint::OnFailure;
using stint::Stage;
std::string_view StageName(Stage stage);

// A wait for other tasks. It is over when all of them are terminal, or earlier as `on_failure` and
// `any` say.
struct WaitOn {
    std::vector<TaskId> on;
    OnFailure on_failure = OnFailure::kWaitForAll;
    // One that is COMPLETE is enough, and failures matter only if all fail. Without `need_success`
    // the first that is terminal is enough, whatever its end.
    bool any = false;
    // Of a task that has not started: CANCELLED when the wait has failed, instead of running. One
    // that waits for its subtasks always runs, and is told.
    bool need_success = true;
    friend bool operator==(const WaitOn&, const WaitOn&) = default;
};
Result<void> Validate(const WaitOn& wait);

// One task that another waits or waited for, in the order in which it asked.
struct WaitMember {
    TaskId asked;  // the id that was named; not `task` where a key stood for another task
    TaskId task;
    std::optional<State> ended;  // terminal; none = it is waited for
    friend bool operator==(const WaitMember&, const WaitMember&) = default;
};
// DEAD or CANCELLED.
bool HasFailed(const WaitMember& member);

struct WaitTally {
    int total = 0;
    int pending = 0;  // not terminal yet
    int failed = 0;
};
WaitTally TallyOf(const std::vector<WaitMember>& members);

enum class WaitVerdict : std::uint8_t { kGoesOn, kSucceeded, kFailed };
WaitVerdict Judge(const WaitOn& wait, const WaitTally& tally);

// What the end of a wait means for the task that waited.
struct WaitEnd {
    Event event = Event::kUnblock;  // or kCancel
    Stage stage = Stage::kStart;
    bool cancel_rest = false;  // what is not finished is to be cancelled
};
// `started`: it waited in the middle of its work, not before it.
WaitEnd EndOf(const WaitOn& wait, WaitVerdict verdict, bool started);

}  // namespace stint::model
