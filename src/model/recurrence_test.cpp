#include "model/recurrence.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "model/limits.h"

namespace stint::model {
namespace {

using namespace std::chrono_literals;
using Kind = MisfirePolicy::Kind;

const Time kStart{std::chrono::seconds{1'700'000'000}};  // 2023-11-14 22:13:20 UTC

Timing Cronned(std::string_view text) {
    return CronTiming{Cron::Parse(text).value(), Zone(), {}};
}

MisfirePolicy Policy(Kind kind, int limit = 100, Duration window = 24h) {
    return {.kind = kind, .grace = 1min, .window = window, .limit = limit};
}

TEST(Recurrence, AnIntervalKeepsItsAnchorHoweverLongTheRunsTake) {
    Timing timing = IntervalTiming{10min, kStart};
    EXPECT_EQ(NextInstant(timing, kStart - 1s), kStart);
    EXPECT_EQ(NextInstant(timing, kStart), kStart + 10min);
    EXPECT_EQ(NextInstant(timing, kStart + 10min - 1us), kStart + 10min);
    EXPECT_EQ(NextInstant(timing, kStart + 25min), kStart + 30min);
    EXPECT_EQ(NextInstant(timing, kStart + 24h * 3650), kStart + 24h * 3650 + 10min);
}

TEST(Recurrence, OnceIsOnce) {
    Timing timing = OnceTiming{kStart};
    EXPECT_EQ(NextInstant(timing, kStart - 1us), kStart);
    EXPECT_EQ(NextInstant(timing, kStart), std::nullopt);
    FirePlan plan = PlanFires(timing, Policy(Kind::kOnce), kStart - 1h, kStart + 5h);
    EXPECT_EQ(plan.fire, std::vector<Time>{kStart});
    EXPECT_EQ(plan.next, std::nullopt);
}

TEST(Recurrence, OnTimeWithinTheGraceWhateverThePolicy) {
    Timing timing = IntervalTiming{10min, kStart};
    for (Kind kind : {Kind::kSkip, Kind::kOnce, Kind::kAll}) {
        FirePlan plan = PlanFires(timing, Policy(kind), kStart, kStart + 10min + 59s);
        EXPECT_EQ(plan.fire, std::vector<Time>{kStart + 10min});
        EXPECT_EQ(plan.skipped_to, std::nullopt);
        EXPECT_EQ(plan.next, kStart + 20min);
    }
}

TEST(Recurrence, NothingIsPlannedTwice) {
    Timing timing = IntervalTiming{10min, kStart};
    FirePlan plan = PlanFires(timing, Policy(Kind::kAll), kStart + 10min, kStart + 10min + 30s);
    EXPECT_TRUE(plan.fire.empty());
    EXPECT_EQ(plan.next, kStart + 20min);
    plan = PlanFires(timing, Policy(Kind::kAll), kStart + 1h, kStart);  // the clock was set back
    EXPECT_TRUE(plan.fire.empty());
    EXPECT_EQ(plan.next, kStart + 70min);
}

TEST(Recurrence, MissedOnesAreSkippedTakenOnceOrCaughtUp) {
    Timing timing = IntervalTiming{10min, kStart};
    Time now = kStart + 55min;  // 10, 20, 30, 40 and 50 were missed
    FirePlan skip = PlanFires(timing, Policy(Kind::kSkip), kStart, now);
    EXPECT_TRUE(skip.fire.empty());
    EXPECT_EQ(skip.skipped_to, kStart + 50min);
    FirePlan once = PlanFires(timing, Policy(Kind::kOnce), kStart, now);
    EXPECT_EQ(once.fire, std::vector<Time>{kStart + 50min});
    EXPECT_EQ(once.skipped_to, kStart + 40min);
    FirePlan all = PlanFires(timing, Policy(Kind::kAll), kStart, now);
    EXPECT_EQ(all.fire.size(), 5U);
    EXPECT_EQ(all.skipped_to, std::nullopt);
    FirePlan two = PlanFires(timing, Policy(Kind::kAll, 2), kStart, now);
    EXPECT_EQ(two.fire, (std::vector<Time>{kStart + 40min, kStart + 50min}));
    EXPECT_EQ(two.skipped_to, kStart + 30min);
    FirePlan window = PlanFires(timing, Policy(Kind::kAll, 100, 30min), kStart, now);
    EXPECT_EQ(window.fire, (std::vector<Time>{kStart + 30min, kStart + 40min, kStart + 50min}));
    for (const FirePlan& plan : {skip, once, all, two, window}) EXPECT_EQ(plan.next, kStart + 1h);
}

TEST(Recurrence, WhatIsOnTimeStandsForWhatWasMissed) {
    Timing timing = IntervalTiming{10min, kStart};
    FirePlan plan = PlanFires(timing, Policy(Kind::kOnce), kStart, kStart + 50min + 5s);
    EXPECT_EQ(plan.fire, std::vector<Time>{kStart + 50min});
    EXPECT_EQ(plan.skipped_to, kStart + 40min);
}

TEST(Recurrence, TheLimitOfMissedOnesLeavesThoseOnTimeAlone) {
    Timing timing = IntervalTiming{1s, kStart};
    for (Kind kind : {Kind::kSkip, Kind::kOnce, Kind::kAll}) {
        FirePlan plan = PlanFires(timing, Policy(kind, 1), kStart, kStart + 3s);
        EXPECT_EQ(plan.fire, (std::vector<Time>{kStart + 1s, kStart + 2s, kStart + 3s}));
        EXPECT_EQ(plan.skipped_to, std::nullopt);
    }
    MisfirePolicy patient = Policy(Kind::kSkip, 1);
    patient.grace = 24h;
    FirePlan plan = PlanFires(timing, patient, kStart, kStart + 10h);
    EXPECT_EQ(plan.fire.size(), static_cast<std::size_t>(limits::kCatchUp));
    EXPECT_EQ(plan.fire.back(), kStart + 10h);
    EXPECT_EQ(plan.skipped_to, plan.fire.front() - 1s);
}

TEST(Recurrence, TenYearsMissedOfEverySecondCostLittle) {
    Timing timing = Cronned("* * * * * *");
    for (Kind kind : {Kind::kSkip, Kind::kOnce, Kind::kAll}) {
        FirePlan plan = PlanFires(timing, Policy(kind), kStart, kStart + 24h * 3650);
        EXPECT_LE(plan.fire.size(), 100U);
        EXPECT_EQ(plan.fire.back(), kStart + 24h * 3650);
        EXPECT_TRUE(plan.skipped_to.has_value());
    }
}

TEST(Recurrence, ARareOneIsFoundFarBack) {
    Timing timing = Cronned("0 0 29 2 *");  // last on 2020-02-29, then 2024-02-29
    Time now = kStart + 24h * 365 * 3;
    FirePlan plan = PlanFires(timing, Policy(Kind::kOnce), kStart, now);
    ASSERT_EQ(plan.fire.size(), 1U);
    EXPECT_EQ(plan.fire[0], Time(std::chrono::sys_days{std::chrono::year{2024} / 2 / 29}));
}

TEST(Recurrence, WhatCannotBeIsRefusedByName) {
    auto refusal = [](const auto& what) {
        auto valid = Validate(what);
        return valid ? std::string("fine") : valid.error().message;
    };
    EXPECT_EQ(refusal(Timing(IntervalTiming{1s, kStart})), "fine");
    EXPECT_EQ(
        refusal(Timing(IntervalTiming{0s, kStart})), "every is 0s; it must be between 1s and 3660d"
    );
    EXPECT_NE(
        refusal(Timing(DelayTiming{-1s, kStart})).find("after_end is -1s"), std::string::npos
    );
    EXPECT_EQ(refusal(Policy(Kind::kAll)), "fine");
    EXPECT_EQ(refusal(Policy(Kind::kAll, 0)), "misfire.limit is 0; it must be between 1 and 1000");
    EXPECT_NE(refusal(Policy(Kind::kAll, 1, -1s)).find("misfire.window"), std::string::npos);
}

// Against the plain way: every instant one by one.
FirePlan Walked(const Timing& timing, const MisfirePolicy& policy, Time considered, Time now) {
    std::vector<Time> missed, on_time;
    for (auto at = NextInstant(timing, considered); at && *at <= now;
         at = NextInstant(timing, *at)) {
        (now - *at >= policy.grace ? missed : on_time).push_back(*at);
    }
    auto limit = static_cast<std::size_t>(policy.limit);
    std::vector<Time> all = missed;
    all.insert(all.end(), on_time.begin(), on_time.end());
    std::vector<Time> fire = on_time;
    if (policy.kind == Kind::kOnce && on_time.empty() && !missed.empty()) fire = {missed.back()};
    if (policy.kind == Kind::kAll) {
        fire.clear();
        for (Time at : all) {
            if (now - at < std::max(policy.window, policy.grace)) fire.push_back(at);
        }
    }
    std::size_t most = std::max(limit, on_time.size());
    if (fire.size() > most) {
        fire.erase(fire.begin(), fire.end() - static_cast<std::ptrdiff_t>(most));
    }
    FirePlan plan;
    plan.fire = fire;
    for (Time at : all) {
        if (fire.empty() ? now - at >= policy.grace : at < fire.front()) plan.skipped_to = at;
    }
    plan.next = NextInstant(timing, now);
    return plan;
}

TEST(Recurrence, AgreesWithWalkingThroughEveryInstant) {
    base::SeededRandom random(11);
    std::vector<std::string> crons = {
        "*/7 * * * *", "0 3 * * *", "*/20 * * * * *", "30 8-17 * * MON-FRI", "0 0 L * *"};
    for (int round = 0; round < 2'000; ++round) {
        Timing timing = Cronned(crons[random.Below(crons.size())]);
        if (random.Below(3) == 0) {
            timing = IntervalTiming{
                Duration(1 + random.Below(7'200'000)), kStart + Duration(random.Below(100'000))};
        }
        MisfirePolicy policy{
            .kind = static_cast<Kind>(random.Below(3)),
            .grace = Duration(random.Below(300'000)),
            .window = Duration(random.Below(40'000'000)),
            .limit = static_cast<int>(1 + random.Below(20))};
        bool dense = std::holds_alternative<IntervalTiming>(timing);
        Time considered = kStart + Duration(random.Below(1'000'000));
        Time now = considered + Duration(random.Below(dense ? 3'000'000 : 90'000'000));
        FirePlan plan = PlanFires(timing, policy, considered, now);
        FirePlan expected = Walked(timing, policy, considered, now);
        ASSERT_EQ(plan.fire, expected.fire) << "round " << round;
        ASSERT_EQ(plan.skipped_to, expected.skipped_to) << "round " << round;
        ASSERT_EQ(plan.next, expected.next) << "round " << round;
    }
}

}  // namespace
}  // namespace stint::model
