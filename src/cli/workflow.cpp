// stint workflow put | list | get | remove | joins
#include "model/event/workflow.h"
#include "base/text.h"
#include "cli/input.h"
#include "cli/program.h"

namespace stint::cli {

namespace {

struct PutWords {
    std::vector<std::string> files;
};
struct NameWords {
    std::string name;
};
struct NoWords {};

void Print(const Invocation& invocation, const model::WorkflowRecord& record) {
    const model::WorkflowDefinition& definition = record.definition;
    invocation.out().Print(
        {{"workflow", {definition.name}},
         {"version", {std::to_string(record.version)}},
         {"triggers", {std::to_string(definition.triggers.size())}},
         {"joins", {std::to_string(definition.joins.size())}},
         {"changed by", {record.updated_by}}},
        node::ToJson(record),
        definition.name
    );
}

int Put(Invocation& invocation, const PutWords& words) {
    std::vector<model::WorkflowDefinition> definitions;
    for (const std::string& file : words.files) {
        auto definition = model::WorkflowFromJson(ReadFile(file));
        if (!definition) {
            throw CommandError(kUsage, fmt::format("{}: {}", file, definition.error().message));
        }
        definitions.push_back(std::move(*definition));
    }
    node::Client client = invocation.OpenStore();
    for (const model::WorkflowDefinition& definition : definitions) {
        Print(invocation, Need(client.Events().PutWorkflow(definition, invocation.actor())));
    }
    return kOk;
}

int List(Invocation& invocation, const NoWords&) {
    node::Client client = invocation.LookAtStore();
    Listing listing;
    listing.name = "workflows";
    listing.headers = {"WORKFLOW", "VERSION", "TRIGGERS", "JOINS", "CHANGED", "CHANGED BY"};
    for (const model::WorkflowRecord& record : client.Events().Workflows()) {
        listing.rows.push_back(
            {{record.definition.name},
             {std::to_string(record.version)},
             {std::to_string(record.definition.triggers.size())},
             {std::to_string(record.definition.joins.size())},
             {base::Iso8601(std::chrono::floor<std::chrono::seconds>(record.updated_at))},
             {record.updated_by}}
        );
        listing.objects.push_back(node::ToJson(record));
        listing.ids.push_back(record.definition.name);
    }
    invocation.out().Print(listing);
    if (listing.rows.empty()) invocation.Say("no workflows; make one with: stint workflow put");
    return kOk;
}

CommandError NoSuchWorkflow(node::Client& client, const std::string& name) {
    std::vector<std::string> names;
    for (const model::WorkflowRecord& record : client.Events().Workflows()) {
        names.push_back(record.definition.name);
    }
    return CommandError(
        kNotFound,
        fmt::format(
            "there is no workflow {}; the workflows are: {}",
            base::Quoted(name),
            names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))
        )
    );
}

int Get(Invocation& invocation, const NameWords& words) {
    node::Client client = invocation.LookAtStore();
    for (const model::WorkflowRecord& record : client.Events().Workflows()) {
        if (record.definition.name != words.name) continue;
        if (!record.unreadable.empty()) {
            throw CommandError(
                kFailed,
                fmt::format(
                    "this program cannot read workflow {}: {}; use a newer one",
                    base::Quoted(words.name),
                    record.unreadable
                )
            );
        }
        // As it is put: what a person wants to edit and put again.
        if (invocation.out().format() == Format::kTable) {
            invocation.out().Line(WorkflowToJson(record.definition, 2));
        } else {
            Print(invocation, record);
        }
        return kOk;
    }
    throw NoSuchWorkflow(client, words.name);
}

int Remove(Invocation& invocation, const NameWords& words) {
    node::Client client = invocation.LookAtStore();
    if (!client.Events().RemoveWorkflow(kDefaultTenant, words.name)) {
        throw NoSuchWorkflow(client, words.name);
    }
    invocation.Say("removed; tasks that it has created go on");
    return kOk;
}

Tint TintOf(model::JoinState state) {
    switch (state) {
        case model::JoinState::kOpen:
            return Tint::kBusy;
        case model::JoinState::kFired:
            return Tint::kGood;
        default:
            return Tint::kBad;
    }
}

