#include "model/schedule_plan.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"

namespace stint::model {

namespace {

using std::chrono::seconds;

// While a run is waited for, the schedule is looked at again: soon at first, then at an eighth of
// the time that was waited.
Time LookAgain(Time since, Time now) {
    auto waited = std::chrono::duration_cast<Duration>(now - since) / 8;
    return now + std::clamp<Duration>(waited, seconds{1}, seconds{30});
}

// Between 0 and 1, always the same for the same text.
double FractionOf(const std::string& text) {
    std::string digest = base::Sha256Hex(text);
    std::uint64_t bits = 0;
    std::from_chars(digest.data(), digest.data() + 13, bits, 16);
    return static_cast<double>(bits) * 0x1p-52;
}

Duration Share(Duration whole, double fraction) {
    return Duration(static_cast<Duration::rep>(static_cast<double>(whole.count()) * fraction));
}

std::string NotOver(const std::vector<TaskId>& live) {
    return fmt::format("the run before is not over (task {})", live.back().value());
}

// Which of the instants that are due become tasks.
class Overlapping {
public:
    Overlapping(const Schedule& schedule, const RunsNow& runs, SchedulePlan& plan)
        : schedule_(schedule), runs_(runs), plan_(plan) {}

    void Decide(std::vector<Time> due) {
        // One that waits goes first, whatever the policy is by now.
        if (schedule_.queued_at) due.insert(due.begin(), *schedule_.queued_at);
        if (schedule_.spec.overlap == OverlapPolicy::kAllow) {
            plan_.fire = std::move(due);
            return;
        }
        plan_.running = runs_.live;
        if (schedule_.spec.overlap == OverlapPolicy::kSkip) return Skip(due);
        if (runs_.live.empty() && !due.empty()) {
            plan_.fire = {due.front()};
            due.erase(due.begin());
        }
        Queue(due);
    }

private:
    void Skip(const std::vector<Time>& due) {
        for (Time at : due) {
            if (!runs_.live.empty()) {
                plan_.skipped.push_back({at, NotOver(runs_.live)});
            } else if (plan_.fire.empty()) {
                plan_.fire = {at};
            } else {
                plan_.skipped.push_back({at, "the run before, of the same moment, is not over"});
            }
        }
    }
    void Queue(const std::vector<Time>& due) {
        if (due.empty()) return;
        for (std::size_t i = 0; i + 1 < due.size(); ++i) {
            plan_.skipped.push_back({due[i], "a later instant waits in its place"});
        }
        plan_.queued_at = due.back();
        // Asking twice does no harm, and whoever asked the first time may not have lived to fire.
        if (schedule_.spec.overlap == OverlapPolicy::kCancelRunning) plan_.cancel = runs_.live;
    }

