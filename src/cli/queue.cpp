// stint queue list | pause | resume | cap | keep (order, why: in files of their own)
#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "cli/program.h"
#include "cli/queue_commands.h"
#include "cli/task_commands.h"
#include "model/limits.h"
#include "model/time_text.h"
#include "node/json_view.h"
#include "node/resource_client.h"

namespace stint::cli {

namespace {

struct QueueOptions {
    std::vector<std::string> names;
    std::string name, cap;
    std::optional<std::string> complete, dead, cancelled;  // how long they are kept
};
struct NoOptions {};

int ListQueues(Invocation& invocation, const NoOptions&) {
    node::Client client = invocation.LookAtStore();
    Listing listing;
    listing.name = "queues";
    listing.headers = {"QUEUE", "STATE", "WAITING", "RUNNING", "CAP", "ORDER", "CHANGED BY"};
    auto orders = client.Resources().Orders();
    for (const model::QueueRecord& queue : client.Queues()) {
        bool paused = queue.settings.paused;
        const model::QueueOrder* order = model::OrderOf(orders, queue.settings.name);
        listing.rows.push_back(
            {{queue.settings.name},
             {paused ? "paused" : "open", paused ? Tint::kWarn : Tint::kGood},
             {std::to_string(queue.waiting)},
             {std::to_string(queue.running)},
             {queue.settings.cap ? std::to_string(*queue.settings.cap) : "-"},
             {OrderText(order)},
             {queue.settings.changed_by.empty() ? "-" : queue.settings.changed_by}}
        );
        listing.objects.push_back(node::ToJson(queue));
        listing.objects.back()["order"] = OrderJson(order);
        listing.ids.push_back(queue.settings.name);
    }
    invocation.out().Print(listing);
    if (listing.rows.empty()) invocation.Say("no queues yet; a task's first submit makes one");
    return kOk;
}

std::string KeptText(std::optional<Duration> kept) {
    return kept ? model::FormatDuration(*kept)
                : model::FormatDuration(model::limits::kRetention) + " (default)";
}

void PrintQueue(const Invocation& invocation, const model::QueueSettings& queue) {
    invocation.out().Print(
        {{"queue", {queue.name}},
         {"state", {queue.paused ? "paused" : "open"}},
         {"cap", {queue.cap ? std::to_string(*queue.cap) : "-"}},
         {"keep complete", {KeptText(queue.keep_complete)}},
         {"keep dead", {KeptText(queue.keep_dead)}},
         {"keep cancelled", {KeptText(queue.keep_cancelled)}}},
        node::ToJson(queue),
        queue.name
    );
}

CommandError NoSuchQueue(const std::string& name, const std::vector<std::string>& names) {
    return CommandError(
        kNotFound,
        fmt::format(
            "there is no queue {}; the queues are: {}",
            base::Quoted(name),
            names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))
        )
    );
}

std::vector<std::string> NamesOfQueues(node::Client& client) {
    std::vector<std::string> names;
    for (const model::QueueRecord& queue : client.Queues()) names.push_back(queue.settings.name);
    return names;
}

void Change(const Invocation& invocation, node::Client& client, const model::QueueChange& change) {
    auto queue = client.ChangeQueue(change, invocation.actor());
    if (!queue) throw NoSuchQueue(change.name, NamesOfQueues(client));
    PrintQueue(invocation, *queue);
}

int SetPaused(Invocation& invocation, const QueueOptions& options, bool paused) {
    node::Client client = invocation.LookAtStore();
    // A name that is not there is most likely a typing mistake: a pause that hits nothing is worse
    // than a refusal. Of several names all are looked at before the first is changed.
    if (options.names.size() > 1) {
        std::vector<std::string> there = NamesOfQueues(client);
        for (const std::string& name : options.names) {
            if (std::ranges::find(there, name) == there.end()) throw NoSuchQueue(name, there);
        }
    }
    for (const std::string& name : options.names) {
        Change(invocation, client, {.name = name, .paused = paused, .create = false});
    }
    if (paused)
        invocation.Suggest("running tasks finish; waiting ones stay until: stint queue resume");
    return kOk;
}

