#include "node/command_tasks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

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

// Ours, and what the command may want to know of its attempt. What we were told of one that started
// this worker is not passed on.
std::vector<std::string> EnvironmentOf(const Context& context, std::string_view store) {
    const std::array<std::pair<std::string_view, std::string>, 5> about = {{
        {kTaskIdVariable, context.id().ToString()},
        {kTaskStoreVariable, std::string(store)},
        {kTaskTypeVariable, std::string(context.type())},
        {kTaskAttemptVariable, std::to_string(context.attempt())},
        {kTaskKeyVariable, std::string(context.idempotency_key())},
    }};
    std::vector<std::string> variables;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        std::string_view variable = *entry;
        std::string_view name = variable.substr(0, variable.find('='));
        bool ours = std::ranges::any_of(about, [&](const auto& one) { return one.first == name; });
        if (!ours) variables.emplace_back(variable);
    }
    for (const auto& [name, value] : about) variables.push_back(fmt::format("{}={}", name, value));
    return variables;
}

Outcome<std::string> RunTask(
    const CommandTask& task, const std::string& store, Context& context, std::string_view input
) {
    CommandRequest request;
    request.env = EnvironmentOf(context, store);
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
            .handler = [task, store = engine.impl().info.identity](
                           Context& context, std::string_view input
                       ) { return RunTask(task, store, context, input); },
        });
    }
}

}  // namespace stint::node
