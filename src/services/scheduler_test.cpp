#include "services/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "services/schedule_desk.h"
#include "store/memory/memory_store.h"
#include "store/quiet.h"
#include "support/troubled_store.h"
#include "wake/local.h"

namespace stint::services {
namespace {

using namespace std::chrono_literals;
using model::OverlapPolicy;
using model::Schedule;
using model::ScheduleSpec;
using model::State;
using model::TimingSpec;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// The memory store in virtual time, and as many nodes as a test likes.
class SchedulerTest : public testing::Test {
protected:
    base::ManualClock clock;
    base::SeededRandom random{1};
    store::MemoryStore store{clock, random};
    store::ScheduleStore& schedules = store.Schedules();
    wake::LocalWake wake;
    ScheduleDesk desk{store, wake, SystemZones()};
    std::vector<std::string> logged;
    Scheduler scheduler{Parts(), {}};

    Scheduler::Parts Parts() {
        LogSink sink = [this](const LogRecord& record) { logged.emplace_back(record.message); };
        return {store, wake, clock, base::Logger(sink, "schedule"), SystemZones()};
    }
    Schedule Put(std::string_view json) {
        auto spec = model::ScheduleFromJson(json, store.Now());
        EXPECT_TRUE(spec) << (spec ? "" : spec.error().message);
        auto put = desk.Put(spec.value(), {}, "ann");
        EXPECT_TRUE(put) << (put ? "" : put.error().message);
        return put.value();
    }
    Schedule Look(std::string_view name = "n") {
        return schedules.Get(kDefaultTenant, name).value();
    }
    // Moves time by `by` in steps of what the scheduler asks for.
    void Pass(Duration by) {
        base::Instant until = clock.Now() + by;
        while (true) {
            base::Instant next = std::min(scheduler.RunOnce(), until);
            if (clock.Now() >= until) return;
            clock.Advance(std::max<std::chrono::nanoseconds>(next - clock.Now(), 1ms));
        }
    }
    std::vector<model::TaskRecord> Tasks() { return store.List({.limit = 1000}).tasks; }
    std::vector<TaskId> Live() {
        std::vector<TaskId> live;
        for (const auto& task : Tasks()) {
            if (!model::IsTerminal(task.state)) live.push_back(task.id);
        }
        return live;
    }
    void Finish(TaskId task) { store.Cancel({&task, 1}, "test", "over"); }
    std::vector<model::ScheduleRun> Runs(std::string_view name = "n") {
        return desk.Runs(kDefaultTenant, name, {.limit = 1000}).value();
    }
};

constexpr std::string_view kEveryTen =
    R"({"name":"n","every":"10m","task":{"type":"t","input":{"a":1}}})";

TEST_F(SchedulerTest, EveryInstantBecomesOneTaskAtItsTime) {
    Schedule made = Put(kEveryTen);
    Pass(10min - 1s);
    EXPECT_THAT(Tasks(), IsEmpty());
    Pass(1s);
    ASSERT_THAT(Tasks(), SizeIs(1));
    EXPECT_EQ(Tasks()[0].created_at, made.created_at + 10min);
    EXPECT_THAT(Tasks()[0].tags, ElementsAre("schedule:n"));
    Pass(50min);
    EXPECT_THAT(Tasks(), SizeIs(6));
    EXPECT_THAT(Runs(), SizeIs(6));
}

TEST_F(SchedulerTest, AnIntervalDoesNotDriftHoweverLongItsRunsTake) {
    Schedule made = Put(kEveryTen);
    clock.Advance(10min + 7s);  // a node that comes late
    scheduler.RunOnce();
    EXPECT_EQ(Runs().at(0).instant, made.created_at + 10min);
    EXPECT_EQ(Look().next_at, made.created_at + 20min);
}

TEST_F(SchedulerTest, ManyNodesMakeOneTaskPerInstant) {
    Put(kEveryTen);
    Scheduler second{Parts(), {}}, third{Parts(), {}};
    for (int i = 0; i < 200; ++i) {
        clock.Advance(61s);
        for (Scheduler* node : {&second, &scheduler, &third}) node->RunOnce();
    }
    EXPECT_THAT(Tasks(), SizeIs(20));
}

TEST_F(SchedulerTest, WhatWasMissedIsMadeUpForByThePolicy) {
    Put(kEveryTen);
    Put(R"({"name":"skip","every":"10m","misfire":"skip","task":{"type":"s"}})");
    Put(R"({"name":"all","every":"10m","misfire":"all","misfire_window":"35m","task":{"type":"a"}})"
    );
    clock.Advance(65min);
    scheduler.RunOnce();
    EXPECT_THAT(Runs("n"), SizeIs(2));  // the latest, and a line for the others
    EXPECT_THAT(Runs("skip"), SizeIs(1));
    EXPECT_FALSE(Runs("skip")[0].task.valid());
    EXPECT_THAT(Runs("all"), SizeIs(4));  // 40, 50, 60 min, and a line
    EXPECT_THAT(Tasks(), SizeIs(4));
}

TEST_F(SchedulerTest, TheWaitEndsAtTheNextInstantAndIsBounded) {
    Put(R"({"name":"n","every":"1500ms","task":{"type":"t"}})");
    EXPECT_EQ(scheduler.RunOnce() - clock.Now(), 1500ms);
    desk.SetPaused(kDefaultTenant, "n", true, "ann").value();
    EXPECT_EQ(scheduler.RunOnce() - clock.Now(), 2s);
}

TEST_F(SchedulerTest, SkipLeavesOutWhatComesDuringARun) {
    Put(R"({"name":"n","every":"10m","overlap":"skip","task":{"type":"t"}})");
    Pass(30min);
    ASSERT_THAT(Tasks(), SizeIs(1));
    EXPECT_THAT(Runs().front().skipped, HasSubstr("not over"));
    Finish(Tasks()[0].id);
    Pass(10min);
    EXPECT_THAT(Tasks(), SizeIs(2));
}

TEST_F(SchedulerTest, QueueOneRunsTheLatestWhenTheRunIsOver) {
    Schedule made = Put(R"({"name":"n","every":"10m","overlap":"queue_one","task":{"type":"t"}})");
    Pass(35min);
    ASSERT_THAT(Live(), SizeIs(1));
    EXPECT_EQ(Look().queued_at, made.created_at + 30min);
    Finish(Live()[0]);
    Pass(40s);
    ASSERT_THAT(Live(), SizeIs(1));
    EXPECT_EQ(Runs().front().instant, made.created_at + 30min);
    EXPECT_TRUE(Runs().front().task.valid());
    EXPECT_EQ(Look().queued_at, std::nullopt);
}

TEST_F(SchedulerTest, CancelRunningEndsTheRunAndThenBeginsTheNext) {
    Put(R"({"name":"n","every":"10m","overlap":"cancel_running","task":{"type":"t"}})");
    Pass(10min);
    TaskId first = Live().at(0);
    Pass(10min + 5s);
    EXPECT_EQ(store.Get(first)->state, State::kCancelled);
    EXPECT_THAT(store.Get(first)->reason, HasSubstr("next run"));
    ASSERT_THAT(Live(), SizeIs(1));
    EXPECT_NE(Live()[0], first);
}

TEST_F(SchedulerTest, CancelRunningWaitsForARunThatTakesItsTime) {
    Put(R"({"name":"n","every":"10m","overlap":"cancel_running","task":{"type":"t"}})");
    Pass(10min);
    SessionId session = random.MakeId<SessionId>();
    store.OpenSession({.id = session, .hostname = "h", .lease = 10h, .types = {"t"}});
    auto lease = store.Claim({.session = session, .limit = 1, .types = {"t"}}).leases.at(0);
    Pass(10min + 60s);
    EXPECT_TRUE(store.Get(lease.task)->cancel_requested);
    EXPECT_THAT(Live(), SizeIs(1));
    auto audit = store.Audit({.task = lease.task});
    store::Settlement over{
        .task = lease.task,
        .token = lease.token,
        .session = session,
        .kind = store::Settlement::Kind::kCancelled};
    store.Settle({&over, 1});
    Pass(60s);
    EXPECT_THAT(Live(), SizeIs(1));
    EXPECT_THAT(Tasks(), SizeIs(2));
}

TEST_F(SchedulerTest, ADelayBeginsAtTheEndOfTheRun) {
    Put(R"({"name":"n","after_end":"5m","task":{"type":"t"}})");
    Pass(1s);
    ASSERT_THAT(Live(), SizeIs(1));
    Pass(20min);
    ASSERT_THAT(Tasks(), SizeIs(1));
    Finish(Live()[0]);
    Time ended = store.Now();
    Pass(5min - 1s);
    EXPECT_THAT(Tasks(), SizeIs(1));
    Pass(32s);
    ASSERT_THAT(Tasks(), SizeIs(2));
    EXPECT_EQ(Runs().front().instant, ended + 5min);
}

TEST_F(SchedulerTest, AnIntervalFromTheStartCountsFromTheLastAttempt) {
    Put(R"({"name":"n","after_start":"10m","task":{"type":"t","max_attempts":3}})");
    SessionId session = random.MakeId<SessionId>();
    store.OpenSession({.id = session, .hostname = "h", .lease = 10h, .types = {"t"}});
    auto run = [&](Duration takes, store::Settlement::Kind kind) {
        auto lease = store.Claim({.session = session, .limit = 1, .types = {"t"}}).leases.at(0);
        Pass(takes);
        store::Settlement over{
            .task = lease.task, .token = lease.token, .session = session, .kind = kind};
        if (kind == store::Settlement::Kind::kRetry) over.delay = 1min;
        store.Settle({&over, 1});
        return store.Get(lease.task)->claimed_at.value();
    };
    Pass(90s);  // nobody has time for it
    Time started = run(4min, store::Settlement::Kind::kComplete);
    Pass(6min - 1s);
    EXPECT_THAT(Tasks(), SizeIs(1)) << "ten minutes from the start, not from the instant";
    Pass(2s);
    ASSERT_THAT(Tasks(), SizeIs(2));
    EXPECT_EQ(Runs().front().instant, started + 10min);
    // An attempt that fails moves nothing: the run goes on.
    run(1min, store::Settlement::Kind::kRetry);
    Time due = store.Get(Live().at(0))->due_at;
    Pass(std::chrono::duration_cast<Duration>(due - store.Now()) + 1s);
    EXPECT_THAT(Tasks(), SizeIs(2));
    // It takes longer than the interval: then the next is due at once, and once.
    started = run(45min, store::Settlement::Kind::kComplete);
    EXPECT_THAT(Live(), IsEmpty());
    Pass(31s);
    ASSERT_THAT(Live(), SizeIs(1));
    EXPECT_EQ(Runs().front().instant, started + 10min);
    Pass(40min);
    EXPECT_THAT(Tasks(), SizeIs(3));
}

TEST_F(SchedulerTest, OnceIsOnceAndThenNever) {
    Put(R"({"name":"n","at":"now+1h","task":{"type":"t"}})");
    Pass(3h);
    EXPECT_THAT(Tasks(), SizeIs(1));
    EXPECT_EQ(Look().next_at, std::nullopt);
}

TEST_F(SchedulerTest, PausedAndResumedItGoesOnFromThen) {
    Put(kEveryTen);
    desk.SetPaused(kDefaultTenant, "n", true, "ann").value();
    Pass(2h + 5min);
    EXPECT_THAT(Tasks(), IsEmpty());
    desk.SetPaused(kDefaultTenant, "n", false, "ann").value();
    Pass(1s);
    EXPECT_THAT(Tasks(), IsEmpty());
    Pass(5min);
    EXPECT_THAT(Tasks(), SizeIs(1));
}

TEST_F(SchedulerTest, AScheduleOfAnUnknownZoneIsKeptAndToldOf) {
    Put(R"({"name":"n","cron":"* * * * *","zone":"Europe/Berlin","task":{"type":"t"}})");
    Put(R"({"name":"other","every":"1m","task":{"type":"o"}})");
    Scheduler::Parts parts = Parts();
    parts.zones = [](const std::string& name) -> Result<model::Zone> {
        if (name == "UTC") return model::Zone();
        return Error{Code::kInvalid, "no such zone here"};
    };
    Scheduler lost(parts, {});
    clock.Advance(2min);
    lost.RunOnce();
    EXPECT_THAT(Tasks(), SizeIs(1));
    lost.RunOnce();
    EXPECT_EQ(logged.size(), 1u) << "it is not said again and again";
    EXPECT_THAT(logged.at(0), HasSubstr("cannot be planned"));
    // A node that knows the zone is not held up by one that does not.
    scheduler.RunOnce();
    EXPECT_TRUE(Look().last_task.valid());
}

TEST_F(SchedulerTest, SchedulesThatCannotBePlannedHereHoldNobodyUp) {
    for (int i = 0; i < 2 * model::limits::kSchedulesDue; ++i) {
        Put(R"({"name":"b)" + std::to_string(i) +
            R"(","cron":"* * * * *","zone":"Europe/Berlin","task":{"type":"t"}})");
    }
    Put(R"({"name":"other","every":"2m","task":{"type":"o"}})");
    Scheduler::Parts parts = Parts();
    parts.zones = [](const std::string& name) -> Result<model::Zone> {
        if (name == "UTC") return model::Zone();
        return Error{Code::kInvalid, "no such zone here"};
    };
    Scheduler lost(parts, {});
    clock.Advance(2min);
    int looks = 0;
    while (lost.RunOnce() <= clock.Now()) ASSERT_LT(++looks, 10);
    EXPECT_THAT(Tasks(), SizeIs(1));
}

