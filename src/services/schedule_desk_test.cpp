#include "services/schedule_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "store/memory/memory_store.h"
#include "wake/local.h"

namespace stint::services {
namespace {

using namespace std::chrono_literals;
using model::Schedule;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class DeskTest : public testing::Test {
protected:
    base::ManualClock clock;  // 2023-11-14 22:13:20 UTC
    base::SeededRandom random{1};
    store::MemoryStore store{clock, random};
    wake::LocalWake wake;
    ScheduleDesk desk{store, wake, SystemZones()};

    Result<Schedule> Put(std::string_view json) {
        return desk.Put(model::ScheduleFromJson(json, store.Now()).value(), {}, "ann");
    }
    std::string Refusal(std::string_view json) {
        auto put = Put(json);
        return put ? "" : put.error().message;
    }
    std::vector<model::TaskRecord> Tasks() { return store.List({.limit = 1000}).tasks; }
};

constexpr std::string_view kNightly =
    R"({"name":"n","cron":"30 2 * * *","zone":"Europe/Berlin","task":{"type":"t"}})";

TEST_F(DeskTest, ANewScheduleKnowsItsNextInstantAtOnce) {
    auto made = Put(kNightly);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->next_at, store.Now() + 3h + 16min + 40s);
}

TEST_F(DeskTest, TheSameAgainChangesNothing) {
    Schedule made = Put(kNightly).value();
    EXPECT_EQ(Put(kNightly)->revision, made.revision);
    auto spec = model::ScheduleFromJson(kNightly).value();
    EXPECT_EQ(desk.Put(spec, 0, "ann").error().code, Code::kConflict);
    spec.jitter = 1s;
    EXPECT_EQ(desk.Put(spec, {}, "ann")->revision, made.revision + 1);
}

TEST_F(DeskTest, WhatCanNeverRunIsRefusedWithItsReason) {
    EXPECT_THAT(
        Refusal(R"({"name":"n","cron":"@daily","zone":"Europe/Berln","task":{"type":"t"}})"),
        HasSubstr("Europe/Berln")
    );
    EXPECT_THAT(
        Refusal(R"({"name":"n","cron":"0 0 31 6 *","task":{"type":"t"}})"), HasSubstr("cron")
    );
    EXPECT_THAT(Refusal(R"({"name":"n","at":"now-1h","task":{"type":"t"}})"), HasSubstr("over"));
    EXPECT_THAT(
        Refusal(R"({"name":"n","every":"1h","except":["none"],"task":{"type":"t"}})"),
        HasSubstr("\"none\"")
    );
    EXPECT_THAT(desk.List({}), IsEmpty());
}

TEST_F(DeskTest, AScheduleOfVisitsStaysOne) {
    ASSERT_TRUE(Put(R"({"name":"n","visits":"1h","task":{"type":"t"}})"));
    EXPECT_THAT(Refusal(kNightly), HasSubstr("visits"));
    EXPECT_FALSE(desk.RunNow(kDefaultTenant, "n"));
    EXPECT_FALSE(desk.Next(kDefaultTenant, "n", 5));
}

TEST_F(DeskTest, RunNowRunsWhateverThePlanSays) {
    Schedule made = Put(kNightly).value();
    desk.SetPaused(kDefaultTenant, "n", true, "ann").value();
    auto run = desk.RunNow(kDefaultTenant, "n");
    ASSERT_TRUE(run);
    EXPECT_EQ(store.Get(run->task)->type, "t");
    auto runs = desk.Runs(kDefaultTenant, "n", {}).value();
    ASSERT_THAT(runs, SizeIs(1));
    EXPECT_EQ(runs[0].cause, model::RunCause::kManual);
    EXPECT_EQ(desk.Get(kDefaultTenant, "n")->next_at, made.next_at);
    EXPECT_EQ(desk.RunNow(kDefaultTenant, "nobody").error().code, Code::kNotFound);
    EXPECT_THAT(
        desk.Runs(kDefaultTenant, "n", {.limit = 0}).error().message, HasSubstr("limit is 0")
    );
}

TEST_F(DeskTest, RunNowForgetsNoRunThatIsNotOver) {
    Put(R"({"name":"n","every":"1h","overlap":"skip","task":{"type":"t"}})").value();
    auto run_now = [&] {
        clock.Advance(1ms);
        return desk.RunNow(kDefaultTenant, "n");
    };
    std::vector<TaskId> tasks;
    while (tasks.size() < model::limits::kRunsRemembered) tasks.push_back(run_now().value().task);
    auto refused = run_now();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kConflict);
    EXPECT_THAT(refused.error().message, HasSubstr("wait for some to end, or cancel them"));
    std::vector<TaskId> later(tasks.begin() + 1, tasks.begin() + 4);
    store.Cancel(later, "ann", "");
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(run_now());
    EXPECT_FALSE(run_now());
    EXPECT_EQ(desk.Get(kDefaultTenant, "n")->running.front(), tasks.front());
}

