// Batches: a group of tasks and a callback that starts when all, or any, of them are done.
#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

class Batches : public Conformance {
protected:
    // Three tasks and a callback of type "u" behind them, in one call.
    void MakeBatch(bool any, bool need_success = true) {
        TaskId first = store.ReserveIds(4);
        std::vector<NewTask> tasks;
        for (int i = 0; i < 3; ++i) {
            members_.emplace_back(first.value() + i);
            tasks.push_back({.id = members_.back(), .type = "t"});
        }
        callback_ = TaskId(first.value() + 3);
        NewTask callback{.id = callback_, .type = "u"};
        callback.after = WaitOn{.on = members_, .any = any, .need_success = need_success};
        tasks.push_back(callback);
        for (const SubmitReply& reply : store.SubmitAll(tasks)) ASSERT_TRUE(reply.accepted());
        leases_ = ClaimMany(3, {.types = {"t"}});
        ASSERT_THAT(leases_, SizeIs(3));
    }
    std::vector<TaskId> members_;
    TaskId callback_;
    std::vector<Lease> leases_;
};
INSTANTIATE_TEST_SUITE_P(Store, Batches, testing::ValuesIn(Backends()), &BackendName);

TEST_P(Batches, ACallbackOnAnyRunsOnceAtTheFirstSuccess) {
    MakeBatch(true);
    SettleAs(leases_[0], Kind::kDead);
    EXPECT_EQ(StateOf(callback_), State::kBlocked) << "a failure is no success";
    Complete(leases_[1]);
    EXPECT_EQ(StateOf(callback_), State::kOpen);
    Lease callback = ClaimOne({.types = {"u"}});
    EXPECT_EQ(callback.task, callback_);
    Complete(leases_[2]);
    EXPECT_EQ(StateOf(callback_), State::kInProgress) << "it changes nothing any more";
    Complete(callback);
    EXPECT_EQ(EventsOf(callback_).size(), 5u) << "submitted, blocked, unblocked, claimed, complete";
}

TEST_P(Batches, ACallbackOnAllWaitsForTheLast) {
    MakeBatch(false);
    Complete(leases_[0]);
    Complete(leases_[2]);
    EXPECT_EQ(StateOf(callback_), State::kBlocked);
    Complete(leases_[1]);
    EXPECT_EQ(StateOf(callback_), State::kOpen);
}

TEST_P(Batches, ACallbackOnAnyOfNoneThatSucceedsIsCancelled) {
    MakeBatch(true);
    for (const Lease& lease : leases_) SettleAs(lease, Kind::kDead);
    EXPECT_EQ(StateOf(callback_), State::kCancelled);
}

TEST_P(Batches, ACallbackOnAnyThatNeedsNoSuccessRunsOnceAtTheFirstEnd) {
    for (Kind kind : {Kind::kDead, Kind::kComplete}) {
        members_.clear();
        MakeBatch(true, false);
        SettleAs(leases_[1], kind);
        EXPECT_EQ(StateOf(callback_), State::kOpen);
        Lease callback = ClaimOne({.types = {"u"}});
        EXPECT_EQ(callback.task, callback_);
        EXPECT_EQ(callback.stage, Stage::kStart);
        Complete(leases_[0]);
        SettleAs(leases_[2], Kind::kDead);
        EXPECT_EQ(StateOf(callback_), State::kInProgress) << "they change nothing any more";
        Complete(callback);
    }
}

TEST_P(Batches, WhereOneHasFailedAlreadyTheCallbackOnAnyStartsAtOnce) {
    Lease dead = MakeClaimed();
    SettleAs(dead, Kind::kDead);
    NewTask callback{.type = "u"};
    callback.after = WaitOn{.on = {dead.task, Make()}, .any = true, .need_success = false};
    EXPECT_EQ(StateOf(Make(callback)), State::kOpen);
    callback.after->need_success = true;
    EXPECT_EQ(StateOf(Make(callback)), State::kBlocked);
}

TEST_P(Batches, MayBeAsLargeAsAWaitAndHaveCallbacks) {
    TaskId first = store.ReserveIds(limits::kWaitMembers + 2);
    auto id = [&](int i) { return TaskId(first.value() + i); };
    std::vector<NewTask> tasks;
    for (int i = 0; i < limits::kWaitMembers + 2; ++i) tasks.push_back({.id = id(i), .type = "t"});
    for (int callback : {0, 1}) {
        auto& after = tasks[static_cast<std::size_t>(limits::kWaitMembers + callback)].after;
        after.emplace().need_success = callback == 0;
        for (int i = 0; i < limits::kWaitMembers; ++i) after->on.push_back(id(i));
    }
    for (const SubmitReply& reply : store.SubmitAll(tasks)) {
        ASSERT_TRUE(reply.accepted()) << reply.message;
    }
    EXPECT_EQ(Get(id(limits::kWaitMembers)).waiting_for, limits::kWaitMembers);
}

}  // namespace
}  // namespace stint::conformance
