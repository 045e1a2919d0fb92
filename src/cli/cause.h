// Which task a command is run for.
#pragma once

#include <stint/ids.h>

#include <optional>
#include <string>

#include "node/client.h"

namespace stint::cli {

// The task that --by names, else the one whose command this is (STINT_TASK_ID), if it is one of
// this store; else none. What is published or submitted follows from it.
TaskId CauseOf(const std::optional<std::string>& by, node::Client& client);

}  // namespace stint::cli
