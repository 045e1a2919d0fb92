// The end of a step in every order: its two last tasks end at once, and the next step is made once
// (I12).
#include "interleave/fixture.h"

namespace stint::interleave {
namespace {

class StepOrders : public Interleave {
protected:
    // An execution whose step has two tasks, which are claimed.
    void StepUnderWay() {
        Fresh();
        execution_ = Submit();
        Begin(Claim(), 2);
        leases_ = {Claim(), Claim()};
    }
    // As the handler of steps does it: the tasks and the wait in one transaction.
    void Begin(const Lease& lease, int tasks) {
        Settlement blocked{.task = lease.task, .token = lease.token, .session = session_};
        blocked.kind = Settlement::Kind::kBlocked;
        blocked.end = AttemptEnd::kBlocked;
        for (int i = 0; i < tasks; ++i) {
            blocked.children.push_back({.id = store_->ReserveIds(1), .type = "t"});
        }
        ASSERT_EQ(store_->Settle({&blocked, 1}).at(0).kind, SettleReply::Kind::kAccepted);
    }
    std::vector<Lease> ClaimAll() {
        // Through a handle that remembers nothing of what it has seen empty.
        return Open("check")->Claim({.session = session_, .limit = 9, .types = {"t"}}).leases;
    }
    Outcome Run(const Scenario& scenario) {
        return RunAllOrders(stint::testing::TestPostgresUrl(), scenario);
    }

    TaskId execution_;
};

TEST_F(StepOrders, TwoLastTasksOfAStepBeginTheNextOnce) {
    Scenario scenario;
    scenario.prepare = [&] { StepUnderWay(); };
    scenario.scripts = [&] {
        return std::vector<Script>{
            {"A", {interleave::Begin(), SettleStep("A", 0), Commit()}},
            {"B", {interleave::Begin(), SettleStep("B", 1), Commit()}}};
    };
    scenario.check = [&]() -> std::string {
        std::vector<Lease> released = ClaimAll();
        if (released.size() != 1 || released[0].task != execution_) return "not released once";
        Begin(released[0], 3);
        std::size_t made = ClaimAll().size();
        if (made != 3) return fmt::format("{} tasks of the next step", made);
        return Sound();
    };
    Outcome outcome = Run(scenario);
    EXPECT_EQ(outcome.orders, 20);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0) << "they did meet";
}

// "If none of the others is unfinished, begin the next": nobody does, since neither sees the other.
TEST_F(StepOrders, CountingUnfinishedSiblingsDoesNot) {
    Ask("SELECT 1");  // the schema is there
    schema_->connection().Script(
        "CREATE TABLE IF NOT EXISTS " + schema_->name() + ".naive(step int)"
    );
    Scenario scenario;
    scenario.prepare = [&] {
        StepUnderWay();
        schema_->connection().Script("TRUNCATE " + schema_->name() + ".naive");
    };
    scenario.scripts = [&] {
        auto settle = [&](std::size_t task) {
            std::int64_t id = leases_.at(task).task.value();
            return std::vector<Step>{
                interleave::Begin(),
                Sql("end",
                    In(fmt::format("UPDATE $s.wait_member SET ended = 4 WHERE task = {}", id))),
                Sql("begin the next",
                    In("INSERT INTO $s.naive SELECT 2 WHERE NOT EXISTS (SELECT FROM $s.wait_member "
                       "WHERE ended IS NULL)")),
                Commit()};
        };
        return std::vector<Script>{{"A", settle(0)}, {"B", settle(1)}};
    };
    scenario.check = [&]() -> std::string {
        return Ask("SELECT count(*) FROM $s.naive") == 1 ? "" : "not begun once";
    };
    EXPECT_THAT(Run(scenario).violations, Not(IsEmpty()));
    schema_->connection().Script("DROP TABLE " + schema_->name() + ".naive");
}

}  // namespace
}  // namespace stint::interleave
