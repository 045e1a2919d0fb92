// Resources, shares and order keys over time: who waits long is served, what was closed opens
// again, what is forgotten holds up nobody, and settings mean the same whenever they are made.
#include <map>
#include <set>

#include "conformance/resource_suite.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

class Shares : public ResourceSuite {
protected:
    static NewTask Keyed(const std::string& key, std::string type = "t") {
        NewTask task{.type = std::move(type), .retry = Fixed(1, 1min)};
        task.order_key = key;
        return task;
    }
    void Kill(const Lease& lease) {
        Settlement dead = Outcome(lease, Kind::kDead);
        dead.error = Failure(false);
        ASSERT_EQ(Settle(dead).kind, SettleReply::Kind::kAccepted);
    }
    Explanation First(TaskId task) {
        ClaimRequest claimer{
            .session = Worker(), .limit = limits::kClaimBatch, .types = {"t", "u", "v"}};
        return store.Explain(task, claimer).at(0);
    }
    // So many are claimed and completed, one at a time: who had how many turns.
    std::map<TenantId, int> ServeOneByOne(int count) {
        std::map<TenantId, int> served;
        for (int i = 0; i < count; ++i) {
            Lease lease = ClaimMany(1).at(0);
            ++served[lease.tenant];
            Complete(lease);
        }
        return served;
    }
};
INSTANTIATE_TEST_SUITE_P(Store, Shares, testing::ValuesIn(Backends()), &BackendName);

// ---- names ----

TEST_P(Shares, QueuesAndTypesCannotBeAskedForByName) {
    Limit("queue:default", 1);
    for (const char* name : {"queue:default", "Type:t"}) {
        SubmitReply reply = Submit(Needing({{name}}));
        EXPECT_EQ(reply.kind, SubmitReply::Kind::kInvalid) << name;
        EXPECT_THAT(reply.message, HasSubstr("queue:"));
    }
    Make();
    EXPECT_THAT(ClaimMany(10), SizeIs(1));
    EXPECT_THAT(ClaimMany(10), IsEmpty());
}

TEST_P(Shares, APatternIsOfQueuesOnlyByItsWholePrefix) {
    for (const char* name : {"q*", "queue*", "t*", "type*"}) Limit(name, 1);
    for (int i = 0; i < 3; ++i) Make();
    EXPECT_THAT(ClaimMany(10), SizeIs(3));
    Limit("queue:*", 4);
    for (int i = 0; i < 3; ++i) Make();
    EXPECT_LE(ClaimMany(10).size(), 3U);
}

TEST_P(Shares, APatternSetLaterHoldsForNamesThatAreThereAlready) {
    Make(Needing({{"api:x"}}));
    Lease lease = ClaimOne();
    ASSERT_EQ(Settle(Unavailable(lease, "api:x")).kind, SettleReply::Kind::kAccepted);
    ASSERT_TRUE(resources.Reopen("api:x", "ann"));
    Limit("api:*", 1);
    EXPECT_EQ(resources.Find("api:x")->pattern, "api:*");
    EXPECT_EQ(resources.Find("api:x")->settings.capacity, 1);
    Make(Needing({{"api:x"}}));
    EXPECT_THAT(ClaimMany(10), SizeIs(1));
    // One that is narrower has more say.
    Limit("api:x*", 2);
    EXPECT_EQ(resources.Find("api:x")->pattern, "api:x*");
    EXPECT_THAT(ClaimMany(10), SizeIs(1));
}

TEST_P(Shares, AChangeOfOneNameKeepsWhatItsPatternSays) {
    Limit("host:*", 2);
    ResourceChange change{.name = "host:a"};
    change.breaker = Breaker{.failures = 3, .open_for = 1min, .open_at_most = 1h};
    auto changed = resources.Change(change, "ann");
    ASSERT_TRUE(changed.has_value());
    EXPECT_EQ(changed->capacity, 2);
    EXPECT_EQ(resources.Find("host:a")->pattern, "");
    Limit("host:*", 1);
    EXPECT_EQ(resources.Find("host:a")->settings.capacity, 2);
    // A pattern of its own begins with nothing.
    ResourceChange narrower{.name = "host:b*"};
    narrower.breaker = change.breaker;
    EXPECT_EQ(resources.Change(narrower, "ann")->capacity, std::nullopt);
}

