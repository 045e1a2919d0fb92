// Schedules: what was asked is kept, what is due is told, and what fires is committed with its mark
// or not at all: an instant becomes at most one task, whoever asks and however often.
#include "base/thread.h"
#include "conformance/conformance.h"
#include "store/schedules.h"

namespace stint::conformance {
namespace {

class ScheduleCases : public Conformance {
protected:
    ScheduleStore& schedules = store.Schedules();

    static ScheduleSpec Spec(const std::string& name = "nightly") {
        ScheduleSpec spec;
        spec.name = name;
        spec.timing = {.kind = TimingSpec::Kind::kEvery, .every = 10min};
        spec.task.type = "t";
        return spec;
    }
    static ScheduleSpec OfVisits(const std::string& name = "visits") {
        ScheduleSpec spec = Spec(name);
        spec.timing = {.kind = TimingSpec::Kind::kVisits, .every = 1h};
        return spec;
    }
    Schedule Put(const ScheduleSpec& spec, std::optional<Time> next_at = {}) {
        auto put = schedules.Put(
            {.spec = spec, .expected_revision = {}, .next_at = next_at, .actor = "ann"}
        );
        EXPECT_TRUE(put) << (put ? "" : put.error().message);
        return put.value();
    }
    Schedule Look(const std::string& name = "nightly") {
        return schedules.Get(kDefaultTenant, name).value();
    }
    static PlannedRun Run(Time instant, RunCause cause = RunCause::kTimed) {
        return {
            .instant = instant,
            .cause = cause,
            .task = NewTask{.type = "t"},
            .skipped = {},
            .keep = 48h};
    }
    static PlannedRun Skipped(Time instant, std::string why) {
        return {
            .instant = instant, .cause = {}, .task = {}, .skipped = std::move(why), .keep = 48h};
    }
    Firing Planned(const Schedule& schedule, std::vector<PlannedRun> runs) {
        Time now = store.Now();
        return {
            .schedule = schedule.id,
            .runs = std::move(runs),
            .advance = FiringAdvance{
                .revision = schedule.revision,
                .turn = schedule.turn,
                .considered_at = now,
                .next_at = now + 10min,
                .queued_at = {},
                .running = {}}};
    }
    FiringReply Fire(const Firing& firing) { return schedules.Fire({&firing, 1}).at(0); }
    std::vector<ScheduleRun> RunsOf(const Schedule& schedule) {
        return schedules.Runs({.schedule = schedule.id});
    }
    std::vector<std::string> Names(const std::vector<Schedule>& found) {
        std::vector<std::string> names;
        for (const Schedule& schedule : found) names.push_back(schedule.spec.name);
        return names;
    }
    DueReply Due() { return schedules.Due(100, 100); }
};
INSTANTIATE_TEST_SUITE_P(Store, ScheduleCases, testing::ValuesIn(Backends()), &BackendName);

using FireKind = FiringReply::Kind;
using RunKind = RunReply::Kind;

// ---- what was asked ----------------------------------------------------------------------------

TEST_P(ScheduleCases, EverythingThatWasAskedComesBack) {
    ScheduleSpec spec =
        ScheduleFromJson(R"({"name":"full","tenant":3,"cron":"30 2 * * *","zone":"Europe/Berlin",)"
                         R"("gap":"skip","fold":"both","misfire":"all","misfire_window":"2d",)"
                         R"("overlap":"queue_one","jitter":"30s","except":["holidays"],)"
                         R"("keep_runs":"30d","instant_field":"at","task":{"type":"backup",)"
                         R"("input":{"a":[2]},"queue":"night","priority":7,"tags":["x"],)"
                         R"("unique":"k","throttle":{"key":"t","period":"10s"}}})")
            .value();
    Time next = store.Now() + 3h;
    Schedule made = Put(spec, next);
    auto found = schedules.Get(TenantId(3), "full");
    ASSERT_TRUE(found);
    EXPECT_THAT(Differences(found->spec, spec), IsEmpty());
    EXPECT_EQ(found->id, made.id);
    EXPECT_EQ(found->revision, 1);
    EXPECT_FALSE(found->paused);
    EXPECT_EQ(found->next_at, next);
    EXPECT_EQ(found->changed_by, "ann");
    EXPECT_TRUE(Near(found->created_at, store.Now()));
    EXPECT_EQ(found->considered_at, found->created_at);
    EXPECT_FALSE(schedules.Get(kDefaultTenant, "full"));
}

TEST_P(ScheduleCases, StepsComeBackByEveryWay) {
    ScheduleSpec spec =
        ScheduleFromJson(R"({"name":"stepped","every":"2s","steps":[{"name":"load",)"
                         R"("tasks":[{"type":"a","input":{"n":1},"queue":"q"},{"type":"b"}]},)"
                         R"({"name":"report","tasks":[{"type":"c","tags":["x"]}],)"
                         R"("on_failure":"continue"}]})")
            .value();
    ASSERT_THAT(spec.steps, SizeIs(2));
    Schedule made = Put(spec, store.Now());
    EXPECT_THAT(Differences(made.spec, spec), IsEmpty());
    EXPECT_THAT(Differences(Look("stepped").spec, spec), IsEmpty());
    DueReply due = Due();
    ASSERT_THAT(due.schedules, SizeIs(1));
    EXPECT_THAT(Differences(due.schedules[0].spec, spec), IsEmpty());
}

TEST_P(ScheduleCases, APutWithAnExpectationMeetsWhatItExpects) {
    SchedulePut put{.spec = Spec(), .expected_revision = 0, .next_at = {}, .actor = "ann"};
    ASSERT_TRUE(schedules.Put(put));
    auto again = schedules.Put(put);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, Code::kConflict);
    EXPECT_THAT(again.error().message, HasSubstr("already"));
    put.expected_revision = 1;
    put.spec.jitter = 1s;
    auto changed = schedules.Put(put);
    ASSERT_TRUE(changed);
    EXPECT_EQ(changed->revision, 2);
    auto late = schedules.Put(put);
    ASSERT_FALSE(late);
    EXPECT_THAT(late.error().message, HasSubstr("revision 2"));
    put.spec.name = "other";
    ASSERT_FALSE(schedules.Put(put));
    EXPECT_FALSE(schedules.Get(kDefaultTenant, "other"));
}

TEST_P(ScheduleCases, OneOfManyWhoExpectTheSameWins) {
    Put(Spec());
    std::atomic<int> won = 0;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.push_back(base::StartThread([&, handle = OpenAgain()] {
                SchedulePut put{
                    .spec = Spec(), .expected_revision = 1, .next_at = {}, .actor = "ann"};
                won += handle->Schedules().Put(put) ? 1 : 0;
            }));
        }
    }
    EXPECT_EQ(won, 1);
    EXPECT_EQ(Look().revision, 2);
}

