// Flows of stint::Engine, and their replay in tests.
#include <stint/replay.h>

#include "base/result.h"
#include "base/text.h"
#include "engine/flow/journal.h"
#include "node/client.h"
#include "node/engine_impl.h"
#include "node/flow_client.h"

namespace stint {

struct Flows::Body {
    store::Store& store;
    node::FlowClient client;
    TenantId tenant;
};

namespace {

template <class Work>
auto Try(Work work) -> decltype(work()) {
    try {
        return work();
    } catch (const node::StoreError& error) {
        return Error{error.code(), error.what()};
    }
}

FlowInfo ToPublic(const node::FlowView& view) {
    FlowInfo info;
    info.task = view.flow.task;
    info.type = view.task.type;
    info.state = StateName(view.task.state);
    info.reason = view.task.reason;
    if (view.task.error && view.task.state == model::State::kDead) {
        info.reason = view.task.error->message;
    }
    info.steps = view.flow.steps;
    info.waiting_signals = view.flow.waiting;
    info.waits_for = view.waits_for;
    info.started_at = view.flow.started_at;
    return info;
}

FlowStepInfo ToPublic(const model::FlowStep& step) {
    FlowStepInfo info;
    info.no = step.no;
    info.name = step.name;
    info.occurrence = step.occurrence;
    info.kind = StepKindName(step.kind);
    info.state = StepStateName(step.state);
    info.about = step.about;
    info.result = step.result;
    info.task = step.task;
    info.due_at = step.due_at;
    info.at = step.at;
    info.ended_at = step.ended_at;
    return info;
}

}  // namespace

void Engine::BindFlow(
    std::string_view name, const TaskDefaults& defaults, detail::ErasedFlow flow
) {
    if (defaults.isolation.enabled) {
        throw std::invalid_argument(fmt::format(
            "{} is a flow and cannot be isolated: it runs in the worker itself; isolate the tasks "
            "that it calls",
            name
        ));
    }
    auto shared = std::make_shared<detail::ErasedFlow>(std::move(flow));
    Bind(name, defaults, [shared](Context& context, std::string_view input) {
        return detail::PlayFlow(context, input, *shared);
    });
}

Flows Engine::flows() {
    return Flows(std::make_shared<Flows::Body>(Flows::Body{
        *impl_->store, node::FlowClient(*impl_->store, *impl_->wake), impl_->options.tenant}));
}

Result<void> Flows::SignalJson(
    TaskId task, std::string_view name, std::string_view json, const SignalOptions& options
) {
    model::NewSignal signal;
    signal.task = task;
    signal.name = name;
    signal.payload = json;
    signal.id = options.id;
    signal.actor = options.actor.empty() ? "engine" : options.actor;
    return Try([&]() -> Result<void> {
        auto told = body_->client.Signal(signal);
        if (!told) return told.error();
        return {};
    });
}

Result<std::vector<FlowInfo>> Flows::List(std::optional<TaskId> before, int limit) {
    return Try([&]() -> Result<std::vector<FlowInfo>> {
        store::FlowListRequest request;
        request.tenant = body_->tenant;
        request.before = before;
        request.limit = std::clamp(limit, 1, model::limits::kListPage);
        std::vector<FlowInfo> flows;
        for (const node::FlowView& view : body_->client.List(request)) {
            flows.push_back(ToPublic(view));
        }
        return flows;
    });
}

Result<FlowDetails> Flows::Get(TaskId task) {
    return Try([&]() -> Result<FlowDetails> {
        auto found = body_->client.Get(task);
        if (!found) return found.error();
        FlowDetails details;
        details.flow = ToPublic(found->view);
        for (const auto& step : found->history.steps) details.steps.push_back(ToPublic(step));
        for (const auto& signal : found->history.signals) {
            details.signals.push_back(
                {signal.name, signal.id, signal.payload, signal.at, signal.step}
            );
        }
        return details;
    });
}

Result<std::string> Flows::History(TaskId task) {
    return Try([&] { return body_->client.History(task); });
}

Result<TaskId> Flows::Fork(TaskId task, std::string_view step, int occurrence) {
    return Try([&]() -> Result<TaskId> {
        auto forked = body_->client.Fork(task, step, occurrence, "engine");
        if (!forked) return forked.error();
        return forked->task;
    });
}

Result<Cancelled> Flows::Cancel(TaskId task, std::string_view reason) {
    return Try([&] {
        return engine::ToCancelled(task, body_->store.Cancel({&task, 1}, "engine", reason).front());
    });
}

}  // namespace stint

