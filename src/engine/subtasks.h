// What an attempt knows of subtasks: those that it makes, and those that its task has waited for.
#pragma once

#include <stint/submit_options.h>
#include <stint/wait.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/desk.h"
#include "store/store.h"

namespace stint::engine {

// Used by the handler's thread only.
class Subtasks {
public:
    Subtasks(std::shared_ptr<Desk> desk, TaskId task, TenantId tenant)
        : desk_(std::move(desk)), task_(task), tenant_(tenant) {}

    // Throws std::invalid_argument for what can never be submitted.
    TaskId Add(
        std::string_view type,
        const TaskDefaults& defaults,
        std::string input,
        const SubmitOptions& options
    );
    // The same for a request that is whole but for its id and tenant.
    TaskId Add(model::NewTask task);
    const std::vector<WaitedTask>& Waited();
    std::optional<std::string> Output(TaskId subtask);
    std::vector<std::string> Outputs(std::string_view type);
    std::optional<SubtaskFailure> Failure(TaskId subtask);

    std::vector<model::NewTask> Take() { return std::move(made_); }

private:
    Desk& desk();
    const WaitedTask& Find(TaskId subtask);
    const store::FinishedTask* Look(TaskId task);  // null: not finished
    void LookAll();
    void Keep(store::FinishedTask finished);

    const std::shared_ptr<Desk> desk_;
    const TaskId task_;
    const TenantId tenant_;
    std::vector<model::NewTask> made_;
    std::size_t bytes_ = 0;  // of their inputs
    std::optional<std::vector<WaitedTask>> waited_;
    std::map<TaskId, std::size_t> places_;  // in waited_
    std::map<TaskId, store::FinishedTask> finished_;
    std::size_t held_ = 0;  // bytes of them
};

}  // namespace stint::engine
