// stint task explain: why a task does not run, said with the conditions by which workers claim.
#include <iostream>

#include "cli/ids.h"
#include "cli/task_commands.h"

namespace stint::cli {

namespace {

struct ExplainOptions {
    std::string id;
};

bool IsLive(const model::SessionRecord& session) {
    return session.state == model::SessionState::kLive ||
           session.state == model::SessionState::kDraining;
}

void Add(Listing& listing, const std::string& worker, const node::Explanation& reason) {
    std::string name(model::ConditionName(reason.condition));
    std::string meaning(model::ConditionText(reason.condition));
    if (!reason.detail.empty()) meaning += " (" + reason.detail + ")";
    bool eligible = reason.condition == model::Condition::kEligible;
    listing.rows.push_back({{worker}, {name, eligible ? Tint::kGood : Tint::kWarn}, {meaning}});
    listing.objects.push_back(
        {{"worker", worker},
         {"condition", name},
         {"meaning", model::ConditionText(reason.condition)},
         {"detail", reason.detail}}
    );
    listing.ids.push_back(name);
}

int Explain(Invocation& invocation, const ExplainOptions& options) {
    TaskId id = ReadIds({options.id}, std::cin).at(0);
    node::Client client = invocation.LookAtStore();
    auto task = client.Get(id);
    if (!task) throw CommandError(kNotFound, fmt::format("there is no task {}", id.ToString()));
    Listing listing;
    listing.name = "reasons";
    listing.headers = {"WORKER", "CONDITION", "MEANING"};
    listing.extra["task"] = id.ToString();
    listing.extra["state"] = model::StateName(task->state);
    bool any = false;
    for (const model::SessionRecord& session : client.Sessions()) {
        if (!IsLive(session)) continue;
        any = true;
        node::ClaimRequest claimer{
            .session = session.id, .queues = session.queues, .types = session.types};
        claimer.labels = session.labels;
        std::string worker = fmt::format("{}:{}", session.hostname, session.pid);
        for (const auto& reason : client.Explain(id, claimer)) Add(listing, worker, reason);
    }
    if (!any) {
        // What a worker for it would say, so that the task's own reasons are seen.
        for (const auto& reason : client.Explain(id, {.types = {task->type}})) {
            if (reason.condition != model::Condition::kSessionNotLive) Add(listing, "-", reason);
        }
    }
    invocation.out().Print(listing);
    if (!any) invocation.Say("no worker is running on this store; start one: stint worker start");
    return kOk;
}

}  // namespace

void AddTaskExplain(Program& program, CLI::App& group) {
    program.Command<ExplainOptions>(
        group,
        "explain",
        "Says for each worker why it does not take a task now, or that it may.",
        "stint task explain 17",
        [](Syntax& syntax, ExplainOptions& options) {
            syntax.Word("ID", options.id, "task id", Syntax::Need::kRequired);
        },
        Explain
    );
}

}  // namespace stint::cli
