// Executions of steps: what each step made, and when. And who may write results.
#include <fmt/format.h>

#include <algorithm>

#include "model/steps.h"
#include "sim/oracle.h"

namespace stint::sim {

using model::TaskRecord;

namespace {

std::optional<std::size_t> StepOf(const TaskRecord& member, const model::StepsInput& input) {
    for (std::size_t i = 0; i < input.steps.size(); ++i) {
        auto tag = "step:" + input.steps[i].name;
        if (std::ranges::find(member.tags, tag) != member.tags.end()) return i;
    }
    return std::nullopt;
}

}  // namespace

bool Oracle::EverEnded(TaskId task) const {
    auto shadow = shadows_.find(task);
    return shadow != shadows_.end() && shadow->second.terminal_in_generation > 0;
}

// By those that were made last: of an execution that was cancelled and tried again, what it had
// begun before may still be on its way to its end.
bool Oracle::IsDone(const Made& made, std::size_t tasks) const {
    if (made.empty()) return tasks == 0;
    const std::vector<TaskId>& last = made.rbegin()->second;
    return last.size() >= tasks &&
           std::ranges::all_of(last, [&](TaskId one) { return EverEnded(one); });
}

bool Oracle::JudgeStep(const TaskRecord& fresh) {
    const TaskRecord* execution = fresh.parent.valid() ? Find(fresh.parent) : nullptr;
    if (execution == nullptr || execution->type != model::kStepsType) return false;
    auto input = model::DecodeStepsInput(execution->input);
    auto step = input ? StepOf(fresh, *input) : std::nullopt;
    if (!step) {
        Violate("I12", fresh.id, "a task of no step");
        return true;
    }
    Steps& made = steps_[execution->id];
    for (std::size_t before = 0; before < *step; ++before) {
        const std::size_t tasks = input->steps[before].tasks.size();
        if (IsDone(made[before], tasks)) continue;
        Violate(
            "I12",
            fresh.id,
            fmt::format(
                "step {} of execution {} begins before the {} tasks of step {} are made and over",
                *step + 1,
                execution->id.value(),
                tasks,
                before + 1
            )
        );
        return true;
    }
    // An operator's retry begins with the step that has failed, which is then made once more.
    std::vector<TaskId>& now = made[*step][execution->generation];
    now.push_back(fresh.id);
    if (now.size() > input->steps[*step].tasks.size()) {
        Violate("I12", fresh.id, fmt::format("step {} was made twice", *step + 1));
    }
    return true;
}

// An execution that says that it is complete has done all of it.
void Oracle::CheckExecution(const TaskRecord& execution) {
    constexpr std::string_view kOutput = "{\"failed\":";
    if (execution.type != model::kStepsType || execution.state != model::State::kComplete) return;
    auto input = model::DecodeStepsInput(execution.input);
    if (!input || !execution.output.starts_with(kOutput)) return;
    for (std::size_t step = 0; step < input->steps.size(); ++step) {
        if (!IsDone(steps_[execution.id][step], input->steps[step].tasks.size())) {
            Violate("I12", execution.id, fmt::format("complete without step {}", step + 1));
        }
    }
}

void Oracle::AfterResults(const store::ResultWrite& write, bool accepted) {
    auto shadow = shadows_.find(write.by.task);
    bool holds = shadow != shadows_.end() &&
                 shadow->second.record.state == model::State::kInProgress &&
                 shadow->second.token == write.by.token;
    if (accepted == holds) return;
    Violate(
        "I3",
        write.by.task,
        accepted ? "results were taken from one who does not hold the task"
                 : "results of the holder were refused"
    );
}

}  // namespace stint::sim
