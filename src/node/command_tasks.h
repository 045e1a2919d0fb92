// Programs as tasks: what [task.NAME] of the configuration declares.
#pragma once

#include <stint/engine.h>

#include <string>
#include <string_view>
#include <vector>

#include "node/config.h"

namespace stint::node {

// What a command finds in its environment about the attempt that runs it. `stint event publish` and
// `stint submit` read the first two: what they make follows from the task.
inline constexpr std::string_view kTaskIdVariable = "STINT_TASK_ID";
inline constexpr std::string_view kTaskStoreVariable = "STINT_TASK_STORE";  // the store's identity
inline constexpr std::string_view kTaskTypeVariable = "STINT_TASK_TYPE";
inline constexpr std::string_view kTaskAttemptVariable = "STINT_TASK_ATTEMPT";
inline constexpr std::string_view kTaskKeyVariable = "STINT_TASK_KEY";  // the idempotency key

// Registers a handler for each. Throws std::invalid_argument for a name that is not one, or taken.
void HandleCommands(Engine& engine, const std::vector<CommandTask>& commands);

// The result of a command's standard output: itself if it is JSON, else a JSON string of it.
// Trailing newlines are the program's habit, not its answer.
std::string OutputOfCommand(std::string_view text);

}  // namespace stint::node
