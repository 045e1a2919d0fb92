// What is said of a waiting task is what the next claims do: whether it is taken, after how many
// others, and what of it is an estimate.
#include <gmock/gmock.h>
#include <stint/stint.h>
#include <stint/testing.h>

#include <set>

#include "model/worker_note.h"
#include "node/why.h"
#include "store/resources.h"
#include "support/engine_rig.h"

namespace stint::node {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): units
using engine::Done;
using model::Condition;
using model::Needs;
using model::NewTask;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

// A store with workers that only say what they are.
class Claims : public ::testing::Test {
protected:
    SessionId Open(const std::string& host) {
        SessionId session = random_.MakeId<SessionId>();
        store_.OpenSession({.id = session, .hostname = host, .lease = 1h, .types = {"t", "u"}});
        return session;
    }
    void Tell(SessionId session, model::WorkerNote note) {
        note.doing = "polling";
        store_.Renew({.session = session, .lease = 1h, .worker_state = NoteText(note)});
    }
    TaskId Submit(NewTask task = {}) {
        if (task.type.empty()) task.type = "t";
        return store_.Submit({&task, 1}).at(0).id;
    }
    void SubmitMany(std::size_t count, NewTask task) {
        task.type = "t";
        constexpr std::size_t kAtOnce = 1000;
        for (std::size_t made = 0; made < count; made += kAtOnce) {
            std::vector<NewTask> some(std::min(kAtOnce, count - made), task);
            store_.Submit(some);
        }
    }
    static NewTask Needing(const std::string& resource) {
        NewTask task;
        task.needs = Needs{{resource, 1}};
        return task;
    }
    void Close(const std::string& resource) {
        store::ResourceChange change{.name = resource};
        change.capacity = 1000;
        ASSERT_TRUE(store_.Resources().Change(change, "ann").has_value());
        ASSERT_TRUE(store_.Resources().Close(resource, 1h, "it is broken", "ann"));
    }
    Ahead AheadOf(TaskId task) {
        auto why = ExplainTask(store_, task);
        EXPECT_TRUE(why->eligible);
        return why->ahead.value_or(Ahead{.tasks = -1});
    }
    std::set<std::string> NamesOf(TaskId task) {
        std::set<std::string> names;
        const Why why = ExplainTask(store_, task).value();
        for (const WhyReason& reason : why.reasons) names.insert(reason.name);
        return names;
    }

    base::ManualClock clock_;
    base::SeededRandom random_{1};
    store::MemoryStore store_{clock_, random_};
};

TEST_F(Claims, WhatCannotGoIsNotBeforeIt) {
    Open("mars");
    Close("api");
    SubmitMany(500, Needing("api"));
    NewTask elsewhere{.type = "x"};
    Submit(elsewhere);
    TaskId before = Submit();
    TaskId task = Submit();
    EXPECT_EQ(AheadOf(before).tasks, 0);
    EXPECT_EQ(AheadOf(task).tasks, 1);
    EXPECT_FALSE(AheadOf(task).more);
    EXPECT_EQ(AheadOf(task).estimate, "");
    EXPECT_EQ(AheadOf(task).takes, std::nullopt) << "nothing has finished";
}

TEST_F(Claims, ThePlaceCountsAndNotTheId) {
    SessionId worker = Open("mars");
    TaskId id = store_.ReserveIds(1);  // as of a subtask that is made when its parent waits
    TaskId first = Submit();
    TaskId second = Submit();
    NewTask child;
    child.id = id;
    ASSERT_EQ(Submit(child), id);
    NewTask urgent{.priority = 200};
    TaskId last = Submit(urgent);
    EXPECT_EQ(AheadOf(last).tasks, 0);
    EXPECT_EQ(AheadOf(first).tasks, 1);
    EXPECT_EQ(AheadOf(second).tasks, 2);
    EXPECT_EQ(AheadOf(id).tasks, 3) << "it has a lower id and came later";
    auto claimed = store_.Claim({.session = worker, .limit = 10, .types = {"t"}}).leases;
    std::vector<TaskId> order;
    for (const store::Lease& lease : claimed) order.push_back(lease.task);
    EXPECT_THAT(order, ElementsAre(last, first, second, id));
}