TEST_P(Shares, RemovingAPatternForgetsNothingThatIsHeld) {
    Limit("host:*", 1);
    for (int i = 0; i < 3; ++i) Make(Needing({{"host:a"}}));
    EXPECT_THAT(ClaimMany(10), SizeIs(1));
    EXPECT_TRUE(resources.Remove("host:*", "ann"));
    EXPECT_EQ(Held("host:a"), 1);
    Limit("host:*", 1);
    EXPECT_THAT(ClaimMany(10), IsEmpty());
    EXPECT_TRUE(resources.Remove("host:*", "ann"));
    EXPECT_THAT(ClaimMany(10), SizeIs(2));
    EXPECT_FALSE(resources.Remove("host:*", "ann"));
}

// ---- breakers ----

TEST_P(Shares, ATrialThatTakesLongerThanTheWaitStillOpensTheWay) {
    Limit("db", 5);
    for (int i = 0; i < 4; ++i) Make(Needing({{"db"}}));
    ASSERT_EQ(Settle(Unavailable(ClaimMany(1).at(0), "db")).kind, SettleReply::Kind::kAccepted);
    Advance(1min);
    std::vector<Lease> trial = ClaimMany(10);
    ASSERT_THAT(trial, SizeIs(1));
    Advance(30min);
    EXPECT_THAT(ClaimMany(10), IsEmpty()) << "one tries it";
    Complete(trial[0]);
    EXPECT_EQ(resources.Find("db")->breaker, BreakerState::kClosed);
    EXPECT_THAT(ClaimMany(10), SizeIs(3));
}

TEST_P(Shares, ATrialThatIsCutOffMakesRoomForTheNext) {
    Limit("db", 5);
    NewTask task = Needing({{"db"}});
    task.retry = Fixed(5, 1min);
    for (int i = 0; i < 3; ++i) Make(task);
    ASSERT_EQ(Settle(Unavailable(ClaimMany(1).at(0), "db")).kind, SettleReply::Kind::kAccepted);
    Advance(1min);
    Lease trial = ClaimMany(10).at(0);
    EXPECT_THAT(ClaimMany(10), IsEmpty());
    Crash(trial);
    std::vector<Lease> next = ClaimMany(10);
    ASSERT_THAT(next, SizeIs(1));
    Complete(next[0]);
    EXPECT_EQ(resources.Find("db")->breaker, BreakerState::kClosed);
}

TEST_P(Shares, WhoStartedBeforeDoesNotTakeTheTrialsPlace) {
    Limit("db", 5);
    for (int i = 0; i < 5; ++i) Make(Needing({{"db"}}));
    std::vector<Lease> before = ClaimMany(2);
    ASSERT_EQ(Settle(Unavailable(before[0], "db")).kind, SettleReply::Kind::kAccepted);
    Advance(1min);
    std::vector<Lease> trial = ClaimMany(10);
    ASSERT_THAT(trial, SizeIs(1));
    ASSERT_EQ(Settle(Unavailable(before[1], "db")).kind, SettleReply::Kind::kAccepted);
    Advance(1min);
    EXPECT_THAT(ClaimMany(10), IsEmpty()) << "the trial goes on";
    Complete(trial[0]);
    EXPECT_EQ(resources.Find("db")->breaker, BreakerState::kClosed);
}

TEST_P(Shares, WhatIsHandedBackMayHaveToWait) {
    TaskId task = Make();
    Lease lease = ClaimOne();
    SettleAs(lease, Kind::kRelease, 10min);
    EXPECT_EQ(Get(task).attempt, 0);
    EXPECT_THAT(ClaimMany(1), IsEmpty());
    Advance(11min);
    EXPECT_EQ(ClaimOne().task, task);
}

// ---- several units ----

