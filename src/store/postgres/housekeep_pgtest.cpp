// What housekeeping forgets, and what it costs where there is nothing to do.
#include "base/tallies.h"
#include "store/postgres/store_suite.h"

namespace stint::store {
namespace {

TEST_F(PostgresStoreTest, TurnsOfFinishedTasksAreForgottenInTheEnd) {
    auto turns = [&] {
        const Statement count{"", fmt::format("SELECT count(*) FROM {}.ordered", schema_->name())};
        return schema_->connection().Query(count, {}, Commits::kNo).Int(0, 0);
    };
    Make({.order_key = "k"});
    Make({.order_key = "k"});
    Settlement done = Done(Claim(*store_).at(0));
    ASSERT_EQ(store_->Settle({&done, 1}).at(0).kind, SettleReply::Kind::kAccepted);
    store_->Housekeep({});
    EXPECT_EQ(turns(), 2) << "an operator may still want to try it again";
    schema_->AdvanceTime(limits::kRetention + std::chrono::hours{1});
    store_->Housekeep({});
    EXPECT_EQ(turns(), 1) << "the other one still waits for its turn";
}

// Every node does it, all day: an idle one is allowed thirty statements a minute for everything.
TEST_F(PostgresStoreTest, HousekeepingWithNothingToDoIsAFewStatements) {
    constexpr std::uint64_t kAtMost = 7;
    store_->Housekeep({});  // the first may find something
    const std::uint64_t before = base::ProcessTallies().statements;
    EXPECT_FALSE(store_->Housekeep({}).more);
    EXPECT_LE(base::ProcessTallies().statements - before, kAtMost);
}

}  // namespace
}  // namespace stint::store
