#include "cli/demo_verdict.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

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

void Holders::Add(const std::vector<model::AuditEntry>& audit) {
    for (const model::AuditEntry& entry : audit) {
        if (entry.from == model::State::kInProgress) changes_.emplace_back(entry.at, -1);
        if (entry.to == model::State::kInProgress) changes_.emplace_back(entry.at, 1);
    }
}

std::size_t Holders::Most() const {
    std::vector<std::pair<Time, int>> ordered = changes_;
    std::ranges::sort(ordered);
    int now = 0, most = 0;
    for (const auto& [at, change] : ordered) {
        now += change;
        most = std::max(most, now);
    }
    return static_cast<std::size_t>(most);
}

Duration LengthOfEach(std::size_t tasks, std::size_t at_once, Duration least) {
    constexpr Duration kInAll = std::chrono::milliseconds{1'500};
    std::size_t rounds = std::max<std::size_t>(1, tasks / std::max<std::size_t>(1, at_once));
    return std::clamp(kInAll / static_cast<std::int64_t>(rounds), least, kInAll);
}

std::size_t CouldHold(int capacity, int workers, int slots, int tasks) {
    return static_cast<std::size_t>(std::min({capacity, workers * slots, tasks}));
}

void ScheduleVerdict::Add(const std::vector<model::ScheduleRun>& runs, Duration every) {
    std::set<Time> times;
    std::set<TaskId> named;
    for (const model::ScheduleRun& run : runs) {
        if (!times.insert(run.instant).second) ++doubled;
        if (!run.task.valid()) {
            ++skipped;
        } else if (!named.insert(run.task).second) {
            ++doubled;
        }
    }
    instants = times.size();
    tasks = named.size();
    for (auto it = times.begin(); it != times.end() && std::next(it) != times.end(); ++it) {
        missing += static_cast<std::size_t>((*std::next(it) - *it) / every - 1);
    }
}

Tally ReadTally(node::Client& client, const std::vector<TaskId>& tasks) {
    Tally tally;
    for (TaskId id : tasks) tally.Add(client.Get(id), client.AuditOf(id), client.Attempts(id));
    return tally;
}

}  // namespace stint::cli