TEST_P(ScheduleCases, ChangedTimingBeginsNowAndOtherChangesDoNot) {
    Schedule made = Put(Spec());
    Firing firing = Planned(made, {Run(store.Now())});
    firing.advance->queued_at = store.Now();
    ASSERT_EQ(Fire(firing).kind, FireKind::kFired);
    Schedule before = Look();
    Advance(1h);
    ScheduleSpec spec = Spec();
    spec.task.queue = "else";
    Schedule same = Put(spec);
    EXPECT_EQ(same.considered_at, before.considered_at);
    EXPECT_EQ(same.next_at, before.next_at);
    EXPECT_EQ(same.queued_at, before.queued_at);
    spec.timing.every = 1min;
    Schedule other = Put(spec, store.Now() + 7min);
    EXPECT_TRUE(Near(other.considered_at, store.Now()));
    EXPECT_EQ(other.created_at, made.created_at);
    EXPECT_THAT(RunsOf(other), SizeIs(1));
    // What waits for a run goes on waiting, and is looked at soon.
    EXPECT_EQ(other.queued_at, before.queued_at);
    EXPECT_TRUE(Near(other.next_at.value(), store.Now()));
    ASSERT_EQ(Fire(Planned(other, {})).kind, FireKind::kFired);
    spec.timing.every = 2min;
    EXPECT_TRUE(Near(Put(spec, store.Now() + 7min).next_at.value(), store.Now() + 7min));
}

TEST_P(ScheduleCases, ChangedDaysAreLookedAtAtOnceAndMakeNothingUp) {
    ScheduleSpec spec = Spec();
    spec.except = {"g", "h"};
    Schedule made = Put(spec, store.Now() + 48h);
    ScheduleSpec due = Spec("due");
    due.except = {"h"};
    Schedule undecided = Put(due, store.Now() + 30min);
    ScheduleSpec visits = OfVisits();
    visits.except = {"h"};
    Put(visits);
    ScheduleSpec elsewhere = due;
    elsewhere.tenant = TenantId(2);
    std::vector<Schedule> others = {
        Put(elsewhere, store.Now() + 48h), Put(Spec("other"), store.Now() + 48h)};
    Advance(1h);
    schedules.PutCalendar({.name = "h", .dates = {"2026-12-25"}});
    EXPECT_TRUE(Near(Look().next_at.value(), store.Now()));
    EXPECT_TRUE(Near(Look().considered_at, store.Now()));
    EXPECT_EQ(Look().revision, made.revision);
    EXPECT_THAT(Names(Due().schedules), ElementsAre("due", "nightly"));
    // What was due before the change is still to be decided.
    EXPECT_EQ(Look("due").next_at, undecided.next_at);
    EXPECT_EQ(Look("due").considered_at, undecided.considered_at);
    EXPECT_EQ(Look("visits").next_at, std::nullopt);
    EXPECT_EQ(Look("other").next_at, others[1].next_at);
    EXPECT_EQ(schedules.Get(TenantId(2), "due")->next_at, others[0].next_at);
    // A plan made of the days before is worth nothing.
    EXPECT_EQ(Fire(Planned(made, {})).kind, FireKind::kLost);
    Firing planned = Planned(Look(), {});
    ASSERT_EQ(Fire(planned).kind, FireKind::kFired);
    EXPECT_EQ(Look().next_at, planned.advance->next_at);
    // The schedule's own list of calendars is no different.
    Advance(1min);
    spec.except = {"g"};
    Schedule changed = Put(spec, store.Now() + 5min);
    EXPECT_TRUE(Near(changed.next_at.value(), store.Now()));
    EXPECT_TRUE(Near(Look().considered_at, store.Now()));
}

TEST_P(ScheduleCases, ListsGoByNameInPages) {
    for (const char* name : {"b", "a", "C", "d"}) Put(Spec(name));
    ScheduleSpec other = Spec("a");
    other.tenant = TenantId(2);
    Put(other);
    EXPECT_THAT(Names(schedules.List({})), ElementsAre("C", "a", "b", "d", "a"));
    EXPECT_THAT(Names(schedules.List({.tenant = TenantId(2)})), ElementsAre("a"));
    ScheduleListRequest page{
        .tenant = kDefaultTenant, .after_tenant = kDefaultTenant, .after_name = "a", .limit = 2};
    EXPECT_THAT(Names(schedules.List(page)), ElementsAre("b", "d"));
    page.limit = 1;
    EXPECT_THAT(Names(schedules.List(page)), ElementsAre("b"));
    page.tenant.reset();
    page.after_name = "d";
    EXPECT_THAT(Names(schedules.List(page)), ElementsAre("a"));
}

