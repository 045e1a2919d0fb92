// stint resource list | show | set | remove | open | close
#include <charconv>

#include "base/text.h"
#include "cli/program.h"
#include "cli/task_view.h"
#include "model/time_text.h"
#include "node/resource_client.h"

namespace stint::cli {

namespace {

struct ResourceFlags {
    std::string name;
    std::optional<std::string> capacity, rate;
    std::optional<int> burst, close_after;
    std::optional<std::string> close_for, close_at_most;
    std::string length, reason;
};
struct NoOptions {};

Duration DurationOf(std::string_view field, const std::string& text) {
    auto duration = model::ParseDuration(text);
    if (!duration) {
        throw CommandError(kUsage, fmt::format("{}: {}", field, duration.error().message));
    }
    return *duration;
}

std::optional<int> NumberIn(std::string_view text) {
    int number = 0;
    const char* end = text.data() + text.size();
    auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc{} || rest != end) return std::nullopt;
    return number;
}

std::string RateText(const std::optional<node::Rate>& rate) {
    if (!rate) return "-";
    std::string text = fmt::format("{}/{}", rate->count, model::FormatDuration(rate->period));
    if (rate->burst > 0 && rate->burst != rate->count)
        text += fmt::format(" burst {}", rate->burst);
    return text;
}

Cell StateOf(const node::ResourceRecord& resource, Time now) {
    std::string text(node::BreakerStateName(resource.breaker));
    bool closed = resource.closed_until && *resource.closed_until > now;
    if (closed) {
        auto left = std::chrono::duration_cast<Duration>(*resource.closed_until - now);
        return {fmt::format("closed for {}", model::RoughDuration(left)), Tint::kBad};
    }
    bool open = resource.breaker == node::BreakerState::kClosed;
    return {text, open ? Tint::kGood : Tint::kWarn};
}

std::string Units(const node::ResourceRecord& resource) {
    const auto& capacity = resource.settings.capacity;
    return fmt::format("{}/{}", resource.held, capacity ? std::to_string(*capacity) : "∞");
}

int ListResources(Invocation& invocation, const NoOptions&) {
    node::Client client = invocation.LookAtStore();
    Time now = client.Now();
    Listing listing;
    listing.name = "resources";
    listing.headers = {"RESOURCE", "HELD", "WAITING", "RATE", "STATE", "CHANGED BY"};
    for (const node::ResourceRecord& resource : client.Resources().List()) {
        listing.rows.push_back(
            {{resource.settings.name},
             {Units(resource)},
             {std::to_string(resource.waiting)},
             {RateText(resource.settings.rate)},
             StateOf(resource, now),
             {resource.settings.changed_by.empty() ? "-" : resource.settings.changed_by}}
        );
        listing.objects.push_back(node::ToJson(resource));
        listing.ids.push_back(resource.settings.name);
    }
    invocation.out().Print(listing);
    if (listing.rows.empty()) {
        invocation.Say("no resources yet; make one: stint resource set gpu --capacity 2");
    }
    return kOk;
}

void PrintResource(const Invocation& invocation, const node::ResourceRecord& resource, Time now) {
    const node::Breaker& breaker = resource.settings.breaker;
    std::vector<std::string> holders;
    for (TaskId task : resource.holders) holders.push_back(task.ToString());
    std::vector<std::pair<std::string, Cell>> facts = {
        {"resource", {resource.settings.name}},
        {"held", {Units(resource)}},
        {"held by", {holders.empty() ? "-" : fmt::format("{}", fmt::join(holders, ", "))}},
        {"waiting", {std::to_string(resource.waiting)}},
        {"rate", {RateText(resource.settings.rate)}},
        {"state", StateOf(resource, now)},
        {"closes",
         {fmt::format(
             "after {} reports, for {}, at most {}",
             breaker.failures,
             model::FormatDuration(breaker.open_for),
             model::FormatDuration(breaker.open_at_most)
         )}},
    };
    if (!resource.pattern.empty()) facts.emplace_back("settings of", Cell{resource.pattern});
    for (const node::BreakerEvidence& one : resource.evidence) {
        facts.emplace_back(
            "reported",
            Cell{fmt::format(
                "{} by task {} ({}): {}",
                Ago(one.at, now),
                one.task.ToString(),
                one.type,
                Shorten(one.message, 80)
            )}
        );
    }
    invocation.out().Print(facts, node::ToJson(resource), resource.settings.name);
}

CommandError NoSuchResource(const std::string& name) {
    return CommandError(
        kNotFound,
        fmt::format("there is no resource {}; stint resource list shows them", base::Quoted(name))
    );
}

int ShowResource(Invocation& invocation, const ResourceFlags& flags) {
    node::Client client = invocation.LookAtStore();
    auto resource = client.Resources().Find(flags.name);
    if (!resource) throw NoSuchResource(flags.name);
    PrintResource(invocation, *resource, client.Now());
    return kOk;
}

std::optional<int> CapacityOf(const std::string& text) {
    if (text == "none") return std::nullopt;
    auto number = NumberIn(text);
    if (!number || *number < 0) {
        throw CommandError(
            kUsage,
            fmt::format(
                "--capacity is {}; it must be a whole number of units, or none", base::Quoted(text)
            )
        );
    }
    return number;
}

// "100/1m"
std::optional<node::Rate> RateOf(const std::string& text, std::optional<int> burst) {
    if (text == "none") return std::nullopt;
    std::size_t slash = text.find('/');
    auto count = NumberIn(text.substr(0, slash));
    if (slash == text.npos || !count || *count < 1) {
        throw CommandError(
            kUsage,
            fmt::format("--rate is {}; write COUNT/PERIOD, as in 100/1m", base::Quoted(text))
        );
    }
    return node::Rate{*count, DurationOf("--rate", text.substr(slash + 1)), burst.value_or(0)};
}

int SetResource(Invocation& invocation, const ResourceFlags& flags) {
    bool breaker = flags.close_after || flags.close_for || flags.close_at_most;
    if (!flags.capacity && !flags.rate && !breaker) {
        throw CommandError(
            kUsage, "nothing to set; say it with --capacity, --rate or --close-after and its like"
        );
    }
    if (flags.burst && !flags.rate) throw CommandError(kUsage, "--burst needs --rate COUNT/PERIOD");
    node::ResourceChange change{.name = flags.name};
    if (flags.capacity) change.capacity = CapacityOf(*flags.capacity);
    if (flags.rate) change.rate = RateOf(*flags.rate, flags.burst);
    node::Client client = invocation.OpenStore();
    if (breaker) {
        auto there = client.Resources().Find(flags.name);
        change.breaker = there ? there->settings.breaker : node::Breaker{};
        if (flags.close_after) change.breaker->failures = *flags.close_after;
        if (flags.close_for) {
            change.breaker->open_for = DurationOf("--close-for", *flags.close_for);
        }
        if (flags.close_at_most) {
            change.breaker->open_at_most = DurationOf("--close-at-most", *flags.close_at_most);
        }
    }
    auto resource = Need(client.Resources().Change(change, invocation.actor()));
    PrintResource(invocation, resource, client.Now());
    return kOk;
}

int RemoveResource(Invocation& invocation, const ResourceFlags& flags) {
    node::Client client = invocation.LookAtStore();
    if (!client.Resources().Remove(flags.name, invocation.actor())) {
        throw NoSuchResource(flags.name);
    }
    invocation.Say("removed; tasks that need it find it without limit, or under a pattern");
    return kOk;
}

int OpenResource(Invocation& invocation, const ResourceFlags& flags) {
    node::Client client = invocation.LookAtStore();
    if (!client.Resources().Reopen(flags.name, invocation.actor())) {
        throw NoSuchResource(flags.name);
    }
    return ShowResource(invocation, flags);
}

int CloseResource(Invocation& invocation, const ResourceFlags& flags) {
    Duration length = DurationOf("the length", flags.length);
    node::Client client = invocation.LookAtStore();
    bool there = client.Resources().Close(flags.name, length, flags.reason, invocation.actor());
    if (!there) throw NoSuchResource(flags.name);
    return ShowResource(invocation, flags);
}

void DefineName(Syntax& syntax, ResourceFlags& flags) {
    syntax.Word("NAME", flags.name, "name of the resource", Syntax::Need::kRequired);
}

void DefineSet(Syntax& syntax, ResourceFlags& flags) {
    syntax.Word(
        "NAME",
        flags.name,
        "name; host:* is the default of names that begin so",
        Syntax::Need::kRequired
    );
    syntax.Text("--capacity", flags.capacity, "N", "units in use at once; none = without limit");
    syntax.Text("--rate", flags.rate, "COUNT/PERIOD", "starts per period: 100/1m; or none");
    syntax.Number("--burst", flags.burst, "N", "with --rate: at most so many at once");
    syntax.Number(
        "--close-after", flags.close_after, "N", "reports in a row that it does not work"
    );
    syntax.Text("--close-for", flags.close_for, "DURATION", "how long it is closed at first");
    syntax.Text("--close-at-most", flags.close_at_most, "DURATION", "doubled up to this");
}

}  // namespace

