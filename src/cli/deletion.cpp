// stint deletion list | mark | unmark | pace
#include "base/text.h"
#include "cli/input.h"
#include "cli/program.h"
#include "model/time_text.h"
#include "node/result_client.h"

namespace stint::cli {

namespace {

struct ListWords {
    std::string kind, after;
    int limit = model::limits::kListPageDefault;
};
struct MarkWords {
    std::string kind, key, type, input;
    std::string grace = "30d";
    std::optional<std::string> queue;
    std::vector<std::string> first;
};
struct UnmarkWords {
    std::string kind, key;
};
struct PaceWords {
    std::string kind;
    int cap = model::Pace{}.cap;
    std::string every = "1m";
};

TenantId TenantOf(const Invocation& invocation) {
    return TenantId(invocation.config().Number("tenant"));
}

Duration ReadDuration(std::string_view option, const std::string& text) {
    auto duration = model::ParseDuration(text);
    if (!duration) {
        throw CommandError(kUsage, fmt::format("{}: {}", option, duration.error().message));
    }
    return *duration;
}

void Print(const Invocation& invocation, const std::vector<model::Deletion>& deletions) {
    Listing listing;
    listing.name = "deletions";
    listing.headers = {"KIND", "KEY", "STATE", "DELETE AT", "INITIATOR", "TASK"};
    for (const model::Deletion& one : deletions) {
        bool begun = one.state == model::DeletionState::kBegun;
        listing.rows.push_back(
            {{one.kind},
             {one.key},
             {std::string(model::DeletionStateName(one.state)), begun ? Tint::kFaint : Tint::kWarn},
             {base::Iso8601(one.delete_at)},
             {one.initiator},
             {one.task.valid() ? one.task.ToString() : "-"}}
        );
        listing.objects.push_back(node::ToJson(one));
        listing.ids.push_back(one.key);
    }
    invocation.out().Print(listing);
}

int List(Invocation& invocation, const ListWords& words) {
    node::Client client = invocation.LookAtStore();
    if (words.kind.empty() && !words.after.empty()) {
        throw CommandError(kUsage, "--after needs KIND: it is a key of that kind");
    }
    TenantId tenant = TenantOf(invocation);
    node::DeletionsRequest request{
        .tenant = tenant,
        .kind = words.kind,
        .after_tenant = tenant,
        .after_kind = words.kind,
        .after_key = words.after,
        .limit = words.limit};
    auto deletions = Need(client.Results().Deletions(request));
    Print(invocation, deletions);
    if (deletions.empty()) invocation.Say("nothing is marked for deletion");
    return kOk;
}

int Mark(Invocation& invocation, const MarkWords& words) {
    node::DeletionWish wish;
    wish.tenant = TenantOf(invocation);
    wish.kind = words.kind;
    wish.key = words.key;
    wish.initiator = invocation.actor();
    wish.grace = ReadDuration("--grace", words.grace);
    wish.task.type = words.type;
    wish.task.input = ReadInput(words.input);
    wish.task.queue = words.queue;
    for (const std::string& type : words.first) {
        model::NewTask& follow_up = wish.follow_ups.emplace_back(wish.task);
        follow_up.type = type;
    }
    node::Client client = invocation.OpenStore();
    Print(invocation, {Need(client.Results().Mark(wish))});
    invocation.Suggest("to keep it: stint deletion unmark {} {}", words.kind, words.key);
    return kOk;
}

int Unmark(Invocation& invocation, const UnmarkWords& words) {
    node::Client client = invocation.OpenStore();
    auto gone = Need(client.Results().Unmark(TenantOf(invocation), words.kind, words.key));
    invocation.Say("{} {} stays", gone.kind, base::Quoted(gone.key));
    return kOk;
}

int SetPace(Invocation& invocation, const PaceWords& words) {
    node::Client client = invocation.OpenStore();
    model::Pace pace{
        .tenant = TenantOf(invocation),
        .kind = words.kind,
        .cap = words.cap,
        .every = ReadDuration("--every", words.every)};
    Need(client.Results().SetPace(pace));
    invocation.Say("at most {} deletions of kind {} per {}", pace.cap, pace.kind, words.every);
    return kOk;
}

void AddMarking(Program& program, CLI::App& group) {
    program.Command<MarkWords>(
        group,
        "mark",
        "Marks an object: when the grace period is over, a task deletes it.",
        "stint deletion mark user ann delete-user '{\"id\": \"ann\"}' --grace 30d\n"
        "stint deletion mark user ann delete-user '{}' --first revoke-access",
        [](Syntax& syntax, MarkWords& words) {
            syntax.Word("KIND", words.kind, "of the object", Syntax::Need::kRequired);
            syntax.Word("KEY", words.key, "of the object", Syntax::Need::kRequired);
            syntax.Word("TYPE", words.type, "of the task that deletes it", Syntax::Need::kRequired);
            syntax.Word("INPUT", words.input, "JSON, @FILE, or - for standard input");
            syntax.Text("--grace", words.grace, "DURATION", "until it is deleted (30d)");
            syntax.Text("--queue", words.queue, "QUEUE", "queue of the tasks");
            syntax.Repeated(
                "--first", words.first, "TYPE", "a task with INPUT that must complete first"
            );
        },
        Mark
    );
    program.Command<UnmarkWords>(
        group,
        "unmark",
        "Takes the mark away before the deletion begins: the object stays.",
        "stint deletion unmark user ann",
        [](Syntax& syntax, UnmarkWords& words) {
            syntax.Word("KIND", words.kind, "of the object", Syntax::Need::kRequired);
            syntax.Word("KEY", words.key, "of the object", Syntax::Need::kRequired);
        },
        Unmark
    );
}

}  // namespace

void AddDeletion(Program& program) {
    CLI::App& group = program.Group(
        program.root(), "deletion", "Objects that are deleted when their grace period is over."
    );
    program.Command<ListWords>(
        group,
        "list",
        "Lists what is marked, and for a week what has begun, by kind and key.",
        "stint deletion list\nstint deletion list user",
        [](Syntax& syntax, ListWords& words) {
            syntax.Word("KIND", words.kind, "only of this kind");
            syntax.Text("--after", words.after, "KEY", "only those behind this key of KIND");
            syntax.Number("--limit", words.limit, "N", "at most this many (100)");
        },
        List
    );
    AddMarking(program, group);
    program.Command<PaceWords>(
        group,
        "pace",
        "Sets how many deletions of a kind begin per cycle, on all workers together.",
        "stint deletion pace user --cap 50 --every 1m",
        [](Syntax& syntax, PaceWords& words) {
            syntax.Word("KIND", words.kind, "of objects", Syntax::Need::kRequired);
            syntax.Number("--cap", words.cap, "N", "deletions per cycle (50)");
            syntax.Text("--every", words.every, "DURATION", "length of a cycle (1m)");
        },
        SetPace
    );
}

}  // namespace stint::cli
