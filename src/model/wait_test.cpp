#include "model/wait.h"

#include <gmock/gmock.h>

#include "model/batch_order.h"

namespace stint::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

WaitVerdict After(const WaitOn& wait, int complete, int failed, int pending) {
    return Judge(
        wait, {.total = complete + failed + pending, .pending = pending, .failed = failed}
    );
}

TEST(Wait, IsOverWhenAllAreTerminal) {
    WaitOn wait;
    EXPECT_EQ(After(wait, 2, 0, 1), WaitVerdict::kGoesOn);
    EXPECT_EQ(After(wait, 3, 0, 0), WaitVerdict::kSucceeded);
    EXPECT_EQ(After(wait, 1, 1, 1), WaitVerdict::kGoesOn) << "a failure is told at the end";
    EXPECT_EQ(After(wait, 2, 1, 0), WaitVerdict::kFailed);
    EXPECT_EQ(After(wait, 0, 0, 0), WaitVerdict::kSucceeded) << "nothing to wait for";
}

TEST(Wait, FailsFastWhereToldTo) {
    for (OnFailure policy : {OnFailure::kFailFast, OnFailure::kCancelRest}) {
        WaitOn wait{.on_failure = policy};
        EXPECT_EQ(After(wait, 1, 0, 2), WaitVerdict::kGoesOn);
        EXPECT_EQ(After(wait, 0, 1, 2), WaitVerdict::kFailed);
    }
}

TEST(Wait, OfAnySucceedsWithTheFirstAndFailsWithTheLast) {
    WaitOn wait{.any = true};
    EXPECT_EQ(After(wait, 0, 2, 1), WaitVerdict::kGoesOn);
    EXPECT_EQ(After(wait, 1, 2, 1), WaitVerdict::kSucceeded) << "failures do not matter then";
    EXPECT_EQ(After(wait, 0, 3, 0), WaitVerdict::kFailed);
    WaitOn lenient{.any = true, .need_success = false};
    EXPECT_EQ(After(lenient, 0, 0, 3), WaitVerdict::kGoesOn);
    EXPECT_EQ(After(lenient, 1, 0, 2), WaitVerdict::kSucceeded);
    EXPECT_EQ(After(lenient, 0, 1, 2), WaitVerdict::kFailed) << "over, whatever its end";
    WaitOn fast{.on_failure = OnFailure::kFailFast, .any = true};
    auto refused = Validate(fast);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, ::testing::HasSubstr("together with any"));
}

TEST(Wait, ItsEndLeadsToTheNextStageOrToCancel) {
    WaitOn strict, lenient{.need_success = false};
    EXPECT_EQ(EndOf(strict, WaitVerdict::kSucceeded, true).stage, Stage::kResume);
    EXPECT_EQ(EndOf(strict, WaitVerdict::kFailed, true).stage, Stage::kError);
    EXPECT_EQ(EndOf(strict, WaitVerdict::kFailed, true).event, Event::kUnblock)
        << "what has begun is told, not cancelled";
    EXPECT_EQ(EndOf(strict, WaitVerdict::kFailed, false).event, Event::kCancel);
    EXPECT_EQ(EndOf(lenient, WaitVerdict::kFailed, false).event, Event::kUnblock);
    EXPECT_EQ(EndOf(strict, WaitVerdict::kSucceeded, false).stage, Stage::kStart);
    WaitOn rest{.on_failure = OnFailure::kCancelRest};
    EXPECT_TRUE(EndOf(rest, WaitVerdict::kFailed, true).cancel_rest);
    EXPECT_FALSE(EndOf(rest, WaitVerdict::kSucceeded, true).cancel_rest);
}

TEST(Wait, CountsItsMembers) {
    std::vector<WaitMember> members = {
        {TaskId(1), TaskId(1), State::kComplete},
        {TaskId(2), TaskId(2), State::kDead},
        {TaskId(3), TaskId(3), State::kCancelled},
        {TaskId(4), TaskId(4), std::nullopt},
    };
    WaitTally tally = TallyOf(members);
    EXPECT_EQ(tally.total, 4);
    EXPECT_EQ(tally.pending, 1);
    EXPECT_EQ(tally.failed, 2);
}

NewTask After(std::int64_t id, const std::vector<std::int64_t>& on) {
    NewTask task{.id = TaskId(id), .type = "t"};
    if (on.empty()) return task;
    task.after.emplace();
    for (std::int64_t other : on) task.after->on.emplace_back(other);
    return task;
}

TEST(BatchOrder, PutsEachBehindThoseItWaitsFor) {
    std::vector<NewTask> tasks = {After(1, {2, 3}), After(2, {3}), After(3, {99}), After(4, {})};
    BatchOrder order = OrderOf(tasks);
    EXPECT_THAT(order.order, ElementsAre(2, 1, 0, 3));
    EXPECT_THAT(order.refused, IsEmpty());
}

TEST(BatchOrder, NamesACycle) {
    std::vector<NewTask> tasks = {After(1, {2}), After(2, {3}), After(3, {1}), After(4, {1})};
    BatchOrder order = OrderOf(tasks);
    ASSERT_EQ(order.refused.size(), 3);
    EXPECT_THAT(order.refused.at(0), HasSubstr("1 -> 2 -> 3 -> 1"));
    EXPECT_THAT(order.order, ElementsAre(3)) << "who waits for them is refused with them, later";
}

TEST(BatchOrder, AChainOfAWholeBatchNeedsNoStack) {
    std::vector<NewTask> tasks;
    for (int i = 1; i <= limits::kSubmitBatch; ++i) {
        tasks.push_back(After(
            i,
            i < limits::kSubmitBatch ? std::vector<std::int64_t>{i + 1}
                                     : std::vector<std::int64_t>{}
        ));
    }
    BatchOrder order = OrderOf(tasks);
    ASSERT_EQ(order.order.size(), tasks.size());
    EXPECT_EQ(order.order.front(), tasks.size() - 1);
}

}  // namespace
}  // namespace stint::model