TEST_P(ScheduleCases, ARemovedScheduleLeavesItsTasks) {
    Schedule made = Put(Spec());
    FiringReply fired = Fire(Planned(made, {Run(store.Now())}));
    EXPECT_TRUE(schedules.Remove(kDefaultTenant, "nightly"));
    EXPECT_FALSE(schedules.Remove(kDefaultTenant, "nightly"));
    EXPECT_FALSE(schedules.Get(kDefaultTenant, "nightly"));
    EXPECT_EQ(StateOf(fired.runs.at(0).task), State::kOpen);
    EXPECT_EQ(Fire(Planned(made, {Run(store.Now())})).kind, FireKind::kGone);
    EXPECT_THAT(RunsOf(made), IsEmpty());
    Schedule again = Put(Spec());
    EXPECT_NE(again.id, made.id);
    EXPECT_EQ(again.revision, 1);
}

TEST_P(ScheduleCases, APauseIsLeftOutAndNotMadeUpFor) {
    Schedule made = Put(Spec(), store.Now() - 1s);
    EXPECT_THAT(Due().schedules, SizeIs(1));
    auto paused = schedules.SetPaused(kDefaultTenant, "nightly", true, "bob");
    ASSERT_TRUE(paused);
    EXPECT_TRUE(paused->paused);
    EXPECT_EQ(paused->changed_by, "bob");
    EXPECT_EQ(paused->revision, 2);
    EXPECT_THAT(Due().schedules, IsEmpty());
    EXPECT_EQ(Due().next_at, std::nullopt);
    EXPECT_EQ(Fire(Planned(made, {Run(store.Now())})).kind, FireKind::kLost);
    Advance(5h);
    EXPECT_TRUE(Put(Spec()).paused);
    schedules.SetPaused(kDefaultTenant, "nightly", false, "bob");
    Schedule resumed = Look();
    EXPECT_FALSE(resumed.paused);
    EXPECT_TRUE(Near(resumed.considered_at, store.Now()));
    EXPECT_THAT(Due().schedules, SizeIs(1));
    EXPECT_FALSE(schedules.SetPaused(kDefaultTenant, "nobody", true, "bob"));
}

// ---- due and fire ------------------------------------------------------------------------------

TEST_P(ScheduleCases, WhatIsDueComesInItsOrderAndTheNextIsTold) {
    Time now = store.Now();
    Put(Spec("late"), now - 1h);
    Put(Spec("later"), now - 2h);
    Put(Spec("soon"), now + 1h);
    Put(Spec("never"), now + 2h);
    DueReply due = Due();
    EXPECT_THAT(Names(due.schedules), ElementsAre("later", "late"));
    EXPECT_EQ(due.next_at, now + 1h);
    EXPECT_TRUE(Near(due.now, store.Now()));
    EXPECT_THAT(Names(schedules.Due(1, 1).schedules), ElementsAre("later"));
    Advance(90min);
    EXPECT_THAT(Names(Due().schedules), ElementsAre("later", "late", "soon"));
}

TEST_P(ScheduleCases, AFiredInstantIsATaskAMarkAndTheNextLook) {
    Schedule made = Put(Spec());
    Time instant = store.Now();
    Firing firing = Planned(made, {Skipped(instant - 10min, "missed"), Run(instant)});
    firing.runs[1].task->queue = "night";
    firing.advance->running = {TaskId(1'000'000)};
    FiringReply fired = Fire(firing);
    ASSERT_EQ(fired.kind, FireKind::kFired);
    ASSERT_THAT(fired.runs, SizeIs(2));
    EXPECT_EQ(fired.runs[0].kind, RunKind::kSkipped);
    EXPECT_EQ(fired.runs[1].kind, RunKind::kCreated);
    EXPECT_EQ(fired.runs[1].queue, "night");
    EXPECT_TRUE(fired.runs[1].due_now);
    TaskId task = fired.runs[1].task;
    EXPECT_EQ(Get(task).queue, "night");
    Schedule after = Look();
    EXPECT_EQ(after.turn, 1);
    EXPECT_EQ(after.next_at, firing.advance->next_at);
    EXPECT_EQ(after.considered_at, firing.advance->considered_at);
    EXPECT_EQ(after.last_instant, instant);
    EXPECT_EQ(after.last_task, task);
    EXPECT_THAT(after.running, ElementsAre(TaskId(1'000'000), task));
    std::vector<ScheduleRun> runs = RunsOf(made);
    ASSERT_THAT(runs, SizeIs(2));
    EXPECT_EQ(runs[0].task, task);
    EXPECT_EQ(runs[0].skipped, "");
    EXPECT_EQ(runs[1].instant, instant - 10min);
    EXPECT_FALSE(runs[1].task.valid());
    EXPECT_EQ(runs[1].skipped, "missed");
    EXPECT_TRUE(Near(runs[0].decided_at, store.Now()));
}

TEST_P(ScheduleCases, APlanFromAnOldLookIsLost) {
    Schedule made = Put(Spec());
    Firing first = Planned(made, {Run(store.Now())});
    Firing second = Planned(made, {Run(store.Now() + 1us)});
    EXPECT_EQ(Fire(first).kind, FireKind::kFired);
    FiringReply lost = Fire(second);
    EXPECT_EQ(lost.kind, FireKind::kLost);
    EXPECT_THAT(lost.runs, IsEmpty());
    EXPECT_THAT(RunsOf(made), SizeIs(1));
    EXPECT_THAT(ListAll(), SizeIs(1));
    // A change of the schedule makes an old look worthless as well.
    Firing third = Planned(Look(), {Run(store.Now() + 2us)});
    Put(Spec());
    EXPECT_EQ(Fire(third).kind, FireKind::kLost);
}

