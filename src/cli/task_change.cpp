// stint task cancel | retry | discard
#include <iostream>

#include "cli/ids.h"
#include "cli/task_commands.h"
#include "cli/task_view.h"

namespace stint::cli {

namespace {

struct ChangeOptions {
    std::vector<std::string> ids;
    std::string reason;
};

// What became of one task.
struct Change {
    int exit = kOk;
    std::string_view result;  // "cancelled", "requeued", …
    std::optional<model::State> state;
    std::string problem;            // for people, when it was refused
    std::optional<int> below = {};  // so many below it were stopped with it
};

Change ChangeOf(const node::CancelReply& reply) {
    using Kind = node::CancelReply::Kind;
    switch (reply.kind) {
        case Kind::kNotFound:
            return {kNotFound, "not_found", {}, "there is no such task"};
        case Kind::kCancelled:
            // Dead before; now it lets those behind it in its order key go.
            if (reply.state == model::State::kDead) return {kOk, "turn_ended", reply.state, ""};
            return {kOk, "cancelled", reply.state, "", reply.descendants};
        case Kind::kRequested:
            return {kOk, "requested", reply.state, "", reply.descendants};
        case Kind::kAlreadyTerminal:
            return {
                kConflict,
                "already_finished",
                reply.state,
                fmt::format("it is already {}", model::StateName(reply.state))};
    }
    return {};
}

Change ChangeOf(const node::RetryReply& reply, std::string_view done, std::string_view cure) {
    using Kind = node::RetryReply::Kind;
    switch (reply.kind) {
        case Kind::kNotFound:
            return {kNotFound, "not_found", {}, "there is no such task"};
        case Kind::kRequeued:
            return {kOk, done, reply.state, ""};
        case Kind::kRefused:
            return {
                kConflict,
                "refused",
                reply.state,
                fmt::format("it is {}; {}", model::StateName(reply.state), cure)};
    }
    return {};
}

int Report(
    Invocation& invocation, const std::vector<TaskId>& ids, const std::vector<Change>& changes
) {
    Listing listing;
    listing.name = "tasks";
    listing.headers = {"ID", "RESULT", "STATE"};
    int exit = kOk;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const Change& change = changes.at(i);
        std::string id = ids[i].ToString();
        listing.rows.push_back(
            {{id},
             {std::string(change.result), change.exit == kOk ? Tint::kPlain : Tint::kBad},
             change.state ? StateCell(*change.state) : Cell{"-"}}
        );
        listing.objects.push_back(
            {{"id", id},
             {"result", change.result},
             {"state",
              change.state ? base::OrderedJson(model::StateName(*change.state))
                           : base::OrderedJson(nullptr)}}
        );
        if (change.below) {
            listing.objects.back()["descendants"] = *change.below;
            if (*change.below > 0) {
                invocation.Say("task {}: {} subtasks were stopped with it", id, *change.below);
            }
        }
        if (change.exit == kOk) {
            listing.ids.push_back(id);
        } else {
            invocation.Warn(fmt::format("task {}: {}", id, change.problem));
            if (exit == kOk) exit = change.exit;
        }
    }
    invocation.out().Print(listing);
    return exit;
}

int Cancel(Invocation& invocation, const ChangeOptions& options) {
    auto ids = ReadIds(options.ids, std::cin);
    node::Client client = invocation.LookAtStore();
    std::vector<Change> changes;
    for (const auto& reply : client.Cancel(ids, invocation.actor(), options.reason)) {
        changes.push_back(ChangeOf(reply));
    }
    return Report(invocation, ids, changes);
}

int Retry(Invocation& invocation, const ChangeOptions& options) {
    auto ids = ReadIds(options.ids, std::cin);
    node::Client client = invocation.LookAtStore();
    std::vector<Change> changes;
    for (const auto& reply : client.Retry(ids, invocation.actor())) {
        changes.push_back(
            ChangeOf(reply, "requeued", "only dead, cancelled and error tasks can be retried")
        );
    }
    return Report(invocation, ids, changes);
}

int Discard(Invocation& invocation, const ChangeOptions& options) {
    auto ids = ReadIds(options.ids, std::cin);
    node::Client client = invocation.LookAtStore();
    std::vector<Change> changes;
    for (const auto& reply : client.Discard(ids, invocation.actor())) {
        changes.push_back(
            ChangeOf(reply, "discarded", "only tasks in error, waiting for a retry, are discarded")
        );
    }
    return Report(invocation, ids, changes);
}

void DefineIds(Syntax& syntax, ChangeOptions& options) {
    syntax.Words("ID", options.ids, "task ids, or - for standard input", Syntax::Need::kRequired);
}

}  // namespace

void AddTaskChange(Program& program, CLI::App& group) {
    program.Command<ChangeOptions>(
        group,
        "cancel",
        "Cancels tasks and all below them: waiting ones at once, running ones by request.",
        "stint task cancel 17 18 --reason 'wrong month'\n"
        "stint task list queue:mail state:open -o ids | stint task cancel -",
        [](Syntax& syntax, ChangeOptions& options) {
            DefineIds(syntax, options);
            syntax.Text("--reason", options.reason, "TEXT", "why, for the audit log");
        },
        Cancel
    );
    program.Command<ChangeOptions>(
        group,
        "retry",
        "Runs tasks again, now: dead and cancelled ones anew, those in error without waiting.",
        "stint task retry 17\nstint task list state:dead type:mail.* -o ids | stint task retry -",
        DefineIds,
        Retry
    );
    program.Command<ChangeOptions>(
        group,
        "discard",
        "Gives up tasks that wait for a retry: they become dead.",
        "stint task discard 17",
        DefineIds,
        Discard
    );
}

}  // namespace stint::cli
