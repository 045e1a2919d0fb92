// stint task get
#include <iostream>

#include "base/text.h"
#include "cli/ids.h"
#include "cli/task_commands.h"
#include "cli/task_view.h"
#include "model/time_text.h"
#include "node/json_view.h"

namespace stint::cli {

namespace {

struct GetOptions {
    std::vector<std::string> ids;
};

using Facts = std::vector<std::pair<std::string, Cell>>;

void AddTimes(Facts& facts, const model::TaskRecord& task, Time now) {
    auto add = [&](const char* name, const std::optional<Time>& time) {
        if (!time) return;
        facts.push_back({name, {fmt::format("{}  ({})", base::Iso8601(*time), Ago(*time, now))}});
    };
    add("created", task.created_at);
    if (!model::IsTerminal(task.state)) add("due", task.due_at);
    add("start by", task.start_by);
    add("claimed", task.claimed_at);
    add("finished", task.finished_at);
}

Facts FactsOf(const model::TaskRecord& task, Time now) {
    Facts facts;
    auto add = [&](const char* name, std::string text) {
        if (!text.empty()) facts.push_back({name, {std::move(text)}});
    };
    add("id", task.id.ToString());
    add("type", task.type_known ? task.type : task.type + "  (no worker knows it yet)");
    Cell state = StateCell(task.state);
    if (task.warning) state.text += ", with a warning";
    if (task.cancel_requested) state.text += ", cancel requested";
    facts.push_back({"state", state});
    add("reason", task.reason);
    add("queue", task.queue);
    add("priority", std::to_string(task.priority));
    if (task.tenant != kDefaultTenant) add("tenant", task.tenant.ToString());
    if (task.parent.valid()) add("parent", task.parent.ToString());
    if (task.waiting_for > 0) add("waits for", fmt::format("{} tasks", task.waiting_for));
    if (task.stage != Stage::kStart) add("stage", std::string(model::StageName(task.stage)));
    add("attempt",
        task.max_attempts > 0 ? fmt::format("{} of {}", task.attempt, task.max_attempts)
                              : std::to_string(task.attempt));
    if (task.generation > 1) add("generation", std::to_string(task.generation));
    add("tags", fmt::format("{}", fmt::join(task.tags, ", ")));
    add("unique key", task.unique_key);
    add("key", task.idempotency_key);
    if (task.timeout > Duration::zero()) add("timeout", model::FormatDuration(task.timeout));
    if (task.progress) add("progress", ProgressText(*task.progress));
    AddTimes(facts, task, now);
    add("session", task.session.valid() ? task.session.ToString() : "");
    add("input", task.input);
    add("output", task.output);
    if (task.error) {
        add("error", fmt::format("{}: {}", task.error->klass, task.error->message));
        add("stack", task.error->stack);
    }
    return facts;
}

int Get(Invocation& invocation, const GetOptions& options) {
    auto ids = ReadIds(options.ids, std::cin);
    node::Client client = invocation.LookAtStore();
    Time now = client.Now();
    bool first = true;
    int exit = kOk;
    for (TaskId id : ids) {
        auto task = client.Get(id);
        if (!task) {
            invocation.Warn(fmt::format("there is no task {}", id.ToString()));
            exit = kNotFound;
            continue;
        }
        if (!first && invocation.out().format() == Format::kTable) invocation.out().Line("");
        first = false;
        invocation.out().Print(FactsOf(*task, now), node::ToJson(*task), id.ToString());
    }
    return exit;
}

}  // namespace

void AddTaskGet(Program& program, CLI::App& group) {
    program.Command<GetOptions>(
        group,
        "get",
        "Shows all about a task.",
        "stint task get 17\nstint task get 17 -o json",
        [](Syntax& syntax, GetOptions& options) {
            syntax.Words(
                "ID", options.ids, "task ids, or - for standard input", Syntax::Need::kRequired
            );
        },
        Get
    );
}

}  // namespace stint::cli
