// Schedules through the public interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stint/stint.h>
#include <stint/testing.h>

#include <condition_variable>
#include <mutex>

namespace stint {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct Visit {
    std::string entity;
    std::string at;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE_WITH_DEFAULT(Visit, entity, at)
};
constexpr Task<int, int> kCount{"count"};
constexpr Task<Visit, void> kVisit{"visit"};
constexpr Task<void, void> kTick{"tick"};

TEST(Schedules, RunTheirTasksAtTheirTimes) {
    stint::testing::TestEngine test;
    std::vector<int> seen;
    test.Handle(kCount, [&](Context&, const int& n) {
        seen.push_back(n);
        return n;
    });
    Schedules schedules = test.engine().schedules();
    auto made = schedules.Put("n", when::Every{10min}, kCount, 7);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->next_at, test.now() + 10min);
    EXPECT_EQ(made->changed_by, "api");
    for (int i = 0; i < 6; ++i) {
        test.AdvanceTime(10min);
        test.RunUntilIdle();
    }
    EXPECT_EQ(seen, std::vector<int>(6, 7));
    EXPECT_THAT(schedules.Runs("n").value(), SizeIs(6));
}

TEST(Schedules, EveryWordOfTheInterfaceReachesTheStore) {
    stint::testing::TestEngine test;
    Schedules schedules = test.engine().schedules();
    ASSERT_TRUE(schedules.PutCalendar("h", {"2030-12-25"}));
    ScheduleOptions options{
        .missed = {.kind = OnMissed::Kind::kAll, .limit = 5},
        .overlap = OnOverlap::kQueueOne,
        .jitter = 30s,
        .except = {"h"},
        .expected_revision = 0,
        .task = {.queue = "night", .priority = 200, .tags = {"x"}},
    };
    when::Cron cron{"30 2 * * *", "Europe/Berlin", when::OnGap::kSkip, when::OnFold::kBoth};
    auto made = schedules.Put("n", cron, kTick, options);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(
        made->definition,
        R"({"name":"n","cron":"30 2 * * *","zone":"Europe/Berlin","gap":"skip","fold":"both",)"
        R"("misfire":"all","misfire_limit":5,"overlap":"queue_one","jitter":"30s",)"
        R"("except":["h"],"task":{"type":"tick","queue":"night","priority":200,"tags":["x"]}})"
    );
    EXPECT_EQ(schedules.Put("n", cron, kTick, options).error().code, Code::kConflict);
    EXPECT_EQ(schedules.PutJson(made->definition)->revision, 1) << "nothing is different";
    EXPECT_THAT(schedules.List().value(), SizeIs(1));
    EXPECT_TRUE(schedules.Pause("n")->paused);
    TaskId task = schedules.RunNow("n").value();
    EXPECT_EQ(test.engine().Get(task)->queue, "night");
    EXPECT_EQ(schedules.Get("n")->last_task, task);
    EXPECT_FALSE(schedules.Resume("n")->paused);
    EXPECT_THAT(schedules.Next("n", 5).value(), SizeIs(5));
    EXPECT_EQ(
        schedules.Backfill("n", test.now() - 72h, test.now(), {.only_count = true})->missing, 3
    );
    EXPECT_EQ(schedules.Backfill("n", test.now() - 72h, test.now())->created, 3);
    EXPECT_FALSE(schedules.RemoveCalendar("h"));
    ASSERT_TRUE(schedules.Remove("n"));
    EXPECT_TRUE(schedules.RemoveCalendar("h"));
    EXPECT_EQ(schedules.Get("n").error().code, Code::kNotFound);
}

TEST(Schedules, WhatARunCannotHaveIsRefused) {
    stint::testing::TestEngine test;
    Schedules schedules = test.engine().schedules();
    auto why = [&](const When& when, ScheduleOptions options) {
        auto put = schedules.Put("n", when, kTick, options);
        return put ? std::string() : put.error().message;
    };
    EXPECT_THAT(why(when::Every{1h}, {.task = {.delay = 1s}}), HasSubstr("task.delay"));
    EXPECT_THAT(why(when::Every{1ms}, {}), HasSubstr("every"));
    EXPECT_THAT(why(when::Cron{"0 0 31 2 *"}, {}), HasSubstr("cron"));
    EXPECT_THAT(why(when::Once{test.now() - 1s}, {}), HasSubstr("over"));
    EXPECT_THAT(
        why(when::Cron{"@daily", "Europe/Berlin"}, {.zone = "Asia/Tokyo"}), HasSubstr("zone")
    );
}

TEST(Schedules, TenMinutesIsTheInterval) {
    stint::testing::TestEngine test;
    auto made = test.engine().schedules().Put("n", when::Every{}, kTick);
    ASSERT_TRUE(made);
    EXPECT_THAT(made->definition, HasSubstr(R"("every":"10m")"));
}

