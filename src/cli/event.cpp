// stint event publish | list | show | explain | match
#include "model/event/event.h"
#include "base/text.h"
#include "cli/cause.h"
#include "cli/input.h"
#include "cli/program.h"
#include "model/match/expression.h"
#include "model/time_text.h"

namespace stint::cli {

namespace {

struct PublishWords {
    std::string type, data;
    std::string source, id;
    std::optional<std::string> time;
    std::optional<std::int64_t> tenant;
    std::optional<std::string> by;
};

int Publish(Invocation& invocation, const PublishWords& words) {
    node::Client client = invocation.OpenStore();
    model::NewEvent event;
    event.type = words.type;
    event.data = ReadInput(words.data);
    event.source = words.source;
    event.id = words.id;
    event.tenant = TenantId(words.tenant.value_or(kDefaultTenant.value()));
    event.cause = CauseOf(words.by, client);
    if (words.time) {
        auto time = model::ParseTime(*words.time, client.Now());
        if (!time) throw CommandError(kUsage, "--time: " + time.error().message);
        event.time = *time;
    }
    node::PublishReply reply = client.Events().Publish({&event, 1}).at(0);
    using Kind = node::PublishReply::Kind;
    if (reply.kind == Kind::kInvalid) throw CommandError(kUsage, reply.message);
    if (reply.kind == Kind::kConflict) throw CommandError(kConflict, reply.message);
    if (reply.refused) {
        throw CommandError(kFailed, fmt::format("event {} {}", reply.no.value(), reply.message));
    }
    base::OrderedJson json;
    json["event"] = reply.no.ToString();
    json["existing"] = reply.kind == Kind::kExisting;
    const Output& out = invocation.out();
    if (out.format() == Format::kTable) {
        out.Line(reply.no.ToString());
    } else {
        out.Print({}, json, reply.no.ToString());
    }
    if (reply.kind == Kind::kExisting) invocation.Say("this event was published before");
    invocation.Suggest("see what it fired: stint event show {}", reply.no.value());
    return kOk;
}

// ---- seeing ----

Tint TintOf(model::EventState state) {
    switch (state) {
        case model::EventState::kPending:
            return Tint::kBusy;
        case model::EventState::kDone:
            return Tint::kGood;
        case model::EventState::kUnwanted:
            return Tint::kFaint;
        case model::EventState::kRefused:
            return Tint::kBad;
    }
    return Tint::kPlain;
}

struct ListWords {
    std::vector<std::string> types, states;
    std::optional<std::string> before;
    int limit = 50;
};

EventNo Number(const std::string& word) {
    auto no = EventNo::Parse(word);
    if (!no) {
        throw CommandError(
            kUsage, fmt::format("{} is not the number of an event", base::Quoted(word))
        );
    }
    return *no;
}

node::EventFilter FilterOf(const ListWords& words) {
    node::EventFilter filter;
    filter.types = words.types;
    for (const std::string& name : words.states) {
        auto state = model::EventStateNamed(name);
        if (!state) {
            throw CommandError(
                kUsage,
                fmt::format(
                    "--state is {}; the states are pending, done, unwanted and refused",
                    base::Quoted(name)
                )
            );
        }
        filter.states.push_back(*state);
    }
    if (words.before) filter.before = Number(*words.before);
    if (words.limit < 1 || words.limit > model::limits::kListPage) {
        throw CommandError(
            kUsage,
            fmt::format(
                "--limit is {}; it must be between 1 and {}", words.limit, model::limits::kListPage
            )
        );
    }
    filter.limit = words.limit;
    return filter;
}

int List(Invocation& invocation, const ListWords& words) {
    node::EventFilter filter = FilterOf(words);
    node::Client client = invocation.LookAtStore();
    Listing listing;
    listing.name = "events";
    listing.headers = {"EVENT", "TYPE", "STATE", "SOURCE", "ID", "PUBLISHED", "REASON"};
    for (const model::EventRecord& event : client.Events().ListEvents(filter)) {
        listing.rows.push_back(
            {{event.no.ToString()},
             {event.type},
             {std::string(EventStateName(event.state)), TintOf(event.state)},
             {event.source},
             {Shorten(event.id, 24)},
             {base::Iso8601(std::chrono::floor<std::chrono::seconds>(event.published_at))},
             {Shorten(event.reason, 60)}}
        );
        listing.objects.push_back(node::ToJson(event));
        listing.ids.push_back(event.no.ToString());
    }
    invocation.out().Print(listing);
    if (listing.rows.empty()) invocation.Say("no events; publish one with: stint event publish");
    return kOk;
}

struct OneWord {
    std::string word;
};

int Show(Invocation& invocation, const OneWord& words) {
    EventNo no = Number(words.word);
    node::Client client = invocation.LookAtStore();
    auto event = client.Events().GetEvent(no);
    if (!event) {
        throw CommandError(kNotFound, fmt::format("there is no event {}", no.value()));
    }
    node::FiringFilter filter;
    filter.event = no;
    filter.limit = model::limits::kListPage;
    base::OrderedJson json = node::ToJson(*event);
    json["fired"] = base::OrderedJson::array();
    std::vector<std::pair<std::string, Cell>> facts = {
        {"event", {no.ToString()}},
        {"type", {event->type}},
        {"state", {std::string(EventStateName(event->state)), TintOf(event->state)}},
        {"source", {event->source}},
        {"id", {event->id}},
        {"published", {base::Iso8601(event->published_at)}},
        {"data", {event->data}}};
    if (!event->reason.empty()) facts.push_back({"reason", {event->reason, Tint::kWarn}});
    for (const node::FiringRecord& fired : client.Events().Firings(filter)) {
        json["fired"].push_back(node::ToJson(fired));
        bool refused = fired.kind == node::FiringRecord::Kind::kRefused;
        std::string text = fmt::format(
            "{}{}{}{}{}",
            fired.workflow.empty() ? "" : fmt::format("{}/{} ", fired.workflow, fired.trigger),
            FiringKindName(fired.kind),
            fired.task.valid() ? " task " + fired.task.ToString() : "",
            fired.message.empty() ? "" : ": ",
            fired.message
        );
        facts.push_back({"fired", {std::move(text), refused ? Tint::kBad : Tint::kGood}});
    }
    invocation.out().Print(facts, json, no.ToString());
    return kOk;
}

int Explain(Invocation& invocation, const OneWord& words) {
    node::EventQuestion question;
    if (!words.word.empty()) question.event = Number(words.word);
    node::Client client = invocation.LookAtStore();
    if (question.event.valid() && !client.Events().GetEvent(question.event)) {
        throw CommandError(kNotFound, fmt::format("there is no event {}", question.event.value()));
    }
    Listing listing;
    listing.name = "obstacles";
    listing.headers = {"EVENT", "WORKFLOW", "TRIGGER", "KEY", "TYPE", "WHY"};
    for (const EventObstacle& one : client.Events().Explain(question)) {
        std::string event = one.event.valid() ? one.event.ToString() : "-";
        listing.rows.push_back(
            {{event},
             {one.workflow},
             {one.trigger},
             {Shorten(one.key, 32)},
             {one.type},
             {one.why, Tint::kWarn}}
        );
        listing.objects.push_back(node::ToJson(one));
        listing.ids.push_back(event);
    }
    invocation.out().Print(listing);
    if (listing.rows.empty()) invocation.Say("nothing is held up");
    return kOk;
}

// ---- trying an expression ----

struct MatchWords {
    std::string expression;
    std::string event = "{}";
};

int TryMatch(Invocation& invocation, const MatchWords& words) {
    auto parsed = model::match::Expression::Parse(words.expression);
    if (!parsed) {
        // The column, where a person looks for it.
        std::string_view message = parsed.error().message;
        std::string pointer;
        std::size_t column = 0;
        if (message.starts_with("column ")) {
            column = static_cast<std::size_t>(std::atoi(message.data() + 7));
        }
        if (column > 0 && column <= words.expression.size() + 1 && words.expression.size() <= 100) {
            pointer = fmt::format("\n  {}\n  {:>{}}", words.expression, "^", column);
        }
        throw CommandError(kUsage, fmt::format("{}{}", message, pointer));
    }
    std::string data = ReadInput(words.event);
    auto json = base::ParseJson(data, model::limits::kJsonDepth);
    if (!json) throw CommandError(kUsage, "--event " + json.error().message);
    model::EventRecord event;
    event.data = data;
    bool matches = Need(parsed->Matches(model::FieldsOf(event)));
    base::OrderedJson answer;
    answer["matches"] = matches;
    answer["expression"] = parsed->Print();
    invocation.out().Print(
        {{"matches", {matches ? "yes" : "no", matches ? Tint::kGood : Tint::kWarn}},
         {"expression", {parsed->Print()}}},
        answer,
        matches ? "yes" : "no"
    );
    return matches ? kOk : kFailed;
}

}  // namespace

void AddEvent(Program& program) {
    CLI::App& group =
        program.Group(program.root(), "event", "Events: publish them, see what they fired.");
    program.Command<PublishWords>(
        group,
        "publish",
        "Publishes an event and prints its number; workers do what workflows want done.",
        "stint event publish file.ingested '{\"path\": \"a.mp3\"}' --source scanner --id 42",
        [](Syntax& syntax, PublishWords& words) {
            syntax.Word("TYPE", words.type, "type of the event", Syntax::Need::kRequired);
            syntax.Word("DATA", words.data, "JSON, @FILE, or - for standard input; null if absent");
            syntax.Text("--source", words.source, "NAME", "who says it");
            syntax.Text(
                "--id", words.id, "ID", "published again with the same source it is the same event"
            );
            syntax.Text("--time", words.time, "TIME", "when it happened: RFC 3339, or now-5m");
            syntax.Number("--tenant", words.tenant, "N", "whose event it is");
            syntax.Text(
                "--by", words.by, "TASK", "the task that publishes it; else STINT_TASK_ID, if set"
            );
        },
        Publish
    );
    program.Command<ListWords>(
        group,
        "list",
        "Lists events, newest first.",
        "stint event list --state refused --state pending",
        [](Syntax& syntax, ListWords& words) {
            syntax.Repeated("--type", words.types, "TYPE", "only of this type; may be repeated");
            syntax.Repeated(
                "--state", words.states, "STATE", "pending, done, unwanted or refused; repeated"
            );
            syntax.Text("--before", words.before, "EVENT", "only events with lower numbers");
            syntax.Number("--limit", words.limit, "N", "at most this many");
        },
        List
    );
    program.Command<OneWord>(
        group,
        "show",
        "Shows an event and what it fired.",
        "stint event show 17",
        [](Syntax& syntax, OneWord& words) {
            syntax.Word("EVENT", words.word, "its number", Syntax::Need::kRequired);
        },
        Show
    );
    program.Command<OneWord>(
        group,
        "explain",
        "Says what keeps pending events and incomplete joins from going on.",
        "stint event explain\nstint event explain 17",
        [](Syntax& syntax, OneWord& words) {
            syntax.Word("EVENT", words.word, "only of this event, by its number");
        },
        Explain
    );
    program.Command<MatchWords>(
        group,
        "match",
        "Tries a match expression on an event: exit code 0 if it matches, 1 if not.",
        "stint event match \"size > 1024\" --event '{\"size\": 5000}'\nstint help match",
        [](Syntax& syntax, MatchWords& words) {
            syntax.Word("EXPR", words.expression, "the expression", Syntax::Need::kRequired);
            syntax.Text("--event", words.event, "JSON", "the event's data, @FILE or -");
        },
        TryMatch
    );
}

}  // namespace stint::cli
