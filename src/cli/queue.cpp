// stint queue list | pause | resume | cap | keep
#include <charconv>

#include "base/text.h"
#include "cli/program.h"
#include "model/limits.h"
#include "model/time_text.h"
#include "node/json_view.h"

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
    listing.headers = {"QUEUE", "STATE", "WAITING", "RUNNING", "CAP"};
    for (const model::QueueRecord& queue : client.Queues()) {
        bool paused = queue.settings.paused;
        listing.rows.push_back(
            {{queue.settings.name},
             {paused ? "paused" : "open", paused ? Tint::kWarn : Tint::kGood},
             {std::to_string(queue.waiting)},
             {std::to_string(queue.running)},
             {queue.settings.cap ? std::to_string(*queue.settings.cap) : "-"}}
        );
        listing.objects.push_back(node::ToJson(queue));
        listing.ids.push_back(queue.settings.name);
    }
    invocation.out().Print(listing);
    if (listing.rows.empty()) invocation.Say("no queues yet; a task's first submit makes one");
    return kOk;
}

// A name that is not there is most likely a typing mistake: a pause that hits nothing is worse than
// a refusal.
void NeedQueue(node::Client& client, const std::string& name) {
    std::vector<std::string> names;
    for (const model::QueueRecord& queue : client.Queues()) {
        if (queue.settings.name == name) return;
        names.push_back(queue.settings.name);
    }
    throw CommandError(
        kNotFound,
        fmt::format(
            "there is no queue {}; the queues are: {}",
            base::Quoted(name),
            names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))
        )
    );
}

std::string KeptText(std::optional<Duration> kept) {
    return kept ? model::FormatDuration(*kept)
                : model::FormatDuration(model::limits::kRetention) + " (default)";
}

void PrintQueue(const Invocation& invocation, node::Client& client, const std::string& name) {
    for (const model::QueueRecord& queue : client.Queues()) {
        if (queue.settings.name != name) continue;
        invocation.out().Print(
            {{"queue", {name}},
             {"state", {queue.settings.paused ? "paused" : "open"}},
             {"cap", {queue.settings.cap ? std::to_string(*queue.settings.cap) : "-"}},
             {"keep complete", {KeptText(queue.settings.keep_complete)}},
             {"keep dead", {KeptText(queue.settings.keep_dead)}},
             {"keep cancelled", {KeptText(queue.settings.keep_cancelled)}}},
            node::ToJson(queue),
            name
        );
    }
}

int SetPaused(Invocation& invocation, const QueueOptions& options, bool paused) {
    node::Client client = invocation.LookAtStore();
    for (const std::string& name : options.names) NeedQueue(client, name);
    for (const std::string& name : options.names) {
        auto change = [&](model::QueueSettings& settings) { settings.paused = paused; };
        client.ChangeQueue(name, change, invocation.actor());
        PrintQueue(invocation, client, name);
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
    auto change = [&](model::QueueSettings& settings) { settings.cap = cap; };
    client.ChangeQueue(options.name, change, invocation.actor());
    PrintQueue(invocation, client, options.name);
    return kOk;
}

// "30d", or "default"; not given: as it was.
void SetKept(
    std::optional<Duration>& kept, const char* flag, const std::optional<std::string>& given
) {
    if (!given) return;
    if (*given == "default") {
        kept.reset();
        return;
    }
    auto parsed = model::ParseDuration(*given);
    if (!parsed) {
        throw CommandError(kUsage, fmt::format("{}: {}", flag, parsed.error().message));
    }
    kept = *parsed;
}

int SetKeep(Invocation& invocation, const QueueOptions& options) {
    if (!options.complete && !options.dead && !options.cancelled) {
        throw CommandError(
            kUsage, "nothing to change; say how long with --complete, --dead or --cancelled"
        );
    }
    model::QueueSettings checked;
    SetKept(checked.keep_complete, "--complete", options.complete);
    SetKept(checked.keep_dead, "--dead", options.dead);
    SetKept(checked.keep_cancelled, "--cancelled", options.cancelled);
    node::Client client = invocation.OpenStore();
    auto change = [&](model::QueueSettings& settings) {
        if (options.complete) settings.keep_complete = checked.keep_complete;
        if (options.dead) settings.keep_dead = checked.keep_dead;
        if (options.cancelled) settings.keep_cancelled = checked.keep_cancelled;
    };
    client.ChangeQueue(options.name, change, invocation.actor());
    PrintQueue(invocation, client, options.name);
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
}

}  // namespace stint::cli
