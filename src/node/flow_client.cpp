#include "node/flow_client.h"

#include <fmt/format.h>

#include "base/result.h"
#include "base/text.h"
#include "node/ask.h"

namespace stint::node {

using base::MakeError;
using base::OrderedJson;

namespace {

using model::FlowStep;
using model::StepKind;
using model::StepState;

std::string Until(const std::optional<Time>& time) {
    if (!time) return {};
    return " until " + base::Iso8601(std::chrono::floor<std::chrono::seconds>(*time));
}

// Of the steps that are not over, in words.
std::string WaitsFor(const model::TaskRecord& task, const model::FlowHistory& history) {
    if (IsTerminal(task.state) || task.state == model::State::kInProgress) return {};
    std::string words;
    auto add = [&](const std::string& one) { (words += words.empty() ? "" : ", ") += one; };
    for (const FlowStep& step : history.steps) {
        if (step.state != StepState::kOpen) continue;
        if (step.kind == StepKind::kSleep && step.due_at > history.now) {
            add("sleep" + Until(step.due_at));
        } else if (step.kind == StepKind::kSignal) {
            add(fmt::format("signal {}{}", base::Quoted(step.about), Until(step.due_at)));
        } else if (step.kind == StepKind::kCall && task.state == model::State::kBlocked) {
            add(fmt::format("task {} ({})", step.task.value(), step.about));
        }
    }
    return words;
}

// The same without its steps.
std::string WaitsFor(const model::FlowRecord& flow, const model::TaskRecord& task) {
    if (IsTerminal(task.state)) return {};
    if (!flow.awaits.empty()) return "signal " + base::Quoted(flow.awaits);
    if (task.state == model::State::kBlocked) return fmt::format("{} tasks", task.waiting_for);
    bool sleeps = task.state == model::State::kOpen && task.attempt == 0 && flow.steps > 0;
    return sleeps ? Until(task.due_at).substr(1) : std::string();
}

}  // namespace

void FlowClient::Hint(const std::string& queue) {
    wake::Hint hint{wake::Hint::Kind::kTaskAvailable, queue, {}};
    wake_.Signal({&hint, 1});
}

Result<std::string_view> FlowClient::Signal(const model::NewSignal& signal) {
    using Kind = store::SignalReply::Kind;
    store::SignalReply reply = Ask([&] { return store_.Flows().Signal(signal); });
    switch (reply.kind) {
        case Kind::kAccepted:
            if (reply.woken) Hint(reply.queue);
            return std::string_view(reply.woken ? "woken" : "accepted");
        case Kind::kExisting:
            return std::string_view("existing");
        case Kind::kNotFound:
            return Error{Code::kNotFound, reply.message};
        case Kind::kConflict:
        case Kind::kFinished:
            return Error{Code::kConflict, reply.message};
        case Kind::kFull:
            return Error{Code::kLimit, reply.message};
        case Kind::kInvalid:
            break;
    }
    return Error{Code::kInvalid, reply.message};
}

// The store may know flows whose tasks are kept no longer: they are passed over, however many.
std::vector<FlowView> FlowClient::List(const store::FlowListRequest& request) {
    return Ask([&] {
        std::vector<FlowView> views;
        store::FlowListRequest page = request;
        while (page.limit > 0) {
            std::vector<model::FlowRecord> flows = store_.Flows().List(page);
            if (flows.empty()) break;
            page.before = flows.back().task;
            for (model::FlowRecord& flow : flows) {
                auto task = store_.Get(flow.task);
                if (!task) continue;
                std::string waits = WaitsFor(flow, *task);
                views.push_back({std::move(flow), std::move(*task), std::move(waits)});
            }
            page.limit = request.limit - static_cast<int>(views.size());
        }
        return views;
    });
}

Result<FlowClient::Details> FlowClient::Get(TaskId task) {
    return Ask([&]() -> Result<Details> {
        auto record = store_.Get(task);
        if (!record) return MakeError(Code::kNotFound, "there is no task {}", task.value());
        auto history = store_.Flows().Get(task);
        if (!history) {
            return MakeError(
                Code::kNotFound,
                "task {} ({}) is no flow that has begun",
                task.value(),
                record->type
            );
        }
        std::string waits = WaitsFor(*record, *history);
        model::FlowRecord flow = history->flow;
        return Details{
            {std::move(flow), std::move(*record), std::move(waits)}, std::move(*history)};
    });
}

Result<std::string> FlowClient::History(TaskId task) {
    auto details = Get(task);
    if (!details) return details.error();
    const model::TaskRecord& record = details->view.task;
    return HistoryText(details->history, record.type, record.input);
}

Result<FlowClient::Forked> FlowClient::Fork(
    TaskId task, std::string_view step, int occurrence, std::string_view actor
) {
    return Ask([&]() -> Result<Forked> {
        auto record = store_.Get(task);
        if (!record) return MakeError(Code::kNotFound, "there is no task {}", task.value());
        store::FlowFork fork;
        fork.from = task;
        fork.step = step;
        fork.occurrence = occurrence;
        fork.task.tenant = record->tenant;
        fork.task.type = record->type;
        fork.task.input = record->input;
        fork.task.queue = record->queue;
        fork.task.priority = record->priority;
        fork.task.retry = record->retry;
        fork.task.timeout = record->timeout;
        fork.task.tags = record->tags;
        fork.task.needs = record->placement.needs;
        fork.task.labels = record->placement.labels;
        fork.task.order_key = record->placement.order_key;
        fork.task.on_failed_head = record->placement.on_failed_head;
        fork.task.actor = actor;
        store::ForkReply reply = store_.Flows().Fork(fork);
        if (reply.kind == store::ForkReply::Kind::kNotFound) {
            return Error{Code::kNotFound, reply.message};
        }
        if (reply.kind == store::ForkReply::Kind::kRefused) {
            return Error{Code::kConflict, reply.message};
        }
        if (reply.due_now) Hint(reply.queue);
        return Forked{reply.task, reply.steps};
    });
}

// ---- as JSON -----------------------------------------------------------------------------------

OrderedJson ToJson(const FlowView& view) {
    OrderedJson json;
    json["task"] = view.flow.task.ToString();
    json["type"] = view.task.type;
    json["state"] = StateName(view.task.state);
    json["reason"] = view.task.reason;
    if (view.task.error) json["error"] = view.task.error->message;
    json["steps"] = view.flow.steps;
    json["waiting_signals"] = view.flow.waiting;
    json["waits_for"] = view.waits_for;
    json["started_at"] = base::Iso8601(view.flow.started_at);
    return json;
}

OrderedJson ToJson(const FlowStep& step) {
    OrderedJson json;
    json["no"] = step.no;
    json["name"] = step.name;
    json["occurrence"] = step.occurrence;
    json["kind"] = StepKindName(step.kind);
    json["state"] = StepStateName(step.state);
    json["about"] = step.about;
    json["task"] = nullptr;
    if (step.task.valid()) json["task"] = step.task.ToString();
    json["due_at"] = nullptr;
    if (step.due_at) json["due_at"] = base::Iso8601(*step.due_at);
    json["at"] = base::Iso8601(step.at);
    json["ended_at"] = nullptr;
    if (step.ended_at) json["ended_at"] = base::Iso8601(*step.ended_at);
    json["result"] = nullptr;
    if (!step.result.empty()) json["result"] = base::ReadOrderedJson(step.result);
    return json;
}

OrderedJson ToJson(const model::FlowSignal& signal) {
    OrderedJson json;
    json["name"] = signal.name;
    json["id"] = signal.id;
    json["at"] = base::Iso8601(signal.at);
    json["step"] = nullptr;
    if (signal.step != 0) json["step"] = signal.step;
    json["payload"] = base::ReadOrderedJson(signal.payload);
    return json;
}

}  // namespace stint::node
