// Waits in every order: two last children, a wait that begins while its task ends, a cancel
// between.
#include "interleave/fixture.h"

namespace stint::interleave {
namespace {

class WaitOrders : public Interleave {
protected:
    // A parent that waits for two children, which are claimed.
    void BlockedParent() {
        Fresh();
        Submit();
        Lease parent = Claim();
        Settlement blocked{.task = parent.task, .token = parent.token, .session = session_};
        blocked.kind = Settlement::Kind::kBlocked;
        blocked.end = AttemptEnd::kBlocked;
        for (int i = 0; i < 2; ++i) {
            blocked.children.push_back({.id = store_->ReserveIds(1), .type = "t"});
        }
        ASSERT_EQ(store_->Settle({&blocked, 1}).at(0).kind, SettleReply::Kind::kAccepted);
        parent_ = parent.task;
        leases_ = {Claim(), Claim()};
    }
    // A task that others may wait for, claimed.
    void Running() {
        Fresh();
        Submit();
        leases_ = {Claim()};
    }
    State StateOf(TaskId task) { return store_->Get(task).value().state; }
    Outcome Run(const Scenario& scenario) {
        return RunAllOrders(stint::testing::TestPostgresUrl(), scenario);
    }

    TaskId parent_;
};

TEST_F(WaitOrders, TwoLastChildrenOpenTheirParentOnce) {
    Scenario scenario;
    scenario.prepare = [&] { BlockedParent(); };
    scenario.scripts = [&] {
        return std::vector<Script>{
            {"A", {Begin(), SettleStep("A", 0), Commit()}},
            {"B", {Begin(), SettleStep("B", 1), Commit()}}};
    };
    scenario.check = [&]() -> std::string {
        State state = StateOf(parent_);
        if (state != State::kOpen) return std::string(StateName(state));
        return Sound();
    };
    Outcome outcome = Run(scenario);
    EXPECT_EQ(outcome.orders, 20);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0) << "they did meet";
}

TEST_F(WaitOrders, LookingForUnfinishedSiblingsStrandsTheParent) {
    Scenario scenario;
    scenario.prepare = [&] { BlockedParent(); };
    scenario.scripts = [&] {
        auto settle = [&](std::size_t child) {
            std::int64_t id = leases_.at(child).task.value();
            return std::vector<Step>{
                Begin(),
                Sql("end",
                    In(fmt::format("UPDATE $s.wait_member SET ended = 4 WHERE task = {}", id))),
                Sql("open if last",
                    In("UPDATE $s.wait SET open = false WHERE NOT EXISTS (SELECT FROM "
                       "$s.wait_member WHERE ended IS NULL)")),
                Commit()};
        };
        return std::vector<Script>{{"A", settle(0)}, {"B", settle(1)}};
    };
    scenario.check = [&]() -> std::string {
        return Ask("SELECT count(*) FROM $s.wait WHERE open") == 0 ? "" : "stranded";
    };
    EXPECT_THAT(Run(scenario).violations, Not(IsEmpty()));
}

TEST_F(WaitOrders, AWaitThatBeginsWhileItsTaskEndsIsNotForgotten) {
    Scenario scenario;
    scenario.prepare = [&] { Running(); };
    scenario.scripts = [&] {
        NewTask next{.type = "t"};
        next.after = WaitOn{.on = {leases_.at(0).task}};
        return std::vector<Script>{
            {"A", {Begin(), SubmitStep("A", next), Commit()}},
            {"B", {Begin(), SettleStep("B"), Commit()}}};
    };
    scenario.check = [&]() -> std::string {
        State state = StateOf(replies_.at(0));
        if (state != State::kOpen) return std::string(StateName(state));
        return Sound();
    };
    Outcome outcome = Run(scenario);
    EXPECT_EQ(outcome.orders, 20);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0) << "they did meet";
}

TEST_F(WaitOrders, WithoutHoldingTheTaskItIs) {
    Scenario scenario;
    scenario.prepare = [&] { Running(); };
    scenario.scripts = [&] {
        std::int64_t id = leases_.at(0).task.value();
        // As if nothing had been locked: what was live a moment ago is waited for.
        std::vector<Step> naive = {
            Begin(),
            Sql("wait",
                In(fmt::format(
                    "WITH v AS (SELECT id FROM $s.live WHERE id = {}), w AS (INSERT INTO $s.wait "
                    "SELECT 999, 1, 0, 1, 0, false, true, false, true FROM v) INSERT INTO "
                    "$s.wait_member SELECT 999, 0, id, id, NULL FROM v",
                    id
                ))),
            Commit()};
        return std::vector<Script>{{"A", naive}, {"B", {Begin(), SettleStep("B"), Commit()}}};
    };
    scenario.check = [&]() -> std::string {
        std::int64_t lost =
            Ask("SELECT count(*) FROM $s.wait_member m WHERE m.ended IS NULL AND NOT EXISTS "
                "(SELECT FROM $s.live v WHERE v.id = m.task)");
        return lost == 0 ? "" : "waits for a task that is over";
    };
    EXPECT_THAT(Run(scenario).violations, Not(IsEmpty()));
}

TEST_F(WaitOrders, ACancelAndTheLastChildDoNotUndoEachOther) {
    Scenario scenario;
    scenario.prepare = [&] {
        BlockedParent();
        Settlement done{
            .task = leases_[1].task, .token = leases_[1].token, .session = session_, .output = "1"};
        store_->Settle({&done, 1});
    };
    scenario.scripts = [&] {
        Step cancel{"cancel", [this](Connection&) {
                        stores_.at("B")->Cancel({&parent_, 1}, "ann", "no longer wanted");
                    }};
        return std::vector<Script>{{"A", {Begin(), SettleStep("A", 0), Commit()}}, {"B", {cancel}}};
    };
    scenario.check = [&]() -> std::string {
        if (StateOf(parent_) != State::kCancelled) return std::string(StateName(StateOf(parent_)));
        return Sound();
    };
    Outcome outcome = Run(scenario);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
}

}  // namespace
}  // namespace stint::interleave
