// The JSON form of a schedule, and what differs between two of them.
#include <fmt/format.h>

#include <array>
#include <span>

#include "base/json.h"
#include "base/nearest.h"
#include "base/result.h"
#include "base/text.h"
#include "model/schedule.h"
#include "model/time_text.h"

namespace stint::model {

namespace {

using base::Json;
using base::MakeError;
using base::OrderedJson;
using base::Quoted;
using Kind = TimingSpec::Kind;

constexpr std::array<std::string_view, 3> kUniquePolicies = {"return", "replace", "error"};
constexpr std::array<std::string_view, 2> kGaps = {"end", "skip"};
constexpr std::array<std::string_view, 3> kFolds = {"first", "last", "both"};
constexpr std::array<std::string_view, 3> kMisfires = {"skip", "once", "all"};
constexpr std::array<std::string_view, 4> kOverlaps = {
    "allow", "skip", "queue_one", "cancel_running"};
constexpr std::array<std::string_view, 25> kMembers = {
    "name",          "tenant",  "cron",      "zone",          "gap",           "fold",
    "every",         "anchor",  "after_end", "after_start",   "first",         "at",
    "visits",        "misfire", "overlap",   "jitter",        "misfire_grace", "misfire_window",
    "misfire_limit", "except",  "keep_runs", "instant_field", "entity_field",  "task",
    "steps"};
constexpr std::array<std::string_view, 3> kStepMembers = {"name", "tasks", "on_failure"};
constexpr std::array<std::string_view, 2> kStepFailures = {"stop", "continue"};
constexpr std::array<std::string_view, 12> kTaskMembers = {
    "type",
    "input",
    "queue",
    "priority",
    "retry",
    "max_attempts",
    "timeout",
    "tags",
    "unique",
    "on_duplicate",
    "debounce",
    "throttle"};

template <class Enum, std::size_t n>
std::string NameOf(Enum value, const std::array<std::string_view, n>& names) {
    return std::string(names.at(static_cast<std::size_t>(value)));
}

// ---- writing -----------------------------------------------------------------------------------

void WriteTiming(const ScheduleSpec& spec, OrderedJson& json) {
    const TimingSpec& timing = spec.timing;
    auto start = [&](const char* member) {
        if (timing.start) json[member] = base::Iso8601(*timing.start);
    };
    switch (timing.kind) {
        case Kind::kCron:
            json["cron"] = timing.cron;
            break;
        case Kind::kEvery:
            json["every"] = FormatDuration(timing.every);
            start("anchor");
            break;
        case Kind::kAfterEnd:
            json["after_end"] = FormatDuration(timing.after_end);
            start("first");
            break;
        case Kind::kAfterStart:
            json["after_start"] = FormatDuration(timing.every);
            start("first");
            break;
        case Kind::kOnce:
            start("at");
            break;
        case Kind::kVisits:
            json["visits"] = FormatDuration(timing.every);
            break;
    }
    if (spec.zone != "UTC") json["zone"] = spec.zone;
    if (timing.kind != Kind::kCron) return;
    if (timing.changes.gap != GapPolicy::kEndOfGap) json["gap"] = NameOf(timing.changes.gap, kGaps);
    if (timing.changes.fold != FoldPolicy::kFirst) {
        json["fold"] = NameOf(timing.changes.fold, kFolds);
    }
}

void WritePolicies(const ScheduleSpec& spec, OrderedJson& json) {
    const ScheduleSpec usual;
    auto lasting = [&](const char* member, Duration value, Duration default_value) {
        if (value != default_value) json[member] = FormatDuration(value);
    };
    if (spec.misfire.kind != usual.misfire.kind) {
        json["misfire"] = NameOf(spec.misfire.kind, kMisfires);
    }
    lasting("misfire_grace", spec.misfire.grace, usual.misfire.grace);
    lasting("misfire_window", spec.misfire.window, usual.misfire.window);
    if (spec.misfire.limit != usual.misfire.limit) json["misfire_limit"] = spec.misfire.limit;
    if (spec.overlap != UsualOverlap(spec.timing.kind))
        json["overlap"] = NameOf(spec.overlap, kOverlaps);
    lasting("jitter", spec.jitter, usual.jitter);
    if (!spec.except.empty()) json["except"] = spec.except;
    lasting("keep_runs", spec.keep_runs, usual.keep_runs);
    if (!spec.instant_field.empty()) json["instant_field"] = spec.instant_field;
    if (!spec.entity_field.empty()) json["entity_field"] = spec.entity_field;
}

OrderedJson TaskJson(const NewTask& task) {
    OrderedJson json;
    json["type"] = task.type;
    if (task.input != "null") json["input"] = base::ReadOrderedJson(task.input);
    if (task.queue) json["queue"] = *task.queue;
    if (task.priority) json["priority"] = *task.priority;
    if (task.retry) json["retry"] = base::ReadOrderedJson(RetryToJson(*task.retry));
    if (task.timeout) json["timeout"] = FormatDuration(*task.timeout);
    if (!task.tags.empty()) json["tags"] = task.tags;
    if (!task.unique_key.empty()) json["unique"] = task.unique_key;
    if (task.unique_policy != UniquePolicy::kReturnExisting) {
        json["on_duplicate"] = NameOf(task.unique_policy, kUniquePolicies);
    }
    if (task.debounce) {
        json["debounce"] = {
            {"key", task.debounce->key},
            {"wait", FormatDuration(task.debounce->wait)},
            {"max_wait", FormatDuration(task.debounce->max_wait)}};
    }
    if (task.throttle) {
        json["throttle"] = {
            {"key", task.throttle->key}, {"period", FormatDuration(task.throttle->period)}};
    }
    return json;
}

OrderedJson StepsJson(const std::vector<Step>& steps) {
    OrderedJson json = OrderedJson::array();
    for (const Step& step : steps) {
        OrderedJson tasks = OrderedJson::array();
        for (const NewTask& task : step.tasks) tasks.push_back(TaskJson(task));
        OrderedJson one;
        one["name"] = step.name;
        one["tasks"] = std::move(tasks);
        if (step.go_on) one["on_failure"] = kStepFailures[1];
        json.push_back(std::move(one));
    }
    return json;
}

OrderedJson ToJson(const ScheduleSpec& spec) {
    OrderedJson json;
    json["name"] = spec.name;
    if (spec.tenant != kDefaultTenant) json["tenant"] = spec.tenant.value();
    WriteTiming(spec, json);
    WritePolicies(spec, json);
    if (spec.steps.empty()) {
        json["task"] = TaskJson(spec.task);
    } else {
        json["steps"] = StepsJson(spec.steps);
    }
    return json;
}

// ---- reading -----------------------------------------------------------------------------------

struct Wrong {
    Error error;
};
template <class... Args>
[[noreturn]] void Refuse(fmt::format_string<Args...> format, Args&&... args) {
    throw Wrong{Error{Code::kInvalid, fmt::format(format, std::forward<Args>(args)...)}};
}

// The members of one object. Throws Wrong, which goes no further than ScheduleFromJson.
class Members {
public:
    Members(const Json& json, std::string prefix, std::span<const std::string_view> known, Time now)
        : json_(json), prefix_(std::move(prefix)), now_(now) {
        if (!json.is_object()) {
            Refuse(
                "{} is {}; it must be an object",
                prefix_.empty() ? "the schedule" : prefix_.substr(0, prefix_.size() - 1),
                Quoted(base::JsonText(json))
            );
        }
        for (const auto& [name, value] : json.items()) {
            if (std::find(known.begin(), known.end(), name) != known.end()) continue;
            auto near = base::Nearest(name, known);
            Refuse(
                "unknown member {}{}",
                Quoted(prefix_ + name),
                near.empty() ? fmt::format("; the members are {}", fmt::join(known, ", "))
                             : fmt::format("; did you mean \"{}\"?", near)
            );
        }
    }

