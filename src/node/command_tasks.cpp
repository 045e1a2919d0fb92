#include "node/command_tasks.h"

#include <fmt/format.h>

#include <system_error>

#include "base/json.h"
#include "base/text.h"
#include "engine/context.h"
#include "engine/isolate/command.h"
#include "model/limits.h"
#include "model/placement.h"
#include "node/engine_impl.h"

namespace stint::node {

namespace {

using engine::isolate::CommandRequest;
using engine::isolate::CommandResult;

// The last line of what it wrote to standard error says most about why.
std::string LastLine(std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
    std::size_t start = text.rfind('\n');
    return base::CleanText(start == text.npos ? text : text.substr(start + 1), 256);
}

Outcome<std::string> OutcomeOf(const std::string& program, const CommandResult& result) {
    if (result.ok()) {
        if (result.output_cut) {
            return Failed{
                .message =
                    fmt::format("{} wrote more than {} bytes", program, model::limits::kOutput),
                .retryable = false,
                .klass = "output"};
        }
        return Outcome<std::string>(std::in_place_index<0>, OutputOfCommand(result.output));
    }
    std::string end = result.exit_signal
                          ? engine::isolate::SignalName(*result.exit_signal)
                          : fmt::format("exit code {}", result.exit_code.value_or(-1));
    // A program that ends politely when told to stop has not done its work. The engine knows why it
    // was told, and concludes from that.
    if (result.stopped) end = "stopped, " + end;
    std::string last = LastLine(result.stderr_tail);
    return Failed{
        .message = fmt::format("{}: {}{}{}", program, end, last.empty() ? "" : ": ", last),
        .retryable = true,
        .klass = result.exit_signal ? "signal" : "exit"};
}

Outcome<std::string> RunTask(const CommandTask& task, Context& context, std::string_view input) {
    CommandRequest request;
    request.argv = task.command;
    request.input = std::string(input);
    request.directory = task.directory;
    request.limits = {.memory_bytes = task.memory_bytes, .cpu_time = task.cpu_time};
    request.output_limit = model::limits::kOutput;
    request.stderr_tail = model::limits::kStderrTail;
    CommandResult result;
    try {
        result = engine::isolate::RunCommand(request, context.stop());
    } catch (const std::system_error& error) {
        // It may be installed, or memory free, at the next try.
        return Failed{
            .message = fmt::format("cannot start {}: {}", task.command[0], error.what()),
            .retryable = true,
            .klass = "start"};
    }
    engine::Record(
        context,
        {.exit_code = result.exit_code,
         .exit_signal = result.exit_signal,
         .stderr_tail = result.stderr_tail}
    );
    return OutcomeOf(task.command[0], result);
}

}  // namespace

std::string OutputOfCommand(std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
    if (text.empty()) return "null";
    if (base::CheckJson(text, model::limits::kJsonDepth)) return std::string(text);
    return base::JsonText(base::Json(base::CleanText(text, model::limits::kOutput)));
}

void HandleCommands(Engine& engine, const std::vector<CommandTask>& commands) {
    for (const CommandTask& task : commands) {
        engine.impl().registry.Add({
            .type = task.name,
            .defaults =
                {.type = task.name,
                 .queue = task.queue,
                 .priority = task.priority,
                 .retry = task.retry,
                 .timeout = task.timeout,
                 .needs = model::Canonical(task.needs),
                 .labels = model::CanonicalLabels(task.labels)},
            .handler = [task](
                           Context& context, std::string_view input
                       ) { return RunTask(task, context, input); },
        });
    }
}

}  // namespace stint::node