TEST_P(ScheduleCases, AnInstantThatWasDecidedStaysSo) {
    Schedule made = Put(Spec());
    Time instant = store.Now();
    TaskId task = Fire(Planned(made, {Run(instant)})).runs.at(0).task;
    FiringReply again = Fire(Planned(Look(), {Run(instant), Run(instant + 1s)}));
    ASSERT_EQ(again.kind, FireKind::kFired);
    EXPECT_EQ(again.runs[0].kind, RunKind::kDecided);
    EXPECT_EQ(again.runs[0].task, task);
    EXPECT_EQ(again.runs[1].kind, RunKind::kCreated);
    // Twice in one plan is no different.
    again = Fire(Planned(Look(), {Run(instant + 2s), Run(instant + 2s)}));
    EXPECT_EQ(again.runs[0].kind, RunKind::kCreated);
    EXPECT_EQ(again.runs[1].kind, RunKind::kDecided);
    EXPECT_EQ(again.runs[1].task, again.runs[0].task);
    EXPECT_THAT(ListAll(), SizeIs(3));
}

TEST_P(ScheduleCases, ABackfillFillsInForWhatWasSkippedAndForNothingElse) {
    Schedule made = Put(Spec());
    Time instant = store.Now();
    Fire(Planned(made, {Run(instant), Skipped(instant + 1s, "overlap")}));
    EXPECT_EQ(Fire(Planned(Look(), {Run(instant + 1s)})).runs[0].kind, RunKind::kDecided);
    Schedule before = Look();
    Firing backfill{
        .schedule = made.id,
        .runs =
            {Run(instant - 1h, RunCause::kBackfill),
             Run(instant, RunCause::kBackfill),
             Run(instant + 1s, RunCause::kBackfill)},
        .advance = {}};
    FiringReply filled = Fire(backfill);
    EXPECT_EQ(filled.runs[0].kind, RunKind::kCreated);
    EXPECT_EQ(filled.runs[1].kind, RunKind::kDecided);
    EXPECT_EQ(filled.runs[2].kind, RunKind::kCreated);
    for (const RunReply& run : Fire(backfill).runs) EXPECT_EQ(run.kind, RunKind::kDecided);
    // It leaves the plan where it is.
    Schedule after = Look();
    EXPECT_EQ(after.turn, before.turn);
    EXPECT_EQ(after.next_at, before.next_at);
    EXPECT_EQ(after.last_instant, before.last_instant);
    EXPECT_EQ(after.running, before.running);
    EXPECT_EQ(after.last_task, before.last_task);
    std::vector<ScheduleRun> runs = RunsOf(made);
    ASSERT_THAT(runs, SizeIs(3));
    EXPECT_EQ(runs[0].cause, RunCause::kBackfill);
    EXPECT_EQ(runs[0].skipped, "");
    EXPECT_EQ(runs[1].cause, RunCause::kTimed);
}

TEST_P(ScheduleCases, ABackfillDoesNotHideTheRunThatIsNotOver) {
    ScheduleSpec spec = Spec();
    spec.overlap = OverlapPolicy::kSkip;
    Schedule made = Put(spec);
    Time instant = store.Now();
    TaskId task = Fire(Planned(made, {Run(instant)})).runs.at(0).task;
    Firing backfill{.schedule = made.id, .runs = {}, .advance = {}};
    for (int i = 1; i < limits::kRunsRemembered + 5; ++i) {
        backfill.runs.push_back(Run(instant - i * 1min, RunCause::kBackfill));
    }
    ASSERT_EQ(Fire(backfill).kind, FireKind::kFired);
    EXPECT_THAT(Look().running, ElementsAre(task));
}

TEST_P(ScheduleCases, ARunThatIsNotOverIsNotForgottenForOthers) {
    ScheduleSpec spec = Spec();
    spec.overlap = OverlapPolicy::kSkip;
    Schedule made = Put(spec);
    Time instant = store.Now();
    auto run_now = [&](const std::vector<TaskId>& ended) {
        instant += 1us;
        Firing manual{
            .schedule = made.id,
            .runs = {Run(instant, RunCause::kManual)},
            .advance = {},
            .ended = ended};
        return Fire(manual).runs.at(0);
    };
    TaskId first = run_now({}).task;
    std::vector<TaskId> others;
    while (others.size() + 1 < limits::kRunsRemembered) others.push_back(run_now({}).task);
    Schedule full = Look();
    RunReply refused = run_now({});
    EXPECT_EQ(refused.kind, RunReply::Kind::kRefused);
    EXPECT_THAT(refused.message, HasSubstr("has 100 runs that are not over, and the limit is 100"));
    EXPECT_EQ(Look().running, full.running);
    EXPECT_EQ(Look().last_instant, full.last_instant) << "nothing happened";
    EXPECT_THAT(schedules.Runs({.schedule = made.id, .limit = 1}).at(0).instant, instant - 1us);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(run_now(others).kind, RunReply::Kind::kCreated);
    EXPECT_THAT(Look().running, SizeIs(limits::kRunsRemembered));
    EXPECT_EQ(Look().running.front(), first);
    EXPECT_EQ(Look().running.at(1), others.at(5)) << "the oldest of those that ended are gone";
    // Where runs may overlap nobody needs to know them all.
    spec.overlap = OverlapPolicy::kAllow;
    made = Put(spec);
    EXPECT_EQ(run_now({}).kind, RunReply::Kind::kCreated);
    EXPECT_THAT(Look().running, SizeIs(limits::kRunsRemembered));
}

