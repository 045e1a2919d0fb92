#include "model/steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/schedule.h"
#include "model/schedule_plan.h"

namespace stint::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr std::string_view kNightly =
    R"({"name":"nightly","every":"1h","instant_field":"at","steps":[)"
    R"({"name":"extract","tasks":[{"type":"a","input":{"x":1},"queue":"night"},)"
    R"({"type":"b","input":{}}],"on_failure":"continue"},)"
    R"({"name":"load","tasks":[{"type":"c","input":{},"max_attempts":3}]}]})";

TEST(Steps, TheJsonFormIsReadAndWrittenTheSame) {
    auto spec = ScheduleFromJson(kNightly);
    ASSERT_TRUE(spec) << spec.error().message;
    ASSERT_TRUE(Validate(*spec)) << Validate(*spec).error().message;
    ASSERT_THAT(spec->steps, SizeIs(2));
    EXPECT_TRUE(spec->steps[0].go_on);
    EXPECT_FALSE(spec->steps[1].go_on);
    EXPECT_EQ(spec->steps[1].tasks[0].retry->max_attempts, 3);
    auto again = ScheduleFromJson(ScheduleToJson(*spec));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(ScheduleToJson(*again), ScheduleToJson(*spec));
    EXPECT_TRUE(Differences(*spec, *again).empty());
}

TEST(Steps, WhatDiffersIsNamed) {
    auto before = ScheduleFromJson(kNightly).value();
    auto after = before;
    after.steps[1].go_on = true;
    auto differences = Differences(before, after);
    ASSERT_THAT(differences, SizeIs(1));
    EXPECT_EQ(differences[0].member, "steps");
    auto plain = ScheduleFromJson(R"({"name":"nightly","every":"1h","task":{"type":"a"}})").value();
    EXPECT_FALSE(Differences(before, plain).empty());
    EXPECT_TRUE(SameTiming(before, plain));
}

TEST(Steps, ARunIsOneTaskThatCarriesThem) {
    Schedule schedule;
    schedule.spec = ScheduleFromJson(kNightly).value();
    NewTask task = TaskOf(schedule, Time{}, "", RunCause::kTimed);
    EXPECT_EQ(task.type, kStepsType);
    EXPECT_EQ(task.queue, "night") << "where its first task is";
    EXPECT_THAT(task.tags, ElementsAre("schedule:nightly"));
    EXPECT_TRUE(Validate(task)) << Validate(task).error().message;
    auto input = DecodeStepsInput(task.input);
    ASSERT_TRUE(input) << input.error().message;
    EXPECT_EQ(input->actor, "schedule:nightly");
    EXPECT_THAT(input->steps.at(0).tasks.at(0).input, HasSubstr(R"("at":"1970-)"));
    EXPECT_FALSE(DecodeStepsInput("{}"));
    EXPECT_FALSE(DecodeStepsInput("[1"));
}

TEST(Steps, FieldsNeedObjects) {
    auto spec = ScheduleFromJson(R"({"name":"n","every":"1h","instant_field":"at","steps":[)"
                                 R"({"name":"x","tasks":[{"type":"a","input":[]}]}]})")
                    .value();
    auto valid = Validate(spec);
    ASSERT_FALSE(valid);
    EXPECT_THAT(valid.error().message, HasSubstr("the input of a in step x"));
}

TEST(Steps, LimitsAreNamed) {
    std::vector<Step> steps;
    for (int i = 0; i < limits::kSteps + 1; ++i) {
        NewTask task;
        task.type = "t";
        steps.push_back({std::to_string(i), {task}, false});
    }
    auto valid = ValidateSteps(steps, kDefaultTenant);
    ASSERT_FALSE(valid);
    EXPECT_THAT(valid.error().message, HasSubstr("there are 101 steps; the limit is 100"));
    steps.resize(2);
    EXPECT_TRUE(ValidateSteps(steps, kDefaultTenant));
    steps[0].tasks[0].input = "\"" + std::string(limits::kInput - 2, 'x') + "\"";
    EXPECT_THAT(
        ValidateSteps(steps, kDefaultTenant).error().message, HasSubstr("bytes together; the limit")
    );
}

}  // namespace
}  // namespace stint::model
