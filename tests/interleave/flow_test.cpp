// A signal and the flow that lies down to sleep for it, in every order.
#include "interleave/fixture.h"
#include "store/flows.h"

namespace stint::interleave {
namespace {

constexpr Duration kDay = std::chrono::hours{24};

class FlowOrders : public Interleave {
protected:
    // A flow that has found no signal and will settle as asleep.
    void AboutToSleep() {
        Fresh();
        Submit();
        leases_ = {Claim()};
        const Lease& held = leases_.front();
        ASSERT_TRUE(store_->Flows().Begin(held.task, held.token));
        FlowWrite wait;
        wait.task = held.task;
        wait.token = held.token;
        wait.step.name = wait.step.about = "go";
        wait.step.kind = StepKind::kSignal;
        wait.length = kDay;
        ASSERT_EQ(store_->Flows().AwaitSignal(wait).step.state, StepState::kOpen);
    }
    Step SleepStep(const std::string& who) {
        return {"sleep", [this, who](Connection& connection) {
                    std::shared_ptr<Store> store = Open(who);
                    auto joined = store->Borrow(connection.native()).value();
                    const Lease& held = leases_.front();
                    Settlement sleep{.task = held.task, .token = held.token, .session = session_};
                    sleep.kind = Settlement::Kind::kSnooze;
                    sleep.end = AttemptEnd::kSnoozed;
                    sleep.delay = kDay;
                    joined->Settle(sleep);
                }};
    }
    Step SignalStep(const std::string& who) {
        return {"signal", [this, who](Connection&) {
                    stores_.at(who)->Flows().Signal({leases_.front().task, "go", "1", {}, "test"});
                }};
    }
    Step RecordStep(const std::string& who) {
        return {"record", [this, who](Connection&) {
                    FlowWrite write;
                    write.task = leases_.front().task;
                    write.token = leases_.front().token;
                    write.step.name = "late";
                    write.step.state = StepState::kDone;
                    write.step.result = "1";
                    FlowReply reply = stores_.at(who)->Flows().Record(write);
                    std::lock_guard guard(mutex_);
                    recorded_ = reply.kind;
                }};
    }
    Outcome Run(const Scenario& scenario) {
        return RunAllOrders(stint::testing::TestPostgresUrl(), scenario);
    }
    std::string IsAwake() {
        TaskRecord task = store_->Get(leases_.front().task).value();
        if (task.due_at > store_->Now() + std::chrono::hours{1}) return "it sleeps for a day";
        return Sound();
    }

    FlowReply::Kind recorded_ = FlowReply::Kind::kRefused;  // guarded by mutex_
};

TEST_F(FlowOrders, ASignalIsNeverSleptThrough) {
    Scenario scenario;
    scenario.prepare = [&] { AboutToSleep(); };
    scenario.scripts = [&] {
        return std::vector<Script>{
            {"A", {Begin(), SleepStep("A"), Commit()}}, {"B", {SignalStep("B")}}};
    };
    scenario.check = [&] { return IsAwake(); };
    Outcome outcome = Run(scenario);
    EXPECT_EQ(outcome.orders, 4);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0) << "they did meet";
}

// The same thought without the lock on the flow's row: who lies down looks whether the signal has
// come, who signals looks whether somebody sleeps.
TEST_F(FlowOrders, LookingForTheSignalWithoutALockSleepsThroughIt) {
    Scenario scenario;
    scenario.prepare = [&] { AboutToSleep(); };
    scenario.scripts = [&] {
        std::int64_t id = leases_.front().task.value();
        std::vector<Step> sleep = {
            Begin(),
            Sql("lie down unless it came",
                In(fmt::format(
                    "INSERT INTO $s.cancel_note(task, reason) SELECT task, 'asleep' FROM $s.flow "
                    "WHERE task = {} AND NOT came",
                    id
                ))),
            Commit()};
        std::vector<Step> signal = {
            Begin(),
            Sql("wake whom is asleep",
                In(fmt::format("DELETE FROM $s.cancel_note WHERE task = {}", id))),
            Sql("it has come",
                In(fmt::format("UPDATE $s.flow SET came = true WHERE task = {}", id))),
            Commit()};
        return std::vector<Script>{{"A", sleep}, {"B", signal}};
    };
    scenario.check = [&]() -> std::string {
        return Ask("SELECT count(*) FROM $s.cancel_note") == 0 ? "" : "slept through";
    };
    EXPECT_THAT(Run(scenario).violations, Not(IsEmpty()));
}

TEST_F(FlowOrders, AStepIsRecordedBeforeTheTaskIsLostOrNotAtAll) {
    Scenario scenario;
    scenario.prepare = [&] { AboutToSleep(); };
    scenario.scripts = [&] {
        return std::vector<Script>{
            {"A", {Begin(), SettleStep("A"), Commit()}}, {"B", {RecordStep("B")}}};
    };
    scenario.check = [&]() -> std::string {
        std::size_t steps = store_->Flows().Get(leases_.front().task)->steps.size();
        std::lock_guard guard(mutex_);
        bool told = recorded_ == FlowReply::Kind::kRecorded;
        if (told != (steps == 2)) return "told and stored differ";
        return Sound();
    };
    Outcome outcome = Run(scenario);
    EXPECT_EQ(outcome.orders, 4);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0) << "they did meet";
}

}  // namespace
}  // namespace stint::interleave