TEST_P(Shares, WhoNeedsSeveralUnitsIsNotPassedForEver) {
    Limit("gpu", 2);
    Make(Needing({{"gpu", 1}}));
    Make(Needing({{"gpu", 1}}));
    std::vector<Lease> running = ClaimMany(10);
    ASSERT_THAT(running, SizeIs(2));
    TaskId big = Make(Needing({{"gpu", 2}}));
    auto next = [&] {
        Complete(running.front());
        running.erase(running.begin());
        TaskId small = Make(Needing({{"gpu", 1}}));
        for (Lease& lease : ClaimMany(10)) running.push_back(lease);
        return small;
    };
    next();
    EXPECT_THAT(running, SizeIs(2)) << "a short wait keeps nothing free";
    Advance(2min);
    TaskId small = next();
    ASSERT_THAT(running, SizeIs(1)) << "what is free is kept for who has waited";
    EXPECT_EQ(First(small).condition, Condition::kResourceFull);
    EXPECT_THAT(First(small).detail, HasSubstr("kept for"));
    EXPECT_EQ(First(big).condition, Condition::kResourceFull);
    next();
    ASSERT_THAT(running, SizeIs(1));
    EXPECT_EQ(running[0].task, big);
    EXPECT_EQ(Held("gpu"), 2);
}

TEST_P(Shares, WhoNeedsTwoResourcesGetsThemInTheEnd) {
    Limit("a", 1);
    Limit("b", 1);
    Make(Needing({{"a"}}));
    Make(Needing({{"b"}}));
    std::map<std::string, Lease> running;
    auto claim = [&] {
        for (Lease& lease : ClaimMany(10)) running[lease.placement.needs.at(0).resource] = lease;
    };
    claim();
    TaskId both = Make(Needing({{"a"}, {"b"}}));
    Advance(1h);
    // One of them is free now and then, never both: unless it is kept.
    for (int i = 0; i < 4 && StateOf(both) == State::kOpen; ++i) {
        for (const char* name : {"a", "b"}) {
            auto one = running.find(name);
            if (one == running.end()) continue;
            Complete(one->second);
            running.erase(one);
            Make(Needing({{name}}));
            claim();
        }
    }
    EXPECT_EQ(StateOf(both), State::kInProgress);
}

TEST_P(Shares, ANeedAboveTheCapacityIsCalledSoAndKeepsNothing) {
    Limit("gpu", 1);
    TaskId never = Make(Needing({{"gpu", 2}}));
    Advance(1h);
    EXPECT_EQ(First(never).condition, Condition::kResourceFull);
    EXPECT_THAT(First(never).detail, HasSubstr("never, until its capacity is raised to 2"));
    TaskId small = Make(Needing({{"gpu", 1}}));
    EXPECT_THAT(TasksOf(ClaimMany(10)), ElementsAre(small));
}

// ---- shares ----

TEST_P(Shares, OneSlotIsSharedOverTime) {
    ASSERT_TRUE(resources.SetOrder({.queue = "default", .fair = true}, "ann").has_value());
    MakeMany(40, {.tenant = TenantId(1)});
    MakeMany(10, {.tenant = TenantId(2)});
    std::map<TenantId, int> served = ServeOneByOne(10);
    EXPECT_EQ(served[TenantId(1)], 5);
    EXPECT_EQ(served[TenantId(2)], 5);
    // Who comes later has no credit for the time before, and is not behind either.
    MakeMany(10, {.tenant = TenantId(3)});
    served = ServeOneByOne(9);
    EXPECT_EQ(served[TenantId(1)], 3);
    EXPECT_EQ(served[TenantId(2)], 3);
    EXPECT_EQ(served[TenantId(3)], 3);
}

TEST_P(Shares, OneSlotIsSharedByWeight) {
    QueueOrder order{.queue = "*", .fair = true};
    order.weights = {{TenantId(2), 3}};
    ASSERT_TRUE(resources.SetOrder(order, "ann").has_value());
    MakeMany(30, {.tenant = TenantId(1)});
    MakeMany(30, {.tenant = TenantId(2)});
    std::map<TenantId, int> served = ServeOneByOne(20);
    EXPECT_EQ(served[TenantId(1)], 5);
    EXPECT_EQ(served[TenantId(2)], 15);
    // Nobody else is there: all of it.
    MakeMany(5, {.tenant = TenantId(1), .queue = "other"});
    for (const Lease& lease : ClaimMany(5, {.queues = {"other"}})) {
        EXPECT_EQ(lease.tenant, TenantId(1));
    }
}