TEST_P(ScheduleCases, ARunOfItsOwnIsSeenByTheNextPlan) {
    ScheduleSpec spec = Spec();
    Time instant = store.Now();
    auto run_now = [&](const Schedule& schedule) {
        instant += 1us;
        Firing manual{
            .schedule = schedule.id, .runs = {Run(instant, RunCause::kManual)}, .advance = {}};
        return Fire(manual).runs.at(0).task;
    };
    // Where runs may overlap nobody asks.
    Schedule look = Put(spec);
    run_now(look);
    EXPECT_EQ(Fire(Planned(look, {Run(instant + 1s)})).kind, FireKind::kFired);
    spec.overlap = OverlapPolicy::kSkip;
    look = Put(spec);
    TaskId task = run_now(look);
    EXPECT_EQ(Fire(Planned(look, {Run(instant + 2s)})).kind, FireKind::kLost);
    EXPECT_EQ(Look().running.back(), task);
    EXPECT_EQ(Look().next_at, look.next_at);
    EXPECT_EQ(Fire(Planned(Look(), {Run(instant + 2s)})).kind, FireKind::kFired);
    // Nor does anything change when nothing ran.
    look = Look();
    Firing again{.schedule = look.id, .runs = {Run(instant, RunCause::kManual)}, .advance = {}};
    EXPECT_EQ(Fire(again).runs.at(0).kind, RunKind::kDecided);
    EXPECT_EQ(Fire(Planned(look, {})).kind, FireKind::kFired);
}

TEST_P(ScheduleCases, ARunThatGetsNoTaskSaysWhy) {
    store.SetQueue({.name = "full", .cap = 0}, "ann");
    Schedule made = Put(Spec());
    Time instant = store.Now();
    Firing firing = Planned(made, {Run(instant), Run(instant + 1s), Run(instant + 2s)});
    firing.runs[0].task->queue = "full";
    firing.runs[1].task->priority = 9999;
    FiringReply fired = Fire(firing);
    ASSERT_EQ(fired.kind, FireKind::kFired);
    EXPECT_EQ(fired.runs[0].kind, RunKind::kRefused);
    EXPECT_THAT(fired.runs[0].message, HasSubstr("full"));
    EXPECT_EQ(fired.runs[1].kind, RunKind::kRefused);
    EXPECT_EQ(fired.runs[2].kind, RunKind::kCreated);
    std::vector<ScheduleRun> runs = RunsOf(made);
    ASSERT_THAT(runs, SizeIs(3));
    EXPECT_FALSE(runs[2].task.valid());
    EXPECT_THAT(runs[2].skipped, HasSubstr("\"full\""));
    EXPECT_THAT(runs[1].skipped, HasSubstr("priority"));
    EXPECT_EQ(Look().last_instant, instant + 2s);
}

TEST_P(ScheduleCases, ALiveTaskOfTheSameUniqueKeyStandsForTheRun) {
    Schedule made = Put(Spec());
    TaskId live = Make({.unique_key = "u"});
    Firing firing = Planned(made, {Run(store.Now())});
    firing.runs[0].task->unique_key = "u";
    FiringReply fired = Fire(firing);
    EXPECT_EQ(fired.runs.at(0).kind, RunKind::kExisting);
    EXPECT_EQ(fired.runs.at(0).task, live);
    EXPECT_EQ(RunsOf(made).at(0).task, live);
    EXPECT_THAT(Look().running, ElementsAre(live));
}