TEST_F(SchedulerTest, ADayThatIsNotExcludedAnyMoreHasItsRuns) {
    // The clock begins on the 14th at 22:13.
    ASSERT_TRUE(desk.PutCalendar({.name = "h", .dates = {"2023-11-15", "2023-11-16", "2023-11-17"}})
    );
    constexpr std::string_view kExcept =
        R"({"name":"n","cron":"0 9 * * *","except":["h"],"task":{"type":"t"}})";
    constexpr std::string_view kAlways = R"({"name":"n","cron":"0 9 * * *","task":{"type":"t"}})";
    Put(kExcept);
    Pass(1s);
    EXPECT_EQ(Look().next_at, Time(std::chrono::sys_days{std::chrono::year{2023} / 11 / 18}) + 9h);
    ASSERT_TRUE(desk.PutCalendar({.name = "h", .dates = {"2023-11-16", "2023-11-17"}}));
    Pass(12h);  // the 15th, 10:13
    EXPECT_THAT(Tasks(), SizeIs(1));
    Put(kAlways);
    Pass(24h);
    EXPECT_THAT(Tasks(), SizeIs(2));
    Put(kExcept);
    Pass(24h);
    EXPECT_THAT(Tasks(), SizeIs(2));
    // What was excluded when its time came is not made up for.
    ASSERT_TRUE(desk.PutCalendar({.name = "h", .dates = {}}));
    Pass(1s);
    EXPECT_THAT(Runs(), SizeIs(2));
}

