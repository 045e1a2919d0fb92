// Making what is there what a document says.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/json.h"
#include "base/result.h"
#include "base/text.h"
#include "services/schedule_desk.h"

namespace stint::services {

namespace {

using base::Json;
using base::MakeError;
using base::Quoted;
using model::Schedule;
using model::ScheduleSpec;

struct Wanted {
    std::vector<model::Calendar> calendars;
    std::vector<ScheduleSpec> schedules;
};

Result<void> ReadCalendars(const Json& json, TenantId tenant, Wanted& wanted) {
    if (!json.is_object()) {
        return MakeError(
            Code::kInvalid, R"(calendars is not an object; write {{"holidays": ["2026-12-25"]}})"
        );
    }
    for (const auto& [name, dates] : json.items()) {
        model::Calendar& calendar = wanted.calendars.emplace_back();
        calendar.tenant = tenant;
        calendar.name = name;
        try {
            calendar.dates = dates.get<std::vector<std::string>>();
        } catch (const Json::exception&) {
            return MakeError(Code::kInvalid, "calendar {} must be an array of dates", Quoted(name));
        }
        if (auto valid = model::Validate(calendar); !valid) return valid;
    }
    return {};
}

Result<void> ReadSchedules(const Json& json, TenantId tenant, Time now, Wanted& wanted) {
    if (!json.is_array()) {
        return MakeError(Code::kInvalid, "schedules is not an array of schedules");
    }
    std::set<std::string> names;
    for (std::size_t i = 0; i < json.size(); ++i) {
        auto spec = model::ScheduleFromJson(base::JsonText(json[i]), now);
        auto wrong = [&](const Error& error) {
            std::string name = spec && !spec->name.empty() ? Quoted(spec->name) : std::string();
            return MakeError(
                error.code,
                "schedule {}{}: {}",
                i + 1,
                name.empty() ? name : fmt::format(" ({})", name),
                error.message
            );
        };
        if (!spec) return wrong(spec.error());
        if (!json[i].contains("tenant")) spec->tenant = spec->task.tenant = tenant;
        if (spec->tenant != tenant) {
            return wrong(MakeError(
                Code::kInvalid,
                "tenant is {}; this document is applied to tenant {}",
                spec->tenant.value(),
                tenant.value()
            ));
        }
        if (auto valid = model::Validate(*spec); !valid) return wrong(valid.error());
        if (!names.insert(spec->name).second) {
            return wrong(MakeError(Code::kInvalid, "the name stands twice in the document"));
        }
        wanted.schedules.push_back(std::move(*spec));
    }
    return {};
}

Result<Wanted> Read(const ApplyRequest& request, Time now) {
    auto json = base::ParseJson(request.document, model::limits::kJsonDepth + 4);
    if (!json) return MakeError(json.error().code, "the document {}", json.error().message);
    if (!json->is_object()) {
        return MakeError(
            Code::kInvalid, R"(the document is not an object; write {{"schedules": [...]}})"
        );
    }
    Wanted wanted;
    for (const auto& [name, value] : json->items()) {
        Result<void> read;
        if (name == "calendars") {
            read = ReadCalendars(value, request.tenant, wanted);
        } else if (name == "schedules") {
            read = ReadSchedules(value, request.tenant, now, wanted);
        } else {
            read = MakeError(
                Code::kInvalid,
                "unknown member {}; the members are calendars, schedules",
                Quoted(name)
            );
        }
        if (!read) return read.error();
    }
    return wanted;
}

ApplyStep StepFor(const std::string& name, const ScheduleSpec* there, const ScheduleSpec* wanted) {
    ApplyStep step{.kind = {}, .what = "schedule", .name = name, .differences = {}};
    if (there == nullptr) {
        step.kind = ApplyStep::Kind::kCreate;
    } else if (wanted == nullptr) {
        step.kind = ApplyStep::Kind::kRemove;
    } else {
        step.differences = model::Differences(*there, *wanted);
        step.kind = step.differences.empty() ? ApplyStep::Kind::kKeep : ApplyStep::Kind::kChange;
    }
    return step;
}

ApplyStep StepFor(const std::vector<model::Calendar>& there, const model::Calendar& wanted) {
    ApplyStep step{
        .kind = ApplyStep::Kind::kKeep, .what = "calendar", .name = wanted.name, .differences = {}};
    auto found = std::ranges::find(there, wanted.name, &model::Calendar::name);
    if (found == there.end()) {
        step.kind = ApplyStep::Kind::kCreate;
    } else if (found->dates != wanted.dates) {
        step.kind = ApplyStep::Kind::kChange;
        step.differences.push_back(
            {"dates", base::JsonList(found->dates), base::JsonList(wanted.dates)}
        );
    }
    return step;
}

struct Change {
    const ScheduleSpec* spec = nullptr;
    int revision = 0;  // of what is there; 0 = nothing
};

Error Of(const ScheduleSpec& spec, const Error& error) {
    return MakeError(error.code, "schedule {}: {}", Quoted(spec.name), error.message);
}

}  // namespace

std::string_view ApplyKindName(ApplyStep::Kind kind) {
    static constexpr std::array<std::string_view, 4> kNames = {
        "create", "change", "keep", "remove"};
    return kNames.at(static_cast<std::size_t>(kind));
}

Result<std::vector<ApplyStep>> ScheduleDesk::Apply(const ApplyRequest& request) {
    auto wanted = Read(request, store_.Now());
    if (!wanted) return wanted.error();
    std::vector<ApplyStep> steps;
    std::vector<model::Calendar> calendars = schedules_.Calendars(request.tenant);
    if (auto room = CheckRoomFor(calendars, wanted->calendars); !room) return room.error();
    for (const model::Calendar& calendar : wanted->calendars) {
        steps.push_back(StepFor(calendars, calendar));
    }
    std::map<std::string, Schedule> there;
    for (Schedule& schedule : List(request.tenant)) {
        std::string name = schedule.spec.name;
        there.emplace(name, std::move(schedule));
    }
    // Everything is looked at before anything is changed.
    std::vector<Change> changes;
    Planner planner(schedules_, zones_, wanted->calendars);
    for (const ScheduleSpec& spec : wanted->schedules) {
        auto found = there.find(spec.name);
        const Schedule* old = found != there.end() ? &found->second : nullptr;
        steps.push_back(StepFor(spec.name, old != nullptr ? &old->spec : nullptr, &spec));
        if (steps.back().kind != ApplyStep::Kind::kKeep) {
            if (auto good = Check(planner, spec, old); !good) return Of(spec, good.error());
            changes.push_back({&spec, old != nullptr ? old->revision : 0});
        }
        if (old != nullptr) there.erase(found);
    }
    if (!request.prune) there.clear();
    for (const auto& [name, schedule] : there) {
        steps.push_back(StepFor(name, &schedule.spec, nullptr));
    }
    if (request.dry_run) return steps;

    for (std::size_t i = 0; i < wanted->calendars.size(); ++i) {
        if (steps[i].kind == ApplyStep::Kind::kKeep) continue;
        if (auto put = PutCalendar(wanted->calendars[i]); !put) return put.error();
    }
    for (const Change& change : changes) {
        auto put = Put(*change.spec, change.revision, request.actor);
        if (!put) return Of(*change.spec, put.error());
    }
    for (const auto& [name, schedule] : there) (void)Remove(request.tenant, name);
    return steps;
}

}  // namespace stint::services
