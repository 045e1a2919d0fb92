#include "cli/cause.h"

#include <fmt/format.h>

#include "base/text.h"
#include "cli/exit_code.h"
#include "node/command_tasks.h"
#include "node/config.h"

namespace stint::cli {

TaskId CauseOf(const std::optional<std::string>& by, node::Client& client) {
    if (by) {
        auto task = TaskId::Parse(*by);
        if (!task) {
            throw CommandError(
                kUsage, fmt::format("--by: {} is not a task's id", base::Quoted(*by))
            );
        }
        return *task;
    }
    auto environment = node::ConfigSources::OfProcess().environment;
    auto named = environment(node::kTaskIdVariable);
    auto task = named ? TaskId::Parse(*named) : std::nullopt;
    if (!task) return {};
    // A task of another store says nothing here.
    auto store = environment(node::kTaskStoreVariable);
    return !store || *store == client.Info().identity ? *task : TaskId();
}

}  // namespace stint::cli