TEST_P(ScheduleCases, ManySchedulesFireTogetherAndEachForItself) {
    std::vector<Schedule> made;
    for (int i = 0; i < 50; ++i) made.push_back(Put(Spec("s" + std::to_string(i))));
    std::vector<Firing> firings;
    for (const Schedule& schedule : made) firings.push_back(Planned(schedule, {Run(store.Now())}));
    firings.push_back(firings.front());  // twice in one call
    firings[7].advance->turn = 5;        // an old look
    firings[8].schedule = ScheduleId(made.back().id.value() + 1'000);
    std::vector<FiringReply> replies = schedules.Fire(firings);
    ASSERT_THAT(replies, SizeIs(51));
    for (std::size_t i = 0; i < 50; ++i) {
        FireKind expected = i == 7 ? FireKind::kLost : i == 8 ? FireKind::kGone : FireKind::kFired;
        EXPECT_EQ(replies[i].kind, expected) << i;
    }
    EXPECT_EQ(replies[50].kind, FireKind::kLost);
    EXPECT_THAT(ListAll(), SizeIs(48));
}

TEST_P(ScheduleCases, NodesThatFireAtTheSameTimeMakeOneTask) {
    constexpr int kRounds = 10;
    Put(Spec());
    std::atomic<int> fired = 0;
    for (int round = 0; round < kRounds; ++round) {
        Schedule look = Look();
        Firing firing = Planned(look, {Run(store.Now() + round * 1us)});
        std::vector<std::jthread> nodes;
        for (int node = 0; node < 4; ++node) {
            nodes.push_back(base::StartThread([&firing, &fired, handle = OpenAgain()] {
                FiringReply reply = handle->Schedules().Fire({&firing, 1}).at(0);
                fired += reply.kind == FireKind::kFired ? 1 : 0;
            }));
        }
    }
    EXPECT_EQ(fired, kRounds);
    EXPECT_THAT(ListAll(), SizeIs(kRounds));
    EXPECT_EQ(Look().turn, kRounds);
}

TEST_P(ScheduleCases, AFiredTaskIsClaimedLikeAnyOther) {
    Schedule made = Put(Spec());
    Firing firing = Planned(made, {Run(store.Now())});
    firing.runs[0].task->input = R"({"a":1})";
    TaskId task = Fire(firing).runs.at(0).task;
    Lease lease = ClaimOne();
    EXPECT_EQ(lease.task, task);
    EXPECT_EQ(lease.input, R"({"a":1})");
    EXPECT_EQ(Complete(lease), State::kComplete);
}

TEST_P(ScheduleCases, TheOldestRunsThatMayNotBeOverAreForgotten) {
    Schedule made = Put(Spec());
    Time instant = store.Now();
    std::vector<PlannedRun> runs;
    for (int i = 0; i < limits::kRunsRemembered + 5; ++i) runs.push_back(Run(instant + i * 1us));
    FiringReply fired = Fire(Planned(made, runs));
    std::vector<TaskId> running = Look().running;
    ASSERT_THAT(running, SizeIs(limits::kRunsRemembered));
    EXPECT_EQ(running.back(), fired.runs.back().task);
    EXPECT_EQ(running.front(), fired.runs.at(5).task);
}

// ---- history of runs ---------------------------------------------------------------------------

TEST_P(ScheduleCases, RunsAreNewestFirstInPagesAndRanges) {
    Schedule made = Put(Spec());
    Time start = store.Now();
    std::vector<PlannedRun> planned;
    for (int i = 0; i < 6; ++i) planned.push_back(Skipped(start + i * 1min, std::to_string(i)));
    Fire(Planned(made, planned));
    auto why = [&](RunsRequest request) {
        request.schedule = made.id;
        std::string all;
        for (const ScheduleRun& run : schedules.Runs(request)) all += run.skipped;
        return all;
    };
    EXPECT_EQ(why({}), "543210");
    EXPECT_EQ(why({.limit = 2}), "54");
    EXPECT_EQ(why({.before = start + 4min, .limit = 2}), "32");
    EXPECT_EQ(why({.from = start + 1min, .to = start + 3min}), "21");
    EXPECT_EQ(why({.from = start + 1min, .to = start + 4min, .before = start + 3min}), "21");
    EXPECT_EQ(why({.schedule = {}, .from = start + 10min}), "");
}

TEST_P(ScheduleCases, MarksAreForgottenWhenTheirTimeIsOverAndNotBefore) {
    Schedule made = Put(Spec());
    Time start = store.Now();
    std::vector<PlannedRun> planned = {Run(start), Run(start + 1s), Run(start + 2s)};
    planned[1].keep = 24h;
    planned[2].keep = 24h;
    Fire(Planned(made, planned));
    Advance(24h - 1min);
    EXPECT_EQ(schedules.ForgetRuns(100), 0);
    Advance(2min);
    EXPECT_EQ(schedules.ForgetRuns(1), 1);
    EXPECT_EQ(schedules.ForgetRuns(100), 1);
    EXPECT_EQ(schedules.ForgetRuns(100), 0);
    ASSERT_THAT(RunsOf(made), SizeIs(1));
    EXPECT_EQ(RunsOf(made).at(0).instant, start);
}

// ---- calendars ---------------------------------------------------------------------------------

TEST_P(ScheduleCases, CalendarsArePutReplacedAndRemoved) {
    schedules.PutCalendar({.name = "b", .dates = {"2026-12-25"}});
    schedules.PutCalendar({.name = "a", .dates = {}});
    schedules.PutCalendar({.tenant = TenantId(2), .name = "c", .dates = {"2026-01-01"}});
    schedules.PutCalendar({.name = "b", .dates = {"2026-12-25", "2026-12-26"}});
    std::vector<Calendar> found = schedules.Calendars(kDefaultTenant);
    ASSERT_THAT(found, SizeIs(2));
    EXPECT_EQ(found[0].name, "a");
    EXPECT_THAT(found[0].dates, IsEmpty());
    EXPECT_THAT(found[1].dates, ElementsAre("2026-12-25", "2026-12-26"));
    EXPECT_TRUE(schedules.RemoveCalendar(kDefaultTenant, "b"));
    EXPECT_FALSE(schedules.RemoveCalendar(kDefaultTenant, "b"));
    EXPECT_THAT(schedules.Calendars(kDefaultTenant), SizeIs(1));
    EXPECT_EQ(schedules.Calendars(TenantId(2)).at(0).tenant, TenantId(2));
}

// ---- visits ------------------------------------------------------------------------------------

class VisitCases : public ScheduleCases {
protected:
    Schedule Visiting(std::vector<std::pair<std::string, Time>> entities) {
        Schedule made = Put(OfVisits());
        std::vector<ScheduleStore::VisitPut> puts;
        for (auto& [entity, at] : entities) {
            puts.push_back({.visit = {.entity = entity, .every = {}}, .next_at = at});
        }
        EXPECT_TRUE(schedules.PutVisits(made.id, puts));
        return made;
    }
    static std::vector<std::string> Entities(const std::vector<Visit>& visits) {
        std::vector<std::string> names;
        for (const Visit& visit : visits) names.push_back(visit.entity);
        return names;
    }
    VisitFiring Turn(const Schedule& schedule, const Visit& visit) {
        return {
            .schedule = schedule.id,
            .revision = schedule.revision,
            .entity = visit.entity,
            .expected_next_at = visit.next_at,
            .run = Run(visit.next_at),
            .next_at = visit.next_at + 1h};
    }
};
INSTANTIATE_TEST_SUITE_P(Store, VisitCases, testing::ValuesIn(Backends()), &BackendName);

TEST_P(VisitCases, EntitiesArePutChangedListedAndRemoved) {
    Time now = store.Now();
    Schedule made = Visiting({{"b", now + 1h}, {"a", now + 2h}, {"c", now + 3h}});
    EXPECT_EQ(made.next_at, std::nullopt);
    ScheduleStore::VisitPut change{
        .visit = {.entity = "b", .every = Duration(5min)}, .next_at = now + 9h};
    ASSERT_TRUE(schedules.PutVisits(made.id, {&change, 1}));
    std::vector<Visit> visits = schedules.Visits({.schedule = made.id});
    EXPECT_THAT(Entities(visits), ElementsAre("a", "b", "c"));
    EXPECT_EQ(visits[1].every, Duration(5min));
    EXPECT_EQ(visits[1].next_at, now + 1h);
    EXPECT_EQ(visits[1].last_at, std::nullopt);
    EXPECT_EQ(visits[0].every, std::nullopt);
    visits = schedules.Visits({.schedule = made.id, .after = "a", .limit = 1});
    EXPECT_THAT(Entities(visits), ElementsAre("b"));
    std::vector<std::string> gone = {"a", "nobody", "c"};
    EXPECT_EQ(schedules.RemoveVisits(made.id, gone), 2);
    EXPECT_THAT(Entities(schedules.Visits({.schedule = made.id})), ElementsAre("b"));
    auto nowhere = schedules.PutVisits(ScheduleId(made.id.value() + 99), {&change, 1});
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().code, Code::kNotFound);
    schedules.Remove(kDefaultTenant, "visits");
    EXPECT_THAT(schedules.Visits({.schedule = made.id}), IsEmpty());
}

