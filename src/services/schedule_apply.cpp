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
    for (const model::Calendar& calendar : wanted->calendars) {
        steps.push_back(StepFor(calendars, calendar));
        bool same = steps.back().kind == ApplyStep::Kind::kKeep;
        if (same || request.dry_run) continue;
        if (auto put = PutCalendar(calendar); !put) return put.error();
    }
    std::map<std::string, Schedule> there;
    for (Schedule& schedule : List(request.tenant)) {
        std::string name = schedule.spec.name;
        there.emplace(name, std::move(schedule));
    }
    for (const ScheduleSpec& spec : wanted->schedules) {
        if (auto zone = zones_(spec.zone); !zone) {
            return MakeError(
                zone.error().code, "schedule {}: {}", Quoted(spec.name), zone.error().message
            );
        }
        auto found = there.find(spec.name);
        bool is_there = found != there.end();
        steps.push_back(StepFor(spec.name, is_there ? &found->second.spec : nullptr, &spec));
        int revision = is_there ? found->second.revision : 0;
        if (is_there) there.erase(found);
        if (steps.back().kind == ApplyStep::Kind::kKeep || request.dry_run) continue;
        auto put = Put(spec, revision, request.actor);
        if (put) continue;
        return MakeError(
            put.error().code, "schedule {}: {}", Quoted(spec.name), put.error().message
        );
    }
    if (!request.prune) return steps;
    for (const auto& [name, schedule] : there) {
        steps.push_back(StepFor(name, &schedule.spec, nullptr));
        if (!request.dry_run) (void)Remove(request.tenant, name);
    }
    return steps;
}

}  // namespace stint::services
