// Definitions as JSON. What is not known is refused: a misspelt member would be a trigger that does
// something else than what was written.
#include <algorithm>
#include <functional>
#include <span>

#include "base/nearest.h"
#include "base/result.h"
#include "base/text.h"
#include "model/event/workflow.h"
#include "model/time_text.h"

namespace stint::model {

namespace {

using base::Json;
using base::OrderedJson;
using base::Quoted;

// Reads the members of one object; the first problem is the answer.
class Members {
public:
    Members(const Json& object, std::string place, Result<void>& result)
        : object_(object), place_(std::move(place)), result_(result) {
        if (!object_.is_object()) Wrong("", "is not an object");
    }
    ~Members() { CheckKnown(); }
    Members(const Members&) = delete;
    Members& operator=(const Members&) = delete;

    // Once all that there may be has been asked for: nothing else is there.
    void CheckKnown() {
        if (!result_ || !object_.is_object()) return;
        for (const auto& [name, value] : object_.items()) {
            if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
            std::string_view meant = base::Nearest(name, std::span<const std::string_view>(known_));
            std::string list;
            for (std::string_view one : known_) (list += list.empty() ? "" : ", ") += one;
            Wrong(
                name,
                meant.empty() ? fmt::format("is not known here; there are {}", list)
                              : fmt::format("is not known here; do you mean {}?", meant)
            );
            return;
        }
    }
    bool Has(std::string_view name) {
        known_.push_back(name);
        return result_ && object_.is_object() && object_.contains(name);
    }
    const Json& operator[](std::string_view name) const { return *object_.find(name); }

    void Text(std::string_view name, std::string& into) {
        if (!Has(name)) return;
        const Json& value = (*this)[name];
        if (!value.is_string()) return Wrong(name, "is not a text");
        into = value.get<std::string>();
    }
    void Text(std::string_view name, std::optional<std::string>& into) {
        std::string text;
        Text(name, text);
        if (!text.empty()) into = text;
    }
    void Flag(std::string_view name, bool& into) {
        if (!Has(name)) return;
        const Json& value = (*this)[name];
        if (!value.is_boolean()) return Wrong(name, "is neither true nor false");
        into = value.get<bool>();
    }
    void Number(std::string_view name, std::optional<int>& into) {
        if (!Has(name)) return;
        const Json& value = (*this)[name];
        if (!value.is_number_integer()) return Wrong(name, "is not a whole number");
        into = static_cast<int>(
            std::clamp<std::int64_t>(value.get<std::int64_t>(), INT32_MIN, INT32_MAX)
        );
    }
    void Time(std::string_view name, std::optional<Duration>& into) {
        std::string text;
        Text(name, text);
        if (text.empty()) return;
        auto duration = ParseDuration(text);
        if (!duration) return Wrong(name, duration.error().message);
        into = *duration;
    }
    void Texts(std::string_view name, std::vector<std::string>& into) {
        if (!Has(name)) return;
        const Json& value = (*this)[name];
        bool good = value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& x) {
                        return x.is_string();
                    });
        if (!good) return Wrong(name, "is not a list of texts");
        into = value.get<std::vector<std::string>>();
    }
    // Any JSON.
    void Value(std::string_view name, std::optional<std::string>& into) {
        if (Has(name)) into = base::JsonText((*this)[name]);
    }
    void Each(
        std::string_view name,
        const std::function<void(const Json&, const std::string& place)>& read
    ) {
        if (!Has(name)) return;
        const Json& list = (*this)[name];
        if (!list.is_array()) return Wrong(name, "is not a list");
        for (std::size_t i = 0; i < list.size() && result_; ++i) {
            read(list[i], fmt::format("{}[{}]", Place(name), i));
        }
    }
    std::string Place(std::string_view name) const {
        if (place_.empty()) return std::string(name);
        return name.empty() ? place_ : fmt::format("{}.{}", place_, name);
    }
    void Wrong(std::string_view name, const std::string& what) {
        if (!result_) return;
        std::string place = Place(name);
        result_ = base::MakeError(
            Code::kInvalid, "{} {}", place.empty() ? "the definition" : place, what
        );
    }

private:
    const Json& object_;
    const std::string place_;
    Result<void>& result_;
    std::vector<std::string_view> known_;
};

TaskTemplate ReadTask(const Json& json, const std::string& place, Result<void>& result) {
    TaskTemplate task;
    Members members(json, place, result);
    members.Text("type", task.type);
    members.Value("input", task.input);
    members.Text("queue", task.queue);
    members.Number("priority", task.priority);
    members.Time("timeout", task.timeout);
    members.Time("delay", task.delay);
    std::optional<std::string> retry;
    members.Value("retry", retry);
    if (retry) {
        auto policy = RetryFromJson(*retry);
        policy ? void(task.retry = *policy) : members.Wrong("retry", policy.error().message);
    }
    members.Texts("tags", task.tags);
    members.Text("unique_key", task.unique_key);
    return task;
}