TEST_P(VisitCases, AShorterIntervalCountsFromNowOn) {
    Time now = store.Now();
    Schedule made = Visiting({{"a", now + 50min}, {"b", now + 50min}});
    auto next_of = [&](std::size_t index) {
        return schedules.Visits({.schedule = made.id}).at(index).next_at;
    };
    auto put = [&](Duration every, Time next_at) {
        ScheduleStore::VisitPut change{
            .visit = {.entity = "a", .every = every}, .next_at = next_at};
        ASSERT_TRUE(schedules.PutVisits(made.id, {&change, 1}));
    };
    put(2h, now + 1min);
    EXPECT_EQ(next_of(0), now + 50min);
    put(5min, now + 3min);
    EXPECT_EQ(next_of(0), now + 3min);
    put(5min, now + 1min);  // the same again: a program says what it wants at every start
    EXPECT_EQ(next_of(0), now + 3min);
    // Of the schedule itself: what is left is shortened alike, so that those that are spread stay
    // so.
    ScheduleSpec spec = OfVisits();
    spec.timing.every = 6min;
    Put(spec);
    EXPECT_EQ(next_of(0), now + 3min);
    EXPECT_TRUE(Near(next_of(1), now + 5min));
    spec.timing.every = 6h;
    Time before = next_of(1);
    Put(spec);
    EXPECT_EQ(next_of(1), before);
}

TEST_P(VisitCases, DueVisitsComeWithTheirSchedules) {
    Time now = store.Now();
    Schedule made = Visiting({{"a", now - 1s}, {"b", now - 2s}, {"c", now + 1h}});
    DueReply due = Due();
    EXPECT_THAT(Entities(due.visits), ElementsAre("b", "a"));
    ASSERT_THAT(due.of_visits, SizeIs(1));
    EXPECT_EQ(due.of_visits[0].id, made.id);
    EXPECT_EQ(due.visits[0].schedule, made.id);
    EXPECT_EQ(due.next_at, now + 1h);
    EXPECT_THAT(due.schedules, IsEmpty());
    EXPECT_THAT(Entities(schedules.Due(10, 1).visits), ElementsAre("b"));
    schedules.SetPaused(kDefaultTenant, "visits", true, "bob");
    EXPECT_THAT(Due().visits, IsEmpty());
    EXPECT_EQ(Due().next_at, std::nullopt);
}

TEST_P(VisitCases, AVisitIsATaskAMarkAndTheNextVisit) {
    Time now = store.Now();
    Schedule made = Visiting({{"a", now - 1s}, {"b", now - 1s}});
    Visit a = Due().visits.at(0), b = Due().visits.at(1);
    std::vector<VisitFiring> firings = {Turn(made, a), Turn(made, b), Turn(made, a)};
    std::vector<FiringReply> replies = schedules.FireVisits(firings);
    ASSERT_THAT(replies, SizeIs(3));
    EXPECT_EQ(replies[0].kind, FireKind::kFired);
    EXPECT_EQ(replies[0].runs.at(0).kind, RunKind::kCreated);
    EXPECT_EQ(replies[1].runs.at(0).kind, RunKind::kCreated);
    EXPECT_EQ(replies[2].kind, FireKind::kLost);
    EXPECT_THAT(ListAll(), SizeIs(2));
    Visit after = schedules.Visits({.schedule = made.id}).at(0);
    EXPECT_EQ(after.next_at, a.next_at + 1h);
    EXPECT_EQ(after.last_at, a.next_at);
    std::vector<ScheduleRun> runs = RunsOf(made);
    ASSERT_THAT(runs, SizeIs(2));
    EXPECT_EQ(runs[0].entity, "b");
    EXPECT_EQ(runs[0].task, replies[1].runs[0].task);
    RunsRequest page{.schedule = made.id, .before = runs[0].instant, .before_entity = "b"};
    EXPECT_EQ(schedules.Runs(page).at(0).entity, "a");
    EXPECT_THAT(Due().visits, IsEmpty());
}

TEST_P(VisitCases, AVisitThatIsOnlyMovedMakesNothing) {
    Schedule made = Visiting({{"a", store.Now() - 1s}});
    VisitFiring moved = Turn(made, Due().visits.at(0));
    moved.run.reset();
    EXPECT_EQ(schedules.FireVisits({&moved, 1}).at(0).kind, FireKind::kFired);
    EXPECT_THAT(RunsOf(made), IsEmpty());
    Visit after = schedules.Visits({.schedule = made.id}).at(0);
    EXPECT_EQ(after.next_at, moved.next_at);
    EXPECT_EQ(after.last_at, std::nullopt);
}