    const Json* Find(const char* name) const {
        auto found = json_.find(name);
        return found == json_.end() ? nullptr : &*found;
    }
    void Text(const char* name, std::string& into) const {
        if (const Json* value = Find(name)) into = As<std::string>(name, *value, "a string");
    }
    void Int(const char* name, int& into) const {
        if (const Json* value = Find(name)) into = As<int>(name, *value, "a whole number");
    }
    void Texts(const char* name, std::vector<std::string>& into) const {
        const Json* value = Find(name);
        if (value != nullptr) {
            into = As<std::vector<std::string>>(name, *value, "an array of strings");
        }
    }
    bool Lasting(const char* name, Duration& into) const {
        const Json* value = Find(name);
        if (value == nullptr) return false;
        auto parsed = ParseDuration(As<std::string>(name, *value, "a duration like \"10m\""));
        if (!parsed) Refuse("{}{}: {}", prefix_, name, parsed.error().message);
        into = *parsed;
        return true;
    }
    bool At(const char* name, std::optional<Time>& into) const {
        const Json* value = Find(name);
        if (value == nullptr) return false;
        auto parsed = ParseTime(As<std::string>(name, *value, "an instant"), now_);
        if (!parsed) Refuse("{}{}: {}", prefix_, name, parsed.error().message);
        into = *parsed;
        return true;
    }
    template <class Enum, std::size_t n>
    void Choice(const char* name, Enum& into, const std::array<std::string_view, n>& names) const {
        const Json* value = Find(name);
        if (value == nullptr) return;
        auto text = As<std::string>(name, *value, "a string");
        auto found = std::find(names.begin(), names.end(), text);
        if (found == names.end()) {
            Refuse("{}{} is {}; use {}", prefix_, name, Quoted(text), fmt::join(names, ", "));
        }
        into = static_cast<Enum>(found - names.begin());
    }
    template <class T>
    T As(const char* name, const Json& value, std::string_view expected) const {
        try {
            return value.get<T>();
        } catch (const Json::exception&) {
            Refuse(
                "{}{} must be {}, not {}", prefix_, name, expected, Quoted(base::JsonText(value))
            );
        }
    }