// What goes first anyway costs nobody else a turn.
TEST_P(Shares, AnUrgentTenantDoesNotEndTheTurnsOfTheOthers) {
    ASSERT_TRUE(resources.SetOrder({.queue = "default", .fair = true}, "ann").has_value());
    MakeMany(30, {.tenant = TenantId(1)});
    MakeMany(30, {.tenant = TenantId(2)});
    std::map<TenantId, int> served;
    for (int i = 0; i < 20; ++i) {
        Make({.tenant = TenantId(3), .priority = 200});
        for (const auto& [tenant, count] : ServeOneByOne(2)) served[tenant] += count;
    }
    EXPECT_EQ(served[TenantId(3)], 20);
    EXPECT_EQ(served[TenantId(1)], 10);
    EXPECT_EQ(served[TenantId(2)], 10);
}

// Nor does what other workers serve.
TEST_P(Shares, ATenantThatOtherWorkersServeDoesNotEndTheTurnsOfTheOthers) {
    ASSERT_TRUE(resources.SetOrder({.queue = "default", .fair = true}, "ann").has_value());
    MakeMany(30, {.tenant = TenantId(1), .type = "t"});
    MakeMany(30, {.tenant = TenantId(2), .type = "t"});
    MakeMany(60, {.tenant = TenantId(3), .type = "u"});
    std::map<TenantId, int> served;
    for (int i = 0; i < 40; ++i) {
        Lease lease = ClaimMany(1, {.types = {i % 2 == 0 ? "u" : "t"}}).at(0);
        ++served[lease.tenant];
        Complete(lease);
    }
    EXPECT_EQ(served[TenantId(3)], 20);
    EXPECT_EQ(served[TenantId(1)], 10);
    EXPECT_EQ(served[TenantId(2)], 10);
}

// ---- ages ----

// A task that comes back to its place has not waited; those behind it have.
TEST_P(Shares, AgeCountsBehindOneThatComesBackAgainAndAgain) {
    ASSERT_TRUE(resources.SetOrder({.queue = "*", .aging = 1s}, "ann").has_value());
    TaskId comes_back = Make({.priority = 100});
    TaskId behind = Make({.priority = 100});
    bool ran = false;
    int turns = 0;
    for (; !ran && turns < 300; ++turns) {
        Advance(1s);
        Make({.priority = 200});
        Lease lease = ClaimMany(1).at(0);
        ran = lease.task == behind;
        if (lease.task != comes_back) {
            Complete(lease);
            continue;
        }
        Settlement later = Outcome(lease, Kind::kSnooze);
        later.delay = 1s;
        ASSERT_EQ(Settle(later).kind, SettleReply::Kind::kAccepted);
    }
    EXPECT_TRUE(ran);
    EXPECT_LE(turns, 120);
    // Nothing was lost from sight on the way.
    Advance(2s);
    std::vector<TaskId> rest = TasksOf(ClaimMany(limits::kClaimBatch));
    EXPECT_THAT(rest, testing::Contains(comes_back));
}

// Who was passed over because it is young is still before those that come later.
TEST_P(Shares, WhoWasPassedOverIsNotForgotten) {
    ASSERT_TRUE(resources.SetOrder({.queue = "*", .aging = 1min}, "ann").has_value());
    TaskId back = Make();
    TaskId second = Make();
    TaskId third = Make();
    Lease lease = ClaimMany(1).at(0);
    ASSERT_EQ(lease.task, back);
    Settlement later = Outcome(lease, Kind::kSnooze);
    later.delay = 1s;
    ASSERT_EQ(Settle(later).kind, SettleReply::Kind::kAccepted);
    Advance(2s);
    EXPECT_THAT(TasksOf(ClaimMany(1)), ElementsAre(second));
    EXPECT_THAT(TasksOf(ClaimMany(1)), ElementsAre(third));
    Advance(1s);
    TaskId last = Make();
    EXPECT_THAT(TasksOf(ClaimMany(1)), ElementsAre(back));
    EXPECT_THAT(TasksOf(ClaimMany(1)), ElementsAre(last));
}