TEST_F(SchedulerTest, VisitsReturnToADayThatIsNotExcludedAnyMore) {
    ASSERT_TRUE(desk.PutCalendar({.name = "h", .dates = {"2023-11-15", "2023-11-16"}}));
    Put(R"({"name":"n","visits":"1h","except":["h"],"overlap":"allow","task":{"type":"v"}})");
    std::vector<model::NewVisit> one = {{.entity = "e", .every = {}}};
    ASSERT_TRUE(desk.PutVisits(kDefaultTenant, "n", one));
    Pass(105min);
    auto before = Tasks().size();
    EXPECT_GE(before, 1u);
    ASSERT_TRUE(desk.PutCalendar({.name = "h", .dates = {"2023-11-16"}}));
    Pass(10h);
    EXPECT_GE(Tasks().size(), before + 9);
}

TEST_F(SchedulerTest, ARunThatWaitsIsKeptWhenItsScheduleChanges) {
    Schedule made = Put(R"({"name":"n","every":"10m","overlap":"queue_one","task":{"type":"t"}})");
    Pass(25min);
    ASSERT_EQ(Look().queued_at, made.created_at + 20min);
    Put(R"({"name":"n","every":"24h","overlap":"queue_one","task":{"type":"t"}})");
    Pass(1min);
    EXPECT_EQ(Look().queued_at, made.created_at + 20min);
    Put(R"({"name":"n","every":"24h","task":{"type":"t"}})");
    Pass(1min);
    EXPECT_EQ(Runs().front().instant, made.created_at + 20min);
    EXPECT_TRUE(Runs().front().task.valid());
    EXPECT_THAT(Live(), SizeIs(2));
}

