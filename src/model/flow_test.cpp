#include "model/flow_replay.h"

#include <gmock/gmock.h>

namespace stint::model {
namespace {

using testing::HasSubstr;

FlowStep Step(int no, const std::string& name, StepKind kind, std::string result = "1") {
    FlowStep step;
    step.no = no;
    step.name = name;
    step.kind = kind;
    step.state = StepState::kDone;
    step.result = std::move(result);
    step.at = Time(std::chrono::seconds(1000 + no));
    return step;
}

StepAsked Asked(const std::string& name, StepKind kind) {
    return {name, kind, {}, {}};
}

TEST(FlowReplay, FindsStepsByNameAndOccurrence) {
    FlowStep second = Step(2, "a", StepKind::kRun, "2");
    second.occurrence = 2;
    FlowReplay replay({Step(1, "a", StepKind::kRun), second});
    EXPECT_EQ(replay.Ask(Asked("a", StepKind::kRun))->step->result, "1");
    EXPECT_EQ(replay.Ask(Asked("a", StepKind::kRun))->step->result, "2");
    auto third = replay.Ask(Asked("a", StepKind::kRun));
    EXPECT_EQ(third->occurrence, 3);
    EXPECT_EQ(third->step, nullptr);
    EXPECT_TRUE(replay.AtEnd());
}

TEST(FlowReplay, AnAddedStepStaysWhereItWasAddedInLaterReplays) {
    std::vector<FlowStep> steps = {Step(1, "a", StepKind::kRun), Step(2, "b", StepKind::kRun)};
    FlowReplay first(steps);
    (void)first.Ask(Asked("a", StepKind::kRun));
    ASSERT_EQ(first.Ask(Asked("new", StepKind::kRun))->step, nullptr);
    FlowStep added = Step(3, "new", StepKind::kRun);
    added.late = first.NextUnreached() != nullptr;
    EXPECT_TRUE(added.late);
    first.Add(added);
    EXPECT_TRUE(first.Ask(Asked("b", StepKind::kRun)));
    steps.push_back(added);
    FlowReplay second(steps);
    for (const char* name : {"a", "new", "b"}) {
        auto found = second.Ask(Asked(name, StepKind::kRun));
        ASSERT_TRUE(found) << found.error().message;
        EXPECT_NE(found->step, nullptr);
    }
}

TEST(FlowReplay, OrderMattersBetweenStepsThatWereRecordedInTurn) {
    FlowReplay replay({Step(1, "a", StepKind::kSleep), Step(2, "b", StepKind::kSleep)});
    EXPECT_TRUE(replay.Ask(Asked("b", StepKind::kSleep)));
    auto wrong = replay.Ask(Asked("a", StepKind::kSleep));
    ASSERT_FALSE(wrong);
    EXPECT_THAT(wrong.error().message, HasSubstr("number 1, before step \"b\""));
}

TEST(FlowReplay, AnEffectThatIsPassedByIsMissedAtTheNextStep) {
    std::vector<FlowStep> steps = {
        Step(1, "a", StepKind::kRun),
        Step(2, "nap", StepKind::kSleep),
        Step(3, "b", StepKind::kRun)};
    FlowReplay passed(steps);
    EXPECT_TRUE(passed.Ask(Asked("new", StepKind::kRun))) << "an addition, so far";
    auto missed = passed.Ask(Asked("nap", StepKind::kSleep));
    ASSERT_FALSE(missed);
    EXPECT_THAT(missed.error().message, HasSubstr("came to \"nap\" without step \"a\""));
    FlowReplay meant(steps);
    meant.Retire("a");
    EXPECT_TRUE(meant.Ask(Asked("nap", StepKind::kSleep)));
    EXPECT_TRUE(meant.Ask(Asked("b", StepKind::kRun)));
    FlowReplay without_the_nap(steps);
    EXPECT_TRUE(without_the_nap.Ask(Asked("a", StepKind::kRun)));
    EXPECT_TRUE(without_the_nap.Ask(Asked("b", StepKind::kRun))) << "a nap is no effect";
    EXPECT_EQ(without_the_nap.NextUnreached(), nullptr) << "what was passed does not come";
}

TEST(FlowReplay, ARenamedCallIsKnownAlsoBehindStepsWithoutAnEffect) {
    FlowStep call = Step(2, "pay", StepKind::kCall);
    call.about = "t";
    call.hash = "h";
    FlowReplay replay({Step(1, "now", StepKind::kValue), call});
    auto renamed = replay.Ask({"paid", StepKind::kCall, "t", "h"});
    ASSERT_FALSE(renamed);
    EXPECT_THAT(renamed.error().message, HasSubstr("would be executed twice"));
    EXPECT_TRUE(replay.Ask({"another", StepKind::kCall, "t", "h2"})) << "an addition";
}

TEST(FlowReplay, ALongRecordIsReplayedInLinearTime) {
    std::vector<FlowStep> steps;
    for (int no = 1; no <= 10'000; ++no) {
        steps.push_back(Step(no, "s" + std::to_string(no), StepKind::kRun));
    }
    FlowReplay replay(steps);
    for (int no = 1; no <= 10'000; ++no) {
        ASSERT_TRUE(replay.Ask(Asked("s" + std::to_string(no), StepKind::kRun)));
        const FlowStep* next = replay.NextUnreached();
        ASSERT_EQ(next == nullptr ? 0 : next->no, no == 10'000 ? 0 : no + 1);
    }
}

TEST(FlowReplay, ValuesThatAreNoLongerAskedForDoNotMatter) {
    FlowReplay replay({Step(1, "now", StepKind::kValue), Step(2, "b", StepKind::kSleep)});
    EXPECT_TRUE(replay.AtEnd());
    FlowReplay effects({Step(1, "a", StepKind::kRun)});
    ASSERT_FALSE(effects.AtEnd());
    EXPECT_THAT(effects.AtEnd().error().message, HasSubstr("flow.Retired(\"a\")"));
    effects.Retire("a");
    EXPECT_TRUE(effects.AtEnd());
}

TEST(FlowHistory, IsReadBackAsItWasWritten) {
    FlowHistory history;
    history.flow.task = TaskId(7);
    history.now = Time(std::chrono::seconds(5000));
    history.steps = {
        Step(1, "a", StepKind::kRun, R"({"x":[1,2]})"), Step(2, "s", StepKind::kSignal, "null")};
    history.steps[1].about = "s";
    history.steps[1].state = StepState::kTimedOut;
    history.steps[1].due_at = Time(std::chrono::microseconds(123'456'789));
    history.steps[0].task = TaskId(9);
    history.steps[0].late = true;
    history.steps[0].ended_at = Time(std::chrono::seconds(2000));
    history.signals = {{1, "s", "id", "3", Time(std::chrono::seconds(1)), 0}};
    auto read = ReadHistory(HistoryText(history, "t", R"({"in":1})"));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->type, "t");
    EXPECT_EQ(read->input, R"({"in":1})");
    EXPECT_EQ(read->history.steps, history.steps);
    EXPECT_EQ(read->history.now, history.now);
    std::string odd = R"({"b": 1.50, "a":1,"u":"\u00e4"})";
    history.steps[0].result = odd;
    auto exact = ReadHistory(HistoryText(history, "t", odd));
    ASSERT_TRUE(exact) << exact.error().message;
    EXPECT_EQ(exact->input, odd) << "the hash of a step is of the very text";
    EXPECT_EQ(exact->history.steps[0].result, odd);
    EXPECT_FALSE(ReadHistory("[]"));
    EXPECT_FALSE(ReadHistory(R"({"format":"stint-flow-9"})"));
    EXPECT_FALSE(ReadHistory("nonsense"));
}

TEST(FlowSteps, NamesAndSizesAreChecked) {
    FlowStep step = Step(1, "", StepKind::kRun);
    EXPECT_FALSE(Validate(step));
    step.name = "a\nb";
    EXPECT_FALSE(Validate(step));
    step.name = "fine";
    EXPECT_TRUE(Validate(step));
    step.result = "{";
    EXPECT_FALSE(Validate(step));
    EXPECT_EQ(FailureOf(FailureText({"m", "k", true})), (StepFailure{"m", "k", true}));
    EXPECT_EQ(FailureOf("nonsense").message, "it failed");
}

}  // namespace
}  // namespace stint::model