    const std::string& prefix() const { return prefix_; }

private:
    const Json& json_;
    const std::string prefix_;
    const Time now_;
};

void ReadTiming(const Members& members, ScheduleSpec& spec) {
    struct Way {
        const char* member;
        Kind kind;
    };
    static constexpr std::array<Way, 6> kWays = {{
        {"cron", Kind::kCron},
        {"every", Kind::kEvery},
        {"after_end", Kind::kAfterEnd},
        {"after_start", Kind::kAfterStart},
        {"at", Kind::kOnce},
        {"visits", Kind::kVisits},
    }};
    const Way* chosen = nullptr;
    for (const Way& way : kWays) {
        if (members.Find(way.member) == nullptr) continue;
        if (chosen != nullptr) {
            Refuse("{} and {} are both given; give one of them", chosen->member, way.member);
        }
        chosen = &way;
    }
    if (chosen == nullptr) {
        Refuse(
            "the schedule says no time; give one of cron, every, after_end, after_start, at, "
            "visits"
        );
    }
    TimingSpec& timing = spec.timing;
    timing.kind = chosen->kind;
    members.Text("cron", timing.cron);
    members.Lasting("every", timing.every);
    members.Lasting("visits", timing.every);
    members.Lasting("after_end", timing.after_end);
    members.Lasting("after_start", timing.every);
    auto only_with = [&](const char* member, Kind kind, const char* with) {
        if (members.Find(member) != nullptr && timing.kind != kind) {
            Refuse("{} is given; it has a meaning only together with {}", member, with);
        }
    };
    only_with("anchor", Kind::kEvery, "every");
    if (timing.kind != Kind::kAfterStart) {
        only_with("first", Kind::kAfterEnd, "after_end and after_start");
    }
    only_with("gap", Kind::kCron, "cron");
    only_with("fold", Kind::kCron, "cron");
    members.At("anchor", timing.start);
    members.At("first", timing.start);
    members.At("at", timing.start);
    members.Choice("gap", timing.changes.gap, kGaps);
    members.Choice("fold", timing.changes.fold, kFolds);
    members.Text("zone", spec.zone);
}

void ReadPolicies(const Members& members, ScheduleSpec& spec) {
    members.Choice("misfire", spec.misfire.kind, kMisfires);
    members.Lasting("misfire_grace", spec.misfire.grace);
    members.Lasting("misfire_window", spec.misfire.window);
    members.Int("misfire_limit", spec.misfire.limit);
    spec.overlap = UsualOverlap(spec.timing.kind);
    members.Choice("overlap", spec.overlap, kOverlaps);
    members.Lasting("jitter", spec.jitter);
    members.Texts("except", spec.except);
    members.Lasting("keep_runs", spec.keep_runs);
    members.Text("instant_field", spec.instant_field);
    members.Text("entity_field", spec.entity_field);
}

void ReadRetry(const Members& members, NewTask& task) {
    if (const Json* retry = members.Find("retry")) {
        auto policy = RetryFromJson(base::JsonText(*retry));
        if (!policy) Refuse("{}retry: {}", members.prefix(), policy.error().message);
        task.retry = *policy;
    }
    if (members.Find("max_attempts") == nullptr) return;
    if (task.retry) {
        Refuse("{0}retry and {0}max_attempts are both given; give one of them", members.prefix());
    }
    members.Int("max_attempts", task.retry.emplace().max_attempts);
}

NewTask ReadTask(const Json& json, const std::string& prefix, Time now) {
    Members members(json, prefix, kTaskMembers, now);
    NewTask task;
    members.Text("type", task.type);
    if (const Json* input = members.Find("input")) task.input = base::JsonText(*input);
    if (members.Find("queue") != nullptr) members.Text("queue", task.queue.emplace());
    if (members.Find("priority") != nullptr) members.Int("priority", task.priority.emplace());
    ReadRetry(members, task);
    Duration timeout{};
    if (members.Lasting("timeout", timeout)) task.timeout = timeout;
    members.Texts("tags", task.tags);
    members.Text("unique", task.unique_key);
    members.Choice("on_duplicate", task.unique_policy, kUniquePolicies);
    if (const Json* debounce = members.Find("debounce")) {
        static constexpr std::array<std::string_view, 3> kKnown = {"key", "wait", "max_wait"};
        Members inner(*debounce, prefix + "debounce.", kKnown, now);
        Debounce& into = task.debounce.emplace();
        inner.Text("key", into.key);
        inner.Lasting("wait", into.wait);
        inner.Lasting("max_wait", into.max_wait);
    }
    if (const Json* throttle = members.Find("throttle")) {
        static constexpr std::array<std::string_view, 2> kKnown = {"key", "period"};
        Members inner(*throttle, prefix + "throttle.", kKnown, now);
        Throttle& into = task.throttle.emplace();
        inner.Text("key", into.key);
        inner.Lasting("period", into.period);
    }
    return task;
}

Step ReadStep(const Json& json, const std::string& prefix, Time now) {
    Members members(json, prefix, kStepMembers, now);
    Step step;
    members.Text("name", step.name);
    members.Choice("on_failure", step.go_on, kStepFailures);
    const Json* tasks = members.Find("tasks");
    if (tasks == nullptr || !tasks->is_array()) {
        Refuse("{}tasks must be an array of tasks, which run side by side", prefix);
    }
    for (std::size_t i = 0; i < tasks->size(); ++i) {
        step.tasks.push_back(ReadTask(tasks->at(i), fmt::format("{}tasks[{}].", prefix, i), now));
    }
    return step;
}

std::vector<Step> ReadSteps(const Json& json, Time now) {
    if (!json.is_array() || json.empty()) {
        Refuse("steps is {}; it must be an array of steps", Quoted(base::JsonText(json)));
    }
    std::vector<Step> steps;
    for (std::size_t i = 0; i < json.size(); ++i) {
        steps.push_back(ReadStep(json[i], fmt::format("steps[{}].", i), now));
    }
    return steps;
}

ScheduleSpec ReadSpec(const Json& json, Time now) {
    Members members(json, "", kMembers, now);
    ScheduleSpec spec;
    members.Text("name", spec.name);
    if (const Json* tenant = members.Find("tenant")) {
        spec.tenant = TenantId(members.As<std::int64_t>("tenant", *tenant, "a whole number"));
    }
    ReadTiming(members, spec);
    ReadPolicies(members, spec);
    const Json* task = members.Find("task");
    const Json* steps = members.Find("steps");
    if (task == nullptr && steps == nullptr) Refuse("task is missing; name at least its type");
    if (task != nullptr && steps != nullptr) {
        Refuse("task and steps are both given; give one of them");
    }
    if (task != nullptr) spec.task = ReadTask(*task, "task.", now);
    if (steps != nullptr) spec.steps = ReadSteps(*steps, now);
    spec.task.tenant = spec.tenant;
    return spec;
}

}  // namespace

std::string ScheduleToJson(const ScheduleSpec& spec) {
    return base::JsonText(ToJson(spec));
}

Result<ScheduleSpec> ScheduleFromJson(std::string_view json, Time now) {
    // The input of a step's task is five levels down.
    auto parsed = base::ParseJson(json, limits::kJsonDepth + 5);
    if (!parsed) return MakeError(parsed.error().code, "the schedule {}", parsed.error().message);
    try {
        return ReadSpec(*parsed, now);
    } catch (const Wrong& wrong) {
        return wrong.error;
    }
}

std::string StepsToJson(const std::vector<Step>& steps) {
    return base::JsonText(StepsJson(steps));
}

Result<std::vector<Step>> StepsFromJson(std::string_view json) {
    auto parsed = base::ParseJson(json, limits::kJsonDepth + 5);
    if (!parsed) return MakeError(parsed.error().code, "steps: {}", parsed.error().message);
    try {
        return ReadSteps(*parsed, {});
    } catch (const Wrong& wrong) {
        return wrong.error;
    }
}

std::vector<SpecDifference> Differences(const ScheduleSpec& before, const ScheduleSpec& after) {
    std::vector<SpecDifference> differences;
    // Unordered, so that the order of an input's members means nothing.
    auto compare = [&](const Json& old_json, const Json& new_json, const std::string& prefix) {
        auto text = [](const Json& json, const std::string& member) {
            auto found = json.find(member);
            return found == json.end() ? std::string() : base::JsonText(*found);
        };
        Json both = old_json;
        both.update(new_json);
        for (const auto& [member, value] : both.items()) {
            if (prefix.empty() && member == "task") continue;
            std::string was = text(old_json, member), is = text(new_json, member);
            if (was != is) differences.push_back({prefix + member, was, is});
        }
    };
    Json old_json = base::ReadJson(ScheduleToJson(before));
    Json new_json = base::ReadJson(ScheduleToJson(after));
    compare(old_json, new_json, "");
    const Json none = Json::object();
    compare(old_json.value("task", none), new_json.value("task", none), "task.");
    return differences;
}

}  // namespace stint::model
