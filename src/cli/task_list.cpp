// stint task list
#include <algorithm>

#include "cli/task_commands.h"
#include "cli/task_view.h"
#include "model/filter_text.h"
#include "model/time_text.h"
#include "node/json_view.h"

namespace stint::cli {

namespace {

struct ListOptions {
    std::vector<std::string> filter;
    int limit = model::limits::kListPageDefault;
    std::optional<std::int64_t> before;
    bool count = false;
};

std::vector<Cell> Row(const model::TaskRecord& task, Time now) {
    std::string attempt = task.max_attempts > 0
                              ? fmt::format("{}/{}", task.attempt, task.max_attempts)
                              : std::to_string(task.attempt);
    return {
        {task.id.ToString()},
        StateCell(task.state),
        {task.type},
        {task.queue},
        {std::to_string(task.priority)},
        {attempt},
        {model::RoughDuration(std::chrono::duration_cast<Duration>(now - task.created_at))},
        {DetailText(task, now)},
    };
}

// Pages are the store's affair: a person says how many.
Listing Collect(node::Client& client, const ListOptions& options, const model::TaskFilter& filter) {
    Listing listing;
    listing.name = "tasks";
    listing.headers = {"ID", "STATE", "TYPE", "QUEUE", "PRIO", "ATTEMPT", "AGE", "DETAIL"};
    Time now = client.Now();
    node::ListRequest request;
    request.filter = filter;
    if (options.before) request.before = TaskId(*options.before);
    std::optional<TaskId> next;
    while (true) {
        int left = options.limit - static_cast<int>(listing.rows.size());
        if (left <= 0) break;
        request.limit = std::min(left, model::limits::kListPage);
        model::TaskPage page = client.List(request);
        for (const model::TaskRecord& task : page.tasks) {
            listing.rows.push_back(Row(task, now));
            listing.objects.push_back(node::ToJson(task));
            listing.ids.push_back(task.id.ToString());
        }
        next = page.next;
        if (!next) break;
        request.before = next;
    }
    listing.extra["next"] = next ? base::OrderedJson(next->ToString()) : base::OrderedJson(nullptr);
    return listing;
}

int Count(Invocation& invocation, node::Client& client, const model::TaskFilter& filter) {
    if (!filter.tags.empty() || !filter.input.empty() || filter.created_from || filter.created_to ||
        filter.finished_from || filter.finished_to || filter.parent.valid()) {
        throw CommandError(
            kUsage, "--count takes state, type, queue and tenant terms only; list the rest"
        );
    }
    Listing listing;
    listing.name = "counts";
    listing.headers = {"STATE", "QUEUE", "TYPE", "TASKS"};
    for (const auto& [key, count] : client.Counts(filter)) {
        listing.rows.push_back(
            {StateCell(key.state), {key.queue}, {key.type}, {std::to_string(count)}}
        );
        listing.objects.push_back(
            {{"state", model::StateName(key.state)},
             {"queue", key.queue},
             {"type", key.type},
             {"tasks", count}}
        );
    }
    invocation.out().Print(listing);
    return kOk;
}

int List(Invocation& invocation, const ListOptions& options) {
    if (options.limit < 1) throw CommandError(kUsage, "--limit starts at 1");
    node::Client client = invocation.LookAtStore();
    std::string text = fmt::format("{}", fmt::join(options.filter, " "));
    model::TaskFilter filter = Need(model::ParseFilter(text, client.Now()));
    if (options.count) return Count(invocation, client, filter);
    Listing listing = Collect(client, options, filter);
    invocation.out().Print(listing);
    if (listing.rows.empty()) {
        invocation.Say("no tasks{}", text.empty() ? "" : " match " + text);
    } else if (!listing.extra["next"].is_null()) {
        invocation.Say(
            "there are more: --limit {} or --before {}",
            options.limit * 10,
            listing.extra["next"].get<std::string>()
        );
    }
    return kOk;
}

}  // namespace

void AddTaskList(Program& program, CLI::App& group) {
    program.Command<ListOptions>(
        group,
        "list",
        "Lists tasks, newest first. stint help filters explains FILTER.",
        "stint task list state:dead,error\n"
        "stint task list type:mail.* 'age>2h' input.user.id:42 -o json\n"
        "stint task list state:dead -o ids | stint task retry -",
        [](Syntax& syntax, ListOptions& options) {
            syntax.Words("FILTER", options.filter, "terms such as state:dead queue:mail");
            syntax.Number("--limit", options.limit, "N", "at most this many (100)");
            syntax.Number("--before", options.before, "ID", "only ids below this one");
            syntax.Switch("--count", options.count, "count by state, queue and type instead");
        },
        List
    );
}

}  // namespace stint::cli
