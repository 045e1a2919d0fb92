// Steps: groups of tasks, one group after the other. An execution of steps is one task of the type
// kStepsType, whose handler (services/steps.h) makes the tasks of a step as its subtasks, waits for
// them, and goes on with the next; its input holds the steps as they were when it began.
#pragma once

#include <stint/result.h>

#include <string>
#include <string_view>
#include <vector>

#include "model/limits.h"
#include "model/task.h"

namespace stint::model {

inline constexpr std::string_view kStepsType = "stint.steps";

struct Step {
    std::string name;  // each its own
    std::vector<NewTask> tasks;
    bool go_on = false;  // with the next step, whatever becomes of these
};

// [{"name": "extract", "tasks": [{"type": "a"}], "on_failure": "continue"}, …]
std::string StepsToJson(const std::vector<Step>& steps);
Result<std::vector<Step>> StepsFromJson(std::string_view json);

// Names, numbers, and each task as one that is submitted later. The message names the step.
Result<void> ValidateSteps(const std::vector<Step>& steps, TenantId tenant);
// What can be said of a task only when it is submitted; `field` is its name in the message.
Result<void> CheckTaskToCome(
    const NewTask& task, TenantId tenant, std::string_view field, std::size_t own_tags
);

// The input of an execution.
struct StepsInput {
    std::vector<Step> steps;
    std::string actor;              // of every task, for the audit log
    std::vector<std::string> tags;  // … besides its own and step:NAME
};
std::string EncodeStepsInput(const StepsInput& input);
// What was written by EncodeStepsInput, or what is wrong with it.
Result<StepsInput> DecodeStepsInput(std::string_view json);

// The task that executes them. Served by whoever serves the queue of the first task, where it names
// one.
NewTask TaskOfSteps(const StepsInput& input, TenantId tenant);

}  // namespace stint::model
