// What holds for every task, whatever it is; plain tasks; resources; schedules.
#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "evidence.h"
#include "model/limits.h"
#include "model/steps.h"
#include "store/resources.h"
#include "store/schedules.h"

namespace stint::chaos {

namespace {

using model::Event;
using model::State;
using model::TaskRecord;

struct Seen {
    int recovered = 0, quarantined = 0;
};

void CheckAudit(const Evidence& evidence, const TaskRecord& task, Seen& seen, Findings& findings) {
    std::optional<State> state;
    int terminal = 0, blocked = 0, unblocked = 0;
    for (const model::AuditEntry& entry : evidence.AuditOf(task.id)) {
        if (entry.from != state) {
            findings.Add(
                "task {}: the audit log has a gap before entry {} (I15)", task.id.value(), entry.seq
            );
        }
        if (model::Next(entry.from, entry.event) != entry.to) {
            findings.Add(
                "task {}: the audit log holds a forbidden transition at {} (I15)",
                task.id.value(),
                entry.seq
            );
        }
        state = entry.to;
        seen.recovered += entry.event == Event::kReclaim ? 1 : 0;
        blocked += entry.event == Event::kBlock ? 1 : 0;
        unblocked += entry.event == Event::kUnblock ? 1 : 0;
        terminal += model::IsTerminal(entry.to) ? 1 : 0;
    }
    if (state != task.state) {
        findings.Add("task {}: its state is not the log's (I15)", task.id.value());
    }
    if (!model::IsTerminal(task.state)) return;
    if (terminal != 1) {
        findings.Add(
            "task {}: {} terminal transitions instead of one (I2)", task.id.value(), terminal
        );
    }
    if (blocked != unblocked) {
        findings.Add(
            "task {}: waited {} times and went on {} times (I9)",
            task.id.value(),
            blocked,
            unblocked
        );
    }
}

int Crashes(store::Store& store, TaskId id) {
    int crashes = 0;
    for (const auto& attempt : store.Attempts(id)) {
        if (attempt.end == model::AttemptEnd::kCrashed) ++crashes;
    }
    return crashes;
}

}  // namespace

void CheckEveryTask(const Evidence& evidence, Findings& findings) {
    Seen seen;
    for (const auto& [id, task] : evidence.tasks) {
        CheckAudit(evidence, task, seen, findings);
        if (!model::IsTerminal(task.state)) {
            findings.Add(
                "task {} of type {} is stuck: {} {} waits for {} (L1)",
                id.value(),
                task.type,
                StateName(task.state),
                task.reason,
                task.waiting_for
            );
        }
        if (!evidence.Quarantined(task)) continue;
        ++seen.quarantined;
        if (Crashes(evidence.store, id) < model::limits::kMaxCrashes) {
            findings.Add("task {}: quarantined without its crashes", id.value());
        }
    }
    std::set<std::pair<std::int64_t, bool>> numbers;
    for (const auto& [key, number] : evidence.journals.accepted) {
        if (!numbers.emplace(number, key.starts_with("event-")).second) {
            findings.Add("{}: shares number {} with another key (I8)", key, number);
        }
    }
    findings.Count("accepted", static_cast<std::int64_t>(evidence.journals.accepted.size()));
    findings.Count("tasks", static_cast<std::int64_t>(evidence.tasks.size()));
    findings.Count("starts", evidence.journals.starts);
    findings.Count("recovered", seen.recovered);
    findings.Count("quarantined", seen.quarantined);
}

// ---- plain tasks -------------------------------------------------------------------------------

namespace {

void CheckWork(
    const Evidence& evidence, const std::string& key, const TaskRecord& task, Findings& findings
) {
    if (evidence.Quarantined(task)) return;
    if (task.state != State::kComplete) {
        return findings.Add("{}: ended {} ({})", key, StateName(task.state), task.reason);
    }
    Done done = Codec<Done>::Decode(task.output);
    if (done.key != key) findings.Add("{}: holds the outcome of {}", key, done.key);
    if (done.fencing != task.claim_no) {
        findings.Add(
            "{}: the outcome of claim {} was accepted, the last claim is {} (I3)",
            key,
            done.fencing,
            task.claim_no
        );
    }
    auto ended = evidence.journals.ended.find(key);
    if (ended == evidence.journals.ended.end() || !ended->second.contains(done.fencing)) {
        findings.Add("{}: no worker's journal has the end of claim {}", key, done.fencing);
    }
    int complete = 0;
    for (const auto& attempt : evidence.store.Attempts(task.id)) {
        complete += attempt.end == model::AttemptEnd::kComplete ? 1 : 0;
        if (attempt.end == model::AttemptEnd::kRunning) {
            findings.Add("{}: an attempt is still running", key);
        }
    }
    if (complete != 1) {
        findings.Add("{}: {} attempts ended complete instead of one (I2)", key, complete);
    }
}

}  // namespace

void CheckPlain(const Evidence& evidence, Findings& findings) {
    for (auto [kind, type] :
         {std::pair(Kind::kWork, kWork.name),
          {Kind::kPress, kPress.name},
          {Kind::kInk, kInk.name}}) {
        auto accepted = evidence.Accepted(kind);
        for (const auto& [key, number] : accepted) {
            const TaskRecord* task = evidence.Find(number);
            if (task == nullptr) {
                findings.Add("{}: accepted as {}, now gone (I1)", key, number);
            } else {
                CheckWork(evidence, key, *task, findings);
            }
        }
        std::set<std::int64_t> known;
        for (const auto& [key, number] : accepted) known.insert(number);
        for (const TaskRecord* task : evidence.OfType(type)) {
            if (known.contains(task->id.value())) continue;
            findings.Add(
                "task {} of {} is stored for {}, and no journal has it accepted (I8)",
                task->id.value(),
                type,
                task->input
            );
        }
    }
}

// ---- resources ---------------------------------------------------------------------------------

// Every claim counts what there is under the lock of the resource, and its entry comes after those
// of all that it has counted: in the order of the log the units are never too many. What one claim
// took of the same needs may share its units: as long as some of it are left, they hold those of
// one at least.
void CheckResources(const Evidence& evidence, Findings& findings) {
    std::map<TaskId, int> units;
    for (const TaskRecord* task : evidence.OfType(kPress.name)) {
        units[task->id] = PressUnits(Codec<Work>::Decode(task->input).key);
    }
    using Group = std::tuple<SessionId, Time, int>;
    std::map<Group, int> left;
    std::map<TaskId, Group> group_of;
    int held = 0, most = 0;
    for (const model::AuditEntry& entry : evidence.log) {
        auto holder = units.find(entry.task);
        if (holder == units.end()) continue;
        if (entry.from == State::kInProgress && --left[group_of[entry.task]] == 0) {
            held -= holder->second;
        }
        if (entry.to == State::kInProgress) {
            Group& group = group_of[entry.task];
            group = {entry.session, entry.at, holder->second};
            if (++left[group] == 1) held += holder->second;
        }
        if (held > kPressUnits) {
            findings.Add(
                "{} of {} units were held when task {} began (I6)",
                held,
                kPressUnits,
                entry.task.value()
            );
        }
        most = std::max(most, held);
    }
    for (const store::ResourceRecord& resource : evidence.store.Resources().List()) {
        if (resource.held == 0 && resource.waiting == 0) continue;
        findings.Add(
            "{}: {} units are held and {} tasks wait at the end (I6)",
            resource.settings.name,
            resource.held,
            resource.waiting
        );
    }
    if (most == 0) findings.Add("nothing held the resource");
    findings.Count("press", static_cast<std::int64_t>(units.size()));
    findings.Count("units_at_most", most);
}

// ---- schedules ---------------------------------------------------------------------------------

namespace {

// Every instant of the schedule became a task, and none became two.
int CheckTicks(const Evidence& evidence, Findings& findings) {
    auto schedule = evidence.store.Schedules().Get(kDefaultTenant, kTicks);
    if (!schedule) {
        findings.Add("nobody could make the schedule (I11)");
        return 0;
    }
    std::set<std::string> seen;
    for (const TaskRecord* task : evidence.OfType(kTick.name)) {
        auto tick = Codec<Tick>::Decode(task->input);
        if (!seen.insert(tick.at).second) {
            findings.Add("{} became task {} and another (I11)", tick.at, task->id.value());
        }
    }
    for (Time at = schedule->created_at + kTickEvery; at <= schedule->considered_at;
         at += kTickEvery) {
        std::string text = base::Iso8601(at);
        if (!seen.contains(text)) findings.Add("{} became no task (I11)", text);
    }
    return static_cast<int>(seen.size());
}

// The tasks of one execution: each step made once, and the second after all of the first (I12).
void CheckExecution(const Evidence& evidence, const TaskRecord& execution, Findings& findings) {
    std::map<std::string, Evidence::Tasks> steps;
    for (const TaskRecord* part : evidence.ChildrenOf(execution.id)) {
        steps[part->tags.back()].push_back(part);
    }
    const auto& first = steps["step:first"];
    const auto& second = steps["step:second"];
    auto id = execution.id.value();
    if (first.size() > kParts || second.size() > kParts) {
        findings.Add("execution {}: a step was made twice (I12)", id);
    }
    for (const TaskRecord* part : first) {
        if (second.empty()) break;
        if (part->finished_at && second.front()->created_at >= part->finished_at) continue;
        findings.Add(
            "execution {}: the second step began before task {} ended (I12)", id, part->id.value()
        );
    }
    if (execution.state != State::kComplete) {
        if (evidence.Quarantined(execution)) return;
        return findings.Add("execution {}: {} (I12)", id, StateName(execution.state));
    }
    if (first.size() != kParts || second.size() != kParts) {
        findings.Add(
            "execution {}: complete with {} and {} tasks (I12)", id, first.size(), second.size()
        );
    }
}

}  // namespace

void CheckSchedules(const Evidence& evidence, Findings& findings) {
    int ticks = CheckTicks(evidence, findings);
    int complete = 0;
    for (const TaskRecord* execution : evidence.OfType(model::kStepsType)) {
        CheckExecution(evidence, *execution, findings);
        complete += IsCompleteExecution(*execution) ? 1 : 0;
    }
    if (complete == 0) findings.Add("no execution of steps was completed");
    findings.Count("ticks", ticks);
    findings.Count("executions", complete);
}

}  // namespace stint::chaos
