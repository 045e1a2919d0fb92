// Schedules with steps, through the public interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stint/stint.h>
#include <stint/testing.h>

#include "node/engine_impl.h"

namespace stint {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::TestEngine;

constexpr Task<std::string, int> kRun{"run", {.retry = Retry::Times(1)}};
constexpr auto kContinue = ScheduleStep::OnFailure::kContinue;

struct Steps : ::testing::Test {
    Steps() {
        test.Handle(kRun, [this](Context&, const std::string& name) -> Outcome<int> {
            if (name.starts_with("bad")) throw Permanent("as always");
            if (name == "outside") return Background{"the printer"};
            done.push_back(name);
            return 1;
        });
    }
    static ScheduleStep Step(
        const std::string& name,
        const std::vector<std::string>& tasks,
        ScheduleStep::OnFailure on_failure = ScheduleStep::OnFailure::kStop
    ) {
        ScheduleStep step{.name = name, .tasks = {}, .on_failure = on_failure};
        for (const std::string& task : tasks) step.tasks.push_back(Later(kRun, task));
        return step;
    }
    void Put(const std::vector<ScheduleStep>& steps, const ScheduleOptions& options = {}) {
        auto made = schedules.PutSteps("nightly", when::Every{1h}, steps, options);
        ASSERT_TRUE(made) << made.error().message;
    }
    TaskId RunNow() {
        test.AdvanceTime(1s);
        auto run = schedules.RunNow("nightly");
        EXPECT_TRUE(run) << run.error().message;
        test.RunUntilIdle();
        return run.value();
    }
    TaskInfo Get(TaskId task) { return test.engine().Get(task).value(); }
    ScheduleRunInfo LastRun() { return schedules.Runs("nightly").value().at(0); }
    TaskId Outside() {
        for (const auto& task : test.OfType("run")) {
            if (task.state == "background") return task.id;
        }
        return {};
    }
    void Finish(TaskId task) {
        EXPECT_EQ(
            test.engine().impl().store->FinishBackground({.task = task}).value(),
            model::State::kComplete
        );
        test.RunUntilIdle();
    }

