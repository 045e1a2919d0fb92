#include "engine/subtasks.h"

#include <fmt/format.h>
#include <stint/engine.h>
#include <stint/outcome.h>

#include <algorithm>
#include <stdexcept>

#include "base/check.h"
#include "engine/new_task.h"
#include "model/limits.h"
#include "store/finished.h"

namespace stint::engine {

namespace limits = model::limits;

namespace {
constexpr std::size_t kAtOnce = 500;  // finished ones that are asked for together
}

Desk& Subtasks::desk() {
    if (!desk_) throw Retryable("this attempt has nobody to ask");
    return *desk_;
}

TaskId Subtasks::Add(
    std::string_view type,
    const TaskDefaults& defaults,
    std::string input,
    const SubmitOptions& options
) {
    auto refuse = [&](const std::string& why) {
        throw std::invalid_argument(fmt::format("subtask {}: {}", type, why));
    };
    if (options.in != nullptr) {
        refuse("it is made together with the wait, not in a transaction of its own");
    }
    if (options.tenant && *options.tenant != tenant_) {
        refuse("it belongs to its parent's tenant; leave `tenant` out");
    }
    auto task = ToNewTask(type, &defaults, std::move(input), options, tenant_);
    if (!task) refuse(task.error().message);
    return Add(std::move(*task));
}

TaskId Subtasks::Add(model::NewTask task) {
    auto refuse = [&](const std::string& why) {
        throw std::invalid_argument(fmt::format("subtask {}: {}", task.type, why));
    };
    task.tenant = tenant_;
    if (made_.size() == limits::kWaitMembers) {
        refuse(fmt::format(
            "it would be number {}; the limit is {}: let subtasks make some of them",
            made_.size() + 1,
            limits::kWaitMembers
        ));
    }
    bytes_ += task.input.size();
    if (bytes_ > limits::kSubtaskBytes) {
        refuse(fmt::format(
            "the inputs of all subtasks have {} bytes by now; the limit is {}: pass references",
            bytes_,
            limits::kSubtaskBytes
        ));
    }
    task.id = desk().TakeId();
    if (auto valid = Validate(task); !valid) refuse(valid.error().message);
    made_.push_back(std::move(task));
    return made_.back().id;
}

const std::vector<WaitedTask>& Subtasks::Waited() {
    if (waited_) return *waited_;
    std::vector<WaitedTask> waited;
    for (const model::WaitMember& member : desk().Waited(task_)) {
        waited.push_back(
            {.id = member.asked,
             .task = member.task,
             .finished = member.ended.has_value(),
             .complete = member.ended == model::State::kComplete}
        );
    }
    // The first that either of its ids names.
    for (std::size_t i = 0; i < waited.size(); ++i) {
        places_.emplace(waited[i].id, i);
        places_.emplace(waited[i].task, i);
    }
    return waited_.emplace(std::move(waited));
}

const WaitedTask& Subtasks::Find(TaskId subtask) {
    const std::vector<WaitedTask>& waited = Waited();
    auto found = places_.find(subtask);
    if (found == places_.end()) {
        throw std::invalid_argument(
            fmt::format("task {} did not wait for task {}", task_.value(), subtask.value())
        );
    }
    return waited[found->second];
}

// What was read is kept until the handler returns.
void Subtasks::Keep(store::FinishedTask finished) {
    TaskId id = finished.id;
    std::size_t bytes = store::BytesOf(finished);
    if (!finished_.emplace(id, std::move(finished)).second) return;
    held_ += bytes;
    if (held_ <= limits::kOutputsHeld) return;
    throw std::length_error(fmt::format(
        "task {} has read {} bytes of its subtasks' outputs; the limit is {}: let each keep its "
        "result elsewhere and return where",
        task_.value(),
        held_,
        limits::kOutputsHeld
    ));
}

const store::FinishedTask* Subtasks::Look(TaskId task) {
    auto found = finished_.find(task);
    if (found == finished_.end()) {
        for (store::FinishedTask& one : desk().Finished({&task, 1})) Keep(std::move(one));
        found = finished_.find(task);
    }
    return found == finished_.end() ? nullptr : &found->second;
}

void Subtasks::LookAll() {
    std::vector<TaskId> open;
    for (const WaitedTask& one : Waited()) {
        if (one.finished && !finished_.contains(one.task)) open.push_back(one.task);
    }
    while (!open.empty()) {
        std::size_t count = std::min(open.size(), kAtOnce);
        std::span<const TaskId> some(open.data(), count);
        std::vector<store::FinishedTask> answers = desk().Finished(some);
        if (answers.empty()) return;  // they were deleted, or have begun anew
        for (store::FinishedTask& one : answers) Keep(std::move(one));
        std::erase_if(open, [this](TaskId task) { return finished_.contains(task); });
    }
}

std::optional<std::string> Subtasks::Output(TaskId subtask) {
    const WaitedTask& waited = Find(subtask);
    const store::FinishedTask* finished = waited.complete ? Look(waited.task) : nullptr;
    if (finished == nullptr || finished->state != model::State::kComplete) return std::nullopt;
    return finished->output;
}

std::vector<std::string> Subtasks::Outputs(std::string_view type) {
    LookAll();
    std::vector<std::string> outputs;
    for (const WaitedTask& waited : Waited()) {
        auto found = finished_.find(waited.task);
        if (!waited.complete || found == finished_.end()) continue;
        const store::FinishedTask& finished = found->second;
        if (finished.type == type && finished.state == model::State::kComplete) {
            outputs.push_back(finished.output);
        }
    }
    return outputs;
}

std::optional<SubtaskFailure> Subtasks::Failure(TaskId subtask) {
    const WaitedTask& waited = Find(subtask);
    if (!waited.finished || waited.complete) return std::nullopt;
    SubtaskFailure failure{.task = waited.task, .message = "it failed"};
    const store::FinishedTask* finished = Look(waited.task);
    if (finished == nullptr) return failure;  // an operator has begun it anew
    failure.type = finished->type;
    failure.cancelled = finished->state == model::State::kCancelled;
    if (finished->error) {
        failure.message = finished->error->message;
        failure.klass = finished->error->klass;
    }
    if (failure.cancelled || !finished->error) failure.message = finished->reason;
    return failure;
}

}  // namespace stint::engine

namespace stint::detail {

SubtaskFailure FirstFailure(Context& context) {
    for (const WaitedTask& waited : context.waited()) {
        if (auto failure = context.FailureOf(waited.id)) return *failure;
    }
    return {.message = "what it waited for has failed"};
}

Failed FailedBySubtask(Context& context) {
    SubtaskFailure failure = FirstFailure(context);
    return {
        .message = fmt::format(
            "subtask {} ({}) {}: {}",
            failure.task.value(),
            failure.type,
            failure.cancelled ? "was cancelled" : "failed",
            failure.message
        ),
        .retryable = false,
        .klass = failure.klass.empty() ? "subtask_failed" : failure.klass,
    };
}

}  // namespace stint::detail
