#include "node/schedule_view.h"

#include "base/text.h"
#include "model/time_text.h"

namespace stint::node {

namespace {

using base::OrderedJson;

OrderedJson Instant(const std::optional<Time>& time) {
    return time ? OrderedJson(base::Iso8601(*time)) : OrderedJson(nullptr);
}
OrderedJson IdOrNull(TaskId id) {
    return id.valid() ? OrderedJson(id.ToString()) : OrderedJson(nullptr);
}
OrderedJson TextOrNull(const std::string& text) {
    return text.empty() ? OrderedJson(nullptr) : OrderedJson(text);
}
OrderedJson JsonOrNull(const std::string& text) {
    return text.empty() ? OrderedJson(nullptr) : base::ReadOrderedJson(text);
}

}  // namespace

OrderedJson ToJson(const model::Schedule& schedule) {
    OrderedJson running = OrderedJson::array();
    for (TaskId task : schedule.running) running.push_back(task.ToString());
    return {
        {"name", schedule.spec.name},
        {"tenant", schedule.spec.tenant.ToString()},
        {"definition", base::ReadOrderedJson(model::ScheduleToJson(schedule.spec))},
        {"revision", schedule.revision},
        {"paused", schedule.paused},
        {"next_at", Instant(schedule.next_at)},
        {"queued_at", Instant(schedule.queued_at)},
        {"last_instant", Instant(schedule.last_instant)},
        {"last_task", IdOrNull(schedule.last_task)},
        {"running", std::move(running)},
        {"created_at", Instant(schedule.created_at)},
        {"changed_by", TextOrNull(schedule.changed_by)},
        {"changed_at", Instant(schedule.changed_at)},
    };
}

OrderedJson ToJson(const model::ScheduleRun& run) {
    return {
        {"instant", Instant(run.instant)},
        {"entity", TextOrNull(run.entity)},
        {"cause", model::RunCauseName(run.cause)},
        {"task", IdOrNull(run.task)},
        {"skipped", TextOrNull(run.skipped)},
        {"decided_at", Instant(run.decided_at)},
    };
}

OrderedJson ToJson(const RunSeen& seen) {
    OrderedJson json = ToJson(seen.run);
    if (!seen.execution) return json;
    json["state"] = model::StateName(seen.execution->state);
    json["step"] = TextOrNull(services::StepText(*seen.execution));
    return json;
}

OrderedJson ToJson(const model::PreviewEntry& entry) {
    return {
        {"at", Instant(entry.at)},
        {"local", entry.local},
        {"oddity", TextOrNull(entry.oddity)},
        {"excluded", entry.excluded},
    };
}

OrderedJson ToJson(const model::Visit& visit) {
    return {
        {"entity", visit.entity},
        {"every",
         visit.every ? OrderedJson(model::FormatDuration(*visit.every)) : OrderedJson(nullptr)},
        {"next_at", Instant(visit.next_at)},
        {"last_at", Instant(visit.last_at)},
    };
}

OrderedJson ToJson(const model::Calendar& calendar) {
    return {{"name", calendar.name}, {"dates", calendar.dates}};
}

OrderedJson ToJson(const ApplyStep& step) {
    OrderedJson differences = OrderedJson::array();
    for (const model::SpecDifference& difference : step.differences) {
        differences.push_back(
            {{"member", difference.member},
             {"before", JsonOrNull(difference.before)},
             {"after", JsonOrNull(difference.after)}}
        );
    }
    return {
        {"action", services::ApplyKindName(step.kind)},
        {"what", step.what},
        {"name", step.name},
        {"differences", std::move(differences)},
    };
}

OrderedJson ToJson(const BackfillReport& report) {
    OrderedJson missing = OrderedJson::array();
    for (Time at : report.missing) missing.push_back(Instant(at));
    return {
        {"missing", std::move(missing)},
        {"decided", report.decided},
        {"created", report.created},
        {"refused", report.refused},
        {"first_refusal", TextOrNull(report.first_refusal)},
    };
}

}  // namespace stint::node