    TestEngine test;
    Schedules schedules = test.engine().schedules();
    std::vector<std::string> done;
};

TEST_F(Steps, RunInOrderAndSideBySide) {
    Put({Step("extract", {"a", "b"}), Step("load", {"c"}), Step("report", {"d"})});
    test.AdvanceTime(1h);
    test.RunUntilIdle();
    EXPECT_THAT(done, ElementsAre("a", "b", "c", "d"));
    ScheduleRunInfo run = LastRun();
    EXPECT_EQ(run.state, "complete");
    EXPECT_EQ(Get(*run.task).type, "stint.steps");
    EXPECT_EQ(Get(*run.task).output, R"({"failed":0,"steps":3})");
    EXPECT_EQ(Get(*run.task).attempt, 1) << "waiting costs no attempt";
}

TEST_F(Steps, AllTasksOfAStepAreThereAtOnce) {
    Put({Step("one", {"outside", "outside", "a"}), Step("two", {"b"})});
    TaskId execution = RunNow();
    EXPECT_THAT(test.OfType("run"), SizeIs(3));
    EXPECT_EQ(Get(execution).state, "blocked");
    EXPECT_EQ(LastRun().step, "1/2 one");
    Finish(Outside());
    EXPECT_THAT(done, ElementsAre("a")) << "one of the first step is not over";
    Finish(Outside());
    EXPECT_THAT(done, ElementsAre("a", "b"));
    EXPECT_EQ(LastRun().state, "complete");
}

TEST_F(Steps, AFailedTaskStopsTheExecutionAfterItsStep) {
    Put({Step("extract", {"bad", "a"}), Step("load", {"b"})});
    TaskId execution = RunNow();
    EXPECT_THAT(done, ElementsAre("a"));
    EXPECT_EQ(Get(execution).state, "dead");
    EXPECT_EQ(LastRun().state, "dead");
    EXPECT_THAT(LastRun().step, HasSubstr("step 1/2 extract: 1 of 2 tasks failed"));
    EXPECT_THAT(LastRun().step, HasSubstr("as always"));
}

TEST_F(Steps, OrItGoesOnAndEndsWithAWarning) {
    Put({Step("extract", {"bad", "a"}, kContinue), Step("load", {"b"})});
    TaskId execution = RunNow();
    EXPECT_THAT(done, ElementsAre("a", "b"));
    TaskInfo task = Get(execution);
    EXPECT_EQ(task.state, "complete");
    EXPECT_TRUE(task.warning);
    EXPECT_THAT(task.reason, HasSubstr("1 tasks failed; the first: task"));
}

TEST_F(Steps, AnEditDoesNotChangeAnExecutionUnderWay) {
    Put({Step("one", {"outside"}), Step("two", {"old"})});
    RunNow();
    Put({Step("one", {"x"}), Step("two", {"new"})});
    Finish(Outside());
    EXPECT_THAT(done, ElementsAre("old"));
    RunNow();
    EXPECT_THAT(done, ElementsAre("old", "x", "new"));
}

TEST_F(Steps, APauseLeavesAnExecutionUnderWayAlone) {
    Put({Step("one", {"outside"}), Step("two", {"a"})});
    RunNow();
    ASSERT_TRUE(schedules.Pause("nightly"));
    Finish(Outside());
    EXPECT_THAT(done, ElementsAre("a"));
}

TEST_F(Steps, CancellingTheExecutionCancelsItsStep) {
    Put({Step("one", {"outside", "outside"}), Step("two", {"a"})});
    TaskId execution = RunNow();
    test.engine().impl().store->Cancel({&execution, 1}, "ann", "not tonight");
    test.RunUntilIdle();
    EXPECT_EQ(LastRun().state, "cancelled");
    EXPECT_EQ(LastRun().step, "not tonight");
    for (const auto& task : test.OfType("run")) EXPECT_EQ(task.state, "cancelled");
    EXPECT_THAT(done, IsEmpty());
}

TEST_F(Steps, AnExecutionIsARunForTheOverlapPolicy) {
    Put({Step("one", {"outside"}), Step("two", {"a"})}, {.overlap = OnOverlap::kSkip});
    test.AdvanceTime(1h);
    test.RunUntilIdle();
    test.AdvanceTime(1h);
    test.RunUntilIdle();
    auto runs = schedules.Runs("nightly").value();
    ASSERT_THAT(runs, SizeIs(2));
    EXPECT_THAT(runs[0].skipped, HasSubstr("not over"));
    EXPECT_EQ(runs[1].state, "blocked");
    Finish(Outside());
    test.AdvanceTime(1h);
    test.RunUntilIdle();
    EXPECT_EQ(LastRun().state, "blocked");
}

TEST_F(Steps, AnOperatorsRetryGoesOnWithTheStepThatFailed) {
    bool fails = true;
    constexpr Task<void, void> kFlaky{"flaky", {.retry = Retry::Times(1)}};
    test.Handle(kFlaky, [&](Context&) {
        if (fails) throw Permanent("not yet");
        done.emplace_back("flaky");
    });
    ScheduleStep two{.name = "two", .tasks = {Later(kFlaky)}};
    Put({Step("one", {"a"}), two, Step("three", {"b"})});
    TaskId execution = RunNow();
    ASSERT_EQ(Get(execution).state, "dead");
    fails = false;
    test.engine().impl().store->Retry({&execution, 1}, "ann");
    test.RunUntilIdle();
    EXPECT_EQ(Get(execution).state, "complete");
    EXPECT_THAT(done, ElementsAre("a", "flaky", "b"));
}

TEST_F(Steps, TasksKnowTheirScheduleStepAndInstant) {
    auto made = schedules.PutJson(
        R"({"name": "nightly", "every": "1h", "instant_field": "at", "steps": [
            {"name": "one", "tasks": [{"type": "note", "input": {"x": 1}, "priority": 200}]}]})"
    );
    ASSERT_TRUE(made) << made.error().message;
    constexpr Task<Json, void> kNote{"note"};
    std::string input;
    test.Handle(kNote, [&](Context&, const Json& in) { input = in.text; });
    test.AdvanceTime(1h);
    test.RunUntilIdle();
    EXPECT_THAT(input, HasSubstr("\"at\":\""));
    auto tasks = test.OfType("note");
    ASSERT_THAT(tasks, SizeIs(1));
    EXPECT_EQ(tasks[0].priority, 200);
    auto record = test.engine().impl().store->Get(tasks[0].id).value();
    EXPECT_THAT(record.tags, ElementsAre("schedule:nightly", "step:one"));
    EXPECT_EQ(record.parent, *LastRun().task);
}

TEST_F(Steps, WhatMakesNoSenseIsRefused) {
    auto say = [&](const std::vector<ScheduleStep>& steps) {
        auto made = schedules.PutSteps("nightly", when::Every{1h}, steps);
        return made ? std::string("accepted") : made.error().message;
    };
    EXPECT_THAT(say({}), HasSubstr("there are no steps"));
    EXPECT_THAT(say({Step("one", {})}), HasSubstr("step \"one\" has no tasks"));
    EXPECT_THAT(say({Step("", {"a"})}), HasSubstr("a name is \"\""));
    EXPECT_THAT(
        say({Step("one", {"a"}), Step("one", {"a"})}), HasSubstr("two steps are called \"one\"")
    );
    std::vector<std::string> many(1'001, "a");
    EXPECT_THAT(say({Step("one", many)}), HasSubstr("has 1001 tasks; the limit is 1000"));
    ScheduleStep later{.name = "one", .tasks = {Later(kRun, "a", {.delay = 1h})}};
    EXPECT_THAT(say({later}), HasSubstr("delay is given; the schedule says when"));
    auto json =
        schedules.PutJson(R"({"name": "n", "every": "1h", "task": {"type": "t"}, "steps": []})");
    EXPECT_THAT(json.error().message, HasSubstr("task and steps are both given"));
    json = schedules.PutJson(
        R"({"name": "n", "every": "1h", "steps": [{"name": "x", "tasks": [{"tipe": "t"}]}]})"
    );
    EXPECT_THAT(json.error().message, HasSubstr("steps[0].tasks[0].tipe"));
}

}  // namespace
}  // namespace stint
