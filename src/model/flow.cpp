#include "model/flow.h"

#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/result.h"
#include "base/text.h"
#include "model/limits.h"

namespace stint::model {

namespace {

using base::Json;
using base::MakeError;
using base::OrderedJson;
using base::Quoted;

constexpr std::array<std::string_view, 7> kKinds = {
    "run", "call", "sleep", "signal", "value", "version", "any"};
constexpr std::array<std::string_view, 4> kStates = {"open", "done", "failed", "timed_out"};

template <class Enum, std::size_t N>
std::optional<Enum> Named(const std::array<std::string_view, N>& names, std::string_view name) {
    const auto* found = std::ranges::find(names, name);
    if (found == names.end()) return std::nullopt;
    return static_cast<Enum>(found - names.begin());
}

Result<void> CheckName(std::string_view what, std::string_view name) {
    if (name.empty()) return MakeError(Code::kInvalid, "the {} has no name; give it one", what);
    if (name.size() > limits::kFlowStepName) {
        return MakeError(
            Code::kLimit,
            "the name of {} {} has {} bytes; the limit is {}",
            what,
            Quoted(name),
            name.size(),
            limits::kFlowStepName
        );
    }
    if (!base::IsUtf8(name) || base::HasControl(name)) {
        return MakeError(
            Code::kInvalid,
            "the name of {} {} is not plain text: use letters, digits, '.', '-' and '_'",
            what,
            Quoted(name)
        );
    }
    return {};
}

Result<void> CheckPayload(
    std::string_view what, std::string_view name, std::string_view json, std::size_t limit
) {
    if (json.size() > limit) {
        return MakeError(
            Code::kLimit,
            "the {} {} has {} bytes; the limit is {}: keep large things elsewhere and pass where "
            "they are",
            what,
            Quoted(name),
            json.size(),
            limit
        );
    }
    if (auto valid = base::CheckJson(json, limits::kJsonDepth); !valid) {
        return MakeError(
            valid.error().code, "the {} {} {}", what, Quoted(name), valid.error().message
        );
    }
    return {};
}

std::int64_t Micros(Time time) {
    return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}
Time FromMicros(std::int64_t micros) {
    return Time(std::chrono::microseconds(micros));
}

// For people as JSON; where that would not come back as the very text, that, too: hashes are of it.
void PutText(OrderedJson& json, const std::string& field, std::string_view text) {
    json[field] = base::ReadOrderedJson(text);
    if (base::JsonText(base::ReadJson(text)) != text) json[field + "_text"] = text;
}
std::string TakeText(const Json& json, const std::string& field) {
    auto exact = json.find(field + "_text");
    if (exact != json.end()) return exact->get<std::string>();
    return base::JsonText(json.at(field));
}

OrderedJson StepJson(const FlowStep& step) {
    OrderedJson json;
    json["no"] = step.no;
    json["name"] = step.name;
    json["occurrence"] = step.occurrence;
    json["kind"] = StepKindName(step.kind);
    json["state"] = StepStateName(step.state);
    if (!step.about.empty()) json["about"] = step.about;
    if (!step.hash.empty()) json["hash"] = step.hash;
    if (!step.result.empty()) PutText(json, "result", step.result);
    if (step.task.valid()) json["task"] = step.task.ToString();
    if (step.due_at) json["due_at_us"] = Micros(*step.due_at);
    if (step.late) json["late"] = true;
    json["at"] = base::Iso8601(step.at);
    json["at_us"] = Micros(step.at);
    if (step.ended_at) json["ended_at_us"] = Micros(*step.ended_at);
    return json;
}

FlowStep StepOf(const Json& json) {
    FlowStep step;
    step.no = json.at("no").get<int>();
    step.name = json.at("name").get<std::string>();
    step.occurrence = json.at("occurrence").get<int>();
    step.kind = StepKindNamed(json.at("kind").get<std::string>()).value();
    step.state = StepStateNamed(json.at("state").get<std::string>()).value();
    step.about = json.value("about", "");
    step.hash = json.value("hash", "");
    if (json.contains("result")) step.result = TakeText(json, "result");
    step.task = TaskId::Parse(json.value("task", "")).value_or(TaskId());
    if (json.contains("due_at_us")) step.due_at = FromMicros(json["due_at_us"]);
    step.late = json.value("late", false);
    step.at = FromMicros(json.value("at_us", std::int64_t{0}));
    if (json.contains("ended_at_us")) step.ended_at = FromMicros(json["ended_at_us"]);
    return step;
}

}  // namespace

std::string_view StepKindName(StepKind kind) {
    return kKinds.at(static_cast<std::size_t>(kind));
}
std::optional<StepKind> StepKindNamed(std::string_view name) {
    return Named<StepKind>(kKinds, name);
}
std::string_view StepStateName(StepState state) {
    return kStates.at(static_cast<std::size_t>(state));
}
std::optional<StepState> StepStateNamed(std::string_view name) {
    return Named<StepState>(kStates, name);
}

Result<void> Validate(const FlowStep& step) {
    if (auto valid = CheckName("step", step.name); !valid) return valid;
    if (step.result.empty()) return {};
    return CheckPayload("result of step", step.name, step.result, limits::kStepResult);
}

Result<void> Validate(const NewSignal& signal) {
    if (!signal.task.valid()) return MakeError(Code::kInvalid, "the signal names no task");
    if (auto valid = CheckName("signal", signal.name); !valid) return valid;
    if (signal.id.size() > limits::kKey || !base::IsUtf8(signal.id) ||
        base::HasControl(signal.id)) {
        return MakeError(
            Code::kInvalid,
            "the id {} of signal {} is not plain text of at most {} bytes",
            Quoted(signal.id),
            Quoted(signal.name),
            limits::kKey
        );
    }
    return CheckPayload("payload of signal", signal.name, signal.payload, limits::kSignalBytes);
}

std::string FailureText(const StepFailure& failure) {
    Json json = {{"message", failure.message}, {"class", failure.klass}};
    if (failure.cancelled) json["cancelled"] = true;
    return base::JsonText(json);
}

StepFailure FailureOf(std::string_view text) {
    Json json = base::ReadJson(text);
    if (!json.is_object()) return {.message = "it failed", .klass = {}};
    return {json.value("message", ""), json.value("class", ""), json.value("cancelled", false)};
}

std::string HistoryText(const FlowHistory& history, std::string_view type, std::string_view input) {
    OrderedJson json;
    json["format"] = "stint-flow-1";
    json["task"] = history.flow.task.ToString();
    json["type"] = type;
    PutText(json, "input", input);
    json["now_us"] = Micros(history.now);
    json["steps"] = OrderedJson::array();
    for (const FlowStep& step : history.steps) json["steps"].push_back(StepJson(step));
    json["signals"] = OrderedJson::array();
    for (const FlowSignal& signal : history.signals) {
        OrderedJson one;
        one["no"] = signal.no;
        one["name"] = signal.name;
        if (!signal.id.empty()) one["id"] = signal.id;
        PutText(one, "payload", signal.payload);
        one["at"] = base::Iso8601(signal.at);
        if (signal.step != 0) one["step"] = signal.step;
        json["signals"].push_back(one);
    }
    return base::JsonText(json, 2);
}

Result<ExportedFlow> ReadHistory(std::string_view text) {
    auto json = base::ParseJson(text, limits::kJsonDepth + 4);
    if (!json) return MakeError(Code::kInvalid, "the history {}", json.error().message);
    try {
        if (json->at("format") != "stint-flow-1") {
            return MakeError(
                Code::kInvalid, "the history is of a format that this program does not know"
            );
        }
        ExportedFlow flow;
        flow.type = json->at("type").get<std::string>();
        flow.input = TakeText(*json, "input");
        flow.history.flow.task =
            TaskId::Parse(json->at("task").get<std::string>()).value_or(TaskId());
        flow.history.now = FromMicros(json->value("now_us", std::int64_t{0}));
        for (const Json& step : json->at("steps")) flow.history.steps.push_back(StepOf(step));
        return flow;
    } catch (const std::exception& error) {
        return MakeError(
            Code::kInvalid,
            "the history is not what `stint flow show --history` writes: {}",
            error.what()
        );
    }
}

}  // namespace stint::model