// ---- replay in tests ---------------------------------------------------------------------------

namespace stint::testing {

namespace {

using engine::flow::Journal;
using model::FlowStep;

// Records nothing: what is not in the history ends the replay.
class HistoryRecorder final : public engine::flow::Recorder {
public:
    explicit HistoryRecorder(FlowReplayed& result) : result_(result) {}
    void Serve(Journal& journal) { journal_ = &journal; }

    Context* context() override { return nullptr; }
    FlowStep Record(const FlowStep& step, std::optional<Duration>, std::optional<model::NewTask>)
        override {
        // Which way an instance that is past this point goes is decided by the history alone.
        if (step.kind == model::StepKind::kVersion) return step;
        // A sleep that was not over yet when the history was written.
        if (journal_->replay().Find(step.name, step.occurrence) != nullptr) return step;
        End(step);
    }
    FlowStep AwaitSignal(const FlowStep& step, std::optional<Duration>) override { End(step); }
    model::NewTask
    NewChild(std::string_view, const TaskDefaults&, std::string, const SubmitOptions&) override {
        return {};
    }
    std::vector<store::FinishedTask> Finished(std::span<const TaskId>) override { return {}; }
    Time Now() override { return Time::max(); }  // every sleep that is recorded is over
    std::string Secret(std::string_view, int) override { return std::string(64, '0'); }
    std::string IdempotencyKey(std::string_view step, int occurrence) override {
        return fmt::format("replay/{}/{}", step, occurrence);
    }
    bool IsFinal(const model::TaskError&) override { return true; }
    void BeforeRun(const FlowStep& step) override { End(step); }

private:
    [[noreturn]] void End(const FlowStep& step) {
        const FlowStep* next = journal_->replay().NextUnreached();
        bool waits = journal_->replay().Find(step.name, step.occurrence) != nullptr;
        result_.stopped_at = step.name;
        if (next != nullptr && !waits) {
            result_.divergence = fmt::format(
                "step {}, a {}, is not recorded, while step {}, a {}, which is, has not been "
                "reached: an instance like this one would execute {} now. Guard a new step with "
                "flow.Version(), and keep the names of old ones",
                base::Quoted(step.name),
                StepText(step.kind, step.about),
                base::Quoted(next->name),
                StepText(next->kind, next->about),
                base::Quoted(step.name)
            );
        }
        journal_->LeaveWith(Snooze{Duration::zero()});
    }

    FlowReplayed& result_;
    Journal* journal_ = nullptr;
};

}  // namespace

FlowReplayed ReplayErased(std::string_view history, const detail::ErasedFlow& flow) {
    FlowReplayed result;
    auto exported = model::ReadHistory(history);
    if (!exported) throw std::invalid_argument(exported.error().message);
    HistoryRecorder recorder(result);
    Journal journal(recorder, exported->history.steps);
    recorder.Serve(journal);
    Outcome<std::string> outcome = engine::flow::Play(journal, exported->input, flow);
    if (const auto* failed = std::get_if<Failed>(&outcome)) {
        bool about_history = failed->klass == "flow_diverged" || failed->klass == "flow_not_left";
        if (about_history) {
            result.divergence = failed->message;
            result.stopped_at = journal.left_at();
        } else {
            result.failure = failed->message;
        }
    } else if (const auto* output = std::get_if<0>(&outcome)) {
        result.finished = true;
        result.output = *output;
    } else if (result.stopped_at.empty()) {
        result.stopped_at = journal.left_at();  // a call that was open
    }
    return result;
}

}  // namespace stint::testing
