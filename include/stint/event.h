// Events, and workflows: what happens when something happened.
//
//     stint::Workflow flow("content-analysis");
//     flow.On("file.ingested")
//         .Match("mimeType = 'audio/mpeg' AND size > 1024")
//         .Submit("id3", kExtractId3, {{"file", "${path}"}}, {.priority = 150});
//     flow.Join("index", kExtractId3, kOcr).By("input.file").Submit(kIndex);
//     engine.PutWorkflow(flow).value();
//
//     engine.Publish("file.ingested", file, {.source = "scanner", .id = file.sha}).value();
//
// A definition is data: it is stored, and every worker of the store acts on it, whichever program
// put it there. An event is stored before Publish returns, and fires each trigger that it matches
// once, through crashes of everybody involved.
//
// Places. In inputs and in the other texts marked (t), "${owner.name}" stands for a field of the
// event's data: alone it is the field's value, whatever that is; inside a longer text it is written
// out; "$${" is "${". $event has source, id, type, time and depth.
#pragma once

#include <stint/codec.h>
#include <stint/context.h>
#include <stint/ids.h>
#include <stint/task.h>
#include <stint/time.h>
#include <stint/workflow_check.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint {

struct PublishOptions {
    std::string source = {};  // who says it
    // With the source: which event. Published again within a week it is the same event and fires
    // nothing; with other data it is refused. Empty: an event of its own each time.
    std::string id = {};
    std::optional<Time> time = {};  // when it happened; none = now
    // The handler that publishes it; null: the one that this thread runs, if it runs one. Events
    // that follow from each other through tasks are counted: a circle ends with a refusal. To be
    // said by a handler that publishes on a thread of its own, and by one of a batch, for which
    // otherwise the newest task of the batch stands.
    const Context* by = nullptr;
    // The same by its id, for a program that a task has started: it is in STINT_TASK_ID of a
    // command's environment.
    TaskId by_task = {};
    // The event stays in this process: what it fires is done before Publish returns, and only that
    // is stored, not its data. Its number is none. The limits are those of other events.
    bool in_process = false;
    std::optional<TenantId> tenant = {};
};

struct EventInfo {
    EventNo no;
    TenantId tenant = kDefaultTenant;
    std::string source;
    std::string id;
    std::string type;
    std::string data;   // JSON
    std::string state;  // "pending", "done", "unwanted" (no trigger matched), "refused"
    std::string reason;
    int depth = 0;
    Time time{};
    Time published_at{};
    std::optional<Time> processed_at;
};

// What a trigger or a join did about an event.
struct FiringInfo {
    EventNo event;
    std::string workflow;
    std::string trigger;
    // "submitted", "existing" (a unique key), "finished", "joined", "absorbed", "refused"; or, with
    // neither workflow nor trigger, "followed": the handler of a task that follows from the event
    // submitted this one
    std::string what;
    TaskId task;
    std::string message;  // why refused
    Time at{};
};

// Why an event, or a round of a join, does not go on.
struct EventObstacle {
    EventNo event;         // that is pending; none: see the workflow
    std::string workflow;  // and its trigger or join, where it is one's
    std::string trigger;
    std::string key;   // of a join's round
    std::string type;  // of tasks that no running worker handles
    std::string why;
};

// One round of a join for one key.
struct JoinInfo {
    std::int64_t no = 0;  // later rounds have higher numbers
    std::string workflow;
    std::string join;
    std::string key;
    int generation = 0;
    std::string state;                  // "open", "fired", "expired", "refused"
    std::vector<std::string> complete;  // types of the members that are
    TaskId task;                        // that it created
    std::string message;
    Time created_at{};
    Time expires_at{};
};

struct WorkflowInfo {
    std::string name;
    int version = 0;
    std::string definition;  // JSON
    Time updated_at{};
    std::string updated_by;
};

// How the created task differs from its type's defaults.
struct TriggerOptions {
    std::optional<std::string> queue = {};
    std::optional<int> priority = {};
    std::optional<Duration> timeout = {};
    std::optional<Duration> delay = {};
    std::vector<std::string> tags = {};
    std::string unique_key = {};  // (t)
};

// The input, member by member: name and JSON value, texts are (t).
using InputMap = std::vector<std::pair<std::string, nlohmann::json>>;

enum class JoinPolicy : std::uint8_t {
    // A key fires once, as long as the join is part of its workflow with this policy; what comes
    // for
    // the key afterwards is absorbed. Each key that has fired is remembered: give it a bound.
    kOnce,
    kEach,    // every complete round fires; the first completion of a type counts
    kLatest,  // the same, but the last completion counts
};

// A workflow under construction. What it cannot be throws std::invalid_argument where that is
// known here; the rest is said by Engine::PutWorkflow.
class Workflow {
public:
    explicit Workflow(std::string name) { definition_["name"] = std::move(name); }

