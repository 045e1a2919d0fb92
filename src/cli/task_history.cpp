// stint task attempts | audit
#include <iostream>

#include "base/text.h"
#include "cli/ids.h"
#include "cli/task_commands.h"
#include "cli/task_view.h"
#include "model/time_text.h"
#include "node/json_view.h"

namespace stint::cli {

namespace {

struct HistoryOptions {
    std::string id;
};

TaskId Known(node::Client& client, const std::string& word) {
    TaskId id = ReadIds({word}, std::cin).at(0);
    if (!client.Get(id)) {
        throw CommandError(kNotFound, fmt::format("there is no task {}", id.ToString()));
    }
    return id;
}

std::string EndDetail(const model::AttemptRecord& attempt) {
    std::string text;
    if (attempt.exit_code) text += fmt::format("exit code {}  ", *attempt.exit_code);
    if (attempt.exit_signal) text += fmt::format("signal {}  ", *attempt.exit_signal);
    if (attempt.error) text += fmt::format("{}: {}", attempt.error->klass, attempt.error->message);
    return Shorten(text, 70);
}

int Attempts(Invocation& invocation, const HistoryOptions& options) {
    node::Client client = invocation.LookAtStore();
    TaskId id = Known(client, options.id);
    Listing listing;
    listing.name = "attempts";
    listing.headers = {"CLAIM", "ATTEMPT", "END", "STARTED", "TOOK", "SESSION", "DETAIL"};
    for (const model::AttemptRecord& attempt : client.Attempts(id)) {
        std::string took = "-";
        if (attempt.finished_at) {
            took = model::RoughDuration(
                std::chrono::duration_cast<Duration>(*attempt.finished_at - attempt.started_at)
            );
        }
        bool good = attempt.end == model::AttemptEnd::kComplete;
        bool running = attempt.end == model::AttemptEnd::kRunning;
        listing.rows.push_back(
            {{std::to_string(attempt.claim_no)},
             {std::to_string(attempt.attempt)},
             {std::string(model::AttemptEndName(attempt.end)),
              good      ? Tint::kGood
              : running ? Tint::kBusy
                        : Tint::kWarn},
             {base::Iso8601(attempt.started_at)},
             {took},
             {attempt.session.ToString().substr(0, 8)},
             {EndDetail(attempt)}}
        );
        listing.objects.push_back(node::ToJson(attempt));
        listing.ids.push_back(std::to_string(attempt.claim_no));
    }
    invocation.out().Print(listing);
    if (listing.rows.empty()) invocation.Say("task {} has not been tried yet", id.ToString());
    return kOk;
}

int Audit(Invocation& invocation, const HistoryOptions& options) {
    node::Client client = invocation.LookAtStore();
    TaskId id = Known(client, options.id);
    Listing listing;
    listing.name = "entries";
    listing.headers = {"AT", "EVENT", "FROM", "TO", "ATTEMPT", "ACTOR", "REASON"};
    for (const model::AuditEntry& entry : client.AuditOf(id)) {
        listing.rows.push_back(
            {{base::Iso8601(entry.at)},
             {std::string(model::EventName(entry.event))},
             {std::string(entry.from ? model::StateName(*entry.from) : "-")},
             StateCell(entry.to),
             {std::to_string(entry.attempt)},
             {entry.actor},
             {Shorten(entry.reason, 60)}}
        );
        listing.objects.push_back(node::ToJson(entry));
        listing.ids.push_back(std::to_string(entry.seq));
    }
    invocation.out().Print(listing);
    return kOk;
}

void Define(Syntax& syntax, HistoryOptions& options) {
    syntax.Word("ID", options.id, "task id", Syntax::Need::kRequired);
}

}  // namespace

void AddTaskHistory(Program& program, CLI::App& group) {
    program.Command<HistoryOptions>(
        group,
        "attempts",
        "Shows every try of a task: when, where, how it ended.",
        "stint task attempts 17",
        Define,
        Attempts
    );
    program.Command<HistoryOptions>(
        group,
        "audit",
        "Shows every change of a task's state: who, when, why.",
        "stint task audit 17",
        Define,
        Audit
    );
}

}  // namespace stint::cli