TEST_F(Claims, ThePaceIsThatOfWhatTheWorkerTakes) {
    SessionId worker = Open("mars");
    for (int i = 0; i < 6; ++i) Submit();
    for (int i = 0; i < 4; ++i) {
        auto lease = store_.Claim({.session = worker, .limit = 1, .types = {"t"}}).leases.at(0);
        clock_.Advance(10s);
        store::Settlement end{.task = lease.task, .token = lease.token, .session = worker};
        store_.Settle({&end, 1});
    }
    auto takes = AheadOf(Submit()).takes;
    ASSERT_TRUE(takes);
    EXPECT_GE(*takes, 20s) << "two before it, and itself, of which one takes ten seconds";
    EXPECT_LE(*takes, 40s);
}

TEST_F(Claims, WhereTenantsShareOrAgeCountsItIsAnEstimate) {
    Open("mars");
    TaskId task = Submit();
    model::QueueOrder order{.queue = "default", .fair = true};
    ASSERT_TRUE(store_.Resources().SetOrder(order, "ann").has_value());
    EXPECT_THAT(AheadOf(task).estimate, HasSubstr("tenants share"));
    order = {.queue = "*", .aging = 5min};
    ASSERT_TRUE(store_.Resources().SetOrder(order, "ann").has_value());
    store_.Resources().RemoveOrder("default", "ann");
    EXPECT_THAT(AheadOf(task).estimate, HasSubstr("age counts"));
}

TEST_F(Claims, AWorkerElsewhereToldWhatItWouldNotTake) {
    SessionId mars = Open("mars");
    TaskId gpu = Submit(Needing("gpu"));
    NewTask slow;
    slow.queue = "slow";
    TaskId first = Submit(slow), second = Submit(slow);
    EXPECT_TRUE(ExplainTask(store_, gpu)->eligible);
    model::WorkerNote note{.withheld = {"gpu"}};
    note.queue_room = {{"slow", 1}};
    Tell(mars, note);
    EXPECT_FALSE(ExplainTask(store_, gpu)->eligible);
    EXPECT_THAT(NamesOf(gpu), ElementsAre("resource_withheld"));
    EXPECT_TRUE(ExplainTask(store_, first)->eligible);
    EXPECT_THAT(NamesOf(second), ElementsAre("no_room"));
    note = {};
    note.type_room = {{"t", 0}};
    Tell(mars, note);
    EXPECT_THAT(NamesOf(first), ElementsAre("no_room"));
    SessionId venus = Open("venus");
    auto why = ExplainTask(store_, gpu);
    EXPECT_TRUE(why->eligible) << "by another one";
    EXPECT_EQ(why->workers, 2);
    EXPECT_EQ(why->reasons.at(0).workers, 1);
    store_.CloseSession(venus);
    EXPECT_FALSE(ExplainTask(store_, gpu)->eligible);
}

TEST_F(Claims, AQueueIsCountedToItsEnd) {
    Open("mars");
    constexpr std::size_t kOlder = 10'500, kNewer = 21'000;
    Close("api");
    SubmitMany(kOlder, Needing("api"));
    NewTask later;
    later.delay = 1h;
    SubmitMany(kNewer, later);
    Submit();
    QueueWhy why = ExplainQueue(store_, "default");
    EXPECT_EQ(why.waiting, kOlder + kNewer + 1);
    EXPECT_EQ(why.looked_at, why.waiting) << "no estimate";
    std::map<std::string, std::int64_t> shares;
    for (const QueueShare& share : why.shares) shares[share.condition] += share.tasks;
    std::map<std::string, std::int64_t> expected = {
        {"not_due", kNewer}, {"resource_closed", kOlder}, {"eligible", 1}};
    EXPECT_EQ(shares, expected);
    EXPECT_EQ(why.shares.at(0).cure, "time");
}

TEST_F(Claims, OfManySmallGroupsSomeAreAskedForAll) {
    Open("mars");
    for (int i = 0; i < 400; ++i) {
        NewTask task = Needing("host:" + std::to_string(i));
        if (i % 2 == 0) task.delay = 1h;
        Submit(task);
    }
    QueueWhy why = ExplainQueue(store_, "default");
    EXPECT_EQ(why.waiting, 400);
    EXPECT_LT(why.looked_at, 400);
    std::int64_t all = 0;
    for (const QueueShare& share : why.shares) all += share.tasks;
    EXPECT_EQ(all, 400);
    EXPECT_NEAR(static_cast<double>(why.shares.at(0).tasks), 200, 100);
}

