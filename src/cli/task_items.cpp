// stint task items
#include <iostream>

#include "base/text.h"
#include "cli/ids.h"
#include "cli/task_commands.h"
#include "cli/task_view.h"
#include "node/result_client.h"

namespace stint::cli {

namespace {

struct ItemsOptions {
    std::string id, after;
    bool errors = false;
    int limit = model::limits::kListPageDefault;
};

int Items(Invocation& invocation, const ItemsOptions& options) {
    if (options.limit < 1 || options.limit > model::limits::kListPage) {
        throw CommandError(
            kUsage,
            fmt::format(
                "--limit is {}; it must be between 1 and {}",
                options.limit,
                model::limits::kListPage
            )
        );
    }
    node::Client client = invocation.LookAtStore();
    TaskId id = ReadIds({options.id}, std::cin).at(0);
    if (!client.Get(id)) {
        throw CommandError(kNotFound, fmt::format("there is no task {}", id.ToString()));
    }
    node::ItemsRequest request{
        .task = id, .errors_only = options.errors, .after = options.after, .limit = options.limit};
    node::ResultClient results = client.Results();
    auto items = results.Items(request);
    Listing listing;
    listing.name = "items";
    listing.headers = {"KEY", "ACTION", "BEFORE", "AFTER", "ERROR"};
    for (const model::ItemRecord& record : items) {
        const ItemResult& item = record.item;
        auto shown = [](const Json& json) {
            return json.text == "null" ? std::string("-") : Shorten(json.text, 40);
        };
        listing.rows.push_back(
            {{item.key},
             {item.action.empty() ? "-" : item.action},
             {shown(item.before)},
             {shown(item.after)},
             {Shorten(item.error, 60), Tint::kBad}}
        );
        listing.objects.push_back(node::ToJson(record));
        listing.ids.push_back(item.key);
    }
    invocation.out().Print(listing);
    ItemCounts counts = results.Summary(id).items;
    invocation.Say("{} items, {} in error", counts.total, counts.errors);
    if (static_cast<int>(items.size()) == options.limit) {
        invocation.Suggest(
            "the next page: stint task items {} --after {}",
            id.value(),
            base::Quoted(items.back().item.key)
        );
    }
    return kOk;
}

}  // namespace

void AddTaskItems(Program& program, CLI::App& group) {
    program.Command<ItemsOptions>(
        group,
        "items",
        "Shows what became of each object that a task has worked on, by key.",
        "stint task items 17\nstint task items 17 --errors -o json",
        [](Syntax& syntax, ItemsOptions& options) {
            syntax.Word("ID", options.id, "task id", Syntax::Need::kRequired);
            syntax.Switch("--errors", options.errors, "only those in error");
            syntax.Text("--after", options.after, "KEY", "only those behind this key");
            syntax.Number("--limit", options.limit, "N", "at most this many (100)");
        },
        Items
    );
}

}  // namespace stint::cli