TEST_F(SchedulerTest, AllInstantsOfAClockChangeAreAsDeclared) {
    // 2023-10-29, 03:00 CEST becomes 02:00 CET.
    clock.Advance(
        Time(std::chrono::sys_days{std::chrono::year{2023} / 10 / 28}) - store.Now() + 0h
    );
    Put(R"({"name":"n","cron":"30 2 * * *","zone":"Europe/Berlin","task":{"type":"t"}})");
    Put(R"({"name":"both","cron":"30 2 * * *","zone":"Europe/Berlin","fold":"both",)"
        R"("task":{"type":"t"}})");
    Pass(48h);
    EXPECT_THAT(Runs("n"), SizeIs(2));
    EXPECT_THAT(Runs("both"), SizeIs(3));
}

// ---- visits ------------------------------------------------------------------------------------

TEST_F(SchedulerTest, VisitsAreSpreadAndNoneIsForgotten) {
    Put(R"({"name":"n","visits":"1h","entity_field":"who","task":{"type":"t","input":{}}})");
    std::vector<model::NewVisit> entities;
    for (int i = 0; i < 500; ++i)
        entities.push_back({.entity = "e" + std::to_string(i), .every = {}});
    entities.push_back({.entity = "often", .every = Duration(10min)});
    ASSERT_TRUE(desk.PutVisits(kDefaultTenant, "n", entities));
    Pass(6min);
    EXPECT_GT(Tasks().size(), 20u);
    EXPECT_LT(Tasks().size(), 100u);
    Pass(54min);
    std::map<std::string, int> visits;
    for (const auto& run : desk.Runs(kDefaultTenant, "n", {.limit = 1000}).value()) {
        ++visits[run.entity];
    }
    EXPECT_EQ(visits.size(), 501u);
    EXPECT_EQ(visits["often"], 6);
    EXPECT_EQ(visits["e7"], 1);
    EXPECT_THAT(Tasks()[0].input, HasSubstr("\"who\":"));
}

