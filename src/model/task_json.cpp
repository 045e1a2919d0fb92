#include "model/task_json.h"

namespace stint::model {

namespace {

using base::Json;

std::int64_t Micros(Time time) {
    return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}
Time TimeOf(const Json& micros) {
    return Time(std::chrono::microseconds(micros.get<std::int64_t>()));
}
Duration DurationOf(const Json& milliseconds) {
    return Duration(milliseconds.get<std::int64_t>());
}

void WriteKeys(const NewTask& task, Json& json) {
    if (!task.idempotency_key.empty()) json["idempotency_key"] = task.idempotency_key;
    if (!task.unique_key.empty()) {
        json["unique_key"] = task.unique_key;
        json["unique_policy"] = static_cast<int>(task.unique_policy);
    }
    if (task.debounce) {
        json["debounce"] = {
            {"key", task.debounce->key},
            {"wait", task.debounce->wait.count()},
            {"max", task.debounce->max_wait.count()}};
    }
    if (task.throttle) {
        json["throttle"] = {{"key", task.throttle->key}, {"period", task.throttle->period.count()}};
    }
}

void ReadKeys(const Json& json, NewTask& task) {
    task.idempotency_key = json.value("idempotency_key", "");
    task.unique_key = json.value("unique_key", "");
    task.unique_policy = static_cast<UniquePolicy>(json.value("unique_policy", 0));
    if (json.contains("debounce")) {
        const Json& debounce = json["debounce"];
        task.debounce = Debounce{
            debounce.at("key").get<std::string>(),
            DurationOf(debounce.at("wait")),
            DurationOf(debounce.at("max"))};
    }
    if (json.contains("throttle")) {
        const Json& throttle = json["throttle"];
        task.throttle =
            Throttle{throttle.at("key").get<std::string>(), DurationOf(throttle.at("period"))};
    }
}

void WritePlacement(const NewTask& task, Json& json) {
    if (task.needs) json["needs"] = ToJson(*task.needs);
    if (task.labels) json["labels"] = *task.labels;
    if (task.order_key.empty()) return;
    json["order_key"] = task.order_key;
    json["on_failed_head"] = static_cast<int>(task.on_failed_head);
}

void ReadPlacement(const Json& json, NewTask& task) {
    if (json.contains("needs")) task.needs = NeedsFromJson(json["needs"]);
    if (json.contains("labels")) task.labels = json["labels"].get<std::vector<std::string>>();
    task.order_key = json.value("order_key", "");
    task.on_failed_head = static_cast<OnFailedHead>(json.value("on_failed_head", 0));
}

}  // namespace

Json ToJson(const Needs& needs) {
    Json json = Json::array();
    for (const Need& need : needs) json.push_back({need.resource, need.units});
    return json;
}

Needs NeedsFromJson(const Json& json) {
    Needs needs;
    for (const Json& need : json) {
        needs.push_back({need.at(0).get<std::string>(), need.at(1).get<int>()});
    }
    return needs;
}

Json ToJson(const WaitOn& wait) {
    Json on = Json::array();
    for (TaskId task : wait.on) on.push_back(task.value());
    return {
        {"on", on},
        {"on_failure", static_cast<int>(wait.on_failure)},
        {"any", wait.any},
        {"need_success", wait.need_success}};
}

WaitOn WaitOnFromJson(const Json& json) {
    WaitOn wait;
    for (const Json& task : json.at("on")) wait.on.emplace_back(task.get<std::int64_t>());
    wait.on_failure = static_cast<OnFailure>(json.at("on_failure").get<int>());
    wait.any = json.at("any").get<bool>();
    wait.need_success = json.at("need_success").get<bool>();
    return wait;
}

Json ToJson(const NewTask& task) {
    Json json = {
        {"id", task.id.value()},
        {"tenant", task.tenant.value()},
        {"type", task.type},
        {"input", task.input},
        {"parent", task.parent.value()},
        {"actor", task.actor},
        {"tags", task.tags},
    };
    if (task.queue) json["queue"] = *task.queue;
    if (task.priority) json["priority"] = *task.priority;
    if (task.retry) json["retry"] = RetryToJson(*task.retry);
    if (task.timeout) json["timeout"] = task.timeout->count();
    if (task.delay) json["delay"] = task.delay->count();
    if (task.run_at) json["run_at"] = Micros(*task.run_at);
    if (task.start_by) json["start_by"] = Micros(*task.start_by);
    if (task.after) json["after"] = ToJson(*task.after);
    WriteKeys(task, json);
    WritePlacement(task, json);
    return json;
}

NewTask NewTaskFromJson(const Json& json) {
    NewTask task;
    task.id = TaskId(json.at("id").get<std::int64_t>());
    task.tenant = TenantId(json.at("tenant").get<std::int64_t>());
    task.type = json.at("type").get<std::string>();
    task.input = json.at("input").get<std::string>();
    task.parent = TaskId(json.at("parent").get<std::int64_t>());
    task.actor = json.at("actor").get<std::string>();
    task.tags = json.at("tags").get<std::vector<std::string>>();
    if (json.contains("queue")) task.queue = json["queue"].get<std::string>();
    if (json.contains("priority")) task.priority = json["priority"].get<int>();
    if (json.contains("retry")) {
        auto retry = RetryFromJson(json["retry"].get<std::string>());
        if (retry) task.retry = *retry;
    }
    if (json.contains("timeout")) task.timeout = DurationOf(json["timeout"]);
    if (json.contains("delay")) task.delay = DurationOf(json["delay"]);
    if (json.contains("run_at")) task.run_at = TimeOf(json["run_at"]);
    if (json.contains("start_by")) task.start_by = TimeOf(json["start_by"]);
    if (json.contains("after")) task.after = WaitOnFromJson(json["after"]);
    ReadKeys(json, task);
    ReadPlacement(json, task);
    return task;
}

}  // namespace stint::model