TEST_F(DeskTest, NextShowsTheOddDays) {
    ASSERT_TRUE(Put(kNightly));
    clock.Advance(24h * 132);  // March 2024
    auto next = desk.Next(kDefaultTenant, "n", 20);
    ASSERT_TRUE(next);
    ASSERT_THAT(*next, SizeIs(20));
    int odd = 0;
    for (const auto& entry : *next) odd += entry.oddity.empty() ? 0 : 1;
    EXPECT_EQ(odd, 1);
    EXPECT_FALSE(desk.Next(kDefaultTenant, "n", 0));
    EXPECT_FALSE(desk.Next(kDefaultTenant, "n", 100'000));
}

TEST_F(DeskTest, ABackfillIsCountedFirstAndMakesEachRunOnce) {
    ASSERT_TRUE(
        Put(R"({"name":"n","every":"1h","anchor":"2023-11-14T00:00:00Z","instant_field":"at",)"
            R"("task":{"type":"t","input":{}}})")
    );
    BackfillRequest range{
        .name = "n", .from = store.Now() - 24h, .to = store.Now(), .dry_run = true};
    auto preview = desk.Backfill(kDefaultTenant, range);
    ASSERT_TRUE(preview) << preview.error().message;
    EXPECT_THAT(preview->missing, SizeIs(23));  // from the anchor on
    EXPECT_THAT(Tasks(), IsEmpty());
    range.dry_run = false;
    range.to = store.Now() - 12h;
    EXPECT_EQ(desk.Backfill(kDefaultTenant, range)->created, 11);
    range.to = store.Now();
    auto rest = desk.Backfill(kDefaultTenant, range);
    EXPECT_EQ(rest->decided, 11);
    EXPECT_EQ(rest->created, 12);
    EXPECT_EQ(desk.Backfill(kDefaultTenant, range)->created, 0);
    EXPECT_THAT(Tasks(), SizeIs(23));
    EXPECT_THAT(Tasks().back().input, HasSubstr("2023-11-14T00:00:00Z"));
}

TEST_F(DeskTest, ABackfillThatCannotBeRightIsRefused) {
    ASSERT_TRUE(Put(R"({"name":"n","every":"1h","task":{"type":"t"}})"));
    ASSERT_TRUE(
        Put(R"({"name":"s","every":"1s","anchor":"2023-01-01T00:00:00Z","task":{"type":"t"}})")
    );
    ASSERT_TRUE(Put(R"({"name":"once","at":"now+1h","task":{"type":"t"}})"));
    auto why = [&](BackfillRequest request) {
        auto done = desk.Backfill(kDefaultTenant, request);
        return done ? "" : done.error().message;
    };
    Time now = store.Now();
    EXPECT_THAT(why({.name = "n", .from = now, .to = now - 1h}), HasSubstr("range"));
    EXPECT_THAT(why({.name = "n", .from = now, .to = now + 1h}), HasSubstr("range"));
    EXPECT_THAT(
        why({.name = "n", .from = Time::min(), .to = now, .again = true}), HasSubstr("from is")
    );
    EXPECT_THAT(why({.name = "n", .from = Time(-1s), .to = now}), HasSubstr("1970 to 9999"));
    EXPECT_THAT(
        desk.Runs(kDefaultTenant, "n", {.from = Time::min()}).error().message, HasSubstr("from is")
    );
    EXPECT_THAT(
        desk.Runs(kDefaultTenant, "n", {.to = Time::max()}).error().message, HasSubstr("to is")
    );
    EXPECT_THAT(
        why({.name = "once", .from = now - 1h, .to = now}), HasSubstr("only cron and every")
    );
    EXPECT_THAT(why({.name = "s", .from = now - 24h, .to = now}), HasSubstr("in parts"));
    // What ran is not remembered for ever.
    clock.Advance(24h * 30);
    now = store.Now();
    EXPECT_THAT(why({.name = "n", .from = now - 24h * 20, .to = now}), HasSubstr("--again"));
    EXPECT_EQ(why({.name = "n", .from = now - 24h * 6, .to = now, .dry_run = true}), "");
    EXPECT_EQ(
        why({.name = "n", .from = now - 24h * 20, .to = now, .dry_run = true, .again = true}), ""
    );
}

TEST_F(DeskTest, ACalendarThatIsUsedStays) {
    ASSERT_TRUE(desk.PutCalendar({.name = "h", .dates = {"2026-12-25"}}));
    EXPECT_FALSE(desk.PutCalendar({.name = "h", .dates = {"25.12."}}));
    ASSERT_TRUE(Put(R"({"name":"n","every":"1h","except":["h"],"task":{"type":"t"}})"));
    auto removed = desk.RemoveCalendar(kDefaultTenant, "h");
    ASSERT_FALSE(removed);
    EXPECT_THAT(removed.error().message, HasSubstr("\"n\""));
    ASSERT_TRUE(desk.Remove(kDefaultTenant, "n"));
    EXPECT_TRUE(desk.RemoveCalendar(kDefaultTenant, "h"));
    EXPECT_EQ(desk.RemoveCalendar(kDefaultTenant, "h").error().code, Code::kNotFound);
}

class ApplyTest : public DeskTest {
protected:
    std::vector<std::string> Apply(std::string document, bool dry_run = false, bool prune = false) {
        auto steps = desk.Apply(
            {.document = std::move(document), .dry_run = dry_run, .prune = prune, .actor = "ann"}
        );
        if (!steps) return {steps.error().message};
        std::vector<std::string> lines;
        for (const ApplyStep& step : *steps) {
            std::string line = std::string(ApplyKindName(step.kind)) + " " + step.name;
            for (const auto& difference : step.differences) line += " " + difference.member;
            lines.push_back(line);
        }
        return lines;
    }
};

TEST_F(ApplyTest, ADocumentIsComparedAndThenMadeTrue) {
    std::string first = R"({"calendars":{"h":["2026-12-25"]},"schedules":[)"
                        R"({"name":"a","every":"1h","except":["h"],"task":{"type":"t"}},)"
                        R"({"name":"b","cron":"@daily","task":{"type":"t"}}]})";
    EXPECT_THAT(Apply(first, true), ElementsAre("create h", "create a", "create b"));
    EXPECT_THAT(desk.List({}), IsEmpty());
    EXPECT_THAT(Apply(first), ElementsAre("create h", "create a", "create b"));
    EXPECT_THAT(Apply(first), ElementsAre("keep h", "keep a", "keep b"));
    EXPECT_EQ(desk.Get(kDefaultTenant, "a")->revision, 1);
    std::string second = R"({"calendars":{"h":["2026-12-26"]},"schedules":[)"
                         R"({"name":"a","every":"2h","except":["h"],"task":{"type":"u"}}]})";
    EXPECT_THAT(Apply(second), ElementsAre("change h dates", "change a every task.type"));
    EXPECT_THAT(Apply(second, true, true), ElementsAre("keep h", "keep a", "remove b"));
    EXPECT_THAT(desk.List({}), SizeIs(2));
    EXPECT_THAT(Apply(second, false, true), ElementsAre("keep h", "keep a", "remove b"));
    EXPECT_THAT(desk.List({}), SizeIs(1));
}

TEST_F(ApplyTest, ADocumentWithAMistakeChangesNothing) {
    auto only = [&](std::string document) { return Apply(std::move(document)).at(0); };
    EXPECT_THAT(only("[]"), HasSubstr("not an object"));
    EXPECT_THAT(only(R"({"schedule":[]})"), HasSubstr("the members are"));
    EXPECT_THAT(
        only(R"({"schedules":[{"name":"a","every":"1h","task":{"type":"t"}},)"
             R"({"name":"b","every":"1x","task":{"type":"t"}}]})"),
        HasSubstr("schedule 2")
    );
    EXPECT_THAT(
        only(R"({"schedules":[{"name":"a","every":"1h","task":{"type":"t"}},)"
             R"({"name":"a","every":"1h","task":{"type":"t"}}]})"),
        HasSubstr("twice")
    );
    EXPECT_THAT(desk.List({}), IsEmpty());
}

// What only a look at zones, calendars and the clock shows.
TEST_F(ApplyTest, AMistakeOfOneScheduleIsFoundBeforeAnythingChanges) {
    ASSERT_TRUE(Put(R"({"name":"there","every":"1h","task":{"type":"t"}})"));
    ASSERT_TRUE(Put(R"({"name":"v","visits":"1h","task":{"type":"t"}})"));
    auto with = [&](const std::string& last, bool dry_run) {
        return Apply(
            R"({"calendars":{"h":["2026-12-25"]},"schedules":[)"
            R"({"name":"there","every":"2h","except":["h"],"task":{"type":"t"}},)"
            R"({"name":"a","every":"1h","task":{"type":"t"}},)" +
                last + "]}",
            dry_run,
            true
        );
    };
    for (bool dry_run : {true, false}) {
        auto only = [&](const std::string& last) { return with(last, dry_run).at(0); };
        EXPECT_THAT(
            only(R"({"name":"b","cron":"@daily","zone":"Europe/Berln","task":{"type":"t"}})"),
            HasSubstr("schedule \"b\": ")
        );
        EXPECT_THAT(
            only(R"({"name":"b","every":"1h","except":["none"],"task":{"type":"t"}})"),
            HasSubstr("\"none\"")
        );
        EXPECT_THAT(only(R"({"name":"b","at":"now-1h","task":{"type":"t"}})"), HasSubstr("over"));
        EXPECT_THAT(only(R"({"name":"v","every":"1h","task":{"type":"t"}})"), HasSubstr("visits"));
        EXPECT_THAT(desk.Calendars(kDefaultTenant), IsEmpty());
        EXPECT_THAT(desk.List({}), SizeIs(2));
        EXPECT_EQ(desk.Get(kDefaultTenant, "there")->revision, 1);
    }
    // One of the document's own calendars is there in time.
    EXPECT_THAT(
        with(R"({"name":"b","every":"1h","except":["h"],"task":{"type":"t"}})", false),
        ElementsAre("create h", "change there every except", "create a", "create b", "remove v")
    );
}

}  // namespace
}  // namespace stint::services
