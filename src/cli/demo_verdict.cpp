#include "cli/demo_verdict.h"

#include <algorithm>
#include <map>

namespace stint::cli {

void Tally::Add(
    const std::optional<model::TaskRecord>& task,
    const std::vector<model::AuditEntry>& audit,
    const std::vector<model::AttemptRecord>& attempts
) {
    ++asked;
    bool submitted = false, reclaimed = false, said_complete = false;
    std::map<int, std::size_t> endings;  // terminal transitions by generation
    for (const model::AuditEntry& entry : audit) {
        submitted = submitted || entry.event == model::Event::kSubmit;
        reclaimed = reclaimed || entry.event == model::Event::kReclaim;
        said_complete = said_complete || entry.to == model::State::kComplete;
        bool was_terminal = entry.from && model::IsTerminal(*entry.from);
        if (model::IsTerminal(entry.to) && !was_terminal) ++endings[entry.generation];
    }
    if (submitted) ++accepted;
    if (!task) {
        if (submitted) ++lost;
        return;
    }
    if (!model::IsTerminal(task->state)) ++unfinished;
    bool complete = task->state == model::State::kComplete && said_complete;
    if (complete) ++completed;
    if (complete && reclaimed) ++recovered;
    for (const auto& [generation, count] : endings) doubled += count - 1;
    std::map<int, std::size_t> completions;
    for (const model::AttemptRecord& attempt : attempts) {
        if (attempt.end == model::AttemptEnd::kComplete) ++completions[attempt.generation];
    }
    for (const auto& [generation, count] : completions) doubled += count - 1;
}

bool Tally::good() const {
    return asked > 0 && accepted == asked && completed == asked && lost == 0 && unfinished == 0 &&
           doubled == 0;
}

base::OrderedJson Tally::ToJson() const {
    return {
        {"accepted", accepted},
        {"completed", completed},
        {"recovered", recovered},
        {"lost", lost},
        {"unfinished", unfinished},
        {"outcomes_doubled", doubled},
        {"ok", good()},
    };
}

Tally ReadTally(node::Client& client, const std::vector<TaskId>& tasks) {
    Tally tally;
    for (TaskId id : tasks) tally.Add(client.Get(id), client.AuditOf(id), client.Attempts(id));
    return tally;
}

}  // namespace stint::cli
