// stint task edit
#include "cli/ids.h"
#include "cli/task_commands.h"
#include "model/time_text.h"
#include "node/json_view.h"

#include <iostream>

namespace stint::cli {

namespace {

struct EditOptions {
    std::string id;
    std::optional<std::string> queue, input, delay, at, start_by, timeout;
    std::optional<int> priority, max_attempts;
    std::vector<std::string> tags;
    bool no_tags = false;
};

model::TaskEdit EditOf(const EditOptions& options, const model::TaskRecord& task, Time now) {
    model::TaskEdit edit;
    edit.queue = options.queue;
    edit.priority = options.priority;
    edit.input = options.input;
    if (options.delay) edit.delay = Need(model::ParseDuration(*options.delay));
    if (options.timeout) edit.timeout = Need(model::ParseDuration(*options.timeout));
    if (options.at) edit.run_at = Need(model::ParseTime(*options.at, now));
    if (options.start_by) edit.start_by = Need(model::ParseTime(*options.start_by, now));
    if (!options.tags.empty() || options.no_tags) edit.tags = options.tags;
    if (options.max_attempts) {
        edit.retry = task.retry;
        edit.retry->max_attempts = *options.max_attempts;
    }
    Need(model::Validate(edit));
    return edit;
}

bool Nothing(const EditOptions& options) {
    return !options.queue && !options.input && !options.delay && !options.at && !options.start_by &&
           !options.timeout && !options.priority && !options.max_attempts && options.tags.empty() &&
           !options.no_tags;
}

int Edit(Invocation& invocation, const EditOptions& options) {
    if (Nothing(options)) {
        throw CommandError(kUsage, "nothing to change was given; for example --priority 200");
    }
    TaskId id = ReadIds({options.id}, std::cin).at(0);
    node::Client client = invocation.LookAtStore();
    auto task = client.Get(id);
    if (!task) throw CommandError(kNotFound, fmt::format("there is no task {}", id.ToString()));
    Need(client.Edit(id, EditOf(options, *task, client.Now()), invocation.actor()));
    task = client.Get(id);
    if (!task) throw CommandError(kNotFound, fmt::format("task {} is gone", id.ToString()));
    invocation.out().Print({{"edited", {id.ToString()}}}, node::ToJson(*task), id.ToString());
    return kOk;
}

}  // namespace

void AddTaskEdit(Program& program, CLI::App& group) {
    program.Command<EditOptions>(
        group,
        "edit",
        "Changes a task that waits: it has not started, or waits for its next try.",
        "stint task edit 17 --priority 200 --queue fast\nstint task edit 17 --at now+2h",
        [](Syntax& syntax, EditOptions& options) {
            syntax.Word("ID", options.id, "task id", Syntax::Need::kRequired);
            syntax.Text("--queue", options.queue, "NAME", "move it to this queue");
            syntax.Number("--priority", options.priority, "N", "0 to 255, higher first");
            syntax.Text("--input", options.input, "JSON", "replace its input");
            syntax.Text("--delay", options.delay, "DURATION", "due this long from now");
            syntax.Text("--at", options.at, "TIME", "due at this instant");
            syntax.Text(
                "--start-by", options.start_by, "TIME", "give it up as dead if not started by then"
            );
            syntax.Text("--timeout", options.timeout, "DURATION", "longest time of one attempt");
            syntax.Number(
                "--max-attempts", options.max_attempts, "N", "attempts in all; 0 = no limit"
            );
            syntax.Repeated("--tag", options.tags, "TAG", "replace the tags; may be repeated");
            syntax.Switch("--no-tags", options.no_tags, "remove all tags");
        },
        Edit
    );
}

}  // namespace stint::cli
