#include "model/schedule_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/json.h"

namespace stint::model {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Time kStart{std::chrono::seconds{1'700'000'000}};  // Tuesday, 2023-11-14 22:13:20 UTC

Time At(int year, unsigned month, unsigned day, Duration into = {}) {
    return std::chrono::sys_days{
               std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(day)} +
           into;
}

Schedule Every(Duration every, OverlapPolicy overlap = OverlapPolicy::kAllow) {
    Schedule schedule;
    schedule.id = ScheduleId(7);
    schedule.spec.name = "n";
    schedule.spec.timing = {.kind = TimingSpec::Kind::kEvery, .every = every};
    schedule.spec.overlap = overlap;
    schedule.spec.task.type = "t";
    schedule.created_at = schedule.considered_at = kStart;
    return schedule;
}

SchedulePlan Plan(const Schedule& schedule, Time now, const RunsNow& runs = {}) {
    return PlanSchedule(
        schedule, TimingOf(schedule.spec, Zone(), schedule.created_at), {}, runs, now
    );
}

const RunsNow kLive{.live = {TaskId(5)}, .ended_at = {}, .started_at = {}};

TEST(SchedulePlans, WhatIsDueFiresAndTheNextIsKnown) {
    SchedulePlan plan = Plan(Every(10min), kStart + 10min);
    EXPECT_THAT(plan.fire, ElementsAre(kStart + 10min));
    EXPECT_EQ(plan.next_at, kStart + 20min);
    EXPECT_EQ(plan.considered_at, kStart + 10min);
    EXPECT_THAT(plan.skipped, IsEmpty());
    plan = Plan(Every(10min), kStart + 9min);
    EXPECT_THAT(plan.fire, IsEmpty());
    EXPECT_EQ(plan.next_at, kStart + 10min);
}

TEST(SchedulePlans, MissedInstantsAreOneRunAndOneLineOfHistory) {
    SchedulePlan plan = Plan(Every(10min), kStart + 65min);
    EXPECT_THAT(plan.fire, ElementsAre(kStart + 60min));
    ASSERT_EQ(plan.skipped.size(), 1u);
    EXPECT_EQ(plan.skipped[0].at, kStart + 50min);
    EXPECT_THAT(plan.skipped[0].why, HasSubstr("missed"));
}

TEST(SchedulePlans, SkipLeavesOutWhileARunIsNotOver) {
    Schedule schedule = Every(10min, OverlapPolicy::kSkip);
    schedule.running = {TaskId(5)};
    SchedulePlan plan = Plan(schedule, kStart + 10min, kLive);
    EXPECT_THAT(plan.fire, IsEmpty());
    ASSERT_EQ(plan.skipped.size(), 1u);
    EXPECT_THAT(plan.skipped[0].why, HasSubstr("task 5"));
    EXPECT_THAT(plan.running, ElementsAre(TaskId(5)));
    EXPECT_EQ(plan.next_at, kStart + 20min);
    plan = Plan(schedule, kStart + 10min);
    EXPECT_THAT(plan.fire, ElementsAre(kStart + 10min));
    EXPECT_THAT(plan.running, IsEmpty());
}

TEST(SchedulePlans, QueueOneKeepsTheLatestUntilTheRunIsOver) {
    Schedule schedule = Every(10min, OverlapPolicy::kQueueOne);
    schedule.running = {TaskId(5)};
    SchedulePlan plan = Plan(schedule, kStart + 10min, kLive);
    EXPECT_THAT(plan.fire, IsEmpty());
    EXPECT_EQ(plan.queued_at, kStart + 10min);
    EXPECT_EQ(plan.next_at, kStart + 10min + 1s);

    schedule.queued_at = plan.queued_at;
    schedule.considered_at = plan.considered_at;
    plan = Plan(schedule, kStart + 20min, kLive);
    EXPECT_EQ(plan.queued_at, kStart + 20min);
    ASSERT_EQ(plan.skipped.size(), 1u);
    EXPECT_EQ(plan.skipped[0].at, kStart + 10min);

    plan = Plan(schedule, kStart + 12min);
    EXPECT_THAT(plan.fire, ElementsAre(kStart + 10min));
    EXPECT_EQ(plan.queued_at, std::nullopt);
    EXPECT_EQ(plan.next_at, kStart + 20min);
    EXPECT_THAT(plan.cancel, IsEmpty());
}

TEST(SchedulePlans, AnInstantThatWaitsIsNotForgottenWhenThePolicyChanges) {
    auto with = [](OverlapPolicy overlap) {
        Schedule schedule = Every(10min, overlap);
        schedule.queued_at = schedule.considered_at = kStart + 10min;
        schedule.running = {TaskId(5)};
        return schedule;
    };
    SchedulePlan plan = Plan(with(OverlapPolicy::kAllow), kStart + 20min, kLive);
    EXPECT_THAT(plan.fire, ElementsAre(kStart + 10min, kStart + 20min));
    plan = Plan(with(OverlapPolicy::kSkip), kStart + 12min, kLive);
    EXPECT_THAT(plan.fire, IsEmpty());
    ASSERT_EQ(plan.skipped.size(), 1u);
    EXPECT_EQ(plan.skipped[0].at, kStart + 10min);
    plan = Plan(with(OverlapPolicy::kSkip), kStart + 12min);
    EXPECT_THAT(plan.fire, ElementsAre(kStart + 10min));
    Schedule delay = with(OverlapPolicy::kQueueOne);
    delay.spec.timing = {.kind = TimingSpec::Kind::kAfterEnd, .after_end = 5min};
    plan = Plan(delay, kStart + 12min, kLive);
    ASSERT_EQ(plan.skipped.size(), 1u);
    EXPECT_EQ(plan.skipped[0].at, kStart + 10min);
    EXPECT_EQ(plan.queued_at, std::nullopt);
}

TEST(SchedulePlans, WhoWaitsForARunLooksLessAndLessOften) {
    Schedule schedule = Every(24h, OverlapPolicy::kQueueOne);
    schedule.queued_at = kStart;
    auto wait = [&](Duration waited) {
        return *Plan(schedule, kStart + waited, kLive).next_at - (kStart + waited);
    };
    EXPECT_EQ(wait(1s), 1s);
    EXPECT_EQ(wait(80s), 10s);
    EXPECT_EQ(wait(5h), 30s);
}

TEST(SchedulePlans, CancelRunningAsksForTheEndAndWaitsForIt) {
    Schedule schedule = Every(10min, OverlapPolicy::kCancelRunning);
    schedule.running = {TaskId(5)};
    SchedulePlan plan = Plan(schedule, kStart + 10min, kLive);
    EXPECT_THAT(plan.cancel, ElementsAre(TaskId(5)));
    EXPECT_THAT(plan.fire, IsEmpty());
    EXPECT_EQ(plan.queued_at, kStart + 10min);
    schedule.queued_at = plan.queued_at;
    schedule.considered_at = plan.considered_at;
    plan = Plan(schedule, kStart + 10min + 1s);
    EXPECT_THAT(plan.fire, ElementsAre(kStart + 10min));
}

TEST(SchedulePlans, ADelayCountsFromTheEndOfTheRun) {
    Schedule schedule = Every(0s);
    schedule.spec.timing = {.kind = TimingSpec::Kind::kAfterEnd, .after_end = 5min};
    SchedulePlan plan = Plan(schedule, kStart);
    EXPECT_THAT(plan.fire, ElementsAre(kStart));
    schedule.last_instant = kStart;
    schedule.running = {TaskId(5)};
    plan = Plan(schedule, kStart + 8min, kLive);
    EXPECT_THAT(plan.fire, IsEmpty());
    EXPECT_THAT(plan.running, ElementsAre(TaskId(5)));
    EXPECT_EQ(plan.next_at, kStart + 9min - 30s);
    RunsNow ended{.live = {}, .ended_at = kStart + 8min, .started_at = kStart + 1min};
    plan = Plan(schedule, kStart + 9min, ended);
    EXPECT_THAT(plan.fire, IsEmpty());
    EXPECT_EQ(plan.next_at, kStart + 13min);
    plan = Plan(schedule, kStart + 24h, ended);
    EXPECT_THAT(plan.fire, ElementsAre(kStart + 13min));
    EXPECT_THAT(plan.running, IsEmpty());
}

TEST(SchedulePlans, AnIntervalFromTheStartLeavesOutTheTimeThatARunTakes) {
    Schedule schedule = Every(5min);
    schedule.spec.timing.kind = TimingSpec::Kind::kAfterStart;
    EXPECT_THAT(Plan(schedule, kStart).fire, ElementsAre(kStart));
    schedule.last_instant = kStart;
    schedule.running = {TaskId(5)};
    EXPECT_THAT(Plan(schedule, kStart + 8min, kLive).fire, IsEmpty());
    // It waited for a minute and took three.
    RunsNow ended{.live = {}, .ended_at = kStart + 4min, .started_at = kStart + 1min};
    EXPECT_EQ(Plan(schedule, kStart + 4min, ended).next_at, kStart + 6min);
    EXPECT_THAT(Plan(schedule, kStart + 6min, ended).fire, ElementsAre(kStart + 6min));
    // It took longer than the interval: at once, and once.
    ended.ended_at = kStart + 30min;
    SchedulePlan plan = Plan(schedule, kStart + 30min, ended);
    EXPECT_THAT(plan.fire, ElementsAre(kStart + 6min));
    // It never began.
    EXPECT_EQ(Plan(schedule, kStart + 1min).next_at, kStart + 5min);
}

TEST(SchedulePlans, ADelayWhoseRunGotNoTaskGoesOnAllTheSame) {
    Schedule schedule = Every(0s);
    schedule.spec.timing = {.kind = TimingSpec::Kind::kAfterEnd, .after_end = 5min};
    schedule.last_instant = kStart;
    EXPECT_EQ(Plan(schedule, kStart + 1s).next_at, kStart + 5min);
    schedule.spec.timing.after_end = 0s;
    EXPECT_THAT(Plan(schedule, kStart + 1s).fire, ElementsAre(kStart + 1us));
}

ExcludedDays Days(std::vector<std::string> dates, const Zone& zone = {}) {
    Calendar calendar{.name = "h", .dates = std::move(dates)};
    return DaysOf({&calendar}, zone);
}

TEST(ExcludedDay, HasNoRuns) {
    Schedule schedule = Every(24h);
    Timing timing = TimingOf(schedule.spec, Zone(), kStart);
    ExcludedDays days = Days({"2023-11-15", "2023-11-16"});
    SchedulePlan plan = PlanSchedule(schedule, timing, days, {}, kStart + 1h);
    EXPECT_EQ(plan.next_at, kStart + 72h);
    // The latest that was missed is the latest that was to be.
    plan = PlanSchedule(schedule, timing, days, {}, kStart + 50h);
    EXPECT_THAT(plan.fire, IsEmpty());
    EXPECT_THAT(plan.skipped, IsEmpty());
}

TEST(ExcludedDay, IsADayOfTheZone) {
    std::ifstream file("/usr/share/zoneinfo/Europe/Berlin");
    std::stringstream bytes;
    bytes << file.rdbuf();
    auto zone = Zone::Parse("Europe/Berlin", bytes.str());
    ASSERT_TRUE(zone);
    ExcludedDays days = Days({"2023-03-26"}, *zone);  // 23 hours long
    EXPECT_FALSE(days.Has(At(2023, 3, 25, 22h + 59min)));
    EXPECT_TRUE(days.Has(At(2023, 3, 25, 23h)));
    EXPECT_TRUE(days.Has(At(2023, 3, 26, 21h + 59min)));
    EXPECT_FALSE(days.Has(At(2023, 3, 26, 22h)));
    EXPECT_EQ(days.EndOfDay(At(2023, 3, 25, 23h)), At(2023, 3, 26, 22h));
    EXPECT_EQ(days.EndOfDay(At(2023, 10, 28, 22h)), At(2023, 10, 29, 23h));  // 25 hours
    EXPECT_EQ(days.FirstAllowed(At(2023, 3, 26, 8h)), At(2023, 3, 27, 8h));
    Timing timing = CronTiming{Cron::Parse("0 9 * * *").value(), *zone, {}};
    EXPECT_EQ(NextInstant(timing, At(2023, 3, 25, 12h), days), At(2023, 3, 27, 7h));
}

TEST(VisitPlans, AMissedVisitIsMadeUpForOnce) {
    ScheduleSpec spec{.timing = {.kind = TimingSpec::Kind::kVisits, .every = 1h}};
    Visit visit{.next_at = kStart};
    VisitPlan plan = PlanVisit(spec, visit, {}, kStart - 1s);
    EXPECT_FALSE(plan.fire);
    EXPECT_EQ(plan.next_at, kStart);
    plan = PlanVisit(spec, visit, {}, kStart + 5h + 10min);
    EXPECT_TRUE(plan.fire);
    EXPECT_EQ(plan.next_at, kStart + 6h);
    visit.every = 3h;
    EXPECT_EQ(PlanVisit(spec, visit, {}, kStart).next_at, kStart + 3h);
}

TEST(VisitPlans, ADayWithoutVisitsMovesThemToTheSameTimeOfTheNext) {
    ScheduleSpec spec{.timing = {.kind = TimingSpec::Kind::kVisits, .every = 1h}};
    Visit visit{.next_at = kStart};
    ExcludedDays days = Days({"2023-11-14"});
    VisitPlan plan = PlanVisit(spec, visit, days, kStart + 1min);
    EXPECT_FALSE(plan.fire);
    EXPECT_EQ(plan.next_at, kStart + 24h);
    // Day by day: whether the next one is excluded as well may change until then.
    days = Days({"2023-11-15", "2023-11-16"});
    plan = PlanVisit(spec, visit, days, kStart + 110min);
    EXPECT_FALSE(plan.fire);
    EXPECT_EQ(plan.next_at, kStart + 24h);
    visit.next_at = plan.next_at;
    plan = PlanVisit(spec, visit, days, kStart + 24h);
    EXPECT_FALSE(plan.fire);
    EXPECT_EQ(plan.next_at, kStart + 48h);
}

TEST(VisitPlans, NewEntitiesAreSpreadOverTheInterval) {
    ScheduleSpec spec{.name = "n", .timing = {.kind = TimingSpec::Kind::kVisits, .every = 1h}};
    std::vector<int> tenths(10);
    for (int i = 0; i < 10'000; ++i) {
        Time first = FirstVisit(spec, {.entity = std::to_string(i), .every = {}}, kStart);
        ASSERT_GE(first, kStart);
        ASSERT_LT(first, kStart + 1h);
        ++tenths[static_cast<std::size_t>((first - kStart) / 6min)];
    }
    for (int tenth : tenths) EXPECT_NEAR(tenth, 1'000, 150);
}

TEST(RunTasks, KnowTheirScheduleTheirInstantAndTheirEntity) {
    Schedule schedule = Every(1h);
    schedule.spec.task.input = R"({"a":1})";
    schedule.spec.instant_field = "at";
    schedule.spec.entity_field = "who";
    NewTask task = TaskOf(schedule, kStart, "x", RunCause::kTimed);
    EXPECT_EQ(task.actor, "schedule:n");
    EXPECT_THAT(task.tags, ElementsAre("schedule:n"));
    EXPECT_EQ(
        base::ReadJson(task.input),
        base::ReadJson(R"({"a":1,"at":"2023-11-14T22:13:20Z","who":"x"})")
    );
    EXPECT_EQ(task.run_at, std::nullopt);
    EXPECT_TRUE(Validate(task));
}

TEST(RunTasks, JitterIsTheSameForEveryNodeAndWithinItsBound) {
    Schedule schedule = Every(1h);
    schedule.spec.jitter = 10min;
    std::set<Time> seen;
    for (int i = 0; i < 100; ++i) {
        Time instant = kStart + i * 1h;
        auto at = TaskOf(schedule, instant, "", RunCause::kTimed).run_at;
        ASSERT_TRUE(at);
        EXPECT_EQ(at, TaskOf(schedule, instant, "", RunCause::kTimed).run_at);
        EXPECT_GE(*at, instant);
        EXPECT_LT(*at, instant + 10min);
        seen.insert(*at - i * std::chrono::microseconds(1h));
    }
    EXPECT_GT(seen.size(), 90u);
    EXPECT_EQ(TaskOf(schedule, kStart, "", RunCause::kManual).run_at, std::nullopt);
}

Schedule OfVisits(OverlapPolicy overlap = OverlapPolicy::kSkip) {
    Schedule schedule = Every(1h, overlap);
    schedule.spec.timing.kind = TimingSpec::Kind::kVisits;
    return schedule;
}

TEST(VisitTasks, HaveAKeyOfTheirEntityUnlessTheyMayOverlap) {
    EXPECT_EQ(TaskOf(OfVisits(), kStart, "x", RunCause::kTimed).unique_key, "visit:7:x");
    EXPECT_EQ(
        TaskOf(OfVisits(OverlapPolicy::kAllow), kStart, "x", RunCause::kTimed).unique_key, ""
    );
    // As long as an entity may be.
    std::string one(limits::kEntity, 'a'), other = one;
    other.back() = 'b';
    NewTask task = TaskOf(OfVisits(), kStart, one, RunCause::kTimed);
    EXPECT_TRUE(Validate(task));
    EXPECT_NE(task.unique_key, TaskOf(OfVisits(), kStart, other, RunCause::kTimed).unique_key);
    Schedule steps = OfVisits();
    steps.spec.task = {};
    steps.spec.steps = {{.name = "s", .tasks = {NewTask{.type = "t"}}}};
    EXPECT_EQ(TaskOf(steps, kStart, "x", RunCause::kTimed).unique_key, "visit:7:x");
}

TEST(VisitTasks, ThatAreMadeUpForAreSpreadFromNowOn) {
    Schedule schedule = OfVisits();
    schedule.spec.jitter = 10min;
    Time now = kStart + 10h;
    std::set<Time> seen;
    for (int i = 0; i < 100; ++i) {
        auto at = TaskOf(schedule, kStart, std::to_string(i), RunCause::kTimed, now).run_at;
        ASSERT_TRUE(at);
        EXPECT_GE(*at, now);
        EXPECT_LT(*at, now + 10min);
        seen.insert(*at);
    }
    EXPECT_GT(seen.size(), 90u);
    // One that is on time counts from its instant.
    EXPECT_LT(*TaskOf(schedule, kStart, "x", RunCause::kTimed, kStart - 1h).run_at, kStart + 10min);
}

TEST(RunMarks, OutliveTheMisfireWindow) {
    ScheduleSpec spec;
    spec.keep_runs = 1h;
    spec.misfire.window = 24h * 30;
    EXPECT_EQ(KeepOf(spec, RunCause::kTimed), 24h * 31);
    spec.keep_runs = 24h * 365;
    EXPECT_EQ(KeepOf(spec, RunCause::kTimed), 24h * 365);
    EXPECT_GE(KeepOf(spec, RunCause::kBackfill), 24h * 3650);
}

TEST(Previews, MarkTheOddDaysAndTheExcludedOnes) {
    std::ifstream file("/usr/share/zoneinfo/Europe/Berlin");
    std::stringstream bytes;
    bytes << file.rdbuf();
    auto zone = Zone::Parse("Europe/Berlin", bytes.str());
    ASSERT_TRUE(zone);
    Timing timing = CronTiming{Cron::Parse("30 2 * * *").value(), *zone, {}};
    auto entries = Preview(timing, Days({"2023-03-28"}, *zone), At(2023, 3, 25, 12h), 3);
    ASSERT_EQ(entries.size(), 4u);
    EXPECT_EQ(entries[0].local, "2023-03-26 03:00:00 CEST");
    EXPECT_THAT(entries[0].oddity, HasSubstr("forward"));
    EXPECT_EQ(entries[1].local, "2023-03-27 02:30:00 CEST");
    EXPECT_EQ(entries[1].oddity, "");
    EXPECT_FALSE(entries[1].excluded);
    EXPECT_TRUE(entries[2].excluded);
    EXPECT_FALSE(entries[3].excluded);
    EXPECT_EQ(entries[2].oddity, "");
    entries = Preview(timing, {}, At(2023, 10, 28, 12h), 1);
    ASSERT_EQ(entries.size(), 1u);
    EXPECT_EQ(entries[0].at, At(2023, 10, 29, 0h + 30min));
    EXPECT_THAT(entries[0].oddity, HasSubstr("first"));
}

TEST(Previews, ShowTheDayThatClocksSkip) {
    std::ifstream file("/usr/share/zoneinfo/Europe/Berlin");
    std::stringstream bytes;
    bytes << file.rdbuf();
    auto zone = Zone::Parse("Europe/Berlin", bytes.str());
    ASSERT_TRUE(zone);
    const ClockChangePolicy skip{.gap = GapPolicy::kSkip};
    auto preview = [&](const char* cron, ExcludedDays days, int count) {
        Timing timing = CronTiming{Cron::Parse(cron).value(), *zone, skip};
        return Preview(timing, days, At(2023, 3, 25, 12h), count);
    };
    auto entries = preview("30 2 * * *", {}, 2);
    ASSERT_EQ(entries.size(), 3u);
    EXPECT_EQ(entries[0].at, At(2023, 3, 26, 1h));
    EXPECT_EQ(entries[0].oddity, "the clocks skip 02:30 on this day: no run");
    EXPECT_TRUE(entries[0].excluded);
    EXPECT_EQ(entries[1].local, "2023-03-27 02:30:00 CEST");
    EXPECT_FALSE(entries[1].excluded);
    // What follows at the end of the gap is not lost for it, and the gap is told once.
    entries = preview("0,15 2,3 * * *", {}, 3);
    ASSERT_EQ(entries.size(), 4u);
    EXPECT_EQ(entries[0].oddity, "the clocks skip 02:00 on this day: no run");
    EXPECT_EQ(entries[1].local, "2023-03-26 03:00:00 CEST");
    EXPECT_FALSE(entries[1].excluded);
    EXPECT_EQ(entries[2].local, "2023-03-26 03:15:00 CEST");
    // A day without runs has none to lose.
    entries = preview("30 2 * * *", Days({"2023-03-26"}, *zone), 1);
    ASSERT_EQ(entries.size(), 1u);
    EXPECT_EQ(entries[0].oddity, "");
    // Of every hour nothing is lost.
    entries = preview("30 * * * *", {}, 40);
    ASSERT_EQ(entries.size(), 40u);
    for (const PreviewEntry& entry : entries) EXPECT_EQ(entry.oddity, "");
}

TEST(Previews, MarkTheHourThatComesTwiceOfEveryHour) {
    std::ifstream file("/usr/share/zoneinfo/Europe/Berlin");
    std::stringstream bytes;
    bytes << file.rdbuf();
    Timing timing = CronTiming{
        Cron::Parse("30 * * * *").value(), Zone::Parse("Europe/Berlin", bytes.str()).value(), {}};
    auto entries = Preview(timing, {}, At(2023, 10, 28, 23h), 4);
    ASSERT_EQ(entries.size(), 4u);
    EXPECT_EQ(entries[0].oddity, "");
    EXPECT_EQ(entries[1].local, "2023-10-29 02:30:00 CEST");
    EXPECT_THAT(entries[1].oddity, HasSubstr("first"));
    EXPECT_EQ(entries[2].local, "2023-10-29 02:30:00 CET");
    EXPECT_THAT(entries[2].oddity, HasSubstr("second"));
    EXPECT_EQ(entries[3].oddity, "");
}

}  // namespace
}  // namespace stint::model