FinishTemplate ReadFinish(
    const Json& json, bool success, const std::string& place, Result<void>& result
) {
    FinishTemplate finish;
    finish.success = success;
    Members members(json, place, result);
    members.Text("task", finish.task);
    members.Text("token", finish.token);
    if (success) {
        members.Value("output", finish.output);
    } else {
        members.Text("message", finish.message);
        members.Flag("retryable", finish.retryable);
    }
    return finish;
}

Trigger ReadTrigger(const Json& json, const std::string& place, Result<void>& result) {
    Trigger trigger;
    Members members(json, place, result);
    members.Text("name", trigger.name);
    members.Text("on", trigger.on);
    members.Text("match", trigger.match);
    int actions = 0;
    for (std::string_view action : {"submit", "complete", "fail"}) {
        if (!members.Has(action)) continue;
        ++actions;
        std::string inner = members.Place(action);
        if (action == "submit") {
            trigger.action = ReadTask(members[action], inner, result);
        } else {
            trigger.action = ReadFinish(members[action], action == "complete", inner, result);
        }
    }
    members.CheckKnown();
    if (actions != 1) members.Wrong("", "needs one of submit, complete and fail");
    return trigger;
}

Join ReadJoin(const Json& json, const std::string& place, Result<void>& result) {
    Join join;
    Members members(json, place, result);
    members.Text("name", join.name);
    members.Texts("types", join.types);
    members.Text("key", join.key);
    std::optional<std::string> policy;
    members.Text("policy", policy);
    if (policy) {
        auto named = JoinPolicyNamed(*policy);
        named ? void(join.policy = *named)
              : members.Wrong("policy", "is " + Quoted(*policy) + "; use once, each or latest");
    }
    std::optional<Duration> ttl;
    members.Time("ttl", ttl);
    if (ttl) join.ttl = *ttl;
    if (members.Has("submit")) {
        join.submit = ReadTask(members["submit"], members.Place("submit"), result);
    } else {
        members.Wrong("submit", "is not there; name the task that the join creates");
    }
    return join;
}

// ---- writing ----

OrderedJson Written(const TaskTemplate& task) {
    OrderedJson json;
    json["type"] = task.type;
    if (task.input) json["input"] = base::ReadOrderedJson(*task.input);
    if (task.queue) json["queue"] = *task.queue;
    if (task.priority) json["priority"] = *task.priority;
    if (task.timeout) json["timeout"] = FormatDuration(*task.timeout);
    if (task.delay) json["delay"] = FormatDuration(*task.delay);
    if (task.retry) json["retry"] = base::ReadOrderedJson(RetryToJson(*task.retry));
    if (!task.tags.empty()) json["tags"] = task.tags;
    if (!task.unique_key.empty()) json["unique_key"] = task.unique_key;
    return json;
}

OrderedJson Written(const FinishTemplate& finish) {
    OrderedJson json;
    json["task"] = finish.task;
    if (!finish.token.empty()) json["token"] = finish.token;
    if (finish.success) {
        if (finish.output) json["output"] = base::ReadOrderedJson(*finish.output);
        return json;
    }
    if (!finish.message.empty()) json["message"] = finish.message;
    if (!finish.retryable) json["retryable"] = false;
    return json;
}

OrderedJson Written(const Trigger& trigger) {
    OrderedJson json;
    json["name"] = trigger.name;
    json["on"] = trigger.on;
    if (!trigger.match.empty()) json["match"] = trigger.match;
    if (const auto* task = std::get_if<TaskTemplate>(&trigger.action)) {
        json["submit"] = Written(*task);
    } else {
        const auto& finish = std::get<FinishTemplate>(trigger.action);
        json[finish.success ? "complete" : "fail"] = Written(finish);
    }
    return json;
}

OrderedJson Written(const Join& join) {
    OrderedJson json;
    json["name"] = join.name;
    json["types"] = join.types;
    json["key"] = join.key;
    json["policy"] = JoinPolicyName(join.policy);
    json["ttl"] = FormatDuration(join.ttl);
    json["submit"] = Written(join.submit);
    return json;
}

}  // namespace

Result<WorkflowDefinition> WorkflowFromJson(std::string_view text) {
    auto json = base::ParseJson(text, limits::kJsonDepth);
    if (!json) return Error{json.error().code, "the definition " + json.error().message};
    WorkflowDefinition definition;
    Result<void> result;
    {
        Members members(*json, "", result);
        members.Text("name", definition.name);
        members.Each("triggers", [&](const Json& one, const std::string& place) {
            definition.triggers.push_back(ReadTrigger(one, place, result));
        });
        members.Each("joins", [&](const Json& one, const std::string& place) {
            definition.joins.push_back(ReadJoin(one, place, result));
        });
    }
    if (result) result = Validate(definition);
    if (!result) return result.error();
    return definition;
}

std::string WorkflowToJson(const WorkflowDefinition& definition, int indent) {
    OrderedJson json;
    json["name"] = definition.name;
    if (!definition.triggers.empty()) json["triggers"] = OrderedJson::array();
    for (const Trigger& trigger : definition.triggers) json["triggers"].push_back(Written(trigger));
    if (!definition.joins.empty()) json["joins"] = OrderedJson::array();
    for (const Join& join : definition.joins) json["joins"].push_back(Written(join));
    return base::JsonText(json, indent);
}

}  // namespace stint::model
