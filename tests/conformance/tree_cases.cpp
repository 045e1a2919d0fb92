// Trees of tasks: a cancel reaches all that is not finished below a task, however far down, and
// whatever has ended in between.
#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

class Trees : public Conformance {
protected:
    TaskId Child(TaskId parent, std::string type = "t") {
        return Make({.type = std::move(type), .parent = parent});
    }
    // Below `parent`, and finished.
    TaskId Finished(TaskId parent, Kind kind = Kind::kComplete) {
        TaskId id = Child(parent, "u");
        Settlement outcome = Outcome(ClaimOne({.types = {"u"}}), kind);
        if (kind == Kind::kDead) outcome.error = Failure(false);
        Settle(outcome);
        return id;
    }
};
INSTANTIATE_TEST_SUITE_P(Store, Trees, testing::ValuesIn(Backends()), &BackendName);

TEST_P(Trees, ACancelCrossesWhatIsFinished) {
    TaskId root = Make({.type = "v"});
    TaskId direct = Child(root);
    TaskId middle = Finished(root), second = Finished(middle, Kind::kDead);
    TaskId deep = Child(second), below_deep = Child(deep), beside = Child(middle);
    TaskId other = Make(), others_child = Child(Finished(other));
    Lease running = ClaimOne({.types = {"t"}});
    ASSERT_EQ(running.task, direct);
    CancelReply reply = Cancel(root, "not needed");
    EXPECT_EQ(reply.kind, CancelReply::Kind::kCancelled);
    EXPECT_EQ(reply.descendants, 4);
    EXPECT_TRUE(Get(direct).cancel_requested);
    for (TaskId task : {deep, below_deep, beside}) {
        EXPECT_EQ(StateOf(task), State::kCancelled);
        EXPECT_THAT(Get(task).reason, HasSubstr("task " + root.ToString() + " above it"));
    }
    EXPECT_EQ(StateOf(middle), State::kComplete);
    EXPECT_EQ(StateOf(second), State::kDead);
    EXPECT_EQ(StateOf(other), State::kOpen);
    EXPECT_EQ(StateOf(others_child), State::kOpen);
}

TEST_P(Trees, ACancelOfWhatIsFinishedReachesWhatIsBelow) {
    TaskId root = Make({.type = "u"});
    Complete(ClaimOne({.types = {"u"}}));
    TaskId deep = Child(Finished(root));
    CancelReply reply = Cancel(root);
    EXPECT_EQ(reply.kind, CancelReply::Kind::kAlreadyTerminal);
    EXPECT_EQ(reply.descendants, 1);
    EXPECT_EQ(StateOf(deep), State::kCancelled);
    EXPECT_EQ(Cancel(root).descendants, 0);
}

TEST_P(Trees, OfATreeNamedTwiceEachIsCountedOnce) {
    TaskId root = Make({.type = "v"});
    TaskId middle = Finished(root);
    TaskId deep = Child(middle), below = Child(deep);
    std::vector<TaskId> both = {root, deep};
    std::vector<CancelReply> replies = store.Cancel(both, "ann", "");
    EXPECT_EQ(replies[0].descendants + replies[1].descendants, 2);
    for (TaskId task : {root, deep, below}) EXPECT_EQ(StateOf(task), State::kCancelled);
}

TEST_P(Trees, WhatIsLeftOfAFailedWaitIsCancelledWithAllBelowIt) {
    Lease lease = MakeClaimed({.type = "v"});
    Settlement outcome = Outcome(lease, Kind::kBlocked);
    outcome.end = AttemptEnd::kBlocked;
    outcome.wait.on_failure = OnFailure::kCancelRest;
    TaskId fails = store.ReserveIds(1), rest = store.ReserveIds(1);
    outcome.children = {{.id = fails, .type = "u"}, {.id = rest, .type = "t", .delay = 1h}};
    ASSERT_EQ(Settle(outcome).kind, SettleReply::Kind::kAccepted);
    Settlement dead = Outcome(ClaimOne({.types = {"u"}}), Kind::kDead);
    dead.error = Failure(false);
    TaskId deep = Child(Finished(rest));
    Settle(dead);
    ReclaimAll();
    EXPECT_EQ(StateOf(rest), State::kCancelled);
    EXPECT_EQ(StateOf(deep), State::kCancelled);
}

// A task that ends at once, as what it was to start after has failed, keeps nobody of its order key
// waiting.
TEST_P(Trees, OneThatEndsAtOnceLeavesItsLine) {
    TaskId failed = Make({.type = "u"});
    Settlement dead = Outcome(ClaimOne({.types = {"u"}}), Kind::kDead);
    dead.error = Failure(false);
    Settle(dead);
    NewTask task{.type = "t", .order_key = "k"};
    task.after = WaitOn{.on = {failed}};
    EXPECT_EQ(StateOf(Make(task)), State::kCancelled);
    TaskId next = Make({.type = "t", .order_key = "k"});
    EXPECT_EQ(ClaimOne().task, next);
}

}  // namespace
}  // namespace stint::conformance
