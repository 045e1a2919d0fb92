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

// Of a full lease one task counts for all: what that one holds is asked once, not by each for each.
TEST_F(PostgresStoreTest, WhatRunsIsReadInAsManyStepsAsThereAreTasks) {
    constexpr int kTasks = 240;
    ASSERT_TRUE(store_->Resources().Change({.name = "type:t", .capacity = 1000}, "ann"));
    store_->Submit(std::vector<NewTask>(kTasks, NewTask{.type = "t"}));
    ClaimRequest claim{.session = session_, .limit = kTasks, .types = {"t"}};
    claim.at_once = 1;
    ASSERT_EQ(static_cast<int>(store_->Claim(claim).leases.size()), kTasks);
    pg::Sql sql(schema_->name());
    auto steps = [&](const Statement& statement) {
        auto connection = Connect();
        connection->Script("SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN");
        connection->Query(Statement{"", statement.sql}, {}, Commits::kNo);
        const Statement looks{
            "",
            fmt::format(
                "SELECT coalesce(idx_scan, 0) + seq_tup_read FROM pg_stat_xact_user_tables "
                "WHERE schemaname = '{}' AND relname = 'slot'",
                schema_->name()
            )};
        return connection->Query(looks, {}, Commits::kNo).Int(0, 0);
    };
    EXPECT_LE(steps(sql.running_lines), 4 * kTasks);
    EXPECT_LE(steps(sql.check_slots_missing), 4 * kTasks);
}

}  // namespace
}  // namespace stint::store