    const Schedule& schedule_;
    const RunsNow& runs_;
    SchedulePlan& plan_;
};

void PlanDelayed(
    const Schedule& schedule,
    const DelayTiming& timing,
    const ExcludedDays& excluded,
    const RunsNow& runs,
    Time now,
    SchedulePlan& plan
) {
    plan.running = schedule.running;
    if (schedule.queued_at) {
        plan.skipped.push_back({*schedule.queued_at, "the timing was changed while it waited"});
    }
    if (!runs.live.empty()) {
        plan.next_at = LookAgain(schedule.last_instant.value_or(now), now);
        return;
    }
    Time due = timing.first;
    if (schedule.last_instant) {
        // A run that was refused a task, or never began, counts from its instant.
        std::optional<Time> from = timing.from_start ? runs.started_at : runs.ended_at;
        due = from.value_or(*schedule.last_instant) + timing.delay;
        due = std::max(due, *schedule.last_instant + std::chrono::microseconds{1});
    }
    due = excluded.FirstAllowed(due);
    if (due > now) {
        plan.next_at = due;
        return;
    }
    plan.fire = {due};
    plan.running.clear();
    plan.next_at = LookAgain(now, now);
}

}  // namespace

bool RunsMatter(const ScheduleSpec& spec) {
    const TimingSpec::Kind kind = spec.timing.kind;
    return spec.overlap != OverlapPolicy::kAllow || kind == TimingSpec::Kind::kAfterEnd ||
           kind == TimingSpec::Kind::kAfterStart;
}

SchedulePlan PlanSchedule(
    const Schedule& schedule,
    const Timing& timing,
    const ExcludedDays& excluded,
    const RunsNow& runs,
    Time now
) {
    SchedulePlan plan;
    plan.considered_at = std::max(schedule.considered_at, now);
    if (const auto* delay = std::get_if<DelayTiming>(&timing)) {
        PlanDelayed(schedule, *delay, excluded, runs, now, plan);
        return plan;
    }
    FirePlan due = PlanFires(timing, schedule.spec.misfire, schedule.considered_at, now, excluded);
    plan.next_at = due.next;
    if (due.skipped_to) {
        plan.skipped.push_back({*due.skipped_to, "missed: no node looked in time"});
    }
    Overlapping(schedule, runs, plan).Decide(std::move(due.fire));
    if (plan.queued_at) {
        Time look = LookAgain(*plan.queued_at, now);
        plan.next_at = plan.next_at ? std::min(*plan.next_at, look) : look;
    }
    return plan;
}

VisitPlan PlanVisit(
    const ScheduleSpec& spec, const Visit& visit, const ExcludedDays& excluded, Time now
) {
    VisitPlan plan;
    if (visit.next_at > now) {
        plan.next_at = visit.next_at;
        return plan;
    }
    plan.fire = !excluded.Has(now);
    // On a day without visits it waits for the same time of the next: those that were spread stay
    // so.
    Duration step =
        plan.fire ? visit.every.value_or(spec.timing.every) : Duration(std::chrono::days{1});
    // Whether that is a day with visits is asked when it has come: calendars change.
    plan.next_at = VisitAfter(now, visit.next_at, step);
    return plan;
}

Time VisitAfter(Time now, Time next_at, Duration every) {
    if (next_at > now) return next_at;
    std::chrono::microseconds step = every;
    return next_at + ((now - next_at) / step + 1) * step;
}

Time FirstVisit(const ScheduleSpec& spec, const NewVisit& visit, Time now) {
    double fraction = FractionOf(spec.name + "\n" + visit.entity);
    return now + Share(visit.every.value_or(spec.timing.every), fraction);
}

namespace {

// At most one live task per schedule and entity.
std::string VisitKey(const Schedule& schedule, const std::string& entity) {
    std::string key = fmt::format("visit:{}:{}", schedule.id.value(), entity);
    if (key.size() <= limits::kKey) return key;
    return fmt::format("visit:{}:{}", schedule.id.value(), base::Sha256Hex(entity));
}

}  // namespace

NewTask TaskOf(
    const Schedule& schedule, Time instant, const std::string& entity, RunCause cause, Time now
) {
    const ScheduleSpec& spec = schedule.spec;
    const std::string mark = "schedule:" + spec.name;
    auto fill_in = [&](NewTask& task) {
        if (spec.instant_field.empty() && spec.entity_field.empty()) return;
        base::OrderedJson input = base::ReadOrderedJson(task.input);
        if (!spec.instant_field.empty()) input[spec.instant_field] = base::Iso8601(instant);
        if (!spec.entity_field.empty()) input[spec.entity_field] = entity;
        task.input = base::JsonText(input);
    };
    NewTask task = spec.task;
    if (spec.steps.empty()) {
        task.tenant = spec.tenant;
        task.actor = mark;
        task.tags.push_back(mark);
        fill_in(task);
    } else {
        StepsInput input{.steps = spec.steps, .actor = mark, .tags = {mark}};
        for (Step& step : input.steps) std::ranges::for_each(step.tasks, fill_in);
        task = TaskOfSteps(input, spec.tenant);
    }
    if (spec.timing.kind == TimingSpec::Kind::kVisits && spec.overlap == OverlapPolicy::kSkip &&
        !task.debounce) {
        task.unique_key = VisitKey(schedule, entity);
        task.unique_policy = UniquePolicy::kReturnExisting;
    }
    if (spec.jitter > Duration::zero() && cause == RunCause::kTimed && !task.debounce) {
        std::string seed = fmt::format(
            "{}\n{}\n{}", schedule.id.value(), instant.time_since_epoch().count(), entity
        );
        Time from = entity.empty() ? instant : std::max(instant, now);
        task.run_at = from + Share(spec.jitter, FractionOf(seed));
    }
    return task;
}

Duration KeepOf(const ScheduleSpec& spec, RunCause cause) {
    if (cause == RunCause::kBackfill) return limits::kBackfillMarkKept;
    return std::max(spec.keep_runs, spec.misfire.window + limits::kScheduleMarkSlack);
}

namespace {

std::string LocalText(Time at, const Zone& zone) {
    Instant instant = std::chrono::floor<Seconds>(at);
    ZonePeriod period = zone.At(instant);
    std::chrono::sys_seconds shown{period.ToLocal(instant).time_since_epoch()};
    return fmt::format("{:%Y-%m-%d %H:%M:%S} {}", fmt::gmtime(shown), period.abbreviation);
}

std::string_view OddityText(Occurrence::Oddity oddity) {
    switch (oddity) {
        case Occurrence::Oddity::kNone:
            return "";
        case Occurrence::Oddity::kMoved:
            return "clocks go forward over its time on this day: moved to the end of the gap";
        case Occurrence::Oddity::kFirst:
            return "clocks go back on this day: the first time they show this";
        case Occurrence::Oddity::kSecond:
            return "clocks go back on this day: the second time they show this";
    }
    return "";
}

std::string ClockText(Local local) {
    std::chrono::sys_seconds shown{local.time_since_epoch()};
    bool whole = local.time_since_epoch() % std::chrono::minutes{1} == Seconds{0};
    return fmt::format(fmt::runtime(whole ? "{:%H:%M}" : "{:%H:%M:%S}"), fmt::gmtime(shown));
}

// One look ahead. Clocks that skip a time may leave nothing to see of it.
class Previewing {
public:
    Previewing(const Timing& timing, const ExcludedDays& excluded, Time after)
        : timing_(timing),
          excluded_(excluded),
          cron_(std::get_if<CronTiming>(&timing)),
          zone_(cron_ != nullptr ? cron_->zone : excluded.zone),
          after_(after),
          gaps_after_(std::chrono::floor<Seconds>(after)) {}