    class OnEvent {
    public:
        // Only events that match: the language of `stint help match`.
        OnEvent& Match(std::string expression) {
            match_ = std::move(expression);
            return *this;
        }
        // Submits the task. Without a map the event's data is its input.
        template <class In, class Out>
        void Submit(
            const std::string& name,
            const Task<In, Out>& task,
            const InputMap& input = {},
            const TriggerOptions& options = {}
        ) {
            CheckInput<In>(task.name, input, event_);
            if (input.empty()) CheckWhole<In>(task.name, event_);
            Add(name, "submit", TaskJson(task.name, input, options));
        }
        // Finishes the background task whose id is in a field. Without its completion token it is
        // an override, which the audit log says.
        struct Finishing {
            std::string task = {};            // (t)
            std::string token = {};           // (t)
            nlohmann::json output = nullptr;  // (t); null = the event's data
            std::string message = {};         // (t) of a failure
            bool retryable = true;
        };
        void Complete(const std::string& name, const Finishing& what) {
            nlohmann::json json = {{"task", what.task}};
            if (!what.token.empty()) json["token"] = what.token;
            if (!what.output.is_null()) json["output"] = what.output;
            Add(name, "complete", std::move(json));
        }
        void Fail(const std::string& name, const Finishing& what) {
            nlohmann::json json = {{"task", what.task}, {"retryable", what.retryable}};
            if (!what.token.empty()) json["token"] = what.token;
            if (!what.message.empty()) json["message"] = what.message;
            Add(name, "fail", std::move(json));
        }

    private:
        friend class Workflow;
        OnEvent(nlohmann::json& definition, std::string type, detail::Shape event = {})
            : definition_(definition), type_(std::move(type)), event_(std::move(event)) {}
        void Add(const std::string& name, const char* action, nlohmann::json what) {
            nlohmann::json trigger = {{"name", name}, {"on", type_}};
            if (!match_.empty()) trigger["match"] = match_;
            trigger[action] = std::move(what);
            definition_["triggers"].push_back(std::move(trigger));
        }

        nlohmann::json& definition_;
        std::string type_;
        detail::Shape event_;
        std::string match_;
    };
    OnEvent On(std::string event_type) { return OnEvent(definition_, std::move(event_type)); }
    // With the type of its data: fields that it does not have, and members of inputs that do not
    // take them, are refused where the trigger is written.
    template <class Event>
    OnEvent On(std::string event_type) {
        return OnEvent(definition_, std::move(event_type), detail::Shape::Of<Event>());
    }

    class JoinOf {
    public:
        // The field that members have in common: input.…, output.…, id.
        JoinOf& By(std::string field) {
            join_["key"] = std::move(field);
            return *this;
        }
        JoinOf& Policy(JoinPolicy policy) {
            constexpr const char* kNames[] = {"once", "each", "latest"};
            join_["policy"] = kNames[static_cast<int>(policy)];
            return *this;
        }
        // From the first member on; then it expires, visibly. Seven days if not said.
        JoinOf& Within(Duration time) {
            join_["ttl"] = std::to_string(time.count()) + "ms";
            return *this;
        }
        // Without a map the input is {"key", "generation", "outputs": {type: output}, "tasks":
        // {type: id}}, which are also the fields of the map.
        template <class In, class Out>
        void Submit(
            const Task<In, Out>& task,
            const InputMap& input = {},
            const TriggerOptions& options = {}
        ) {
            CheckInput<In>(task.name, input, {});
            join_["submit"] = TaskJson(task.name, input, options);
            definition_["joins"].push_back(std::move(join_));
        }

    private:
        friend class Workflow;
        JoinOf(nlohmann::json& definition, nlohmann::json join)
            : definition_(definition), join_(std::move(join)) {}
        nlohmann::json& definition_;
        nlohmann::json join_;
    };
    // One task when tasks of all these types are complete for the same key.
    template <class... In, class... Out>
    requires(sizeof...(In) >= 2) JoinOf
        Join(const std::string& name, const Task<In, Out>&... members) {
        nlohmann::json join = {{"name", name}, {"types", nlohmann::json::array()}};
        (join["types"].push_back(std::string(members.name)), ...);
        return JoinOf(definition_, std::move(join));
    }

    std::string ToJson() const { return definition_.dump(); }

private:
    static nlohmann::json TaskJson(
        std::string_view type, const InputMap& input, const TriggerOptions& options
    ) {
        nlohmann::json json = {{"type", std::string(type)}};
        for (const auto& [name, value] : input) json["input"][name] = value;
        if (options.queue) json["queue"] = *options.queue;
        if (options.priority) json["priority"] = *options.priority;
        if (options.timeout) json["timeout"] = std::to_string(options.timeout->count()) + "ms";
        if (options.delay) json["delay"] = std::to_string(options.delay->count()) + "ms";
        if (!options.tags.empty()) json["tags"] = options.tags;
        if (!options.unique_key.empty()) json["unique_key"] = options.unique_key;
        return json;
    }

    // A member that the input's type does not have, or a value that it does not take, is a mistake.
    template <class In>
    static void CheckInput(
        std::string_view task, const InputMap& input, const detail::Shape& event
    ) {
        const detail::Shape shape = detail::Shape::Of<In>();
        const detail::InputCheck check(task, shape, event);
        for (const auto& [name, value] : input) check.Member(name, value);
    }
    template <class In>
    static void CheckWhole(std::string_view task, const detail::Shape& event) {
        const detail::Shape shape = detail::Shape::Of<In>();
        detail::InputCheck(task, shape, event).Whole();
    }

    nlohmann::json definition_;
};

}  // namespace stint