TEST_F(SchedulerTest, MissedVisitsAreMadeUpForOnce) {
    Put(R"({"name":"n","visits":"1h","task":{"type":"t"}})");
    std::vector<model::NewVisit> entities;
    for (int i = 0; i < 2'500; ++i) entities.push_back({.entity = std::to_string(i), .every = {}});
    ASSERT_TRUE(desk.PutVisits(kDefaultTenant, "n", entities));
    clock.Advance(10h);
    while (scheduler.RunOnce() <= clock.Now()) {
    }
    EXPECT_EQ(store.Counts({})[(model::CountKey{State::kOpen, "default", "t"})], 2'500);
    auto visits = desk.Visits(kDefaultTenant, "n", {.limit = 1}).value();
    EXPECT_GT(visits.at(0).next_at, store.Now());
    EXPECT_LE(visits.at(0).next_at, store.Now() + 1h);
}

TEST_F(SchedulerTest, VisitsDoNotPileUpWhileNobodyWorks) {
    Put(R"({"name":"n","visits":"1h","task":{"type":"t"}})");
    Put(R"({"name":"m","visits":"1h","overlap":"allow","task":{"type":"u"}})");
    std::vector<model::NewVisit> entities = {
        {.entity = "a", .every = {}}, {.entity = "b", .every = {}}};
    for (const char* name : {"n", "m"}) {
        ASSERT_TRUE(desk.PutVisits(kDefaultTenant, name, entities));
    }
    Pass(8h);
    std::map<std::string, int> live;
    for (TaskId task : Live()) ++live[store.Get(task)->type];
    EXPECT_EQ(live["t"], 2);
    EXPECT_EQ(live["u"], 16) << "who asks for it gets it";
    auto last = Runs("n").front();
    EXPECT_FALSE(last.task.valid());
    EXPECT_THAT(last.skipped, HasSubstr("the visit before is not over"));
    auto visits = desk.Visits(kDefaultTenant, "n", {.limit = 10}).value();
    EXPECT_LT(visits.at(0).last_at, store.Now() - 6h) << "what did not happen is no visit";
    // When it is over the next one comes at its time, and there is only that one.
    Time next = visits.at(0).next_at;
    for (const auto& task : Tasks()) {
        if (task.type == "t") Finish(task.id);
    }
    Pass(1h);
    EXPECT_EQ(desk.Visits(kDefaultTenant, "n", {.limit = 1})->at(0).last_at, next);
    EXPECT_EQ(store.Counts({})[(model::CountKey{State::kOpen, "default", "t"})], 2);
}

TEST_F(SchedulerTest, VisitsThatPassDuringAPauseAreLeftOut) {
    Put(R"({"name":"n","visits":"1h","task":{"type":"t"}})");
    std::vector<model::NewVisit> entities;
    for (int i = 0; i < 200; ++i) entities.push_back({.entity = std::to_string(i), .every = {}});
    ASSERT_TRUE(desk.PutVisits(kDefaultTenant, "n", entities));
    desk.SetPaused(kDefaultTenant, "n", true, "ann").value();
    Pass(24h);
    EXPECT_THAT(Tasks(), IsEmpty());
    desk.SetPaused(kDefaultTenant, "n", false, "ann").value();
    Pass(1s);
    EXPECT_LT(Tasks().size(), 10u) << "they are as spread as they were";
    Pass(1h);
    EXPECT_THAT(Tasks(), SizeIs(200));
}

TEST_F(SchedulerTest, VisitsOfAnOutageAreSpreadByTheirJitter) {
    Put(R"({"name":"n","visits":"1h","jitter":"30m","task":{"type":"t"}})");
    std::vector<model::NewVisit> entities;
    for (int i = 0; i < 200; ++i) entities.push_back({.entity = std::to_string(i), .every = {}});
    ASSERT_TRUE(desk.PutVisits(kDefaultTenant, "n", entities));
    clock.Advance(10h);
    scheduler.RunOnce();
    int soon = 0;
    ASSERT_THAT(Tasks(), SizeIs(200));
    for (const auto& task : Tasks()) soon += task.due_at < store.Now() + 3min ? 1 : 0;
    EXPECT_LT(soon, 50);
}

TEST_F(SchedulerTest, OnAnExcludedDayThereAreNoVisitsAndNoRuns) {
    // 2023-11-15 and 16 in UTC; the clock begins on the 14th at 22:13.
    ASSERT_TRUE(desk.PutCalendar({.name = "h", .dates = {"2023-11-15", "2023-11-16"}}));
    Put(R"({"name":"n","visits":"1h","except":["h"],"overlap":"allow","task":{"type":"v"}})");
    Put(R"({"name":"grid","every":"1h","except":["h"],"task":{"type":"g"}})");
    std::vector<model::NewVisit> one = {{.entity = "e", .every = {}}};
    ASSERT_TRUE(desk.PutVisits(kDefaultTenant, "n", one));
    Pass(90min);
    auto before = Tasks().size();
    EXPECT_GE(before, 2u);
    Pass(48h + 10min);
    EXPECT_EQ(Tasks().size(), before);
    Pass(2h);
    EXPECT_EQ(Tasks().size(), before + 4);
}

// ---- threads -----------------------------------------------------------------------------------

TEST(SchedulerThread, FiresWhatIsPutWhileItSleeps) {
    base::SeededRandom random(1);
    store::MemoryStore store(base::SystemClock(), random);
    wake::LocalWake wake;
    std::mutex mutex;
    std::condition_variable told;
    bool hinted = false;
    wake.Subscribe([&](const wake::Hint&) {
        std::lock_guard guard(mutex);
        hinted = true;
        told.notify_all();
    });
    Scheduler scheduler(
        {store, wake, base::SystemClock(), base::Logger(), SystemZones()}, {.look_every = 1h}
    );
    scheduler.Start();
    ScheduleDesk desk(store, wake, SystemZones());
    desk.OnChange([&] { scheduler.Poke(); });
    auto spec = model::ScheduleFromJson(R"({"name":"n","every":"1s","task":{"type":"t"}})");
    ASSERT_TRUE(desk.Put(spec.value(), {}, "ann"));
    std::unique_lock lock(mutex);
    EXPECT_TRUE(told.wait_for(lock, 30s, [&] { return hinted; }));
    lock.unlock();
    scheduler.Stop();
}

// ---- a look of others ----

TEST_F(SchedulerTest, WhatAClaimSawIsNotAskedAgainUnlessSomethingChanged) {
    engine::TroubledStore seen(store);
    Scheduler::Parts parts = Parts();
    Scheduler quiet{{seen, wake, clock, parts.log, SystemZones()}, {}};
    quiet.RunOnce();  // the first look is always its own
    Put(R"({"name": "n", "every": "1s", "task": {"type": "t"}})");
    clock.Advance(5s);
    seen.SetQuiet(store::Quiet{.schedules = true});
    base::Instant next = quiet.RunOnce();
    EXPECT_THAT(Tasks(), IsEmpty());
    EXPECT_LE(next - clock.Now(), store::kQuietBelieved);
    quiet.Poke();
    quiet.RunOnce();
    EXPECT_THAT(Tasks(), Not(IsEmpty())) << "it was told to look";
    auto before = Tasks().size();
    clock.Advance(5s);
    quiet.RunOnce();
    EXPECT_GT(Tasks().size(), before) << "it knows more than the look before its own";
    before = Tasks().size();
    seen.SetQuiet(store::Quiet{.schedules = false});
    clock.Advance(5s);
    quiet.RunOnce();
    EXPECT_GT(Tasks().size(), before) << "something is due";
}

}  // namespace
}  // namespace stint::services
