// What is broken is found by the self-check.
#include <gmock/gmock.h>

#include "store/memory/ops.h"

namespace stint::store::memory {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class MemoryCheck : public testing::Test {
protected:
    Ops ops() { return {data, base::SystemRandom(), now, commits}; }
    std::vector<std::string> Broken() {
        std::vector<std::string> broken;
        for (const CheckFinding& finding : ops().Check()) {
            if (!finding.ok) broken.push_back(finding.what + ": " + finding.detail);
        }
        return broken;
    }
    TaskId Running(const std::string& need) {
        NewSession session{.id = base::SystemRandom().MakeId<SessionId>(), .hostname = "here"};
        session.lease = std::chrono::hours{1};
        ops().OpenSession(session);
        NewTask task{.type = "t", .needs = Needs{{need, 1}}};
        TaskId id = ops().Submit({&task, 1}).at(0).id;
        EXPECT_EQ(
            ops().Claim({.session = session.id, .limit = 1, .types = {"t"}}).leases.size(), 1u
        );
        return id;
    }
    ResourceBook::Entry& Limited() {
        ResourceChange change{.name = "gpu"};
        change.capacity = 1;
        EXPECT_TRUE(ops().resources().Change(change, "ann", now));
        return data.resources.entries.at("gpu");
    }

    Data data;
    std::vector<CommittedTransition> commits;
    Time now{std::chrono::hours{24 * 20'000}};
};

TEST_F(MemoryCheck, WhatIsCountedIsNotWhatIsHeld) {
    ResourceBook::Entry& gpu = Limited();
    Running("gpu");
    ASSERT_THAT(Broken(), IsEmpty());
    ++gpu.held;
    EXPECT_THAT(Broken(), Contains(HasSubstr("gpu: 1 units held, 2 counted")));
    --gpu.held;
    gpu.holders.clear(), gpu.held = 0;
    EXPECT_THAT(Broken(), Contains(HasSubstr("needs 1 of gpu, 0 counted")));
}

TEST_F(MemoryCheck, MoreIsHeldThanTheCapacity) {
    ResourceBook::Entry& gpu = Limited();
    Running("gpu");
    gpu.resource.settings.capacity = 0;
    EXPECT_THAT(Broken(), UnorderedElementsAre(HasSubstr("gpu: capacity 0, 1 held")));
    gpu.resource.state.over = 1;
    EXPECT_THAT(Broken(), IsEmpty());
}

TEST_F(MemoryCheck, AWaitCountsWrongly) {
    NewTask first{.type = "t"};
    NewTask second{.type = "t"};
    second.after = WaitOn{.on = {ops().Submit({&first, 1}).at(0).id}};
    TaskId waits = ops().Submit({&second, 1}).at(0).id;
    ASSERT_THAT(Broken(), IsEmpty());
    data.live.at(waits).record.waiting_for = 2;
    EXPECT_THAT(Broken(), UnorderedElementsAre(HasSubstr("counts 2 of 1 pending")));
}

TEST_F(MemoryCheck, AFlowCountsWrongly) {
    TaskId task = Running("nothing");
    FlowData& flow = data.flows[task];
    flow.record.task = task;
    flow.steps.push_back({.no = 1, .result = "12"});
    flow.record.steps = 1, flow.record.bytes = 2;
    ASSERT_THAT(Broken(), IsEmpty());
    flow.record.bytes = 3;
    EXPECT_THAT(Broken(), UnorderedElementsAre(HasSubstr("3 of 2 bytes")));
}

}  // namespace
}  // namespace stint::store::memory