TEST_P(Shares, AgeCountsFromWhenATaskCouldRun) {
    ASSERT_TRUE(resources.SetOrder({.queue = "*", .aging = 1min}, "ann").has_value());
    TaskId delayed = Make({.priority = 100, .delay = 24h});
    Advance(24h + 2min);
    TaskId fresh = Make({.priority = 110});
    EXPECT_THAT(TasksOf(ClaimMany(1)), ElementsAre(fresh));
    EXPECT_THAT(TasksOf(ClaimMany(1)), ElementsAre(delayed));
}

// ---- order keys ----

TEST_P(Shares, ADeadHeadThatIsForgottenBlocksNobody) {
    TaskId head = Make(Keyed("k"));
    TaskId behind = Make(Keyed("k"));
    Kill(ClaimOne());
    EXPECT_THAT(ClaimMany(10), IsEmpty());
    Advance(limits::kRetention + 3 * 24h);
    Housekeep();
    ASSERT_EQ(store.Get(head), std::nullopt);
    EXPECT_EQ(ClaimOne().task, behind);
    EXPECT_EQ(Get(behind).placement.order_key, "k");
}

TEST_P(Shares, ACancelOfADeadHeadEndsItsTurn) {
    TaskId head = Make(Keyed("k"));
    TaskId behind = Make(Keyed("k"));
    TaskId last = Make(Keyed("k"));
    Kill(ClaimOne());
    EXPECT_THAT(ClaimMany(10), IsEmpty());
    CancelReply reply = Cancel(head);
    EXPECT_EQ(reply.kind, CancelReply::Kind::kCancelled);
    EXPECT_EQ(reply.state, State::kDead);
    EXPECT_EQ(StateOf(head), State::kDead);
    EXPECT_EQ(Cancel(head).kind, CancelReply::Kind::kAlreadyTerminal);
    Lease next = ClaimOne();
    EXPECT_EQ(next.task, behind);
    // Tried again it is the last of its line.
    Retry(head);
    EXPECT_THAT(ClaimMany(10), IsEmpty());
    Complete(next);
    next = ClaimOne();
    EXPECT_EQ(next.task, last);
    Complete(next);
    EXPECT_EQ(ClaimOne().task, head);
}

TEST_P(Shares, AWaitForATaskOfItsOwnOrderKeyIsRefused) {
    Make(Keyed("k"));
    Lease parent = ClaimOne();
    Settlement block = Outcome(parent, Kind::kBlocked);
    block.end = AttemptEnd::kBlocked;
    NewTask child = Keyed("k", "u");
    child.id = store.ReserveIds(1);
    block.children = {child};
    SettleReply reply = Settle(block);
    EXPECT_EQ(reply.kind, SettleReply::Kind::kRefused);
    EXPECT_THAT(reply.message, HasSubstr("\"k\""));
    EXPECT_EQ(store.Get(child.id), std::nullopt);
    // One that is there already, and comes later.
    TaskId behind = Make(Keyed("k"));
    block.children.clear();
    block.wait.on = {behind};
    reply = Settle(block);
    EXPECT_EQ(reply.kind, SettleReply::Kind::kRefused);
    EXPECT_THAT(reply.message, HasSubstr("\"k\""));
    // Of another key it may.
    TaskId other = Make(Keyed("other", "u"));
    block.wait.on = {other};
    EXPECT_EQ(Settle(block).kind, SettleReply::Kind::kAccepted);
}

// Whoever starts after another of a batch comes behind it in their order, too.
TEST_P(Shares, AStartAfterAnotherOfItsOrderKeyGoesBehindIt) {
    TaskId first = store.ReserveIds(2);
    TaskId second(first.value() + 1);
    NewTask waits = Keyed("k");
    waits.id = first;
    waits.after = WaitOn{.on = {second}};
    NewTask waited = Keyed("k");
    waited.id = second;
    std::vector<NewTask> batch = {waits, waited};
    for (const SubmitReply& reply : store.SubmitAll(batch)) EXPECT_TRUE(reply.accepted());
    Lease lease = ClaimOne();
    EXPECT_EQ(lease.task, second);
    Complete(lease);
    EXPECT_EQ(ClaimOne().task, first);
}

}  // namespace
}  // namespace stint::conformance
