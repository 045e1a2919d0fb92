#include "model/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/check.h"
#include "base/json.h"
#include "base/result.h"
#include "base/text.h"
#include "model/instant_range.h"
#include "model/schedule_plan.h"
#include "model/time_text.h"

namespace stint::model {

namespace {

using base::MakeError;
using base::Quoted;
using Kind = TimingSpec::Kind;

Result<void> CheckName(std::string_view field, std::string_view value, std::size_t limit) {
    static constexpr std::string_view kMarks = "._-:/@+";
    bool good = !value.empty() && std::all_of(value.begin(), value.end(), [](unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               kMarks.find(static_cast<char>(c)) != std::string_view::npos;
    });
    if (!good) {
        return MakeError(
            Code::kInvalid, "{} is {}; use letters, digits and . _ - : / @ +", field, Quoted(value)
        );
    }
    if (value.size() <= limit) return {};
    return MakeError(
        Code::kLimit, "{} is {} bytes; the limit is {} bytes", field, value.size(), limit
    );
}

Result<void> CheckBetween(std::string_view field, Duration value, Duration low, Duration high) {
    if (value >= low && value <= high) return {};
    return MakeError(
        Code::kInvalid,
        "{} is {}; it must be between {} and {}",
        field,
        FormatDuration(value),
        FormatDuration(low),
        FormatDuration(high)
    );
}

Result<void> CheckStart(const TimingSpec& timing) {
    if (!timing.start) return {};
    bool first = timing.kind == Kind::kAfterEnd || timing.kind == Kind::kAfterStart;
    std::string_view field = timing.kind == Kind::kEvery ? "anchor" : first ? "first" : "at";
    return CheckInstant(field, *timing.start);
}

Result<void> CheckTiming(const ScheduleSpec& spec) {
    const TimingSpec& timing = spec.timing;
    if (auto start = CheckStart(timing); !start) return start;
    switch (timing.kind) {
        case Kind::kCron: {
            auto cron = Cron::Parse(timing.cron);
            return cron ? Result<void>() : cron.error();
        }
        case Kind::kEvery:
            return CheckBetween("every", timing.every, limits::kIntervalMin, limits::kDelayMax);
        case Kind::kAfterEnd:
            return CheckBetween("after_end", timing.after_end, Duration{0}, limits::kDelayMax);
        case Kind::kAfterStart:
            return CheckBetween(
                "after_start", timing.every, limits::kIntervalMin, limits::kDelayMax
            );
        case Kind::kOnce:
            if (!timing.start) return MakeError(Code::kInvalid, "at is missing; name the instant");
            if (spec.except.empty()) return {};
            return MakeError(
                Code::kInvalid,
                "except is given together with at; a single instant is either wanted or not"
            );
        case Kind::kVisits:
            return CheckBetween("visits", timing.every, limits::kIntervalMin, limits::kDelayMax);
    }
    return {};
}

// Whose visits overlap is each entity's own affair, and what was missed is made up for once.
Result<void> CheckVisits(const ScheduleSpec& spec) {
    if (spec.overlap != OverlapPolicy::kSkip && spec.overlap != OverlapPolicy::kAllow) {
        return MakeError(
            Code::kInvalid,
            "overlap is {}, which visits do not have: use skip (no visit of an entity while its "
            "last one is not over) or allow",
            OverlapName(spec.overlap)
        );
    }
    const MisfirePolicy usual, &misfire = spec.misfire;
    if (misfire.kind != usual.kind || misfire.grace != usual.grace ||
        misfire.window != usual.window || misfire.limit != usual.limit) {
        return MakeError(
            Code::kInvalid,
            "misfire is given together with visits, of which those that were missed are made up "
            "for once: leave it out"
        );
    }
    bool key = !spec.task.unique_key.empty() || spec.task.debounce;
    if (!key || spec.overlap == OverlapPolicy::kAllow) return {};
    return MakeError(
        Code::kInvalid,
        "task.{} is given together with visits: one key would stand for all entities, and the "
        "visits of each do not overlap anyway; leave it out, or say overlap allow",
        spec.task.debounce ? "debounce" : "unique"
    );
}

// What a run sets itself, or what would make all runs one task.
Result<void> CheckTemplate(const ScheduleSpec& spec) {
    if (spec.steps.empty()) return CheckTaskToCome(spec.task, spec.tenant, "task.", 1);
    if (!spec.task.type.empty()) {
        return MakeError(Code::kInvalid, "task and steps are both given; give one of them");
    }
    return ValidateSteps(spec.steps, spec.tenant);
}

// The input of the task, or of those of the steps, must have room for the fields.
Result<void> CheckIsObject(std::string_view field, const NewTask& task) {
    if (base::ReadJson(task.input).is_object()) return {};
    return MakeError(
        Code::kInvalid,
        "{} is {}; it must be an object to receive instant_field or entity_field",
        field,
        Quoted(task.input)
    );
}

Result<void> CheckInputFields(const ScheduleSpec& spec) {
    if (spec.instant_field.empty() && spec.entity_field.empty()) return {};
    for (const std::string& field : {spec.instant_field, spec.entity_field}) {
        if (!field.empty() && (field.size() > limits::kKey || base::HasControl(field))) {
            return MakeError(
                Code::kInvalid,
                "instant_field or entity_field is {}; use a short name",
                Quoted(field)
            );
        }
    }
    if (spec.instant_field == spec.entity_field) {
        return MakeError(
            Code::kInvalid,
            "instant_field and entity_field are both {}; give them two names",
            Quoted(spec.instant_field)
        );
    }
    if (!spec.entity_field.empty() && spec.timing.kind != Kind::kVisits) {
        return MakeError(
            Code::kInvalid, "entity_field is given, but only a schedule of visits has entities"
        );
    }
    if (spec.steps.empty()) return CheckIsObject("task.input", spec.task);
    for (const Step& step : spec.steps) {
        for (const NewTask& task : step.tasks) {
            std::string field = fmt::format("the input of {} in step {}", task.type, step.name);
            if (auto object = CheckIsObject(field, task); !object) return object;
        }
    }
    return {};
}

// What each run adds must not be what keeps every one of them from its task.
Result<void> CheckRun(const ScheduleSpec& spec) {
    constexpr Time kLongText{std::chrono::microseconds{1}};
    const std::string long_entity(limits::kEntity, '"');
    Schedule schedule;
    schedule.spec = spec;
    auto valid = Validate(TaskOf(schedule, kLongText, long_entity, RunCause::kManual));
    if (valid) return {};
    return MakeError(
        valid.error().code,
        "task.{} (every run adds the tag {} and the fields that are to be filled in)",
        valid.error().message,
        Quoted("schedule:" + spec.name)
    );
}

std::optional<std::chrono::local_days> ParseDate(std::string_view text) {
    if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
    auto number = [&](std::size_t from, std::size_t size) {
        int value = -1;
        const char* end = text.data() + from + size;
        auto [rest, error] = std::from_chars(text.data() + from, end, value);
        return error == std::errc{} && rest == end ? value : -1;
    };
    int year = number(0, 4), month = number(5, 2), day = number(8, 2);
    if (year < 0 || month < 0 || day < 0) return std::nullopt;
    std::chrono::year_month_day date{
        std::chrono::year(year),
        std::chrono::month(static_cast<unsigned>(month)),
        std::chrono::day(static_cast<unsigned>(day))};
    if (!date.ok()) return std::nullopt;
    return std::chrono::local_days(date);
}

}  // namespace

Result<void> Validate(const ScheduleSpec& spec) {
    if (auto name = CheckName("name", spec.name, limits::kScheduleName); !name) return name;
    if (!spec.tenant.valid()) {
        return MakeError(Code::kInvalid, "tenant is {}; it must be 1 or more", spec.tenant.value());
    }
    if (auto zone = CheckZoneName(spec.zone); !zone) return zone;
    if (auto timing = CheckTiming(spec); !timing) return timing;
    if (auto misfire = Validate(spec.misfire); !misfire) return misfire;
    if (spec.overlap > OverlapPolicy::kCancelRunning) {
        return MakeError(
            Code::kInvalid,
            "overlap is {}; use allow, skip, queue_one or cancel_running",
            static_cast<int>(spec.overlap)
        );
    }
    if (spec.timing.kind == Kind::kVisits) {
        if (auto visits = CheckVisits(spec); !visits) return visits;
    }
    auto jitter = CheckBetween("jitter", spec.jitter, Duration{0}, limits::kDelayMax);
    if (!jitter) return jitter;
    auto keep =
        CheckBetween("keep_runs", spec.keep_runs, std::chrono::hours{1}, limits::kRetentionMax);
    if (!keep) return keep;
    for (const std::string& calendar : spec.except) {
        if (auto name = CheckName("except", calendar, limits::kScheduleName); !name) return name;
    }
    if (auto task = CheckTemplate(spec); !task) return task;
    if (auto fields = CheckInputFields(spec); !fields) return fields;
    return CheckRun(spec);
}

OverlapPolicy UsualOverlap(TimingSpec::Kind kind) {
    return kind == Kind::kVisits ? OverlapPolicy::kSkip : OverlapPolicy::kAllow;
}

bool SameTiming(const ScheduleSpec& one, const ScheduleSpec& other) {
    const TimingSpec &a = one.timing, &b = other.timing;
    return a.kind == b.kind && a.cron == b.cron && one.zone == other.zone &&
           a.changes.gap == b.changes.gap && a.changes.fold == b.changes.fold &&
           a.every == b.every && a.after_end == b.after_end && a.start == b.start;
}

Timing TimingOf(const ScheduleSpec& spec, const Zone& zone, Time created_at) {
    const TimingSpec& timing = spec.timing;
    Time start = timing.start.value_or(created_at);
    switch (timing.kind) {
        case Kind::kCron: {
            auto cron = Cron::Parse(timing.cron);
            CHECK(cron.has_value());
            return CronTiming{std::move(*cron), zone, timing.changes};
        }
        case Kind::kEvery:
            return IntervalTiming{timing.every, start};
        case Kind::kAfterEnd:
            return DelayTiming{.delay = timing.after_end, .first = start};
        case Kind::kAfterStart:
            return DelayTiming{.delay = timing.every, .first = start, .from_start = true};
        case Kind::kOnce:
        case Kind::kVisits:
            break;
    }
    CHECK(timing.kind == Kind::kOnce);
    return OnceTiming{start};
}

Result<void> Validate(const Calendar& calendar) {
    if (auto name = CheckName("calendar", calendar.name, limits::kScheduleName); !name) return name;
    if (calendar.dates.size() > limits::kCalendarDates) {
        return MakeError(
            Code::kLimit,
            "calendar {} has {} dates; the limit is {}: leave out years that are over",
            Quoted(calendar.name),
            calendar.dates.size(),
            limits::kCalendarDates
        );
    }
    for (const std::string& date : calendar.dates) {
        if (ParseDate(date)) continue;
        return MakeError(
            Code::kInvalid,
            "calendar {} has {}, which is no date; write 2026-12-25",
            Quoted(calendar.name),
            Quoted(date)
        );
    }
    return {};
}

ExcludedDays DaysOf(const std::vector<const Calendar*>& calendars, const Zone& zone) {
    ExcludedDays excluded{.zone = zone, .days = {}};
    for (const Calendar* calendar : calendars) {
        for (const std::string& date : calendar->dates) {
            if (auto day = ParseDate(date)) excluded.days.insert(*day);
        }
    }
    return excluded;
}

Result<void> Validate(const NewVisit& visit) {
    bool bad =
        visit.entity.empty() || !base::IsUtf8(visit.entity) || base::HasControl(visit.entity);
    if (bad) {
        return MakeError(
            Code::kInvalid,
            "entity is {}; it must be a text of one line that is not empty",
            Quoted(visit.entity)
        );
    }
    if (visit.entity.size() > limits::kEntity) {
        return MakeError(
            Code::kLimit,
            "entity is {} bytes; the limit is {} bytes",
            visit.entity.size(),
            limits::kEntity
        );
    }
    if (!visit.every) return {};
    return CheckBetween("every", *visit.every, limits::kIntervalMin, limits::kDelayMax);
}

std::string_view RunCauseName(RunCause cause) {
    static constexpr std::array<std::string_view, 3> kNames = {"timed", "manual", "backfill"};
    return kNames.at(static_cast<std::size_t>(cause));
}

std::string_view OverlapName(OverlapPolicy policy) {
    static constexpr std::array<std::string_view, 4> kNames = {
        "allow", "skip", "queue_one", "cancel_running"};
    return kNames.at(static_cast<std::size_t>(policy));
}

std::string_view MisfireName(MisfirePolicy::Kind kind) {
    static constexpr std::array<std::string_view, 3> kNames = {"skip", "once", "all"};
    return kNames.at(static_cast<std::size_t>(kind));
}

}  // namespace stint::model
