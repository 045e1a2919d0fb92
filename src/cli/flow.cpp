// stint flow list | show | signal | cancel | fork
#include "base/text.h"
#include "cli/ids.h"
#include "cli/input.h"
#include "cli/program.h"
#include "cli/task_view.h"

namespace stint::cli {

namespace {

TaskId FlowId(const std::string& word) {
    auto id = TaskId::Parse(word);
    if (!id) {
        throw CommandError(
            kUsage, fmt::format("{} is not the id of a flow's task", base::Quoted(word))
        );
    }
    return *id;
}

std::string Seconds(Time time) {
    return base::Iso8601(std::chrono::floor<std::chrono::seconds>(time));
}

// ---- seeing ----

struct ListWords {
    std::vector<std::string> states, types;
    std::optional<std::string> before;
    int limit = 50;
};

bool Wanted(const ListWords& words, const node::FlowView& view) {
    auto has = [](const std::vector<std::string>& names, std::string_view name) {
        return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
    };
    return has(words.states, StateName(view.task.state)) && has(words.types, view.task.type);
}

int List(Invocation& invocation, const ListWords& words) {
    for (const std::string& name : words.states) {
        if (!model::StateNamed(name)) {
            throw CommandError(
                kUsage, fmt::format("--state is {}; it is no state of a task", base::Quoted(name))
            );
        }
    }
    if (words.limit < 1 || words.limit > model::limits::kListPage) {
        throw CommandError(
            kUsage,
            fmt::format(
                "--limit is {}; it must be between 1 and {}", words.limit, model::limits::kListPage
            )
        );
    }
    node::Client client = invocation.LookAtStore();
    node::FlowListRequest request;
    request.limit = model::limits::kListPage;
    if (words.before) request.before = FlowId(*words.before);
    Listing listing;
    listing.name = "flows";
    listing.headers = {"TASK", "TYPE", "STATE", "STEPS", "STARTED", "WAITS FOR"};
    while (true) {
        std::vector<node::FlowView> page = client.Flows().List(request);
        for (const node::FlowView& view : page) {
            if (static_cast<int>(listing.rows.size()) >= words.limit) break;
            if (!Wanted(words, view)) continue;
            std::string about = view.waits_for;
            if (about.empty() && view.task.error) about = view.task.error->message;
            listing.rows.push_back(
                {{view.flow.task.ToString()},
                 {view.task.type},
                 StateCell(view.task.state),
                 {std::to_string(view.flow.steps)},
                 {Seconds(view.flow.started_at)},
                 {Shorten(about, 60)}}
            );
            listing.objects.push_back(node::ToJson(view));
            listing.ids.push_back(view.flow.task.ToString());
        }
        bool full = static_cast<int>(listing.rows.size()) >= words.limit;
        if (full || page.empty()) break;
        request.before = page.back().flow.task;
    }
    invocation.out().Print(listing);
    if (listing.rows.empty()) invocation.Say("no flows");
    return kOk;
}

struct ShowWords {
    std::string id;
    bool history = false;
};

std::string StepLine(const model::FlowStep& step) {
    std::string name = step.name;
    if (step.occurrence > 1) name += fmt::format("#{}", step.occurrence);
    std::string about(StepKindName(step.kind));
    if (step.kind == model::StepKind::kCall) {
        about += fmt::format(" {} task {}", step.about, step.task.value());
    }
    std::string end(StepStateName(step.state));
    bool waits = step.state == model::StepState::kOpen && step.due_at;
    if (waits) end += " until " + Seconds(*step.due_at);
    return fmt::format(
        "{} {}, {}{}{}", name, about, end, step.result.empty() ? "" : ": ", Shorten(step.result, 60)
    );
}

Tint TintOf(model::StepState state) {
    switch (state) {
        case model::StepState::kOpen:
            return Tint::kBusy;
        case model::StepState::kDone:
            return Tint::kGood;
        case model::StepState::kFailed:
            return Tint::kBad;
        case model::StepState::kTimedOut:
            return Tint::kWarn;
    }
    return Tint::kPlain;
}

int Show(Invocation& invocation, const ShowWords& words) {
    TaskId id = FlowId(words.id);
    node::Client client = invocation.LookAtStore();
    if (words.history) {
        invocation.out().Line(Need(client.Flows().History(id)));
        return kOk;
    }
    node::FlowClient::Details details = Need(client.Flows().Get(id));
    const node::FlowView& view = details.view;
    base::OrderedJson json = node::ToJson(view);
    std::vector<std::pair<std::string, Cell>> facts = {
        {"task", {id.ToString()}},
        {"type", {view.task.type}},
        {"state", StateCell(view.task.state)},
        {"started", {Seconds(view.flow.started_at)}}};
    if (!view.waits_for.empty()) facts.push_back({"waits for", {view.waits_for, Tint::kBusy}});
    if (view.task.error) facts.push_back({"error", {view.task.error->message, Tint::kBad}});
    json["history"] = base::OrderedJson::array();
    for (const model::FlowStep& step : details.history.steps) {
        json["history"].push_back(node::ToJson(step));
        facts.push_back({fmt::format("step {}", step.no), {StepLine(step), TintOf(step.state)}});
    }
    json["signals"] = base::OrderedJson::array();
    for (const model::FlowSignal& signal : details.history.signals) {
        json["signals"].push_back(node::ToJson(signal));
        std::string taken = signal.step != 0 ? fmt::format("taken by step {}", signal.step)
                                             : std::string("not taken yet");
        facts.push_back(
            {"signal",
             {fmt::format("{}, {}: {}", signal.name, taken, Shorten(signal.payload, 60)),
              signal.step != 0 ? Tint::kPlain : Tint::kWarn}}
        );
    }
    invocation.out().Print(facts, json, id.ToString());
    return kOk;
}

// ---- changing ----

struct SignalWords {
    std::string id, name, payload = "null";
    std::string once;
};

int Signal(Invocation& invocation, const SignalWords& words) {
    model::NewSignal signal;
    signal.task = FlowId(words.id);
    signal.name = words.name;
    signal.payload = ReadInput(words.payload);
    signal.id = words.once;
    signal.actor = invocation.actor();
    node::Client client = invocation.OpenStore();
    std::string result(Need(client.Flows().Signal(signal)));
    base::OrderedJson json;
    json["task"] = words.id;
    json["signal"] = words.name;
    json["result"] = result;
    const Output& out = invocation.out();
    if (out.format() == Format::kTable) {
        out.Line(result);
    } else {
        out.Print({}, json, words.id);
    }
    return kOk;
}

struct CancelWords {
    std::string id, reason;
};

int Cancel(Invocation& invocation, const CancelWords& words) {
    TaskId id = FlowId(words.id);
    node::Client client = invocation.OpenStore();
    Need(client.Flows().Get(id));
    auto reply = client.Cancel({&id, 1}, invocation.actor(), words.reason).at(0);
    if (reply.kind == node::CancelReply::Kind::kAlreadyTerminal) {
        throw CommandError(
            kConflict, fmt::format("flow {} is already {}", id.value(), StateName(reply.state))
        );
    }
    bool asked = reply.kind == node::CancelReply::Kind::kRequested;
    base::OrderedJson json;
    json["task"] = id.ToString();
    json["result"] = asked ? "requested" : "cancelled";
    json["descendants"] = reply.descendants;
    const Output& out = invocation.out();
    if (out.format() == Format::kTable) {
        out.Line(fmt::format(
            "{}, with {} below it", asked ? "asked to stop" : "cancelled", reply.descendants
        ));
    } else {
        out.Print({}, json, id.ToString());
    }
    return kOk;
}

struct ForkWords {
    std::string id, step;
    int occurrence = 1;
};

int Fork(Invocation& invocation, const ForkWords& words) {
    TaskId id = FlowId(words.id);
    node::Client client = invocation.OpenStore();
    auto forked = Need(client.Flows().Fork(id, words.step, words.occurrence, invocation.actor()));
    base::OrderedJson json;
    json["task"] = forked.task.ToString();
    json["from"] = id.ToString();
    json["steps"] = forked.steps;
    const Output& out = invocation.out();
    if (out.format() == Format::kTable) {
        out.Line(forked.task.ToString());
    } else {
        out.Print({}, json, forked.task.ToString());
    }
    invocation.Say("{} recorded steps of flow {} were taken over", forked.steps, id.value());
    return kOk;
}

}  // namespace

void AddFlow(Program& program) {
    CLI::App& group = program.Group(
        program.root(), "flow", "Workflows that are functions: see, signal, cancel, fork them."
    );
    program.Command<ListWords>(
        group,
        "list",
        "Lists instances, newest first.",
        "stint flow list --state open --type shop.checkout",
        [](Syntax& syntax, ListWords& words) {
            syntax.Repeated("--state", words.states, "STATE", "only in this state; repeated");
            syntax.Repeated("--type", words.types, "TYPE", "only of this type; repeated");
            syntax.Text("--before", words.before, "ID", "only tasks with lower ids");
            syntax.Number("--limit", words.limit, "N", "at most this many");
        },
        List
    );
    program.Command<ShowWords>(
        group,
        "show",
        "Shows an instance with its recorded steps and signals.",
        "stint flow show 17\nstint flow show 17 --history > checkout-17.json",
        [](Syntax& syntax, ShowWords& words) {
            syntax.Word("ID", words.id, "the flow's task", Syntax::Need::kRequired);
            syntax.Switch(
                "--history", words.history, "the record as JSON, to be replayed in a test"
            );
        },
        Show
    );
    program.Command<SignalWords>(
        group,
        "signal",
        "Tells a flow something; kept until it asks for it.",
        "stint flow signal 17 shipped '{\"parcel\": \"X1\"}' --id delivery-88",
        [](Syntax& syntax, SignalWords& words) {
            syntax.Word("ID", words.id, "the flow's task", Syntax::Need::kRequired);
            syntax.Word("NAME", words.name, "the signal", Syntax::Need::kRequired);
            syntax.Word("DATA", words.payload, "JSON, @FILE, or - for standard input");
            syntax.Text("--id", words.once, "ID", "the same id again is the same signal");
        },
        Signal
    );
    program.Command<CancelWords>(
        group,
        "cancel",
        "Cancels a flow and what it has called.",
        "stint flow cancel 17 --reason \"order withdrawn\"",
        [](Syntax& syntax, CancelWords& words) {
            syntax.Word("ID", words.id, "the flow's task", Syntax::Need::kRequired);
            syntax.Text("--reason", words.reason, "TEXT", "why, for the audit log");
        },
        Cancel
    );
    program.Command<ForkWords>(
        group,
        "fork",
        "Starts a new instance from a step of another and prints its id.",
        "stint flow fork 17 charge",
        [](Syntax& syntax, ForkWords& words) {
            syntax.Word("ID", words.id, "the flow's task", Syntax::Need::kRequired);
            syntax.Word(
                "STEP", words.step, "the first step to be done anew", Syntax::Need::kRequired
            );
            syntax.Number("--occurrence", words.occurrence, "N", "which time the code came to it");
        },
        Fork
    );
}

}  // namespace stint::cli
