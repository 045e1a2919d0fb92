// How the program ends, for scripts. One table, printed by `stint help exit-codes`.
#pragma once

#include <stint/result.h>

#include <stdexcept>
#include <string>

namespace stint::cli {

enum Exit : int {
    kOk = 0,
    kFailed = 1,         // the request failed
    kUsage = 2,          // wrong use of the command line or configuration
    kNotFound = 4,       // no such task, queue, store
    kUnreachable = 5,    // the store cannot be reached
    kConflict = 6,       // the state of the thing forbids it
    kTaskFailed = 7,     // an awaited task ended without success
    kTaskCancelled = 8,  // an awaited task was cancelled
    kStillRunning = 9,   // waited long enough, not finished
    kUnknown = 11,       // the answer was lost: it may or may not have happened
    kReaderGone = 141,   // what a filter ends with whose reader has gone
};

int ExitOf(Code code);

// Ends the command with a message for a person and an exit code.
class CommandError : public std::runtime_error {
public:
    CommandError(int exit, const std::string& message) : std::runtime_error(message), exit_(exit) {}
    explicit CommandError(const Error& error) : CommandError(ExitOf(error.code), error.message) {}
    int exit() const { return exit_; }

private:
    int exit_;
};

// The value, or a CommandError.
template <class T>
T Need(Result<T> result) {
    if (!result) throw CommandError(result.error());
    return std::move(*result);
}
inline void Need(const Result<void>& result) {
    if (!result) throw CommandError(result.error());
}

}  // namespace stint::cli
