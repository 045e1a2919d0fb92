// Running a command as a task: an argument list, never a shell string.
#pragma once

#include <stint/time.h>

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/isolate/spawn.h"

namespace stint::engine::isolate {

struct CommandRequest {
    std::vector<std::string> argv;  // argv[0] is searched in PATH when it has no slash
    std::string input;              // for its standard input
    std::optional<std::vector<std::string>> env = {};  // "NAME=value"; none = ours
    std::string directory = {};
    SpawnLimits limits = {};
    std::size_t output_limit = 1 << 20;  // what it writes beyond is dropped, and said so
    std::size_t stderr_tail = 8 << 10;
    Duration grace = std::chrono::seconds{2};  // between SIGTERM and SIGKILL
};

struct CommandResult {
    std::optional<int> exit_code;
    std::optional<int> exit_signal;
    std::string output;
    bool output_cut = false;
    std::string stderr_tail;
    bool stopped = false;  // we ended it, because of the stop token
    bool ok() const { return exit_code == 0 && !stopped; }
};

// Blocks until it and its whole process group are gone. Throws std::system_error when it cannot be
// started at all.
CommandResult RunCommand(const CommandRequest& request, std::stop_token stop);

}  // namespace stint::engine::isolate
