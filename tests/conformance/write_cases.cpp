// Write: the caller's work in one transaction of the store. What is submitted and settled through
// it happens if and only if the work returns success (I16).
#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

class Writes : public Conformance {
protected:
    void SetUp() override {
        // The host's code cannot run inside another process: there is only the refusal to see.
        if (GetParam().name != "sqlitesocket") return;
        Result<void> refused = store.Write([](Transaction&) -> Result<void> { return {}; });
        ASSERT_FALSE(refused);
        EXPECT_THAT(refused.error().message, HasSubstr("owned by another process"));
        GTEST_SKIP() << "Write() is for the process that owns the file";
    }
};
INSTANTIATE_TEST_SUITE_P(Store, Writes, testing::ValuesIn(Backends()), &BackendName);

TEST_P(Writes, WhatSucceedsIsThere) {
    Lease lease = MakeClaimed();
    TaskId created;
    Result<void> done = store.Write([&](Transaction& tx) -> Result<void> {
        NewTask task{.type = "t", .input = "[7]"};
        std::vector<SubmitReply> replies = tx.Submit({&task, 1});
        EXPECT_EQ(replies.at(0).kind, SubmitReply::Kind::kCreated);
        created = replies[0].id;
        SettleReply settled = tx.Settle(Outcome(lease, Kind::kComplete));
        EXPECT_EQ(settled.kind, SettleReply::Kind::kAccepted);
        EXPECT_EQ(settled.state, State::kComplete);
        return {};
    });
    EXPECT_TRUE(done);
    EXPECT_EQ(Get(created).input, "[7]");
    EXPECT_EQ(StateOf(lease.task), State::kComplete);
    EXPECT_THAT(EventsOf(lease.task), SizeIs(3));
}

TEST_P(Writes, WhatFailsNeverHappenedAndTheErrorIsPassedOn) {
    Lease lease = MakeClaimed();
    TaskId created;
    Result<void> done = store.Write([&](Transaction& tx) -> Result<void> {
        NewTask task{.type = "t", .idempotency_key = "i", .unique_key = "u"};
        created = tx.Submit({&task, 1}).at(0).id;
        tx.Settle(Outcome(lease, Kind::kComplete));
        return Error{Code::kFailed, "the host changed its mind"};
    });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::kFailed);
    EXPECT_EQ(done.error().message, "the host changed its mind");
    EXPECT_EQ(store.Get(created), std::nullopt);
    EXPECT_EQ(store.FindByIdempotencyKey(kDefaultTenant, "i"), std::nullopt);
    EXPECT_EQ(StateOf(lease.task), State::kInProgress);
    EXPECT_THAT(EventsOf(lease.task), SizeIs(2));
    EXPECT_EQ(store.SettledBy(lease.task, lease.token), std::nullopt);
    EXPECT_EQ(Complete(lease), State::kComplete);
    Make({.idempotency_key = "i", .unique_key = "u"});
}

TEST_P(Writes, AnExceptionRollsBackAndIsPassedOn) {
    Lease lease = MakeClaimed();
    EXPECT_THROW(
        (void)store.Write([&](Transaction& tx) -> Result<void> {
            tx.Settle(Outcome(lease, Kind::kDead));
            throw std::runtime_error("host");
        }),
        std::runtime_error
    );
    EXPECT_EQ(StateOf(lease.task), State::kInProgress);
    EXPECT_EQ(Complete(lease), State::kComplete);
}

TEST_P(Writes, ALostLeaseIsSeenInsideSoThatTheHostCanRollBack) {
    Lease lease = MakeClaimed();
    Crash(lease);
    Result<void> done = store.Write([&](Transaction& tx) -> Result<void> {
        NewTask task{.type = "u"};
        tx.Submit({&task, 1});
        if (tx.Settle(Outcome(lease, Kind::kComplete)).kind == SettleReply::Kind::kLost) {
            return Error{Code::kLeaseLost, "lost"};
        }
        return {};
    });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::kLeaseLost);
    EXPECT_THAT(ListAll({.types = {"u"}}), IsEmpty());
}

TEST_P(Writes, KeysHoldInside) {
    TaskId first = Make({.unique_key = "k"});
    Result<void> done = store.Write([&](Transaction& tx) -> Result<void> {
        std::vector<NewTask> batch(2, NewTask{.type = "u", .idempotency_key = "i"});
        std::vector<SubmitReply> replies = tx.Submit(batch);
        EXPECT_EQ(replies.at(0).kind, SubmitReply::Kind::kCreated);
        EXPECT_EQ(replies.at(1).kind, SubmitReply::Kind::kExisting);
        NewTask unique{.type = "t", .unique_key = "k"};
        EXPECT_EQ(tx.Submit({&unique, 1}).at(0).id, first);
        NewTask bad{.type = ""};
        EXPECT_EQ(tx.Submit({&bad, 1}).at(0).kind, SubmitReply::Kind::kInvalid);
        return {};
    });
    EXPECT_TRUE(done);
    EXPECT_THAT(ListAll(), SizeIs(2));
}

TEST_P(Writes, IdsOfARolledBackSubmitAreNotGivenOutAgain) {
    TaskId rolled_back;
    (void)store.Write([&](Transaction& tx) -> Result<void> {
        NewTask task{.type = "t"};
        rolled_back = tx.Submit({&task, 1}).at(0).id;
        return Error{Code::kFailed, "no"};
    });
    EXPECT_NE(Make(), rolled_back);
    EXPECT_NE(store.ReserveIds(1), rolled_back);
}

TEST_P(Writes, AnEmptyWriteIsFine) {
    EXPECT_TRUE(store.Write([](Transaction&) -> Result<void> { return {}; }));
    EXPECT_THAT(ListAll(), IsEmpty());
}

TEST_P(Writes, BorrowingNothingIsRefusedWithTheReason) {
    Result<std::unique_ptr<Transaction>> borrowed = store.Borrow(nullptr);
    ASSERT_FALSE(borrowed);
    EXPECT_NE(borrowed.error().message, "");
}

}  // namespace
}  // namespace stint::conformance