// ---- a worker that claims ----

// Over random tasks, probes and limits: eligible if and only if this worker's next claim returns
// it.
TEST(WhyProperty, EligibleIfAndOnlyIfTheNextClaimOfThisWorkerReturnsIt) {
    engine::Rig rig;
    std::vector<std::string> withheld;
    rig.options.slots = 200;
    rig.options.labels = {"big"};
    rig.options.at_once_of_queue = {{"slow", 3}, {"never", 0}};
    rig.options.at_once_of_resource = {{"host:*", 2}};
    rig.options.withheld = [&] { return withheld; };
    auto handler = [](Context&, std::string_view) { return Done(); };
    rig.Handle("t", handler);
    rig.registry.Add({.type = "few", .handler = handler, .at_once_per_worker = 2});
    rig.Open();
    base::SeededRandom dice(11);
    auto one_of = [&](std::initializer_list<const char*> names) {
        return std::string(*(names.begin() + dice.Below(names.size())));
    };
    store::ResourceChange limit{.name = "b"};
    limit.capacity = 2;
    ASSERT_TRUE(rig.memory.Resources().Change(limit, "ann").has_value());
    std::vector<TaskId> tasks;
    std::size_t taken_in_all = 0, left_in_all = 0;
    for (int round = 0; round < 25; ++round) {
        for (int i = 0; i < 5; ++i) {
            NewTask task{.type = one_of({"t", "t", "few", "x"})};
            task.queue = one_of({"default", "slow", "slow", "never"});
            task.priority = static_cast<int>(dice.Below(3)) * 50;
            task.needs = Needs{};
            if (dice.Below(2) == 0) task.needs->push_back({one_of({"a", "b", "host:x"}), 1});
            if (dice.Below(6) == 0) task.labels = {{one_of({"big", "huge"})}};
            if (dice.Below(6) == 0) task.delay = 1h;
            tasks.push_back(rig.memory.Submit({&task, 1}).at(0).id);
        }
        withheld.clear();
        if (dice.Below(2) == 0) withheld.emplace_back("a");
        if (dice.Below(4) == 0) withheld.emplace_back("host:x");
        Claiming own{rig.worker->offered(), rig.worker->running()};
        std::set<TaskId> waiting, eligible, taken;
        std::map<std::int64_t, TaskId> places;
        for (TaskId task : tasks) {
            auto why = ExplainTask(rig.memory, task, own);
            if (why->task.state != model::State::kOpen) continue;
            waiting.insert(task);
            if (!why->eligible) continue;
            eligible.insert(task);
            EXPECT_TRUE(places.emplace(why->ahead.value().tasks, task).second);
        }
        rig.worker->ClaimOnce();
        for (TaskId task : waiting) {
            if (rig.memory.Get(task)->state == model::State::kInProgress) taken.insert(task);
        }
        EXPECT_EQ(eligible, taken) << "round " << round;
        if (!places.empty()) {
            EXPECT_EQ(places.rbegin()->first, static_cast<std::int64_t>(places.size()) - 1)
                << "each has a place of its own, one after the other";
        }
        taken_in_all += taken.size();
        left_in_all += waiting.size() - taken.size();
        for (std::uint64_t ends = dice.Below(6); ends > 0 && rig.worker->RunOneAttempt(); --ends) {
            rig.worker->SettleOnce();
        }
        rig.worker->RenewOnce();
    }
    EXPECT_GT(taken_in_all, 20u);
    EXPECT_GT(left_in_all, 20u);
    rig.worker->Drain();
}

TEST(WhyProperty, AHeartbeatTellsOthersWhatIsWithheldHere) {
    engine::Rig rig;
    rig.options.withheld = [] { return std::vector<std::string>{"gpu"}; };
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    NewTask task{.type = "t"};
    task.needs = Needs{{"gpu", 1}};
    TaskId id = rig.memory.Submit({&task, 1}).at(0).id;
    rig.worker->RenewOnce();
    auto why = ExplainTask(rig.memory, id);
    EXPECT_FALSE(why->eligible);
    EXPECT_EQ(why->reasons.at(0).name, "resource_withheld");
    rig.worker->Drain();
}

// ---- as a program asks ----

constexpr Task<int, void> kPlain{"plain"};
constexpr Task<int, int> kFlow{"why.flow"};

