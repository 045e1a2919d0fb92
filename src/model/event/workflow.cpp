#include "model/event/workflow.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/result.h"
#include "base/text.h"
#include "model/event/event.h"
#include "model/event/names.h"
#include "model/event/template.h"
#include "model/match/expression.h"

namespace stint::model {

namespace {

using base::Json;
using base::MakeError;
using base::Quoted;

constexpr std::array kPolicies = {
    std::pair{JoinPolicy::kOnce, std::string_view{"once"}},
    std::pair{JoinPolicy::kEach, std::string_view{"each"}},
    std::pair{JoinPolicy::kLatest, std::string_view{"latest"}},
};

// The same problem, with its place in front.
Error At(std::string_view place, const Error& error) {
    return {error.code, fmt::format("{}.{}", place, error.message)};
}

Result<void> CheckTexts(std::string_view place, const TaskTemplate& task) {
    if (task.input) {
        auto input = base::ParseJson(*task.input, limits::kJsonDepth);
        if (!input) return MakeError(Code::kInvalid, "{}.input {}", place, input.error().message);
        if (auto good = CheckTemplate(*input); !good) {
            return MakeError(Code::kInvalid, "{}.input {}", place, good.error().message);
        }
    }
    if (auto good = CheckTemplate(task.unique_key); !good) {
        return MakeError(Code::kInvalid, "{}.unique_key {}", place, good.error().message);
    }
    return {};
}

// Its settings are those of a task.
Result<void> Check(std::string_view place, const TaskTemplate& task) {
    if (auto good = CheckTexts(place, task); !good) return good;
    NewTask like;
    like.type = task.type;
    like.queue = task.queue;
    like.priority = task.priority;
    like.timeout = task.timeout;
    like.delay = task.delay;
    like.retry = task.retry;
    like.tags = task.tags;
    like.unique_key = task.unique_key;
    if (auto good = Validate(like); !good) return At(place, good.error());
    return {};
}

Result<void> Check(std::string_view place, const FinishTemplate& finish) {
    if (finish.task.empty()) {
        return MakeError(
            Code::kInvalid,
            "{}.task is empty; name the field that holds the task's id, such as \"${{taskId}}\"",
            place
        );
    }
    Json output = nullptr;
    if (finish.output) {
        auto parsed = base::ParseJson(*finish.output, limits::kJsonDepth);
        if (!parsed) {
            return MakeError(Code::kInvalid, "{}.output {}", place, parsed.error().message);
        }
        output = std::move(*parsed);
    }
    for (const auto& [field, text] :
         {std::pair<std::string_view, Json>{"task", finish.task},
          {"token", finish.token},
          {"message", finish.message},
          {"output", output}}) {
        if (auto good = CheckTemplate(text); !good) {
            return MakeError(Code::kInvalid, "{}.{} {}", place, field, good.error().message);
        }
    }
    return {};
}

Result<void> Check(std::string_view place, const Trigger& trigger) {
    auto part = [&](std::string_view member) { return fmt::format("{}.{}", place, member); };
    if (auto good = CheckName(part("name"), trigger.name, limits::kWorkflowName); !good) {
        return good;
    }
    if (auto good = CheckName(part("on"), trigger.on, limits::kTypeName); !good) return good;
    if (trigger.on.starts_with(kOwnEvents)) {
        return MakeError(
            Code::kInvalid,
            "{}.on is {}; the engine's own events fire joins only: declare a join",
            place,
            Quoted(trigger.on)
        );
    }
    if (!trigger.match.empty()) {
        auto parsed = match::Expression::Parse(trigger.match);
        if (!parsed) {
            return MakeError(parsed.error().code, "{}.match {}", place, parsed.error().message);
        }
    }
    if (const auto* task = std::get_if<TaskTemplate>(&trigger.action)) {
        return Check(part("submit"), *task);
    }
    const auto& finish = std::get<FinishTemplate>(trigger.action);
    return Check(part(finish.success ? "complete" : "fail"), finish);
}

Result<void> CheckTypes(std::string_view place, const std::vector<std::string>& types) {
    if (types.size() < 2 || types.size() > limits::kJoinMembers) {
        return MakeError(
            Code::kInvalid,
            "{}.types has {} task types; a join has 2 to {}",
            place,
            types.size(),
            limits::kJoinMembers
        );
    }
    std::set<std::string_view> seen;
    for (const std::string& type : types) {
        if (auto good = CheckName(fmt::format("{}.types", place), type, limits::kTypeName); !good) {
            return good;
        }
        if (!seen.insert(type).second) {
            return MakeError(
                Code::kInvalid, "{}.types has {} twice; give each type once", place, Quoted(type)
            );
        }
    }
    return {};
}

Result<void> Check(std::string_view place, const Join& join) {
    auto part = [&](std::string_view member) { return fmt::format("{}.{}", place, member); };
    if (auto good = CheckName(part("name"), join.name, limits::kWorkflowName); !good) return good;
    if (auto good = CheckTypes(place, join.types); !good) return good;
    auto key = match::Path::Parse(join.key);
    if (!key) {
        return MakeError(
            Code::kInvalid,
            "{}.key {}; name a field of the members, such as input.file or output.hash",
            place,
            key.error().message
        );
    }
    if (join.ttl < std::chrono::seconds{1} || join.ttl > limits::kJoinTtlMax) {
        return MakeError(
            Code::kInvalid,
            "{}.ttl is {}; it must be between 1 s and {}",
            place,
            base::DurationText(join.ttl),
            base::DurationText(limits::kJoinTtlMax)
        );
    }
    return Check(part("submit"), join.submit);
}

}  // namespace

std::string_view JoinPolicyName(JoinPolicy policy) {
    return kPolicies.at(static_cast<std::size_t>(policy)).second;
}

std::optional<JoinPolicy> JoinPolicyNamed(std::string_view name) {
    for (const auto& [policy, text] : kPolicies) {
        if (text == name) return policy;
    }
    return std::nullopt;
}

Result<void> Validate(const WorkflowDefinition& definition) {
    if (!definition.tenant.valid()) {
        return MakeError(
            Code::kInvalid, "tenant is {}; it must be 1 or more", definition.tenant.value()
        );
    }
    if (auto good = CheckName("name", definition.name, limits::kWorkflowName); !good) return good;
    if (definition.triggers.size() > limits::kTriggersPerWorkflow ||
        definition.joins.size() > limits::kJoinsPerWorkflow) {
        return MakeError(
            Code::kLimit,
            "has {} triggers and {} joins; a workflow has at most {} and {}: make it two",
            definition.triggers.size(),
            definition.joins.size(),
            limits::kTriggersPerWorkflow,
            limits::kJoinsPerWorkflow
        );
    }
    // The name stands for the firing: triggers and joins share one namespace.
    std::set<std::string_view> names;
    auto check_all = [&](std::string_view what, const auto& parts) -> Result<void> {
        for (std::size_t i = 0; i < parts.size(); ++i) {
            std::string place = fmt::format("{}[{}]", what, i);
            if (auto good = Check(place, parts[i]); !good) return good;
            if (names.insert(parts[i].name).second) continue;
            return MakeError(
                Code::kInvalid,
                "{}.name is {}, which another trigger or join of this workflow has; choose another",
                place,
                Quoted(parts[i].name)
            );
        }
        return {};
    };
    if (auto good = check_all("triggers", definition.triggers); !good) return good;
    if (auto good = check_all("joins", definition.joins); !good) return good;
    if (std::size_t size = WorkflowToJson(definition).size(); size > limits::kWorkflowText) {
        return MakeError(
            Code::kLimit, "is {} bytes as JSON; the limit is {}", size, limits::kWorkflowText
        );
    }
    return {};
}

// ---- from definition and fields to what is done
// --------------------------------------------------

base::Json DataOf(const Json& fields) {
    const Json& about = fields["$event"];
    if (auto data = about.find("data"); data != about.end()) return *data;
    Json data = fields;
    data.erase("$event");
    return data;
}

namespace {

// The JSON text of a filled template, or of `whole` when there is none.
Result<std::string> FilledJson(
    std::string_view field,
    const std::optional<std::string>& pattern,
    const Json& fields,
    const Json& whole
) {
    if (!pattern) return base::JsonText(whole);
    auto filled = Fill(base::ReadJson(*pattern), fields, limits::kInput);
    if (!filled) return MakeError(filled.error().code, "{} {}", field, filled.error().message);
    return base::JsonText(*filled);
}

}  // namespace

WorkflowRecord ReadWorkflowText(TenantId tenant, std::string_view name, std::string_view text) {
    WorkflowRecord record;
    auto definition = WorkflowFromJson(text);
    if (definition) record.definition = std::move(*definition);
    if (!definition) record.unreadable = definition.error().message;
    record.definition.tenant = tenant;
    record.definition.name = name;
    return record;
}

Result<NewTask> MakeTask(const TaskTemplate& from, const Json& fields, const Json& whole) {
    NewTask task;
    auto input = FilledJson("input", from.input, fields, whole);
    if (!input) return input.error();
    auto unique_key = FillText(from.unique_key, fields, limits::kInput);
    if (!unique_key) {
        return MakeError(Code::kLimit, "unique_key {}", unique_key.error().message);
    }
    task.type = from.type;
    task.input = std::move(*input);
    task.queue = from.queue;
    task.priority = from.priority;
    task.timeout = from.timeout;
    task.delay = from.delay;
    task.retry = from.retry;
    task.tags = from.tags;
    task.unique_key = std::move(*unique_key);
    return task;
}

Result<Finishing> MakeFinishing(const FinishTemplate& from, const Json& fields) {
    Finishing finishing;
    auto filled_id = FillText(from.task, fields, limits::kKey);
    if (!filled_id) return MakeError(Code::kInvalid, "task {}", filled_id.error().message);
    const std::string& id = *filled_id;
    auto task = TaskId::Parse(id);
    if (!task || !task->valid()) {
        return MakeError(
            Code::kInvalid,
            "the event names no task: {} is {}",
            from.task,
            id.empty() ? "not there" : Quoted(id)
        );
    }
    finishing.task = *task;
    if (!from.token.empty()) {
        auto filled_token = FillText(from.token, fields, limits::kKey);
        if (!filled_token) {
            return MakeError(Code::kInvalid, "token {}", filled_token.error().message);
        }
        const std::string& text = *filled_token;
        auto token = LeaseToken::Parse(text);
        if (!token) {
            return MakeError(
                Code::kInvalid,
                "the event has no completion token: {} is {}",
                from.token,
                text.empty() ? "not there" : Quoted(text)
            );
        }
        finishing.token = *token;
    }
    finishing.success = from.success;
    auto output = FilledJson("output", from.output, fields, DataOf(fields));
    if (!output) return output.error();
    auto message = FillText(from.message, fields, limits::kInput);
    if (!message) return MakeError(Code::kLimit, "message {}", message.error().message);
    finishing.output = std::move(*output);
    finishing.message = std::move(*message);
    finishing.retryable = from.retryable;
    return finishing;
}

}  // namespace stint::model