int SetCap(Invocation& invocation, const QueueOptions& options) {
    std::optional<std::int64_t> cap;
    if (options.cap != "none") {
        std::int64_t number = 0;
        const char* end = options.cap.data() + options.cap.size();
        auto [rest, error] = std::from_chars(options.cap.data(), end, number);
        if (error != std::errc{} || rest != end || number < 0) {
            throw CommandError(
                kUsage,
                fmt::format(
                    "the cap is {}; it must be a whole number of waiting tasks, or none",
                    base::Quoted(options.cap)
                )
            );
        }
        cap = number;
    }
    node::Client client = invocation.OpenStore();
    Change(invocation, client, {.name = options.name, .cap = cap});
    return kOk;
}

// "30d", or "default"; not given: as it was.
std::optional<std::optional<Duration>> Kept(
    const char* flag, const std::optional<std::string>& given
) {
    if (!given) return std::nullopt;
    if (*given == "default") return std::optional<Duration>();
    auto parsed = model::ParseDuration(*given);
    if (!parsed) {
        throw CommandError(kUsage, fmt::format("{}: {}", flag, parsed.error().message));
    }
    return std::optional(*parsed);
}

int SetKeep(Invocation& invocation, const QueueOptions& options) {
    if (!options.complete && !options.dead && !options.cancelled) {
        throw CommandError(
            kUsage, "nothing to change; say how long with --complete, --dead or --cancelled"
        );
    }
    model::QueueChange change{.name = options.name};
    change.keep_complete = Kept("--complete", options.complete);
    change.keep_dead = Kept("--dead", options.dead);
    change.keep_cancelled = Kept("--cancelled", options.cancelled);
    node::Client client = invocation.OpenStore();
    Change(invocation, client, change);
    return kOk;
}

void DefineNames(Syntax& syntax, QueueOptions& options) {
    syntax.Words("QUEUE", options.names, "names of queues", Syntax::Need::kRequired);
}

}  // namespace

void AddQueue(Program& program) {
    CLI::App& group = program.Group(program.root(), "queue", "Queues: see, pause, limit them.");
    program.Command<NoOptions>(
        group,
        "list",
        "Lists queues with what waits and runs in them.",
        "stint queue list",
        [](Syntax&, NoOptions&) {},
        ListQueues
    );
    program.Command<QueueOptions>(
        group,
        "pause",
        "Nothing of the queue is started until it is resumed.",
        "stint queue pause mail",
        DefineNames,
        [](Invocation& invocation, const QueueOptions& options) {
            return SetPaused(invocation, options, true);
        }
    );
    program.Command<QueueOptions>(
        group,
        "resume",
        "Undoes a pause.",
        "stint queue resume mail",
        DefineNames,
        [](Invocation& invocation, const QueueOptions& options) {
            return SetPaused(invocation, options, false);
        }
    );
    program.Command<QueueOptions>(
        group,
        "cap",
        "Refuses submits while this many tasks wait; none removes the limit.",
        "stint queue cap mail 10000\nstint queue cap mail none",
        [](Syntax& syntax, QueueOptions& options) {
            syntax.Word("QUEUE", options.name, "name of the queue", Syntax::Need::kRequired);
            syntax.Word("CAP", options.cap, "number of tasks, or none", Syntax::Need::kRequired);
        },
        SetCap
    );
    program.Command<QueueOptions>(
        group,
        "keep",
        "How long finished tasks of the queue stay, by how they ended; from now on.",
        "stint queue keep mail --complete 7d --dead 365d\nstint queue keep mail --complete default",
        [](Syntax& syntax, QueueOptions& options) {
            syntax.Word("QUEUE", options.name, "name of the queue", Syntax::Need::kRequired);
            syntax.Text(
                "--complete", options.complete, "DURATION", "those that succeeded; or default"
            );
            syntax.Text(
                "--dead", options.dead, "DURATION", "those that failed for good; or default"
            );
            syntax.Text(
                "--cancelled",
                options.cancelled,
                "DURATION",
                "those that were cancelled; or default"
            );
        },
        SetKeep
    );
    AddQueueOrder(program, group);
    AddQueueWhy(program, group);
}

}  // namespace stint::cli
