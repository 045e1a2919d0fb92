#include "services/schedule_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/result.h"
#include "base/text.h"
#include "model/instant_range.h"
#include "model/time_text.h"
#include "services/planner.h"

namespace stint::services {

namespace {

using base::MakeError;
using base::Quoted;
using model::RunCause;
using model::Schedule;
using model::ScheduleSpec;
using Kind = model::TimingSpec::Kind;

constexpr std::size_t kFilledAtOnce = 500;

Error NoSchedule(std::string_view name) {
    return MakeError(
        Code::kNotFound, "there is no schedule {}; `stint schedule list` shows them", Quoted(name)
    );
}

Result<void> CheckLimit(int limit) {
    if (limit >= 1 && limit <= model::limits::kListPage) return {};
    return MakeError(
        Code::kInvalid, "limit is {}; it must be between 1 and {}", limit, model::limits::kListPage
    );
}

Result<void> CheckInstants(const std::optional<Time>& from, const std::optional<Time>& to) {
    if (from) {
        if (auto good = model::CheckInstant("from", *from); !good) return good;
    }
    return to ? model::CheckInstant("to", *to) : Result<void>();
}

}  // namespace

void ScheduleDesk::Changed() {
    if (changed_) changed_();
}

void ScheduleDesk::Wake(std::span<const store::RunReply> runs) {
    std::vector<wake::Hint> hints;
    for (const store::RunReply& run : runs) {
        if (run.kind != store::RunReply::Kind::kCreated || !run.due_now) continue;
        auto same = [&](const wake::Hint& hint) { return hint.queue == run.queue; };
        if (std::ranges::none_of(hints, same)) {
            hints.push_back({wake::Hint::Kind::kTaskAvailable, run.queue, {}});
        }
    }
    if (!hints.empty()) wake_.Signal(hints);
}

// ---- put, look, pause --------------------------------------------------------------------------

// When a node is to look at it first. None: never, or at once; the store knows.
Result<std::optional<Time>> ScheduleDesk::FirstLook(
    Planner& planner, const ScheduleSpec& spec, const Schedule* there
) {
    Time now = store_.Now();
    Time created_at = there != nullptr ? there->created_at : now;
    auto prepared = planner.Prepare(spec, created_at);
    if (!prepared) return prepared.error();
    if (spec.timing.kind == Kind::kVisits) return std::optional<Time>();
    auto next = model::NextInstant(prepared->timing, now, prepared->excluded);
    bool after_a_run = spec.timing.kind == Kind::kAfterEnd || spec.timing.kind == Kind::kAfterStart;
    if (after_a_run) return next ? next : std::optional<Time>(now);
    if (next) return next;
    if (spec.timing.kind == Kind::kOnce) {
        return MakeError(
            Code::kInvalid,
            "at is {}, which is over (it is {}): name an instant to come, or submit the task",
            base::Iso8601(*spec.timing.start),
            base::Iso8601(now)
        );
    }
    return MakeError(Code::kInvalid, "the schedule has no instant to come: it would never run");
}

Result<std::optional<Time>> ScheduleDesk::Check(
    Planner& planner, const ScheduleSpec& spec, const Schedule* there
) {
    bool same_timing = there != nullptr && model::SameTiming(there->spec, spec);
    if (there != nullptr && !same_timing) {
        bool visits = spec.timing.kind == Kind::kVisits;
        if (visits != (there->spec.timing.kind == Kind::kVisits)) {
            return MakeError(
                Code::kConflict,
                "schedule {} is {} of visits: remove it, or use another name",
                Quoted(spec.name),
                visits ? "not one" : "one"
            );
        }
    }
    if (same_timing && there->spec.except == spec.except) return std::optional<Time>();
    auto first = FirstLook(planner, spec, there);
    // Excluded days may change until the store has it: then the first look, at once, finds out.
    if (first && !spec.except.empty()) return std::optional<Time>();
    return first;
}

Result<Schedule> ScheduleDesk::Put(
    const ScheduleSpec& spec, std::optional<int> expected_revision, std::string_view actor
) {
    if (auto valid = model::Validate(spec); !valid) return valid.error();
    std::optional<Schedule> there = schedules_.Get(spec.tenant, spec.name);
    // Programs say what they want at every start: then nothing changes.
    bool expected = there && expected_revision.value_or(there->revision) == there->revision;
    if (expected && model::Differences(there->spec, spec).empty()) return std::move(*there);
    Planner planner(schedules_, zones_);
    auto first = Check(planner, spec, there ? &*there : nullptr);
    if (!first) return first.error();
    store::SchedulePut put{
        .spec = spec,
        .expected_revision = expected_revision,
        .next_at = *first,
        .actor = std::string(actor)};
    auto done = schedules_.Put(put);
    if (done) Changed();
    return done;
}

Result<Schedule> ScheduleDesk::Get(TenantId tenant, std::string_view name) {
    auto found = schedules_.Get(tenant, name);
    if (!found) return NoSchedule(name);
    return std::move(*found);
}

std::vector<Schedule> ScheduleDesk::List(std::optional<TenantId> tenant) {
    std::vector<Schedule> all;
    store::ScheduleListRequest request{
        .tenant = tenant, .after_tenant = {}, .after_name = {}, .limit = model::limits::kListPage};
    for (;;) {
        std::vector<Schedule> page = schedules_.List(request);
        if (page.empty()) return all;
        request.after_tenant = page.back().spec.tenant;
        request.after_name = page.back().spec.name;
        std::move(page.begin(), page.end(), std::back_inserter(all));
    }
}

Result<void> ScheduleDesk::Remove(TenantId tenant, std::string_view name) {
    if (!schedules_.Remove(tenant, name)) return NoSchedule(name);
    return {};
}

Result<Schedule> ScheduleDesk::SetPaused(
    TenantId tenant, std::string_view name, bool paused, std::string_view actor
) {
    auto done = schedules_.SetPaused(tenant, name, paused, actor);
    if (!done) return NoSchedule(name);
    Changed();
    return std::move(*done);
}

// Only where they are so many that one may have to be forgotten.
std::vector<TaskId> ScheduleDesk::EndedRuns(const model::Schedule& schedule) {
    std::vector<TaskId> ended;
    if (schedule.running.size() + 1 < model::limits::kRunsRemembered) return ended;
    for (TaskId task : schedule.running) {
        auto record = store_.Get(task);
        if (!record || model::IsTerminal(record->state)) ended.push_back(task);
    }
    return ended;
}

Result<store::RunReply> ScheduleDesk::RunNow(TenantId tenant, std::string_view name) {
    auto schedule = Get(tenant, name);
    if (!schedule) return schedule.error();
    if (schedule->spec.timing.kind == Kind::kVisits) {
        return MakeError(
            Code::kInvalid,
            "schedule {} visits entities, each at its own time: submit the task of one instead",
            Quoted(name)
        );
    }
    Time now = store_.Now();
    store::Firing firing{.schedule = schedule->id, .runs = {}, .advance = {}};
    firing.runs.push_back(
        {.instant = now,
         .cause = RunCause::kManual,
         .task = TaskOf(*schedule, now, "", RunCause::kManual),
         .skipped = {},
         .keep = KeepOf(schedule->spec, RunCause::kManual)}
    );
    firing.ended = EndedRuns(*schedule);
    store::FiringReply reply = schedules_.Fire({&firing, 1}).at(0);
    if (reply.kind != store::FiringReply::Kind::kFired) return NoSchedule(name);
    Wake(reply.runs);
    Changed();
    if (reply.runs.at(0).kind == store::RunReply::Kind::kRefused) {
        return MakeError(Code::kConflict, "{}", reply.runs[0].message);
    }
    return reply.runs[0];
}

Result<std::vector<model::ScheduleRun>> ScheduleDesk::Runs(
    TenantId tenant, std::string_view name, store::RunsRequest request
) {
    if (auto limit = CheckLimit(request.limit); !limit) return limit.error();
    if (auto range = CheckInstants(request.from, request.to); !range) return range.error();
    if (request.before) {
        if (auto before = model::CheckInstant("before", *request.before); !before) {
            return before.error();
        }
    }
    auto schedule = Get(tenant, name);
    if (!schedule) return schedule.error();
    request.schedule = schedule->id;
    return schedules_.Runs(request);
}

std::string StepText(const model::TaskRecord& execution) {
    constexpr std::string_view kStep = "step ";
    std::string_view reason = execution.reason;
    if (execution.state == model::State::kBlocked && reason.starts_with(kStep)) {
        return std::string(reason.substr(kStep.size()));
    }
    if (execution.state == model::State::kDead && execution.error) return execution.error->message;
    return execution.reason;
}

Result<std::vector<RunSeen>> ScheduleDesk::Executions(
    TenantId tenant, std::string_view name, const store::RunsRequest& request
) {
    auto schedule = Get(tenant, name);
    if (!schedule) return schedule.error();
    auto runs = Runs(tenant, name, request);
    if (!runs) return runs.error();
    std::vector<RunSeen> seen;
    for (model::ScheduleRun& run : *runs) {
        RunSeen& one = seen.emplace_back();
        one.run = std::move(run);
        if (schedule->spec.steps.empty() || !one.run.task.valid()) continue;
        auto record = store_.Get(one.run.task);
        // The schedule may have had no steps then.
        if (record && record->type == model::kStepsType) one.execution = std::move(record);
    }
    return seen;
}

// ---- preview -----------------------------------------------------------------------------------

Result<std::vector<model::PreviewEntry>> ScheduleDesk::PreviewOf(
    const ScheduleSpec& spec, Time created_at, Time after, int count
) {
    if (count < 1 || count > model::limits::kPreview) {
        return MakeError(
            Code::kInvalid,
            "the number of instants is {}; it must be between 1 and {}",
            count,
            model::limits::kPreview
        );
    }
    if (spec.timing.kind == Kind::kVisits) {
        return MakeError(
            Code::kInvalid,
            "schedule {} visits entities, each at its own time: look at its visits",
            Quoted(spec.name)
        );
    }
    auto prepared = Planner(schedules_, zones_).Prepare(spec, created_at);
    if (!prepared) return prepared.error();
    return model::Preview(prepared->timing, prepared->excluded, after, count);
}

Result<std::vector<model::PreviewEntry>> ScheduleDesk::Next(
    TenantId tenant, std::string_view name, int count
) {
    auto schedule = Get(tenant, name);
    if (!schedule) return schedule.error();
    return PreviewOf(schedule->spec, schedule->created_at, store_.Now(), count);
}

Result<std::vector<model::PreviewEntry>> ScheduleDesk::Preview(
    const ScheduleSpec& spec, int count
) {
    if (auto valid = model::Validate(spec); !valid) return valid.error();
    Time now = store_.Now();
    return PreviewOf(spec, now, now, count);
}

// ---- backfill ----------------------------------------------------------------------------------

Result<std::vector<Time>> ScheduleDesk::InstantsIn(
    const Schedule& schedule, const BackfillRequest& request, Time now
) {
    Kind kind = schedule.spec.timing.kind;
    if (kind != Kind::kCron && kind != Kind::kEvery) {
        return MakeError(
            Code::kInvalid,
            "schedule {} has no fixed instants to fill in: only cron and every have",
            Quoted(request.name)
        );
    }
    if (auto range = CheckInstants(request.from, request.to); !range) return range.error();
    if (request.from >= request.to || request.to > now) {
        return MakeError(
            Code::kInvalid,
            "the range is {} to {}; it must end after it begins and not after now ({})",
            base::Iso8601(request.from),
            base::Iso8601(request.to),
            base::Iso8601(now)
        );
    }
    // Before its creation nothing ran. Between that and the oldest mark nobody knows.
    Time known_from = now - KeepOf(schedule.spec, RunCause::kTimed);
    Time unknown_from = std::max(request.from, schedule.created_at);
    if (!request.again && unknown_from < std::min(request.to, known_from)) {
        return MakeError(
            Code::kConflict,
            "what ran before {} is not remembered any more, so that a run might happen twice: "
            "begin "
            "there, or say that you want them again (--again)",
            base::Iso8601(known_from)
        );
    }
    auto prepared = Planner(schedules_, zones_).Prepare(schedule.spec, schedule.created_at);
    if (!prepared) return prepared.error();
    std::vector<Time> instants;
    auto next = [&](Time after) {
        return model::NextInstant(prepared->timing, after, prepared->excluded);
    };
    for (auto at = next(request.from - std::chrono::microseconds{1}); at && *at < request.to;
         at = next(*at)) {
        if (instants.size() == static_cast<std::size_t>(model::limits::kBackfill)) {
            return MakeError(
                Code::kLimit,
                "the range has more than {} instants; fill it in in parts",
                model::limits::kBackfill
            );
        }
        instants.push_back(*at);
    }
    return instants;
}

void ScheduleDesk::FillIn(
    const Schedule& schedule, const std::vector<Time>& instants, BackfillReport& report
) {
    std::span<const Time> left(instants);
    while (!left.empty()) {
        auto some = left.first(std::min(kFilledAtOnce, left.size()));
        left = left.subspan(some.size());
        store::Firing firing{.schedule = schedule.id, .runs = {}, .advance = {}};
        for (Time at : some) {
            firing.runs.push_back(
                {.instant = at,
                 .cause = RunCause::kBackfill,
                 .task = TaskOf(schedule, at, "", RunCause::kBackfill),
                 .skipped = {},
                 .keep = KeepOf(schedule.spec, RunCause::kBackfill)}
            );
        }
        store::FiringReply reply = schedules_.Fire({&firing, 1}).at(0);
        for (const store::RunReply& run : reply.runs) {
            if (run.task.valid() && run.kind != store::RunReply::Kind::kDecided) ++report.created;
            if (run.kind != store::RunReply::Kind::kRefused) continue;
            if (++report.refused == 1) report.first_refusal = run.message;
        }
        Wake(reply.runs);
    }
}

Result<BackfillReport> ScheduleDesk::Backfill(TenantId tenant, const BackfillRequest& request) {
    auto schedule = Get(tenant, request.name);
    if (!schedule) return schedule.error();
    auto instants = InstantsIn(*schedule, request, store_.Now());
    if (!instants) return instants.error();
    std::set<Time> decided;
    store::RunsRequest look{
        .schedule = schedule->id,
        .from = request.from,
        .to = request.to,
        .before = {},
        .before_entity = {},
        .limit = model::limits::kListPage};
    for (;;) {
        auto page = schedules_.Runs(look);
        if (page.empty()) break;
        for (const model::ScheduleRun& run : page) {
            if (run.task.valid()) decided.insert(run.instant);
        }
        look.before = page.back().instant;
        look.before_entity = page.back().entity;
    }
    BackfillReport report;
    for (Time at : *instants) {
        decided.contains(at) ? static_cast<void>(++report.decided) : report.missing.push_back(at);
    }
    if (!request.dry_run) FillIn(*schedule, report.missing, report);
    return report;
}

// ---- calendars and visits ----------------------------------------------------------------------

Result<void> ScheduleDesk::CheckRoomFor(
    const std::vector<model::Calendar>& there, std::span<const model::Calendar> wanted
) {
    auto is_new = [&](const model::Calendar& calendar) {
        return std::ranges::find(there, calendar.name, &model::Calendar::name) == there.end();
    };
    auto more = std::ranges::count_if(wanted, is_new);
    auto all = there.size() + static_cast<std::size_t>(more);
    if (more == 0 || all <= static_cast<std::size_t>(model::limits::kCalendars)) return {};
    return MakeError(
        Code::kLimit,
        "there are {} calendars, and the limit is {}: remove one",
        there.size(),
        model::limits::kCalendars
    );
}

Result<void> ScheduleDesk::PutCalendar(const model::Calendar& calendar) {
    if (auto valid = model::Validate(calendar); !valid) return valid;
    auto room = CheckRoomFor(schedules_.Calendars(calendar.tenant), {&calendar, 1});
    if (!room) return room;
    schedules_.PutCalendar(calendar);
    Changed();
    return {};
}

Result<void> ScheduleDesk::RemoveCalendar(TenantId tenant, std::string_view name) {
    for (const Schedule& schedule : List(tenant)) {
        if (std::ranges::find(schedule.spec.except, name) == schedule.spec.except.end()) continue;
        return MakeError(
            Code::kConflict,
            "calendar {} is named by schedule {}: change that first",
            Quoted(name),
            Quoted(schedule.spec.name)
        );
    }
    if (schedules_.RemoveCalendar(tenant, name)) return {};
    return MakeError(Code::kNotFound, "there is no calendar {}", Quoted(name));
}

Result<Schedule> ScheduleDesk::OfVisits(TenantId tenant, std::string_view name) {
    auto schedule = Get(tenant, name);
    if (!schedule || schedule->spec.timing.kind == Kind::kVisits) return schedule;
    return MakeError(
        Code::kInvalid, "schedule {} is not one of visits: it has no entities", Quoted(name)
    );
}

Result<void> ScheduleDesk::PutVisits(
    TenantId tenant, std::string_view name, std::span<const model::NewVisit> visits
) {
    auto schedule = OfVisits(tenant, name);
    if (!schedule) return schedule.error();
    Time now = store_.Now();
    std::vector<store::ScheduleStore::VisitPut> puts;
    for (const model::NewVisit& visit : visits) {
        if (auto valid = model::Validate(visit); !valid) return valid;
        puts.push_back({visit, model::FirstVisit(schedule->spec, visit, now)});
    }
    std::span<const store::ScheduleStore::VisitPut> left(puts);
    while (!left.empty()) {
        auto some = left.first(std::min<std::size_t>(model::limits::kVisitsPut, left.size()));
        left = left.subspan(some.size());
        if (auto done = schedules_.PutVisits(schedule->id, some); !done) return done;
    }
    Changed();
    return {};
}

Result<int> ScheduleDesk::RemoveVisits(
    TenantId tenant, std::string_view name, std::span<const std::string> entities
) {
    auto schedule = OfVisits(tenant, name);
    if (!schedule) return schedule.error();
    return schedules_.RemoveVisits(schedule->id, entities);
}

Result<std::vector<model::Visit>> ScheduleDesk::Visits(
    TenantId tenant, std::string_view name, store::VisitsRequest request
) {
    if (auto limit = CheckLimit(request.limit); !limit) return limit.error();
    auto schedule = OfVisits(tenant, name);
    if (!schedule) return schedule.error();
    request.schedule = schedule->id;
    return schedules_.Visits(request);
}

}  // namespace stint::services
