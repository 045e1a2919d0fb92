// stint::Schedules: the public words for services::ScheduleDesk.
#include <stint/engine.h>
#include <stint/schedule.h>

#include "base/result.h"
#include "engine/store_failure.h"
#include "node/convert.h"
#include "node/engine_impl.h"
#include "services/schedule_desk.h"

namespace stint {

namespace {

using model::TimingSpec;

constexpr std::string_view kActor = "api";

// Whether a change has happened may be unknown, which the code says.
template <class Request>
auto Ask(Request request) -> decltype(request()) {
    try {
        return request();
    } catch (const std::exception& error) {
        return engine::StoreFailure(error);
    }
}

struct ToTiming {
    TimingSpec operator()(const when::Cron& cron) const {
        TimingSpec timing{.kind = TimingSpec::Kind::kCron, .cron = cron.expression};
        timing.changes.gap = static_cast<model::GapPolicy>(cron.on_gap);
        timing.changes.fold = static_cast<model::FoldPolicy>(cron.on_fold);
        return timing;
    }
    TimingSpec operator()(const when::Every& every) const {
        return {.kind = TimingSpec::Kind::kEvery, .every = every.interval, .start = every.anchor};
    }
    TimingSpec operator()(const when::AfterEnd& after) const {
        return {
            .kind = TimingSpec::Kind::kAfterEnd, .after_end = after.delay, .start = after.first};
    }
    TimingSpec operator()(const when::AfterStart& after) const {
        return {
            .kind = TimingSpec::Kind::kAfterStart, .every = after.interval, .start = after.first};
    }
    TimingSpec operator()(const when::Once& once) const {
        return {.kind = TimingSpec::Kind::kOnce, .start = once.at};
    }
    TimingSpec operator()(const when::Visits& visits) const {
        return {.kind = TimingSpec::Kind::kVisits, .every = visits.interval};
    }
};

static_assert(
    static_cast<int>(when::OnFold::kBoth) == static_cast<int>(model::FoldPolicy::kBoth) &&
    static_cast<int>(when::OnGap::kSkip) == static_cast<int>(model::GapPolicy::kSkip) &&
    static_cast<int>(OnMissed::Kind::kAll) == static_cast<int>(model::MisfirePolicy::Kind::kAll) &&
    static_cast<int>(OnOverlap::kCancelRunning) ==
        static_cast<int>(model::OverlapPolicy::kCancelRunning)
);

Result<model::ScheduleSpec> ToSpec(
    std::string_view name, const When& when, const ScheduleOptions& options, model::NewTask task
) {
    if (options.task.in != nullptr) {
        return base::MakeError(
            Code::kInvalid, "task.in is given; runs happen in no transaction of yours"
        );
    }
    model::ScheduleSpec spec;
    spec.name = std::string(name);
    spec.tenant = task.tenant;
    spec.timing = std::visit(ToTiming{}, when);
    if (const auto* cron = std::get_if<when::Cron>(&when)) spec.zone = cron->zone;
    if (!options.zone.empty()) {
        bool other = std::holds_alternative<when::Cron>(when) && spec.zone != options.zone;
        if (other && spec.zone != "UTC") {
            return base::MakeError(
                Code::kInvalid,
                "zone is \"{}\" and the cron expression's is \"{}\"; give one of them",
                options.zone,
                spec.zone
            );
        }
        spec.zone = options.zone;
    }
    spec.misfire = {
        .kind = static_cast<model::MisfirePolicy::Kind>(options.missed.kind),
        .grace = options.missed.grace,
        .window = options.missed.window,
        .limit = options.missed.limit};
    spec.overlap = options.overlap ? static_cast<model::OverlapPolicy>(*options.overlap)
                                   : model::UsualOverlap(spec.timing.kind);
    spec.jitter = options.jitter;
    spec.except = options.except;
    spec.keep_runs = options.keep_runs;
    spec.instant_field = options.instant_field;
    spec.entity_field = options.entity_field;
    spec.task = std::move(task);
    return spec;
}

ScheduleInfo ToPublic(const model::Schedule& schedule) {
    ScheduleInfo info;
    info.name = schedule.spec.name;
    info.definition = model::ScheduleToJson(schedule.spec);
    info.revision = schedule.revision;
    info.paused = schedule.paused;
    info.next_at = schedule.next_at;
    info.last_instant = schedule.last_instant;
    if (schedule.last_task.valid()) info.last_task = schedule.last_task;
    info.created_at = schedule.created_at;
    info.changed_by = schedule.changed_by;
    info.changed_at = schedule.changed_at;
    return info;
}

Result<std::vector<UpcomingInstant>> ToPublic(Result<std::vector<model::PreviewEntry>> entries) {
    if (!entries) return entries.error();
    std::vector<UpcomingInstant> instants;
    for (model::PreviewEntry& entry : *entries) {
        instants.push_back(
            {entry.at, std::move(entry.local), std::move(entry.oddity), entry.excluded}
        );
    }
    return instants;
}

Result<ScheduleInfo> ToPublic(const Result<model::Schedule>& schedule) {
    if (!schedule) return schedule.error();
    return ToPublic(*schedule);
}

}  // namespace

Schedules Engine::schedules() {
    return Schedules(*impl_->desk, impl_->options.tenant);
}

Result<ScheduleInfo> Schedules::PutBytes(
    std::string_view name,
    const When& when,
    std::string_view type,
    const TaskDefaults* defaults,
    std::string input,
    const ScheduleOptions& options
) {
    auto task = node::ToNewTask(type, defaults, std::move(input), options.task, tenant_);
    if (!task) return task.error();
    auto spec = ToSpec(name, when, options, std::move(*task));
    if (!spec) return spec.error();
    return Ask([&] { return ToPublic(desk_->Put(*spec, options.expected_revision, kActor)); });
}

Result<ScheduleInfo> Schedules::PutSteps(
    std::string_view name,
    const When& when,
    const std::vector<ScheduleStep>& steps,
    const ScheduleOptions& options
) {
    if (steps.empty()) {
        return base::MakeError(Code::kInvalid, "there are no steps; name at least one");
    }
    model::NewTask none;
    none.tenant = tenant_;
    auto spec = ToSpec(name, when, options, none);
    if (!spec) return spec.error();
    for (const ScheduleStep& step : steps) {
        model::Step& made = spec->steps.emplace_back();
        made.name = step.name;
        made.go_on = step.on_failure == ScheduleStep::OnFailure::kContinue;
        for (const TaskToCome& task : step.tasks) {
            auto request = node::ToNewTask(task, tenant_);
            if (!request) return request.error();
            made.tasks.push_back(std::move(*request));
        }
    }
    return Ask([&] { return ToPublic(desk_->Put(*spec, options.expected_revision, kActor)); });
}

Result<ScheduleInfo> Schedules::PutJson(std::string_view definition) {
    auto spec = model::ScheduleFromJson(definition);
    if (!spec) return spec.error();
    spec->tenant = spec->task.tenant = tenant_;
    return Ask([&] { return ToPublic(desk_->Put(*spec, {}, kActor)); });
}

Result<ScheduleInfo> Schedules::Get(std::string_view name) {
    return Ask([&] { return ToPublic(desk_->Get(tenant_, name)); });
}

Result<std::vector<ScheduleInfo>> Schedules::List() {
    return Ask([&]() -> Result<std::vector<ScheduleInfo>> {
        std::vector<ScheduleInfo> all;
        for (const model::Schedule& schedule : desk_->List(tenant_)) {
            all.push_back(ToPublic(schedule));
        }
        return all;
    });
}

Result<void> Schedules::Remove(std::string_view name) {
    return Ask([&] { return desk_->Remove(tenant_, name); });
}

Result<ScheduleInfo> Schedules::Pause(std::string_view name) {
    return Ask([&] { return ToPublic(desk_->SetPaused(tenant_, name, true, kActor)); });
}

Result<ScheduleInfo> Schedules::Resume(std::string_view name) {
    return Ask([&] { return ToPublic(desk_->SetPaused(tenant_, name, false, kActor)); });
}

Result<TaskId> Schedules::RunNow(std::string_view name) {
    return Ask([&]() -> Result<TaskId> {
        auto run = desk_->RunNow(tenant_, name);
        if (!run) return run.error();
        return run->task;
    });
}

Result<std::vector<UpcomingInstant>> Schedules::Next(std::string_view name, int count) {
    return Ask([&] { return ToPublic(desk_->Next(tenant_, name, count)); });
}

Result<std::vector<UpcomingInstant>> Schedules::Preview(
    const When& when, int count, const ScheduleOptions& options
) {
    model::NewTask task;
    task.tenant = tenant_;
    task.type = "preview";
    ScheduleOptions counting{.except = options.except, .zone = options.zone};
    auto spec = ToSpec("preview", when, counting, std::move(task));
    if (!spec) return spec.error();
    return Ask([&] { return ToPublic(desk_->Preview(*spec, count)); });
}

Result<std::vector<ApplyStepInfo>> Schedules::Apply(
    std::string_view document, const ApplyOptions& options
) {
    return Ask([&]() -> Result<std::vector<ApplyStepInfo>> {
        auto steps = desk_->Apply(
            {.document = std::string(document),
             .tenant = tenant_,
             .dry_run = options.dry_run,
             .prune = options.prune,
             .actor = std::string(kActor)}
        );
        if (!steps) return steps.error();
        std::vector<ApplyStepInfo> shown;
        for (const services::ApplyStep& step : *steps) {
            ApplyStepInfo& info = shown.emplace_back();
            info.action = services::ApplyKindName(step.kind);
            info.what = step.what;
            info.name = step.name;
            for (const auto& difference : step.differences) {
                info.differences.push_back(difference.member);
            }
        }
        return shown;
    });
}

Result<BackfillInfo> Schedules::Backfill(
    std::string_view name, Time from, Time to, const BackfillOptions& options
) {
    return Ask([&]() -> Result<BackfillInfo> {
        services::BackfillRequest request{
            .name = std::string(name),
            .from = from,
            .to = to,
            .dry_run = options.only_count,
            .again = options.again};
        auto report = desk_->Backfill(tenant_, request);
        if (!report) return report.error();
        return BackfillInfo{
            .missing = static_cast<int>(report->missing.size()),
            .decided = report->decided,
            .created = report->created,
            .refused = report->refused,
            .first_refusal = report->first_refusal};
    });
}

Result<std::vector<ScheduleRunInfo>> Schedules::Runs(std::string_view name, int limit) {
    return Ask([&]() -> Result<std::vector<ScheduleRunInfo>> {
        store::RunsRequest request;
        request.limit = limit;
        auto runs = desk_->Executions(tenant_, name, request);
        if (!runs) return runs.error();
        std::vector<ScheduleRunInfo> shown;
        for (const services::RunSeen& seen : *runs) {
            const model::ScheduleRun& run = seen.run;
            ScheduleRunInfo& info = shown.emplace_back();
            info.instant = run.instant;
            info.entity = run.entity;
            info.cause = model::RunCauseName(run.cause);
            if (run.task.valid()) info.task = run.task;
            info.skipped = run.skipped;
            info.decided_at = run.decided_at;
            if (!seen.execution) continue;
            info.state = model::StateName(seen.execution->state);
            info.step = services::StepText(*seen.execution);
        }
        return shown;
    });
}

Result<void> Schedules::PutCalendar(std::string_view name, std::vector<std::string> dates) {
    model::Calendar calendar{
        .tenant = tenant_, .name = std::string(name), .dates = std::move(dates)};
    return Ask([&] { return desk_->PutCalendar(calendar); });
}

Result<void> Schedules::RemoveCalendar(std::string_view name) {
    return Ask([&] { return desk_->RemoveCalendar(tenant_, name); });
}

Result<std::vector<CalendarInfo>> Schedules::Calendars() {
    return Ask([&]() -> Result<std::vector<CalendarInfo>> {
        std::vector<CalendarInfo> shown;
        for (model::Calendar& calendar : desk_->Calendars(tenant_)) {
            shown.push_back({std::move(calendar.name), std::move(calendar.dates)});
        }
        return shown;
    });
}

Result<void> Schedules::PutVisits(std::string_view name, std::span<const VisitRequest> visits) {
    std::vector<model::NewVisit> asked;
    for (const VisitRequest& visit : visits) asked.push_back({visit.entity, visit.every});
    return Ask([&] { return desk_->PutVisits(tenant_, name, asked); });
}

Result<int> Schedules::RemoveVisits(std::string_view name, std::span<const std::string> entities) {
    return Ask([&] { return desk_->RemoveVisits(tenant_, name, entities); });
}

Result<std::vector<VisitInfo>> Schedules::Visits(
    std::string_view name, std::string_view after, int limit
) {
    return Ask([&]() -> Result<std::vector<VisitInfo>> {
        store::VisitsRequest request{.schedule = {}, .after = std::string(after), .limit = limit};
        auto visits = desk_->Visits(tenant_, name, request);
        if (!visits) return visits.error();
        std::vector<VisitInfo> shown;
        for (const model::Visit& visit : *visits) {
            shown.push_back({visit.entity, visit.every, visit.next_at, visit.last_at});
        }
        return shown;
    });
}

}  // namespace stint