TEST_P(VisitCases, AVisitWhoseLastOneIsNotOverIsSkipped) {
    Schedule made = Visiting({{"a", store.Now() - 1s}});
    auto turn = [&] {
        VisitFiring firing = Turn(made, Due().visits.at(0));
        firing.run->task->unique_key = "visit:a";
        firing.next_at = firing.expected_next_at + 1ms;
        return firing;
    };
    VisitFiring first = turn();
    TaskId task = schedules.FireVisits({&first, 1}).at(0).runs.at(0).task;
    Advance(1s);
    VisitFiring second = turn();
    FiringReply reply = schedules.FireVisits({&second, 1}).at(0);
    ASSERT_EQ(reply.kind, FireKind::kFired);
    EXPECT_EQ(reply.runs.at(0).kind, RunKind::kSkipped);
    EXPECT_FALSE(reply.runs.at(0).task.valid());
    EXPECT_THAT(ListAll(), SizeIs(1));
    std::vector<ScheduleRun> runs = RunsOf(made);
    ASSERT_THAT(runs, SizeIs(2));
    EXPECT_FALSE(runs[0].task.valid());
    EXPECT_THAT(runs[0].skipped, HasSubstr("not over (task " + task.ToString()));
    Visit after = schedules.Visits({.schedule = made.id}).at(0);
    EXPECT_EQ(after.last_at, first.expected_next_at);
    EXPECT_EQ(after.next_at, second.next_at);
    EXPECT_EQ(Complete(ClaimOne()), State::kComplete);
    VisitFiring third = turn();
    reply = schedules.FireVisits({&third, 1}).at(0);
    EXPECT_EQ(reply.runs.at(0).kind, RunKind::kCreated);
    EXPECT_EQ(schedules.Visits({.schedule = made.id}).at(0).last_at, third.expected_next_at);
}

TEST_P(VisitCases, APauseMovesWhatPassedToItsNextInstant) {
    Time now = store.Now();
    Schedule made = Visiting({{"a", now + 10min}, {"b", now + 20min}, {"c", now + 90h}});
    ScheduleStore::VisitPut own{
        .visit = {.entity = "own", .every = Duration(7min)}, .next_at = now + 3min + 123us};
    ASSERT_TRUE(schedules.PutVisits(made.id, {&own, 1}));
    ASSERT_TRUE(schedules.SetPaused(kDefaultTenant, "visits", true, "bob"));
    Advance(5h + 15min);
    schedules.SetPaused(kDefaultTenant, "visits", true, "bob");  // again: nothing happens
    EXPECT_EQ(schedules.Visits({.schedule = made.id}).at(0).next_at, now + 10min);
    ASSERT_TRUE(schedules.SetPaused(kDefaultTenant, "visits", false, "bob"));
    EXPECT_THAT(Due().visits, IsEmpty());
    std::vector<Visit> visits = schedules.Visits({.schedule = made.id});
    ASSERT_THAT(Entities(visits), ElementsAre("a", "b", "c", "own"));
    EXPECT_EQ(visits[0].next_at, now + 6h + 10min);
    EXPECT_EQ(visits[1].next_at, now + 5h + 20min);
    EXPECT_EQ(visits[2].next_at, now + 90h);
    EXPECT_EQ(visits[3].next_at, now + 3min + 123us + 45 * 7min);
    // One that goes on anyway moves nothing.
    Advance(5min);
    EXPECT_EQ(Due().visits.size(), 2u);
    ASSERT_TRUE(schedules.SetPaused(kDefaultTenant, "visits", false, "bob"));
    EXPECT_EQ(Due().visits.size(), 2u);
}

TEST_P(VisitCases, AnOldLookAtAVisitIsLost) {
    Schedule made = Visiting({{"a", store.Now() - 1s}});
    VisitFiring turn = Turn(made, Due().visits.at(0));
    VisitFiring nobody = turn;
    nobody.entity = "nobody";
    EXPECT_EQ(schedules.FireVisits({&nobody, 1}).at(0).kind, FireKind::kGone);
    Put(OfVisits());
    EXPECT_EQ(schedules.FireVisits({&turn, 1}).at(0).kind, FireKind::kLost);
    turn.revision = 2;
    EXPECT_EQ(schedules.FireVisits({&turn, 1}).at(0).kind, FireKind::kFired);
    EXPECT_EQ(schedules.FireVisits({&turn, 1}).at(0).kind, FireKind::kLost);
}

TEST_P(VisitCases, NodesThatVisitAtTheSameTimeMakeOneTaskEach) {
    Time now = store.Now();
    std::vector<std::pair<std::string, Time>> entities;
    for (int i = 0; i < 40; ++i) entities.emplace_back("e" + std::to_string(i), now - i * 1ms);
    Schedule made = Visiting(entities);
    std::vector<VisitFiring> turns;
    for (const Visit& visit : Due().visits) turns.push_back(Turn(made, visit));
    std::atomic<int> fired = 0;
    {
        std::vector<std::jthread> nodes;
        for (int node = 0; node < 4; ++node) {
            nodes.push_back(base::StartThread([&turns, &fired, handle = OpenAgain()] {
                for (const FiringReply& reply : handle->Schedules().FireVisits(turns)) {
                    fired += reply.kind == FireKind::kFired ? 1 : 0;
                }
            }));
        }
    }
    EXPECT_EQ(fired, 40);
    EXPECT_THAT(ListAll(), SizeIs(40));
}

}  // namespace
}  // namespace stint::conformance