TEST(Schedules, VisitsCarryTheirEntityAndInstant) {
    stint::testing::TestEngine test;
    std::map<std::string, int> seen;
    test.Handle(kVisit, [&](Context&, const Visit& visit) { ++seen[visit.entity]; });
    Schedules schedules = test.engine().schedules();
    ScheduleOptions options{.instant_field = "at", .entity_field = "entity"};
    ASSERT_TRUE(schedules.Put("n", when::Visits{1h}, kVisit, {}, options));
    std::vector<VisitRequest> visits = {{"a"}, {"b"}, {"often", 20min}};
    ASSERT_TRUE(schedules.PutVisits("n", visits));
    for (int i = 0; i < 60; ++i) {
        test.AdvanceTime(1min);
        test.RunUntilIdle();
    }
    EXPECT_EQ(seen["a"], 1);
    EXPECT_EQ(seen["b"], 1);
    EXPECT_EQ(seen["often"], 3);
    EXPECT_THAT(schedules.Visits("n").value(), SizeIs(3));
    EXPECT_TRUE(schedules.Visits("n").value()[0].last_at.has_value());
    std::vector<std::string> gone = {"a", "nobody"};
    EXPECT_EQ(schedules.RemoveVisits("n", gone).value(), 1);
}

TEST(Schedules, OverlapOfVisitsIsLeftOutUnlessOneAsksForIt) {
    stint::testing::TestEngine test;
    Schedules schedules = test.engine().schedules();
    auto put = [&](std::optional<OnOverlap> overlap) {
        ScheduleOptions options;
        options.overlap = overlap;
        auto made = schedules.Put("n", when::Visits{1h}, kTick, options);
        return made ? made->definition : made.error().message;
    };
    EXPECT_EQ(put({}), R"({"name":"n","visits":"1h","task":{"type":"tick"}})");
    EXPECT_EQ(put(OnOverlap::kSkip), put({}));
    EXPECT_THAT(put(OnOverlap::kAllow), HasSubstr(R"("overlap":"allow")"));
    EXPECT_THAT(put(OnOverlap::kQueueOne), HasSubstr("use skip"));
}

TEST(Schedules, AnIntervalMayCountFromTheStart) {
    stint::testing::TestEngine test;
    int runs = 0;
    test.Handle(kTick, [&](Context&) { ++runs; });
    auto made = test.engine().schedules().Put("n", when::AfterStart{10min}, kTick);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_THAT(made->definition, HasSubstr(R"("after_start":"10m")"));
    test.RunUntilIdle();
    EXPECT_EQ(runs, 1);
    for (int i = 0; i < 30; ++i) {
        test.AdvanceTime(1min);
        test.RunUntilIdle();
    }
    EXPECT_EQ(runs, 4);
}

TEST(Schedules, ADocumentIsAppliedAndATimingIsTriedOut) {
    stint::testing::TestEngine test;
    Schedules schedules = test.engine().schedules();
    constexpr std::string_view kDocument =
        R"({"calendars":{"h":["2026-12-25"]},"schedules":[)"
        R"({"name":"n","every":"1h","except":["h"],"task":{"type":"tick"}}]})";
    auto steps = schedules.Apply(kDocument, {.dry_run = true});
    ASSERT_TRUE(steps) << steps.error().message;
    ASSERT_THAT(*steps, SizeIs(2));
    EXPECT_EQ(steps->at(1).action, "create");
    EXPECT_THAT(schedules.Calendars().value(), SizeIs(0));
    ASSERT_TRUE(schedules.Apply(kDocument));
    ASSERT_THAT(schedules.Calendars().value(), SizeIs(1));
    EXPECT_EQ(schedules.Calendars()->at(0).dates.at(0), "2026-12-25");
    EXPECT_EQ(schedules.Get("n")->changed_by, "api");
    auto next = schedules.Preview(when::Cron{"30 2 * * *", "Europe/Berlin"}, 3);
    ASSERT_TRUE(next) << next.error().message;
    EXPECT_THAT(*next, SizeIs(3));
    EXPECT_THAT(next->at(0).local, HasSubstr("02:30:00"));
    EXPECT_FALSE(schedules.Preview(when::Cron{"61 * * * *"}));
    EXPECT_THAT(schedules.List().value(), SizeIs(1));
}

TEST(Schedules, ABackfillOfWhatNobodyRemembersIsAskedFor) {
    stint::testing::TestEngine test;
    Schedules schedules = test.engine().schedules();
    ASSERT_TRUE(schedules.Put("n", when::Every{24h}, kTick));
    ASSERT_TRUE(schedules.Pause("n"));
    test.AdvanceTime(24h * 30);
    Time from = test.now() - 24h * 20;
    EXPECT_EQ(schedules.Backfill("n", from, test.now()).error().code, Code::kConflict);
    EXPECT_EQ(schedules.Backfill("n", from, test.now(), {.again = true})->created, 20);
}

TEST(Schedules, AStartedEngineFiresThemByItself) {
    Options options;
    options.store = "memory:";
    Engine engine(options);
    std::mutex mutex;
    std::condition_variable ran;
    int runs = 0;
    engine.Handle(kTick, [&](Context&) {
        std::lock_guard guard(mutex);
        ++runs;
        ran.notify_all();
    });
    engine.Start();
    ASSERT_TRUE(engine.schedules().Put("n", when::AfterEnd{0s}, kTick));
    std::unique_lock lock(mutex);
    EXPECT_TRUE(ran.wait_for(lock, 30s, [&] { return runs >= 2; }));
    lock.unlock();
    engine.Stop();
}

}  // namespace
}  // namespace stint
