#include "node/why_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/random.h"
#include "store/memory/memory_store.h"
#include "store/resources.h"

namespace stint::node {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): units
using model::NewTask;
using store::Settlement;
using ::testing::HasSubstr;

class WhyTest : public ::testing::Test {
protected:
    void SetUp() override {
        session_ = random_.MakeId<SessionId>();
        store_.OpenSession(
            {.id = session_, .hostname = "h", .lease = 1h, .types = {"parent", "middle", "child"}}
        );
    }
    TaskId Submit(const NewTask& task) { return store_.Submit({&task, 1}).at(0).id; }
    store::Lease Claim(const std::string& type) {
        return store_.Claim({.session = session_, .limit = 1, .types = {type}}).leases.at(0);
    }
    TaskId BlockOn(const store::Lease& lease, NewTask child) {
        child.id = store_.ReserveIds(1);
        Settlement block{.task = lease.task, .token = lease.token, .session = session_};
        block.kind = Settlement::Kind::kBlocked;
        block.end = model::AttemptEnd::kBlocked;
        block.children = {child};
        EXPECT_EQ(store_.Settle({&block, 1})[0].kind, store::SettleReply::Kind::kAccepted);
        return child.id;
    }
    static NewTask Of(const std::string& type, const std::string& key) {
        NewTask task{.type = type};
        task.order_key = key;
        return task;
    }

    base::ManualClock clock_;
    base::SeededRandom random_{1};
    store::MemoryStore store_{clock_, random_};
    SessionId session_;
};

TEST_F(WhyTest, TasksThatWaitForEachOtherByTheirOrderAreSaidToBe) {
    TaskId parent = Submit(Of("parent", "k"));
    TaskId middle = BlockOn(Claim("parent"), Of("middle", ""));
    TaskId child = BlockOn(Claim("middle"), Of("child", "k"));
    for (TaskId task : {parent, child}) {
        WhyReason reason = ExplainTask(store_, task)->reasons.at(0);
        EXPECT_EQ(reason.name, "order_deadlock");
        EXPECT_THAT(reason.detail, HasSubstr("order key \"k\""));
        EXPECT_THAT(reason.cure, HasSubstr(child.ToString()));
    }
    EXPECT_EQ(ExplainTask(store_, middle)->reasons.at(0).name, "blocked");
}

TEST_F(WhyTest, ANeedAboveTheCapacityIsNeverMet) {
    store::ResourceChange change{.name = "gpu"};
    change.capacity = 1;
    ASSERT_TRUE(store_.Resources().Change(change, "ann").has_value());
    NewTask task = Of("child", "");
    task.needs = model::Needs{{"gpu", 3}};
    WhyReason reason = ExplainTask(store_, Submit(task))->reasons.at(0);
    EXPECT_THAT(reason.detail, HasSubstr("never, until its capacity is raised to 3"));
    EXPECT_THAT(reason.cure, HasSubstr("--capacity"));
    EXPECT_EQ(reason.cure.find("holder"), std::string::npos);
}

}  // namespace
}  // namespace stint::node