TEST(WhyPublic, ATaskHasReasonsAndAPlace) {
    Options options;
    options.store = "memory:";
    options.slots = 1;
    options.poll = {.min = 1ms, .max = 10ms};
    auto broken = []() -> Result<void> { return Error{Code::kInvalid, "no such device"}; };
    options.probes = {{.resource = "gpu", .check = broken}};
    engine::Gate gate;
    Engine engine(options);
    engine.Handle(kPlain, [&](Context&, const int&) { gate.Pass(); });
    engine.Start();
    auto runs = engine.Submit(kPlain, 0).value();
    ASSERT_TRUE(gate.WaitForVisitors(1));
    auto first = engine.Submit(kPlain, 1, {.queue = "q"}).value();
    auto second = engine.Submit(kPlain, 2, {.queue = "q"}).value();
    auto withheld = engine.Submit(kPlain, 3, {.queue = "q", .needs = {{{"gpu"}}}}).value();
    TaskWait wait = engine.Why(second.id()).value();
    EXPECT_TRUE(wait.eligible);
    EXPECT_EQ(wait.workers, 1);
    EXPECT_EQ(wait.ahead, 1);
    EXPECT_FALSE(wait.more_ahead);
    EXPECT_EQ(engine.Why(first.id()).value().ahead, 0);
    wait = engine.Why(withheld.id()).value();
    EXPECT_FALSE(wait.eligible);
    EXPECT_EQ(wait.ahead, std::nullopt);
    EXPECT_THAT(wait.reasons, ElementsAre(Field(&Reason::condition, "resource_withheld")));
    EXPECT_THAT(
        engine.Explain(withheld.id()).value(), Not(Contains(Field(&Reason::eligible, true)))
    );
    EXPECT_TRUE(engine.Why(runs.id()).value().reasons.empty());
    EXPECT_EQ(engine.Why(TaskId(999)).error().code, Code::kNotFound);

    QueueWait queue = engine.queues().Why("q").value();
    gate.Open();
    EXPECT_EQ(queue.waiting, 3);
    EXPECT_EQ(queue.workers, 1);
    EXPECT_FALSE(queue.estimate);
    ASSERT_EQ(queue.shares.size(), 2u);
    EXPECT_EQ(queue.shares[0].condition, "eligible");
    EXPECT_EQ(queue.shares[0].tasks, 2);
    EXPECT_EQ(queue.shares[1].condition, "resource_withheld");
    EXPECT_EQ(queue.shares[1].example, withheld.id());
    EXPECT_EQ(engine.queues().Why("empty").value().waiting, 0);
}

TEST(WhyPublic, AFlowSaysWhatItWaitsFor) {
    testing::TestEngine engine;
    engine.Handle(kFlow, [](Flow& flow, const int&) {
        flow.Sleep("rest", 1h);
        auto parcel = flow.AwaitSignal<int>("shipped", 72h);
        return parcel.value_or(0) + flow.AwaitSignal<int>("two words").value_or(0);
    });
    auto run = engine.Submit(kFlow, 1).value();
    engine.RunUntilIdle();
    auto reason = [&] { return engine.engine().Why(run.id()).value().reasons.at(0); };
    EXPECT_EQ(reason().condition, "flow_sleeps");
    EXPECT_THAT(reason().detail, HasSubstr("step \"rest\", until "));
    EXPECT_EQ(reason().cure, "only time");
    engine.AdvanceTime(1h);
    engine.RunUntilIdle();
    EXPECT_EQ(reason().condition, "awaits_signal");
    EXPECT_THAT(reason().text, HasSubstr("signal \"shipped\""));
    EXPECT_THAT(reason().detail, HasSubstr("until "));
    EXPECT_EQ(reason().cure, "stint flow signal " + run.id().ToString() + " shipped");
    ASSERT_TRUE(engine.engine().flows().Signal(run.id(), "shipped", 7));
    engine.RunUntilIdle();
    EXPECT_EQ(reason().detail, "without end");
    EXPECT_EQ(reason().cure, "stint flow signal " + run.id().ToString() + " \"two words\"");
    ASSERT_TRUE(engine.engine().flows().Signal(run.id(), "two words", 1));
    engine.RunUntilIdle();
    EXPECT_EQ(run.Wait().value(), 8);
}

}  // namespace
}  // namespace stint::node
