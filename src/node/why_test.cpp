#include "node/why.h"

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
using ::testing::HasSubstr;

class WhyTest : public ::testing::Test {
protected:
    void SetUp() override {
        session_ = random_.MakeId<SessionId>();
        store_.OpenSession(
            {.id = session_, .hostname = "h", .lease = 1h, .types = {"parent", "child"}}
        );
    }
    TaskId Submit(const NewTask& task) { return store_.Submit({&task, 1}).at(0).id; }
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

TEST_F(WhyTest, TheTaskInFrontIsNamed) {
    TaskId first = Submit(Of("parent", "k"));
    Submit(Of("child", "k"));
    WhyReason reason = ExplainTask(store_, Submit(Of("child", "k")))->reasons.at(0);
    EXPECT_EQ(reason.condition, model::Condition::kBehindInOrder);
    EXPECT_THAT(reason.detail, HasSubstr("order key \"k\", behind task " + first.ToString()));
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
