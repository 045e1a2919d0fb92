// Programs as tasks: what [task.NAME] of the configuration declares.
#pragma once

#include <stint/engine.h>

#include <vector>

#include "node/config.h"

namespace stint::node {

// Registers a handler for each. Throws std::invalid_argument for a name that is not one, or taken.
void HandleCommands(Engine& engine, const std::vector<CommandTask>& commands);

// The result of a command's standard output: itself if it is JSON, else a JSON string of it.
// Trailing newlines are the program's habit, not its answer.
std::string OutputOfCommand(std::string_view text);

}  // namespace stint::node