void AddResource(Program& program) {
    CLI::App& group =
        program.Group(program.root(), "resource", "Resources that tasks need and share.");
    program.Command<NoOptions>(
        group,
        "list",
        "Lists resources: what is held, what waits, whether they work.",
        "stint resource list",
        [](Syntax&, NoOptions&) {},
        ListResources
    );
    program.Command<ResourceFlags>(
        group,
        "show",
        "Shows one, with its holders and what was reported of it.",
        "stint resource show ollama",
        DefineName,
        ShowResource
    );
    program.Command<ResourceFlags>(
        group,
        "set",
        "Makes a resource or changes it, at once, for all workers.",
        "stint resource set gpu --capacity 2\n"
        "stint resource set 'host:*' --capacity 2\n"
        "stint resource set mail-api --rate 100/1m --burst 10 --close-for 30s",
        DefineSet,
        SetResource
    );
    program.Command<ResourceFlags>(
        group,
        "remove",
        "Removes its settings; tasks that hold it go on.",
        "stint resource remove gpu",
        DefineName,
        RemoveResource
    );
    program.Command<ResourceFlags>(
        group,
        "open",
        "Lets tasks use it again that was closed.",
        "stint resource open ollama",
        DefineName,
        OpenResource
    );
    program.Command<ResourceFlags>(
        group,
        "close",
        "Starts no task that needs it for so long; attempts are not lost.",
        "stint resource close ollama 10m --reason 'new model'",
        [](Syntax& syntax, ResourceFlags& flags) {
            DefineName(syntax, flags);
            syntax.Word("DURATION", flags.length, "how long: 90s, 5m, 2h", Syntax::Need::kRequired);
            syntax.Text("--reason", flags.reason, "TEXT", "for those who look");
        },
        CloseResource
    );
}

}  // namespace stint::cli
