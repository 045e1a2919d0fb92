// Waiting for tasks and telling how they ended.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/invocation.h"

namespace stint::cli {

// Waits, prints each task as it ends, returns the exit code of `stint help exit-codes`. `limit` is
// a duration as text. SIGINT and SIGTERM end the wait, not the tasks.
int AwaitVerdict(
    Invocation& invocation,
    node::Client& client,
    const std::vector<TaskId>& tasks,
    const std::optional<std::string>& limit
);

}  // namespace stint::cli
