#include "cli/schedule_view.h"

#include <fmt/format.h>

#include "base/text.h"
#include "model/time_text.h"

namespace stint::cli {

namespace {

using Kind = model::TimingSpec::Kind;

Cell StateOf(const model::Schedule& schedule) {
    if (schedule.paused) return {"paused", Tint::kWarn};
    bool visits = schedule.spec.timing.kind == Kind::kVisits;
    if (!schedule.next_at && !visits) return {"over", Tint::kFaint};
    return {"active", Tint::kGood};
}

std::string TaskText(const model::ScheduleSpec& spec) {
    return spec.steps.empty() ? spec.task.type : fmt::format("{} steps", spec.steps.size());
}

}  // namespace

std::string TimeText(const std::optional<Time>& at) {
    return at ? base::Iso8601(*at) : "-";
}

std::string TimingText(const model::ScheduleSpec& spec) {
    const model::TimingSpec& timing = spec.timing;
    switch (timing.kind) {
        case Kind::kCron:
            return fmt::format("cron {} {}", timing.cron, spec.zone);
        case Kind::kEvery:
            return "every " + model::FormatDuration(timing.every);
        case Kind::kAfterEnd:
            return model::FormatDuration(timing.after_end) + " after the end";
        case Kind::kAfterStart:
            return model::FormatDuration(timing.every) + " after the start";
        case Kind::kOnce:
            return "once at " + TimeText(timing.start);
        case Kind::kVisits:
            return "visits every " + model::FormatDuration(timing.every);
    }
    return {};
}

void PrintSchedules(const Invocation& invocation, const std::vector<model::Schedule>& schedules) {
    Listing listing;
    listing.name = "schedules";
    listing.headers = {"NAME", "STATE", "WHEN", "TASK", "NEXT", "LAST"};
    for (const model::Schedule& schedule : schedules) {
        listing.rows.push_back(
            {{schedule.spec.name},
             StateOf(schedule),
             {TimingText(schedule.spec)},
             {TaskText(schedule.spec)},
             {TimeText(schedule.paused ? std::nullopt : schedule.next_at)},
             {TimeText(schedule.last_instant)}}
        );
        listing.objects.push_back(node::ToJson(schedule));
        listing.ids.push_back(schedule.spec.name);
    }
    invocation.out().Print(listing);
}

void PrintSchedule(const Invocation& invocation, const model::Schedule& schedule) {
    invocation.out().Print(
        {{"schedule", {schedule.spec.name}},
         {"state", StateOf(schedule)},
         {"when", {TimingText(schedule.spec)}},
         {"next", {TimeText(schedule.next_at)}},
         {"last instant", {TimeText(schedule.last_instant)}},
         {"last task", {schedule.last_task.valid() ? schedule.last_task.ToString() : "-"}},
         {"revision", {std::to_string(schedule.revision)}},
         {"changed by", {schedule.changed_by.empty() ? "-" : schedule.changed_by}},
         {"definition", {model::ScheduleToJson(schedule.spec)}}},
        node::ToJson(schedule),
        schedule.spec.name
    );
}

namespace {

// Of an execution: how it stands.
Cell DetailOf(const node::RunSeen& seen) {
    if (!seen.execution) return {seen.run.skipped, Tint::kFaint};
    const model::TaskRecord& execution = *seen.execution;
    std::string step = services::StepText(execution);
    switch (execution.state) {
        case model::State::kBlocked:
            return {"step " + step, Tint::kBusy};
        case model::State::kComplete:
            return {execution.warning ? "complete: " + step : "complete", Tint::kGood};
        case model::State::kDead:
        case model::State::kCancelled:
            return {fmt::format("{}: {}", model::StateName(execution.state), step), Tint::kBad};
        default:
            return {std::string(model::StateName(execution.state)), Tint::kBusy};
    }
}

}  // namespace

void PrintRuns(const Invocation& invocation, const std::vector<node::RunSeen>& runs) {
    Listing listing;
    listing.name = "runs";
    listing.headers = {"INSTANT", "ENTITY", "CAUSE", "TASK", "DETAIL"};
    for (const node::RunSeen& seen : runs) {
        const model::ScheduleRun& run = seen.run;
        listing.rows.push_back(
            {{base::Iso8601(run.instant)},
             {run.entity.empty() ? "-" : run.entity},
             {std::string(model::RunCauseName(run.cause))},
             {run.task.valid() ? run.task.ToString() : "-"},
             DetailOf(seen)}
        );
        listing.objects.push_back(node::ToJson(seen));
        if (run.task.valid()) listing.ids.push_back(run.task.ToString());
    }
    invocation.out().Print(listing);
    if (runs.empty()) invocation.Say("no runs yet");
}

void PrintPreview(const Invocation& invocation, const std::vector<model::PreviewEntry>& entries) {
    Listing listing;
    listing.name = "instants";
    listing.headers = {"AT", "LOCAL", "NOTE"};
    for (const model::PreviewEntry& entry : entries) {
        std::string note = entry.oddity;
        if (note.empty() && entry.excluded) note = "no run: an excluded day";
        listing.rows.push_back(
            {{base::Iso8601(entry.at), entry.excluded ? Tint::kFaint : Tint::kPlain},
             {entry.local},
             {note, Tint::kWarn}}
        );
        listing.objects.push_back(node::ToJson(entry));
        listing.ids.push_back(base::Iso8601(entry.at));
    }
    invocation.out().Print(listing);
    if (entries.empty()) invocation.Say("nothing is to come");
}

void PrintVisits(const Invocation& invocation, const std::vector<model::Visit>& visits) {
    Listing listing;
    listing.name = "visits";
    listing.headers = {"ENTITY", "EVERY", "NEXT", "LAST"};
    for (const model::Visit& visit : visits) {
        listing.rows.push_back(
            {{visit.entity},
             {visit.every ? model::FormatDuration(*visit.every) : "-"},
             {base::Iso8601(visit.next_at)},
             {TimeText(visit.last_at)}}
        );
        listing.objects.push_back(node::ToJson(visit));
        listing.ids.push_back(visit.entity);
    }
    invocation.out().Print(listing);
    if (visits.empty()) invocation.Say("no entities");
}

void PrintSteps(const Invocation& invocation, const std::vector<node::ApplyStep>& steps) {
    if (invocation.out().format() != Format::kTable) {
        Listing listing;
        listing.name = "steps";
        for (const node::ApplyStep& step : steps) {
            listing.objects.push_back(node::ToJson(step));
            listing.ids.push_back(step.name);
        }
        return invocation.out().Print(listing);
    }
    for (const node::ApplyStep& step : steps) {
        static constexpr std::string_view kMarks = "+~ -";
        char mark = kMarks.at(static_cast<std::size_t>(step.kind));
        invocation.out().Line(fmt::format("{} {} {}", mark, step.what, step.name));
        for (const model::SpecDifference& difference : step.differences) {
            auto shown = [](const std::string& json) { return json.empty() ? "-" : json; };
            invocation.out().Line(fmt::format(
                "    {}: {} → {}",
                difference.member,
                shown(difference.before),
                shown(difference.after)
            ));
        }
    }
}

}  // namespace stint::cli
