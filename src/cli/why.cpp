// stint task why, stint queue why: what keeps tasks from running, and what would change it.
#include <iostream>

#include "base/text.h"
#include "cli/ids.h"
#include "cli/task_commands.h"
#include "model/time_text.h"

namespace stint::cli {

namespace {

struct TaskOptions {
    std::string id;
};
struct QueueOptions {
    std::string queue;
};

std::string Meaning(const std::string& text, const std::string& detail) {
    return detail.empty() ? text : fmt::format("{} ({})", text, detail);
}

void AddReason(Listing& listing, const node::WhyReason& reason, int workers) {
    std::string who = "-";
    if (reason.workers > 0) who = fmt::format("{} of {}", reason.workers, workers);
    listing.rows.push_back(
        {{reason.name, Tint::kWarn},
         {who},
         {Meaning(reason.text, reason.detail)},
         {reason.cure.empty() ? "-" : reason.cure}}
    );
    listing.objects.push_back(
        {{"condition", reason.name},
         {"workers", reason.workers},
         {"meaning", reason.text},
         {"detail", reason.detail},
         {"cure", reason.cure}}
    );
    listing.ids.push_back(reason.name);
}

std::string AheadText(const node::Ahead& ahead) {
    std::string text = "nothing goes before it";
    if (ahead.tasks > 0 || ahead.more) {
        text = fmt::format(
            "{}{} {} before it",
            ahead.more ? "at least " : "",
            ahead.tasks,
            ahead.tasks == 1 ? "task goes" : "tasks go"
        );
    }
    if (ahead.takes && ahead.tasks > 0) {
        text += fmt::format("; about {} at the present pace", model::RoughDuration(*ahead.takes));
    }
    if (!ahead.estimate.empty()) text += fmt::format("; an estimate: {}", ahead.estimate);
    return text;
}

// The one sentence before the reasons.
std::string Verdict(const node::Why& why) {
    using model::State;
    switch (why.task.state) {
        case State::kInProgress:
            return "it is running";
        case State::kComplete:
        case State::kCancelled:
        case State::kDead:
            return fmt::format("it is over: {}", model::StateName(why.task.state));
        case State::kBlocked:
        case State::kBackground:
            return fmt::format("it is not waiting for a worker: {}", why.reasons.at(0).text);
        case State::kOpen:
        case State::kError:
            break;
    }
    if (!why.eligible) return "nothing will take it until one of these changes";
    return "it waits for nothing but its turn: " + AheadText(why.ahead.value_or(node::Ahead{}));
}

int WhyTask(Invocation& invocation, const TaskOptions& options) {
    TaskId id = ReadIds({options.id}, std::cin).at(0);
    node::Client client = invocation.LookAtStore();
    auto why = client.WhyTask(id);
    if (!why) throw CommandError(kNotFound, fmt::format("there is no task {}", id.ToString()));
    Listing listing;
    listing.name = "reasons";
    listing.headers = {"CONDITION", "WORKERS", "MEANING", "WHAT WOULD CHANGE IT"};
    listing.extra["task"] = id.ToString();
    listing.extra["state"] = model::StateName(why->task.state);
    listing.extra["eligible"] = why->eligible;
    listing.extra["workers"] = why->workers;
    listing.extra["verdict"] = Verdict(*why);
    if (why->ahead) {
        listing.extra["ahead"] = {
            {"tasks", why->ahead->tasks},
            {"more", why->ahead->more},
            {"estimate", why->ahead->estimate}};
        if (why->ahead->takes) {
            listing.extra["ahead"]["takes"] = model::FormatDuration(*why->ahead->takes);
        }
    }
    for (const node::WhyReason& reason : why->reasons) AddReason(listing, reason, why->workers);
    invocation.out().Print(listing);
    invocation.Say("task {} ({}): {}", id.ToString(), why->task.type, Verdict(*why));
    return kOk;
}

int WhyQueue(Invocation& invocation, const QueueOptions& options) {
    node::Client client = invocation.LookAtStore();
    node::QueueWhy why = client.WhyQueue(options.queue);
    Listing listing;
    listing.name = "shares";
    listing.headers = {"SHARE", "TASKS", "CONDITION", "MEANING", "EXAMPLE"};
    listing.extra["queue"] = why.queue;
    listing.extra["waiting"] = why.waiting;
    listing.extra["looked_at"] = why.looked_at;
    listing.extra["estimate"] = why.looked_at < why.waiting;
    listing.extra["workers"] = why.workers;
    for (const node::QueueShare& share : why.shares) {
        double percent =
            100.0 * static_cast<double>(share.tasks) / static_cast<double>(why.waiting);
        bool eligible = share.condition == model::ConditionName(model::Condition::kEligible);
        listing.rows.push_back(
            {{fmt::format("{:.0f} %", percent)},
             {std::to_string(share.tasks)},
             {share.condition, eligible ? Tint::kGood : Tint::kWarn},
             {Meaning(share.text, share.detail)},
             {share.example.ToString()}}
        );
        listing.objects.push_back(
            {{"condition", share.condition},
             {"detail", share.detail},
             {"tasks", share.tasks},
             {"percent", percent},
             {"meaning", share.text},
             {"cure", share.cure},
             {"example", share.example.ToString()}}
        );
        listing.ids.push_back(share.condition);
    }
    invocation.out().Print(listing);
    if (why.waiting == 0) {
        invocation.Say("nothing waits in queue {}", base::Quoted(why.queue));
    } else if (why.looked_at < why.waiting) {
        invocation.Say(
            "an estimate: of {} waiting, groups with {} were asked for themselves, and of the "
            "many small groups some for all",
            why.waiting,
            why.looked_at
        );
    } else {
        invocation.Say("of {} waiting, for {} workers", why.waiting, why.workers);
    }
    return kOk;
}

}  // namespace

void AddTaskWhy(Program& program, CLI::App& group) {
    program.Command<TaskOptions>(
        group,
        "why",
        "Says why a task is not running, and what would change it.",
        "stint task why 17\nstint task why 17 -o json",
        [](Syntax& syntax, TaskOptions& options) {
            syntax.Word("ID", options.id, "task id", Syntax::Need::kRequired);
        },
        WhyTask
    );
}

void AddQueueWhy(Program& program, CLI::App& group) {
    program.Command<QueueOptions>(
        group,
        "why",
        "Says what keeps the waiting tasks of a queue, in shares.",
        "stint queue why mail",
        [](Syntax& syntax, QueueOptions& options) {
            syntax.Word("QUEUE", options.queue, "name of the queue", Syntax::Need::kRequired);
        },
        WhyQueue
    );
}

}  // namespace stint::cli
