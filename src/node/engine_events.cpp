// Events and workflows of stint::Engine.
#include "base/result.h"
#include "engine/acting.h"
#include "engine/store_failure.h"
#include "model/event/event.h"
#include "model/match/expression.h"
#include "node/engine_impl.h"
#include "services/event_explain.h"
#include "store/event_words.h"

namespace stint {

namespace {

template <class Work>
auto Try(Work work) -> decltype(work()) {
    try {
        return work();
    } catch (const std::exception& error) {
        return engine::StoreFailure(error);
    }
}

EventInfo ToPublic(const model::EventRecord& event) {
    EventInfo info;
    info.no = event.no;
    info.tenant = event.tenant;
    info.source = event.source;
    info.id = event.id;
    info.type = event.type;
    info.data = event.data;
    info.state = EventStateName(event.state);
    info.reason = event.reason;
    info.depth = event.depth;
    info.time = event.time;
    info.published_at = event.published_at;
    info.processed_at = event.processed_at;
    return info;
}

FiringInfo ToPublic(const store::FiringRecord& firing) {
    FiringInfo info;
    info.event = firing.event;
    info.workflow = firing.workflow;
    if (!firing.workflow.empty()) info.trigger = firing.trigger;
    info.what = FiringKindName(firing.kind);
    info.task = firing.task;
    info.message = firing.message;
    info.at = firing.at;
    return info;
}

JoinInfo ToPublic(const model::JoinInstance& join) {
    JoinInfo info;
    info.no = join.no;
    info.workflow = join.key.workflow;
    info.join = join.key.join;
    info.key = join.key.key;
    info.generation = join.generation;
    info.state = JoinStateName(join.state);
    for (const model::JoinPart& part : join.parts) info.complete.push_back(part.type);
    info.task = join.task;
    info.message = join.message;
    info.created_at = join.created_at;
    info.expires_at = join.expires_at;
    return info;
}

WorkflowInfo ToPublic(const model::WorkflowRecord& record) {
    WorkflowInfo info;
    info.name = record.definition.name;
    info.version = record.version;
    info.definition = WorkflowToJson(record.definition);
    info.updated_at = record.updated_at;
    info.updated_by = record.updated_by;
    return info;
}

template <class Records>
auto AllPublic(const Records& records) {
    std::vector<decltype(ToPublic(*records.begin()))> shown;
    for (const auto& record : records) shown.push_back(ToPublic(record));
    return shown;
}

}  // namespace

void Engine::Impl::MakeEvents() {
    events = std::make_unique<services::EventService>(
        *store,
        *wake,
        clock,
        random,
        services::EventServiceOptions{
            .poll = options.poll,
            .error_wait = options.error_wait,
            .tidy_every = options.housekeep_every,
            // What a node that died had taken comes back when its tasks do.
            .taken = options.lease.lease,
            .log = options.log}
    );
}

Result<EventNo> Engine::PublishJson(
    std::string_view type, std::string_view json, const PublishOptions& options
) {
    model::NewEvent event;
    event.tenant = options.tenant.value_or(impl_->options.tenant);
    event.source = options.source;
    event.id = options.id;
    event.type = type;
    event.data = json;
    event.time = options.time;
    event.cause = options.by_task;
    if (options.by != nullptr) event.cause = options.by->id();
    if (!event.cause.valid()) event.cause = engine::Acting::In(*impl_->store);
    return Try([&]() -> Result<EventNo> {
        if (options.in_process) {
            auto fired = impl_->events->HandleHere(event);
            if (!fired) return fired.error();
            return EventNo();
        }
        return impl_->events->Publish(std::move(event));
    });
}

Result<WorkflowInfo> Engine::PutWorkflow(const Workflow& workflow) {
    return PutWorkflowJson(workflow.ToJson());
}

Result<WorkflowInfo> Engine::PutWorkflowJson(std::string_view json) {
    auto definition = model::WorkflowFromJson(json);
    if (!definition) return definition.error();
    definition->tenant = impl_->options.tenant;
    return Try([&]() -> Result<WorkflowInfo> {
        auto record = impl_->store->Events().PutWorkflow(*definition, "engine");
        if (!record) return record.error();
        return ToPublic(*record);
    });
}

Result<bool> Engine::RemoveWorkflow(std::string_view name) {
    return Try([&]() -> Result<bool> {
        return impl_->store->Events().RemoveWorkflow(impl_->options.tenant, name);
    });
}

Result<std::vector<WorkflowInfo>> Engine::Workflows() {
    return Try([&]() -> Result<std::vector<WorkflowInfo>> {
        std::vector<WorkflowInfo> mine;
        for (const model::WorkflowRecord& record : impl_->store->Events().Workflows()) {
            if (record.definition.tenant == impl_->options.tenant) mine.push_back(ToPublic(record));
        }
        return mine;
    });
}

Result<EventInfo> Engine::GetEvent(EventNo event) {
    return Try([&]() -> Result<EventInfo> {
        auto record = impl_->store->Events().GetEvent(event);
        if (!record) return base::MakeError(Code::kNotFound, "there is no event {}", event.value());
        return ToPublic(*record);
    });
}

Result<std::vector<FiringInfo>> Engine::Firings(EventNo event) {
    return Try([&]() -> Result<std::vector<FiringInfo>> {
        store::FiringFilter filter;
        filter.event = event;
        filter.limit = model::limits::kListPage;
        return AllPublic(impl_->store->Events().Firings(filter));
    });
}

Result<std::vector<EventObstacle>> Engine::ExplainEvents(EventNo event) {
    return Try([&]() -> Result<std::vector<EventObstacle>> {
        services::EventQuestion question;
        question.event = event;
        question.tenant = impl_->options.tenant;
        return services::ExplainEvents(*impl_->store, question);
    });
}

Result<std::vector<JoinInfo>> Engine::Joins(
    std::string_view workflow, std::optional<std::int64_t> before
) {
    return Try([&]() -> Result<std::vector<JoinInfo>> {
        store::JoinFilter filter;
        filter.tenant = impl_->options.tenant;
        filter.workflow = workflow;
        filter.before = before;
        filter.limit = model::limits::kListPage;
        return AllPublic(impl_->store->Events().Joins(filter));
    });
}

Result<bool> Engine::Matches(std::string_view expression, std::string_view json) {
    auto parsed = model::match::Expression::Parse(expression);
    if (!parsed) return parsed.error();
    auto data = base::ParseJson(json, model::limits::kJsonDepth);
    if (!data) return base::MakeError(data.error().code, "the event {}", data.error().message);
    model::EventRecord event;
    event.data = json;
    return parsed->Matches(FieldsOf(event));
}

}  // namespace stint