struct JoinWords {
    std::string name;
    std::optional<std::int64_t> before;
    std::vector<std::string> states;
    int limit = 50;
};

node::JoinFilter FilterOf(const JoinWords& words) {
    node::JoinFilter filter;
    filter.workflow = words.name;
    filter.before = words.before;
    for (const std::string& name : words.states) {
        auto state = model::JoinStateNamed(name);
        if (!state) {
            throw CommandError(
                kUsage,
                fmt::format(
                    "--state is {}; the states are open, fired, expired and refused",
                    base::Quoted(name)
                )
            );
        }
        filter.states.push_back(*state);
    }
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

int Joins(Invocation& invocation, const JoinWords& words) {
    node::JoinFilter filter = FilterOf(words);
    node::Client client = invocation.LookAtStore();
    std::int64_t last = 0;
    Listing listing;
    listing.name = "joins";
    listing.headers = {"WORKFLOW", "JOIN", "KEY", "ROUND", "STATE", "COMPLETE", "TASK", "UNTIL"};
    for (const model::JoinInstance& join : client.Events().Joins(filter)) {
        last = join.no;
        std::string complete;
        for (const model::JoinPart& part : join.parts) {
            complete += (complete.empty() ? "" : ", ") + part.type;
        }
        listing.rows.push_back(
            {{join.key.workflow},
             {join.key.join},
             {Shorten(join.key.key, 32)},
             {std::to_string(join.generation)},
             {std::string(JoinStateName(join.state)), TintOf(join.state)},
             {Shorten(complete, 48)},
             {join.task.valid() ? join.task.ToString() : "-"},
             {base::Iso8601(std::chrono::floor<std::chrono::seconds>(join.expires_at))}}
        );
        listing.objects.push_back(node::ToJson(join));
        listing.ids.push_back(join.key.key);
    }
    invocation.out().Print(listing);
    if (listing.rows.empty()) invocation.Say("no joins have members yet");
    if (static_cast<int>(listing.rows.size()) == filter.limit) {
        invocation.Suggest("older ones: stint workflow joins {} --before {}", words.name, last);
    }
    return kOk;
}

}  // namespace

void AddWorkflow(Program& program) {
    CLI::App& group =
        program.Group(program.root(), "workflow", "Workflows: what happens on which event.");
    program.Command<PutWords>(
        group,
        "put",
        "Makes or replaces workflows. Put again unchanged, a workflow keeps its version.",
        "stint workflow put content-analysis.json\nstint help workflow-file",
        [](Syntax& syntax, PutWords& words) {
            syntax.Words("FILE", words.files, "JSON, or -", Syntax::Need::kRequired);
        },
        Put
    );
    program.Command<NoWords>(
        group, "list", "Lists workflows.", "stint workflow list", [](Syntax&, NoWords&) {}, List
    );
    auto name = [](Syntax& syntax, NameWords& words) {
        syntax.Word("NAME", words.name, "name of the workflow", Syntax::Need::kRequired);
    };
    program.Command<NameWords>(
        group,
        "get",
        "Prints a workflow's definition, ready to be edited and put again.",
        "stint workflow get content-analysis > content-analysis.json",
        name,
        Get
    );
    program.Command<NameWords>(
        group,
        "remove",
        "Removes a workflow: it fires nothing any more.",
        "stint workflow remove content-analysis",
        name,
        Remove
    );
    program.Command<JoinWords>(
        group,
        "joins",
        "Lists the rounds of joins: which members are complete, what was created, what expired.",
        "stint workflow joins content-analysis",
        [](Syntax& syntax, JoinWords& words) {
            syntax.Word("NAME", words.name, "only of this workflow");
            syntax.Repeated(
                "--state", words.states, "STATE", "open, fired, expired or refused; repeated"
            );
            syntax.Number("--before", words.before, "NO", "only rounds with lower numbers");
            syntax.Number("--limit", words.limit, "N", "at most this many");
        },
        Joins
    );
}

}  // namespace stint::cli