    std::optional<PreviewEntry> Next() {
        auto at = NextInstant(timing_, after_);
        if (!at) return std::nullopt;
        if (auto skipped = SkippedUpTo(*at)) return skipped;
        PreviewEntry entry;
        entry.at = *at;
        entry.local = LocalText(*at, zone_);
        entry.excluded = excluded_.Has(*at);
        if (cron_ != nullptr && !entry.excluded) {
            auto found = NextOccurrence(
                cron_->cron, zone_, cron_->changes, std::chrono::floor<Seconds>(after_)
            );
            if (found) entry.oddity = OddityText(found->oddity);
        }
        // One line is enough for a whole day without runs.
        after_ = entry.excluded ? excluded_.EndOfDay(*at) - std::chrono::microseconds{1} : *at;
        gaps_after_ = std::max(gaps_after_, std::chrono::floor<Seconds>(after_));
        return entry;
    }

private:
    // What clocks jump over until then, each gap once.
    std::optional<PreviewEntry> SkippedUpTo(Time until) {
        bool skips = cron_ != nullptr && cron_->changes.gap == GapPolicy::kSkip;
        if (!skips || cron_->cron.every_hour()) return std::nullopt;
        while (auto gap =
                   NextInGap(cron_->cron, zone_, gaps_after_, std::chrono::floor<Seconds>(until))) {
            gaps_after_ = gap->at;
            if (excluded_.Has(gap->at)) continue;
            PreviewEntry entry;
            entry.at = gap->at;
            entry.local = LocalText(gap->at, zone_);
            entry.oddity =
                fmt::format("the clocks skip {} on this day: no run", ClockText(gap->local));
            entry.excluded = true;
            return entry;
        }
        return std::nullopt;
    }

    const Timing& timing_;
    const ExcludedDays& excluded_;
    const CronTiming* cron_;
    const Zone& zone_;
    Time after_;
    Instant gaps_after_;
};

}  // namespace

std::vector<PreviewEntry> Preview(
    const Timing& timing, const ExcludedDays& excluded, Time after, int count
) {
    std::vector<PreviewEntry> entries;
    Previewing previewing(timing, excluded, after);
    int wanted = 0;
    while (wanted < count && static_cast<int>(entries.size()) < 2 * count) {
        auto entry = previewing.Next();
        if (!entry) break;
        wanted += entry->excluded ? 0 : 1;
        entries.push_back(std::move(*entry));
    }
    return entries;
}

}  // namespace stint::model
