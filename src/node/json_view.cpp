#include "node/json_view.h"

#include "base/text.h"
#include "model/time_text.h"
#include "model/worker_note.h"

namespace stint::node {

namespace {

using base::OrderedJson;

OrderedJson Instant(Time time) {
    return base::Iso8601(time);
}

OrderedJson Instant(const std::optional<Time>& time) {
    return time ? OrderedJson(base::Iso8601(*time)) : OrderedJson(nullptr);
}

template <class IdType>
OrderedJson IdOrNull(IdType id) {
    return id.valid() ? OrderedJson(id.ToString()) : OrderedJson(nullptr);
}

OrderedJson TextOrNull(const std::string& text) {
    return text.empty() ? OrderedJson(nullptr) : OrderedJson(text);
}

OrderedJson DurationOrNull(Duration duration) {
    if (duration == Duration::zero()) return nullptr;
    return model::FormatDuration(duration);
}

template <class T>
OrderedJson ValueOrNull(const std::optional<T>& value) {
    return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

// A stored payload. It was checked when it was stored; should it not be JSON, its text is shown.
OrderedJson Payload(const std::string& text) {
    if (text.empty()) return nullptr;
    auto parsed = base::ReadOrderedJson(text);
    return parsed.is_discarded() ? OrderedJson(text) : parsed;
}

OrderedJson Failure(const std::optional<model::TaskError>& error) {
    if (!error) return nullptr;
    return {
        {"class", error->klass},
        {"message", error->message},
        {"stack", TextOrNull(error->stack)},
        {"retryable", error->retryable},
    };
}

OrderedJson ProgressOf(const std::optional<model::Progress>& progress) {
    if (!progress) return nullptr;
    return {
        {"step", progress->step},
        {"done", progress->done},
        {"total", ValueOrNull(progress->total)},
        {"message", TextOrNull(progress->message)},
    };
}

OrderedJson NeedsOf(const model::Needs& needs) {
    OrderedJson json = OrderedJson::object();
    for (const model::Need& need : needs) json[need.resource] = need.units;
    return json;
}

}  // namespace

OrderedJson ToJson(const model::TaskRecord& task) {
    return {
        {"id", task.id.ToString()},
        {"type", task.type},
        {"state", model::StateName(task.state)},
        {"queue", task.queue},
        {"priority", task.priority},
        {"tenant", task.tenant.ToString()},
        {"parent", IdOrNull(task.parent)},
        {"input", Payload(task.input)},
        {"output", Payload(task.output)},
        {"error", Failure(task.error)},
        {"reason", TextOrNull(task.reason)},
        {"warning", task.warning},
        {"attempt", task.attempt},
        {"max_attempts", task.max_attempts},
        {"generation", task.generation},
        {"stage", model::StageName(task.stage)},
        {"waiting_for", task.waiting_for},
        {"claims", task.claim_no},
        {"crashes_alone", task.crash_count},
        {"suspect", task.suspect},
        {"cancel_requested", task.cancel_requested},
        {"type_known", task.type_known},
        {"tags", task.tags},
        {"needs", NeedsOf(task.placement.needs)},
        {"labels", task.placement.labels},
        {"order_key", TextOrNull(task.placement.order_key)},
        {"unique_key", TextOrNull(task.unique_key)},
        {"idempotency_key", TextOrNull(task.idempotency_key)},
        {"timeout", DurationOrNull(task.timeout)},
        {"progress", ProgressOf(task.progress)},
        {"session", IdOrNull(task.session)},
        {"node", IdOrNull(task.node)},
        {"created_at", Instant(task.created_at)},
        {"due_at", Instant(task.due_at)},
        {"start_by", Instant(task.start_by)},
        {"claimed_at", Instant(task.claimed_at)},
        {"finished_at", Instant(task.finished_at)},
        {"expires_at", Instant(task.expires_at)},
        {"updated_at", Instant(task.updated_at)},
    };
}

OrderedJson ToJson(const model::AttemptRecord& attempt) {
    return {
        {"task", attempt.task.ToString()},
        {"claim", attempt.claim_no},
        {"attempt", attempt.attempt},
        {"generation", attempt.generation},
        {"end", model::AttemptEndName(attempt.end)},
        {"started_at", Instant(attempt.started_at)},
        {"finished_at", Instant(attempt.finished_at)},
        {"session", IdOrNull(attempt.session)},
        {"node", IdOrNull(attempt.node)},
        {"alone", attempt.alone},
        {"error", Failure(attempt.error)},
        {"exit_code", ValueOrNull(attempt.exit_code)},
        {"exit_signal", ValueOrNull(attempt.exit_signal)},
        {"stderr_tail", TextOrNull(attempt.stderr_tail)},
    };
}

OrderedJson ToJson(const model::AuditEntry& entry) {
    return {
        {"seq", entry.seq},
        {"task", entry.task.ToString()},
        {"tenant", entry.tenant.ToString()},
        {"event", model::EventName(entry.event)},
        {"from", entry.from ? OrderedJson(model::StateName(*entry.from)) : OrderedJson(nullptr)},
        {"to", model::StateName(entry.to)},
        {"attempt", entry.attempt},
        {"generation", entry.generation},
        {"session", IdOrNull(entry.session)},
        {"actor", TextOrNull(entry.actor)},
        {"reason", TextOrNull(entry.reason)},
        {"at", Instant(entry.at)},
    };
}

OrderedJson ToJson(const model::QueueSettings& settings) {
    auto kept = [](const std::optional<Duration>& duration) {
        return duration ? OrderedJson(model::FormatDuration(*duration)) : OrderedJson(nullptr);
    };
    return {
        {"name", settings.name},
        {"paused", settings.paused},
        {"cap", ValueOrNull(settings.cap)},
        {"keep_complete", kept(settings.keep_complete)},
        {"keep_dead", kept(settings.keep_dead)},
        {"keep_cancelled", kept(settings.keep_cancelled)},
        {"changed_by", TextOrNull(settings.changed_by)},
        {"changed_at", settings.changed_at ? Instant(*settings.changed_at) : OrderedJson(nullptr)},
    };
}

OrderedJson ToJson(const model::QueueRecord& queue) {
    OrderedJson json = ToJson(queue.settings);
    json["waiting"] = queue.waiting;
    json["running"] = queue.running;
    return json;
}

OrderedJson ToJson(const model::SessionRecord& session) {
    bool over = session.state == model::SessionState::kClosed ||
                session.state == model::SessionState::kExpired;
    const model::WorkerNote note = model::NoteOf(session.worker_state);
    return {
        {"id", session.id.ToString()},
        {"host", session.hostname},
        {"pid", session.pid},
        {"state", model::SessionStateName(session.state)},
        {"doing", over ? OrderedJson(nullptr) : OrderedJson(note.doing)},
        {"withheld", over ? std::vector<std::string>() : note.withheld},
        {"slots", session.slots},
        {"running", over ? 0 : session.running},
        {"queues", session.queues},
        {"types", session.types},
        {"labels", session.labels},
        {"version", session.version},
        {"started_at", Instant(session.started_at)},
        {"renewed_at", Instant(session.renewed_at)},
        {"lease_until", Instant(session.lease_until)},
    };
}

OrderedJson ToJson(const StoreInfo& info) {
    return {
        {"kind", info.kind},
        {"address", info.address},
        {"version", info.version},
        {"schema", info.schema},
        {"durability", info.durability},
        {"shared", info.shared},
    };
}

OrderedJson ToJson(const CheckFinding& finding) {
    return {{"ok", finding.ok}, {"what", finding.what}, {"detail", TextOrNull(finding.detail)}};
}

OrderedJson ToJson(const FinishedTask& task) {
    return {
        {"id", task.id.ToString()},
        {"state", model::StateName(task.state)},
        {"output", Payload(task.output)},
        {"error", Failure(task.error)},
        {"reason", TextOrNull(task.reason)},
        {"warning", task.warning},
    };
}

}  // namespace stint::node
