// Words for tasks that wait for other tasks.
#pragma once

#include <stint/ids.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stint {

// What becomes of a wait when a task that is waited for ends dead or cancelled. A failed attempt
// that will be tried again is no such end.
enum class OnFailure : std::uint8_t {
    kWaitForAll = 0,  // the others are waited for all the same
    kFailFast = 1,    // the wait is over; what is not finished goes on
    kCancelRest = 2,  // the wait is over, and what is not finished is cancelled
};

// Where an attempt begins: the first time, after a wait, or after a wait that has failed. An
// attempt that is tried again begins where the failed one did.
enum class Stage : std::uint8_t { kStart = 0, kResume = 1, kError = 2 };

// Submit a task that starts after others, which may be finished already.
struct After {
    std::vector<TaskId> tasks;
    OnFailure on_failure = OnFailure::kWaitForAll;
    // One is enough: the first success, and failures matter only if all fail; or, without
    // need_success, the first that ends, whatever its end.
    bool any = false;
    // Cancelled when the wait has failed, instead of running.
    bool need_success = true;
};

// One task that was waited for.
struct WaitedTask {
    TaskId id;    // as Context::Subtask() returned it
    TaskId task;  // another one where a key stood for a task that was there before
    bool finished = false;
    bool complete = false;
};

// Why a task that was waited for did not complete.
struct SubtaskFailure {
    TaskId task;
    std::string type;
    bool cancelled = false;
    std::string message;  // of its last error, or why it was cancelled
    std::string klass;    // of its last error
};

}  // namespace stint
