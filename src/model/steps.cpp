#include "model/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/result.h"
#include "base/text.h"

namespace stint::model {

namespace {

using base::MakeError;
using base::Quoted;

Result<void> CheckStepName(const Step& step) {
    bool bad = step.name.empty() || !base::IsUtf8(step.name) || base::HasControl(step.name) ||
               step.name.size() > limits::kStepName;
    if (!bad) return {};
    return MakeError(
        Code::kInvalid,
        "steps: a name is {}; it must be a text of one line, at most {} bytes",
        Quoted(step.name),
        limits::kStepName
    );
}

Result<void> CheckStep(const Step& step, TenantId tenant) {
    if (auto name = CheckStepName(step); !name) return name;
    if (step.tasks.empty()) {
        return MakeError(
            Code::kInvalid, "step {} has no tasks; leave it out, or name one", Quoted(step.name)
        );
    }
    if (step.tasks.size() > static_cast<std::size_t>(limits::kStepTasks)) {
        return MakeError(
            Code::kLimit,
            "step {} has {} tasks; the limit is {}: let tasks make some of them",
            Quoted(step.name),
            step.tasks.size(),
            limits::kStepTasks
        );
    }
    for (std::size_t i = 0; i < step.tasks.size(); ++i) {
        std::string field = fmt::format("step {} task {}: ", Quoted(step.name), i + 1);
        if (auto task = CheckTaskToCome(step.tasks[i], tenant, field, 2); !task) return task;
    }
    return {};
}

}  // namespace

Result<void> CheckTaskToCome(
    const NewTask& task, TenantId tenant, std::string_view field, std::size_t own_tags
) {
    auto refuse = [&](std::string_view member, std::string_view why) {
        return MakeError(Code::kInvalid, "{}{} is given; {}", field, member, why);
    };
    if (task.id.valid()) return refuse("id", "every run has an id of its own");
    if (task.run_at || task.delay) {
        return refuse(task.run_at ? "run_at" : "delay", "the schedule says when its tasks are due");
    }
    if (task.start_by) return refuse("start_by", "one instant cannot suit every run");
    if (!task.idempotency_key.empty()) {
        return refuse("idempotency_key", "with one key every run would be the first one's task");
    }
    if (task.tags.size() + own_tags > limits::kTagsPerTask) {
        return MakeError(
            Code::kLimit,
            "{}tags has {} tags; the limit is {}, since the schedule adds its own",
            field,
            task.tags.size(),
            limits::kTagsPerTask - own_tags
        );
    }
    NewTask whole = task;
    whole.tenant = tenant;
    if (auto valid = Validate(whole); !valid) {
        return MakeError(valid.error().code, "{}{}", field, valid.error().message);
    }
    return {};
}

Result<void> ValidateSteps(const std::vector<Step>& steps, TenantId tenant) {
    if (steps.size() > static_cast<std::size_t>(limits::kSteps)) {
        return MakeError(
            Code::kLimit, "there are {} steps; the limit is {}", steps.size(), limits::kSteps
        );
    }
    std::set<std::string_view> names;
    for (const Step& step : steps) {
        if (auto valid = CheckStep(step, tenant); !valid) return valid;
        if (!names.insert(step.name).second) {
            return MakeError(
                Code::kInvalid, "two steps are called {}; give each its own name", Quoted(step.name)
            );
        }
    }
    // What an execution carries besides is short.
    constexpr std::size_t kRoom = limits::kInput - 4096;
    std::string json = EncodeStepsInput({.steps = steps, .actor = {}, .tags = {}});
    if (auto depth = base::CheckJson(json, limits::kJsonDepth); !depth) {
        return MakeError(depth.error().code, "steps: {}", depth.error().message);
    }
    std::size_t bytes = json.size();
    if (bytes <= kRoom) return {};
    return MakeError(
        Code::kLimit,
        "the steps are {} bytes together; the limit is {}: pass references",
        bytes,
        kRoom
    );
}

std::string EncodeStepsInput(const StepsInput& input) {
    base::OrderedJson json;
    json["steps"] = base::ReadOrderedJson(StepsToJson(input.steps));
    json["actor"] = input.actor;
    json["tags"] = input.tags;
    return base::JsonText(json);
}

Result<StepsInput> DecodeStepsInput(std::string_view json) {
    auto parsed = base::ParseJson(json, limits::kJsonDepth);
    if (!parsed) return parsed.error();
    try {
        auto steps = StepsFromJson(base::JsonText(parsed->at("steps")));
        if (!steps) return steps.error();
        StepsInput input;
        input.steps = std::move(*steps);
        input.actor = parsed->at("actor").get<std::string>();
        input.tags = parsed->at("tags").get<std::vector<std::string>>();
        if (!input.steps.empty()) return input;
    } catch (const base::Json::exception&) {
    }
    return Error{Code::kInvalid, "the input of an execution must have steps, actor and tags"};
}

NewTask TaskOfSteps(const StepsInput& input, TenantId tenant) {
    NewTask task;
    task.type = kStepsType;
    task.tenant = tenant;
    task.input = EncodeStepsInput(input);
    task.actor = input.actor;
    task.tags = input.tags;
    task.queue = input.steps.front().tasks.front().queue;
    return task;
}

}  // namespace stint::model
