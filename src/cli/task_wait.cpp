// stint task wait
#include <iostream>

#include "cli/ids.h"
#include "cli/task_commands.h"
#include "cli/verdict.h"

namespace stint::cli {

namespace {

struct WaitOptions {
    std::vector<std::string> ids;
    std::optional<std::string> timeout;
};

}  // namespace

void AddTaskWait(Program& program, CLI::App& group) {
    program.Command<WaitOptions>(
        group,
        "wait",
        "Waits until tasks have ended; the exit code is the verdict (stint help exit-codes).",
        "stint task wait 17 --timeout 5m\nstint submit --jsonl tasks.jsonl | stint task wait -",
        [](Syntax& syntax, WaitOptions& options) {
            syntax.Words(
                "ID", options.ids, "task ids, or - for standard input", Syntax::Need::kRequired
            );
            syntax.Text(
                "--timeout", options.timeout, "DURATION", "wait at most this long; 0 = look once"
            );
        },
        [](Invocation& invocation, const WaitOptions& options) {
            auto ids = ReadIds(options.ids, std::cin);
            node::Client client = invocation.LookAtStore();
            return AwaitVerdict(invocation, client, ids, options.timeout);
        }
    );
}

}  // namespace stint::cli
