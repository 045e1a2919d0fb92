// What is done to flows, where a store of its own would be too slow to come to the limit.
#include "store/flow_work.h"

#include <gmock/gmock.h>

namespace stint::store {
namespace {

using testing::HasSubstr;

// One flow, whose task is held.
class OneFlow final : public FlowTables {
public:
    Time Now() override { return Time(std::chrono::seconds(1000)); }
    Hold Holds(TaskId, LeaseToken) override { return Hold::kHeld; }
    std::optional<TaskState> StateOf(TaskId) override { return TaskState{State::kInProgress}; }
    std::optional<FlowRecord> Find(TaskId) override { return flow; }
    FlowRecord Make(TaskId, TenantId) override { return flow; }
    void Save(const FlowRecord& saved) override { flow = saved; }
    std::vector<FlowStep> Steps(TaskId) override { return steps; }
    std::optional<FlowStep> Step(TaskId, std::string_view name, int) override {
        for (const FlowStep& step : steps) {
            if (step.name == name) return step;
        }
        return std::nullopt;
    }
    void Add(TaskId, const FlowStep& step) override { steps.push_back(step); }
    void End(TaskId, const FlowStep& ended) override {
        for (FlowStep& step : steps) {
            if (step.no == ended.no) step = ended;
        }
    }
    std::optional<FlowSignal> NextSignal(TaskId, std::string_view) override { return std::nullopt; }
    std::optional<FlowSignal> SignalById(TaskId, std::string_view) override { return std::nullopt; }
    void Add(TaskId, const FlowSignal&) override {}
    void Take(TaskId, const FlowSignal&) override {}
    SubmitReply Submit(const NewTask& task) override { return {.id = task.id}; }
    std::optional<std::string> Wake(TaskId, std::string_view, const std::string&) override {
        return std::nullopt;
    }

    FlowRecord flow;
    std::vector<FlowStep> steps;
};

FlowWrite Write(const std::string& name, StepState state, std::string result = {}) {
    FlowWrite write;
    write.task = TaskId(1);
    write.step.name = name;
    write.step.kind = StepKind::kCall;
    write.step.state = state;
    write.step.result = std::move(result);
    return write;
}

TEST(FlowWork, WhatHasBegunCanEndAtTheLimitOfSteps) {
    OneFlow tables;
    tables.flow.task = TaskId(1);
    ASSERT_EQ(RecordStep(tables, Write("call", StepState::kOpen)).kind, FlowReply::Kind::kRecorded);
    tables.flow.steps = limits::kFlowSteps;
    FlowReply full = RecordStep(tables, Write("one more", StepState::kDone, "1"));
    EXPECT_EQ(full.kind, FlowReply::Kind::kRefused);
    EXPECT_THAT(full.message, HasSubstr(std::to_string(limits::kFlowSteps)));
    FlowReply ended = RecordStep(tables, Write("call", StepState::kDone, "42"));
    EXPECT_EQ(ended.kind, FlowReply::Kind::kRecorded) << ended.message;
    EXPECT_EQ(tables.steps.at(0).state, StepState::kDone);
}

}  // namespace
}  // namespace stint::store
