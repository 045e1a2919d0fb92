// Resources: slots, patterns, rates, breakers, labels, room, order keys, fair shares; and that what
// explain says of them is what the claim does.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/resource_suite.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

class Resources : public ResourceSuite {
protected:
    TaskId MakeKeyed(const std::string& key, OnFailedHead policy = OnFailedHead::kBlock) {
        NewTask task{.retry = Fixed(1, 1min)};
        task.order_key = key;
        task.on_failed_head = policy;
        return Make(task);
    }
    std::vector<Condition> Why(TaskId task, ClaimRequest claimer = {}) {
        if (!claimer.session.valid()) claimer.session = Worker();
        if (claimer.types.empty()) claimer.types = {"t", "u", "v"};
        claimer.limit = limits::kClaimBatch;
        std::vector<Condition> conditions;
        for (const Explanation& reason : store.Explain(task, claimer))
            conditions.push_back(reason.condition);
        return conditions;
    }
    std::string Detail(TaskId task) {
        ClaimRequest claimer{.session = Worker(), .types = {"t", "u", "v"}};
        return store.Explain(task, claimer).at(0).detail;
    }
};
INSTANTIATE_TEST_SUITE_P(Store, Resources, testing::ValuesIn(Backends()), &BackendName);

// ---- slots ----

TEST_P(Resources, AtMostTheCapacityIsHeld) {
    Limit("GPU", 2);
    for (int i = 0; i < 5; ++i) Make(Needing({{"gpu"}}));
    std::vector<Lease> first = ClaimMany(10);
    ASSERT_THAT(first, SizeIs(2));
    EXPECT_EQ(first[0].placement.needs, (Needs{{"gpu", 1}}));
    EXPECT_EQ(Held("gpu"), 2);
    EXPECT_THAT(ClaimMany(10), IsEmpty());
    Complete(first[0]);
    EXPECT_EQ(Held("gpu"), 1);
    EXPECT_THAT(ClaimMany(10), SizeIs(1));
    EXPECT_THAT(resources.Find("Gpu")->holders, SizeIs(2));
    EXPECT_EQ(resources.Find("gpu")->waiting, 2);
}

TEST_P(Resources, EveryWayOutOfALeaseGivesBackWhatItHeld) {
    Limit("gpu", 1);
    NewTask task = Needing({{"gpu"}});
    task.retry = Fixed(5, 1min);
    auto next = [&] {
        Make(task);
        return ClaimOne();
    };
    for (Kind kind :
         {Kind::kComplete,
          Kind::kRetry,
          Kind::kDead,
          Kind::kSnooze,
          Kind::kBackground,
          Kind::kCancelled}) {
        Lease lease = next();
        EXPECT_EQ(Held("gpu"), 1);
        Settlement settlement = Outcome(lease, kind, 24h);
        if (kind == Kind::kRetry || kind == Kind::kDead) settlement.error = Failure();
        EXPECT_EQ(Settle(settlement).kind, SettleReply::Kind::kAccepted);
        EXPECT_EQ(Held("gpu"), 0) << static_cast<int>(kind);
    }
    Lease released = next();
    SettleAs(released, Kind::kRelease);
    EXPECT_EQ(Held("gpu"), 0);
    Lease again = ClaimOne();
    EXPECT_EQ(again.task, released.task);
    Crash(again);
    EXPECT_EQ(Held("gpu"), 0);
}

TEST_P(Resources, ATimeoutAndABlockGiveItBack) {
    Limit("gpu", 1);
    NewTask task = Needing({{"gpu"}});
    task.timeout = 1min;
    Make(task);
    Lease slow = ClaimOne();
    Advance(5min);
    store.Renew({.session = Worker(), .lease = limits::kLeaseMax});
    ReclaimAll();
    EXPECT_EQ(Held("gpu"), 0);
    EXPECT_EQ(Settle(Outcome(slow, Kind::kComplete)).kind, SettleReply::Kind::kLost);
    Cancel(slow.task);
    Make(Needing({{"gpu"}}));
    Lease parent = ClaimOne();
    Settlement block = Outcome(parent, Kind::kBlocked);
    NewTask child{.id = store.ReserveIds(1), .type = "u"};
    block.children = {child};
    block.end = AttemptEnd::kBlocked;
    ASSERT_EQ(Settle(block).kind, SettleReply::Kind::kAccepted);
    EXPECT_EQ(Held("gpu"), 0);
}

TEST_P(Resources, CapacityChangesLive) {
    Limit("gpu", 1);
    for (int i = 0; i < 6; ++i) Make(Needing({{"gpu"}}));
    std::vector<Lease> held = ClaimMany(10);
    EXPECT_THAT(held, SizeIs(1));
    Limit("gpu", 3);
    for (Lease& lease : ClaimMany(10)) held.push_back(lease);
    EXPECT_THAT(held, SizeIs(3));
    Limit("gpu", 1);
    EXPECT_THAT(ClaimMany(10), IsEmpty());
    Complete(held[0]);
    Complete(held[1]);
    EXPECT_THAT(ClaimMany(10), IsEmpty());
    Complete(held[2]);
    EXPECT_THAT(ClaimMany(10), SizeIs(1));
    Limit("gpu", std::nullopt);
    EXPECT_THAT(ClaimMany(10), SizeIs(2));
    EXPECT_EQ(Held("gpu"), 3);
    Limit("gpu", 0);
    Make(Needing({{"gpu"}}));
    EXPECT_THAT(ClaimMany(10), IsEmpty());
}

TEST_P(Resources, SeveralUnitsAndSeveralResourcesAreHadTogetherOrNotAtAll) {
    Limit("gpu", 3);
    Limit("disk", 1);
    TaskId big = Make(Needing({{"gpu", 2}, {"disk", 1}}));
    Make(Needing({{"gpu", 2}}));
    TaskId small = Make(Needing({{"gpu", 1}}));
    TaskId other = Make(Needing({{"disk", 1}}));
    std::vector<Lease> leases = ClaimMany(10);
    EXPECT_THAT(TasksOf(leases), ElementsAre(big, small));
    EXPECT_EQ(Held("gpu"), 3);
    EXPECT_EQ(Held("disk"), 1);
    EXPECT_THAT(Why(other), ElementsAre(Condition::kResourceFull));
    EXPECT_THAT(Detail(other), HasSubstr("\"disk\", capacity 1, held by " + big.ToString()));
}

TEST_P(Resources, PatternsLimitEachName) {
    Limit("host:*", 2);
    for (const char* host : {"host:a.org", "host:b.org", "host:a.org", "HOST:A.org", "host:b.org"})
        Make(Needing({{host}}));
    Make(Needing({{"hostess"}}));
    EXPECT_THAT(ClaimMany(10), SizeIs(5));
    EXPECT_EQ(Held("host:a.org"), 2);
    EXPECT_EQ(resources.Find("host:a.org")->pattern, "host:*");
    Limit("host:a.org", 3);
    EXPECT_THAT(ClaimMany(10), SizeIs(1));
    EXPECT_EQ(Held("host:a.org"), 3);
}

TEST_P(Resources, TheTypesNeedsAndTheRequestsOwn) {
    Limit("gpu", 1);
    TypeDefaults defaults{.type = "u"};
    defaults.needs = {{"Gpu"}};
    defaults.labels = {"linux"};
    NewTask before{.type = "u"};
    TaskId early = Make(before);
    store.PublishTypes({&defaults, 1});
    EXPECT_EQ(store.Types().at(0).defaults.needs.size(), 1U);
    TaskId normal = Make({.type = "u"});
    NewTask free{.type = "u"};
    free.needs = Needs{};
    free.labels = std::vector<std::string>{};
    TaskId unlimited = Make(free);
    EXPECT_THAT(TasksOf(ClaimMany(10)), ElementsAre(unlimited));
    EXPECT_THAT(Why(normal), ElementsAre(Condition::kLabelMissing));
    EXPECT_EQ(Get(normal).placement.needs, (Needs{{"gpu", 1}}));
    EXPECT_EQ(Get(early).placement.labels, std::vector<std::string>{"linux"});
    ClaimRequest carries;
    carries.labels = {"amd64", "linux"};
    EXPECT_THAT(TasksOf(ClaimMany(10, carries)), ElementsAre(early));
}

TEST_P(Resources, AnAttemptThatFindsOutThatItNeedsMoreLosesNothing) {
    Limit("gpu", 1);
    Make(Needing({{"gpu"}}));
    Lease holder = ClaimOne();
    TaskId task = Make();
    Lease lease = ClaimOne();
    Settlement more = Outcome(lease, Kind::kRelease);
    more.end = AttemptEnd::kReleased;
    more.needs = Needs{{"GPU", 1}};
    ASSERT_EQ(Settle(more).kind, SettleReply::Kind::kAccepted);
    EXPECT_EQ(Get(task).attempt, 0);
    EXPECT_THAT(ClaimMany(10), IsEmpty());
    EXPECT_THAT(Why(task), ElementsAre(Condition::kResourceFull));
    Complete(holder);
    Lease again = ClaimOne();
    EXPECT_EQ(again.task, task);
    EXPECT_EQ(again.attempt, 1);
    EXPECT_EQ(again.placement.needs, (Needs{{"gpu", 1}}));
}

TEST_P(Resources, QueuesAndTypesHaveLimitsOfTheirOwn) {
    Limit("queue:mail", 1);
    Limit("type:u", 1);
    for (int i = 0; i < 3; ++i) Make({.type = "t", .queue = "mail"});
    for (int i = 0; i < 3; ++i) Make({.type = "u"});
    Make({.type = "t"});
    std::vector<Lease> leases = ClaimMany(10);
    EXPECT_THAT(leases, SizeIs(3));
    EXPECT_EQ(Held("queue:mail"), 1);
    EXPECT_EQ(Held("type:u"), 1);
    EXPECT_EQ(resources.Find("queue:mail")->waiting, 2);
    for (const Lease& lease : leases) Complete(lease);
    EXPECT_THAT(ClaimMany(10), SizeIs(2));
}

TEST_P(Resources, RemovingOneMakesItUnlimited) {
    Limit("gpu", 1);
    for (int i = 0; i < 3; ++i) Make(Needing({{"gpu"}}));
    std::vector<Lease> held = ClaimMany(10);
    EXPECT_TRUE(resources.Remove("gpu", "ann"));
    EXPECT_FALSE(resources.Remove("gpu", "ann"));
    EXPECT_FALSE(resources.Find("gpu").has_value());
    EXPECT_THAT(ClaimMany(10), SizeIs(2));
    EXPECT_EQ(Complete(held.at(0)), State::kComplete);
}

TEST_P(Resources, WrongSettingsAreRefusedByName) {
    auto refusal = [&](const ResourceChange& change) {
        auto changed = resources.Change(change, "ann");
        return changed ? std::string("accepted") : changed.error().message;
    };
    EXPECT_THAT(refusal({.name = "a b"}), HasSubstr("name is \"a b\""));
    EXPECT_THAT(refusal({.name = "*"}), HasSubstr("host:*"));
    EXPECT_THAT(refusal({.name = "a", .capacity = {{-1}}}), HasSubstr("capacity is -1"));
    EXPECT_THAT(refusal({.name = "a", .rate = {{Rate{.count = 0}}}}), HasSubstr("rate.count is 0"));
    EXPECT_THAT(
        refusal({.name = "a", .breaker = Breaker{.failures = 0}}), HasSubstr("breaker.failures")
    );
    NewTask wrong = Needing({{"gpu", 0}});
    EXPECT_THAT(Submit(wrong).message, HasSubstr("0 units of \"gpu\""));
    wrong.needs = {};
    wrong.labels = {{"a b"}};
    EXPECT_THAT(Submit(wrong).message, HasSubstr("labels is \"a b\""));
}

// ---- what a node offers ----

TEST_P(Resources, WithheldOnesAndRoom) {
    TaskId needs = Make(Needing({{"ollama"}}));
    TaskId plain = Make();
    ClaimRequest claimer;
    claimer.withheld = {"Ollama"};
    EXPECT_THAT(Why(needs, claimer), ElementsAre(Condition::kResourceWithheld));
    EXPECT_THAT(TasksOf(ClaimMany(10, claimer)), ElementsAre(plain));
    for (int i = 0; i < 3; ++i) Make({.type = "u"});
    TaskId mail = Make({.queue = "mail"});
    ClaimRequest room;
    room.type_room = {{"u", 2}};
    room.queue_room = {{"mail", 0}};
    EXPECT_THAT(Why(mail, room), ElementsAre(Condition::kNoRoom));
    EXPECT_THAT(ClaimMany(10, room), SizeIs(3));
}

TEST_P(Resources, RoomForEachNameOfAPattern) {
    Limit("gpu", 5);
    std::vector<TaskId> a, b, gpu;
    for (int i = 0; i < 3; ++i) {
        a.push_back(Make(Needing({{"host:a"}})));
        b.push_back(Make(Needing({{"host:b"}})));
        gpu.push_back(Make(Needing({{"gpu"}, {"host:c"}})));
    }
    TaskId plain = Make();
    ClaimRequest room;
    room.resource_room = {{"Host:*", 2}, {"host:b", 0}, {"gpu", 1}};
    EXPECT_THAT(Why(a[0], room), ElementsAre(Condition::kEligible));
    EXPECT_THAT(Why(a[2], room), ElementsAre(Condition::kNoRoom)) << "the two before it fill it";
    EXPECT_THAT(Why(b[0], room), ElementsAre(Condition::kNoRoom));
    EXPECT_THAT(Why(gpu[1], room), ElementsAre(Condition::kNoRoom));
    room.session = Worker();
    room.types = {"t"};
    EXPECT_THAT(store.Explain(b[0], room).at(0).detail, HasSubstr("resource \"host:b\""));
    EXPECT_THAT(TasksOf(ClaimMany(10, room)), UnorderedElementsAre(a[0], a[1], gpu[0], plain));
    EXPECT_EQ(Held("gpu"), 1) << "the others have not touched it";
    EXPECT_THAT(ClaimMany(10), SizeIs(6)) << "a worker without such limits takes the rest";
}

// ---- rates ----

TEST_P(Resources, ARateIsKeptByAllTogether) {
    ResourceChange change{.name = "api"};
    change.rate = Rate{.count = 2, .period = 1h, .burst = 3};
    ASSERT_TRUE(resources.Change(change, "ann").has_value());
    for (int i = 0; i < 10; ++i) Make(Needing({{"api"}}));
    EXPECT_THAT(ClaimMany(10), SizeIs(3));
    ClaimReply later = Claim({.limit = 10});
    EXPECT_THAT(later.leases, IsEmpty());
    ASSERT_TRUE(later.next_due.has_value());
    EXPECT_GT(*later.next_due, 25min);
    EXPECT_LE(*later.next_due, 30min);
    Advance(40min);
    EXPECT_THAT(ClaimMany(10), SizeIs(1));
    Advance(24h);
    std::vector<Lease> more = ClaimMany(10);
    EXPECT_THAT(more, SizeIs(3));
    EXPECT_LT(*resources.Find("api")->tokens, 1);
    TaskId waits = ListAll({.states = {State::kOpen}}).front().id;
    EXPECT_THAT(Why(waits), ElementsAre(Condition::kRateLimited));
}

// ---- breakers ----

TEST_P(Resources, ATaskWhoseResourceDoesNotWorkClosesItForAllAndLosesNothing) {
    Limit("db", 5);
    std::vector<TaskId> tasks;
    for (int i = 0; i < 4; ++i) tasks.push_back(Make(Needing({{"db"}})));
    std::vector<Lease> leases = ClaimMany(2);
    ASSERT_EQ(Settle(Unavailable(leases[0], "DB")).kind, SettleReply::Kind::kAccepted);
    EXPECT_EQ(Get(leases[0].task).attempt, 0);
    EXPECT_EQ(Get(leases[0].task).state, State::kOpen);
    EXPECT_THAT(ClaimMany(10), IsEmpty());
    ResourceRecord record = *resources.Find("db");
    EXPECT_EQ(record.breaker, BreakerState::kOpen);
    ASSERT_THAT(record.evidence, SizeIs(1));
    EXPECT_EQ(record.evidence[0].task, leases[0].task);
    EXPECT_EQ(record.evidence[0].message, Failure().message);
    EXPECT_THAT(Why(tasks[3]), ElementsAre(Condition::kResourceClosed));
    EXPECT_THAT(Detail(tasks[3]), HasSubstr("until "));
    ASSERT_EQ(Settle(Unavailable(leases[1], "db")).kind, SettleReply::Kind::kAccepted);
    // Half open: one tries it.
    Advance(1min);
    std::vector<Lease> trial = ClaimMany(10);
    ASSERT_THAT(trial, SizeIs(1));
    EXPECT_EQ(trial[0].attempt, 1);
    EXPECT_THAT(ClaimMany(10), IsEmpty());
    EXPECT_EQ(resources.Find("db")->breaker, BreakerState::kHalfOpen);
    ASSERT_EQ(Settle(Unavailable(trial[0], "db")).kind, SettleReply::Kind::kAccepted);
    EXPECT_THAT(ClaimMany(10), IsEmpty());
    Advance(1min);
    trial = ClaimMany(10);
    ASSERT_THAT(trial, SizeIs(1));
    Complete(trial[0]);
    EXPECT_EQ(resources.Find("db")->breaker, BreakerState::kClosed);
    EXPECT_THAT(ClaimMany(10), SizeIs(3));
}

TEST_P(Resources, ARetryAfterIsHonoured) {
    Make(Needing({{"api"}}));
    Make(Needing({{"api"}}));
    std::vector<Lease> leases = ClaimMany(1);
    ASSERT_EQ(Settle(Unavailable(leases.at(0), "api", 3h)).kind, SettleReply::Kind::kAccepted);
    Advance(2h);
    ClaimReply none = Claim({.limit = 10});
    EXPECT_THAT(none.leases, IsEmpty());
    ASSERT_TRUE(none.next_due.has_value());
    EXPECT_LE(*none.next_due, 1h);
    Advance(2h);
    EXPECT_THAT(ClaimMany(10), SizeIs(1));
    EXPECT_THAT(ClaimMany(10), IsEmpty());
}

TEST_P(Resources, SeveralReportsInARowOpenOneThatIsSetSo) {
    ResourceChange change{.name = "db"};
    change.breaker = Breaker{.failures = 2, .open_for = 1min, .open_at_most = 1h};
    ASSERT_TRUE(resources.Change(change, "ann").has_value());
    for (int i = 0; i < 3; ++i) Make(Needing({{"db"}}));
    std::vector<Lease> leases = ClaimMany(3);
    Settle(Unavailable(leases[0], "db"));
    EXPECT_EQ(resources.Find("db")->breaker, BreakerState::kClosed);
    Complete(leases[1]);
    Settle(Unavailable(leases[2], "db"));
    EXPECT_EQ(resources.Find("db")->breaker, BreakerState::kClosed);
    leases = ClaimMany(3);
    ASSERT_THAT(leases, SizeIs(2));
    Settle(Unavailable(leases[0], "db"));
    EXPECT_EQ(resources.Find("db")->breaker, BreakerState::kOpen);
    EXPECT_TRUE(resources.Reopen("db", "ann"));
    EXPECT_THAT(ClaimMany(3), SizeIs(1));
}

TEST_P(Resources, AnOperatorClosesAndReopens) {
    Limit("db", 3);
    Make(Needing({{"db"}}));
    EXPECT_TRUE(resources.Close("db", 1h, "maintenance", "ann"));
    EXPECT_THAT(ClaimMany(3), IsEmpty());
    EXPECT_THAT(resources.Find("db")->evidence.at(0).message, HasSubstr("maintenance"));
    EXPECT_TRUE(resources.Reopen("db", "ann"));
    EXPECT_THAT(ClaimMany(3), SizeIs(1));
    EXPECT_FALSE(resources.Close("nothing", 1h, "", "ann"));
}

// ---- order ----

TEST_P(Resources, TasksOfAKeyGoOneByOne) {
    TaskId a1 = MakeKeyed("a");
    TaskId a2 = MakeKeyed("a");
    TaskId b1 = MakeKeyed("b");
    TaskId a3 = MakeKeyed("a");
    std::vector<Lease> leases = ClaimMany(10);
    EXPECT_THAT(TasksOf(leases), ElementsAre(a1, b1));
    EXPECT_EQ(leases[0].placement.order_key, "a");
    EXPECT_THAT(Why(a2), ElementsAre(Condition::kBehindInOrder));
    EXPECT_THAT(Detail(a2), HasSubstr("\"a\""));
    SettleAs(leases[0], Kind::kSnooze, 1min);
    EXPECT_THAT(ClaimMany(10), IsEmpty());
    Advance(2min);
    Lease again = ClaimOne();
    EXPECT_EQ(again.task, a1);
    Complete(again);
    Lease second = ClaimOne();
    EXPECT_EQ(second.task, a2);
    Cancel(a3);
    TaskId a4 = MakeKeyed("a");
    EXPECT_THAT(ClaimMany(10), IsEmpty());
    Complete(second);
    EXPECT_EQ(ClaimOne().task, a4);
    EXPECT_EQ(Get(a2).placement.order_key, "a");
}

TEST_P(Resources, AFailedHeadBlocksUntilItIsTriedAgain) {
    TaskId head = MakeKeyed("k");
    TaskId behind = MakeKeyed("k");
    Lease lease = ClaimOne();
    Settlement dead = Outcome(lease, Kind::kDead);
    dead.error = Failure(false);
    Settle(dead);
    EXPECT_THAT(ClaimMany(10), IsEmpty());
    EXPECT_THAT(Why(behind), ElementsAre(Condition::kBehindInOrder));
    Retry(head);
    Lease again = ClaimOne();
    EXPECT_EQ(again.task, head);
    Complete(again);
    EXPECT_EQ(ClaimOne().task, behind);
}

TEST_P(Resources, AFailedHeadIsSkipped) {
    TaskId head = MakeKeyed("k", OnFailedHead::kSkip);
    TaskId behind = MakeKeyed("k", OnFailedHead::kSkip);
    TaskId last = MakeKeyed("k", OnFailedHead::kSkip);
    Lease lease = ClaimOne();
    Settlement dead = Outcome(lease, Kind::kDead);
    dead.error = Failure(false);
    Settle(dead);
    Lease next = ClaimOne();
    EXPECT_EQ(next.task, behind);
    // Tried again, it is the last of its line.
    Retry(head);
    EXPECT_THAT(ClaimMany(10), IsEmpty());
    Complete(next);
    Lease then = ClaimOne();
    EXPECT_EQ(then.task, last);
    Complete(then);
    EXPECT_EQ(ClaimOne().task, head);
}

TEST_P(Resources, AFailedHeadTakesThoseBehindWithIt) {
    TaskId head = MakeKeyed("k", OnFailedHead::kDeadLetter);
    TaskId behind = MakeKeyed("k", OnFailedHead::kDeadLetter);
    TaskId last = MakeKeyed("k", OnFailedHead::kBlock);
    TaskId other = MakeKeyed("other");
    Lease lease = ClaimMany(1).at(0);
    ASSERT_EQ(lease.task, head);
    Settlement dead = Outcome(lease, Kind::kDead);
    dead.error = Failure(false);
    Settle(dead);
    EXPECT_EQ(StateOf(behind), State::kDead);
    EXPECT_EQ(StateOf(last), State::kDead);
    EXPECT_THAT(Get(behind).reason, HasSubstr("\"k\""));
    EXPECT_EQ(ClaimOne().task, other);
    TaskId fresh = MakeKeyed("k");
    EXPECT_EQ(ClaimOne().task, fresh);
}

TEST_P(Resources, ACrashKeepsItsPlaceInTheOrder) {
    TaskId head = MakeKeyed("k", OnFailedHead::kSkip);
    NewTask task{.retry = Fixed(5, 1min)};
    task.order_key = "q";
    TaskId first = Make(task);
    TaskId second = Make(task);
    std::vector<Lease> leases = ClaimMany(10);
    EXPECT_THAT(TasksOf(leases), ElementsAre(head, first));
    Crash(leases[1]);
    Advance(1min);
    EXPECT_THAT(ClaimMany(10), IsEmpty());
    Lease suspect = ClaimSuspect();
    EXPECT_THAT(suspect.task, AnyOf(head, first));
    EXPECT_THAT(Why(second), ElementsAre(Condition::kBehindInOrder));
}

// ---- fairness ----

TEST_P(Resources, TenantsShareAQueueByWeight) {
    QueueOrder order{.queue = "default", .fair = true};
    order.weights = {{TenantId(2), 2}};
    ASSERT_TRUE(resources.SetOrder(order, "ann").has_value());
    EXPECT_THAT(resources.Orders(), ElementsAre(order));
    for (int i = 0; i < 30; ++i) Make({.tenant = TenantId(1)});
    for (int i = 0; i < 30; ++i) Make({.tenant = TenantId(2)});
    std::map<TenantId, int> got;
    for (int i = 0; i < 3; ++i) {
        for (const Lease& lease : ClaimMany(5)) ++got[lease.tenant];
    }
    EXPECT_EQ(got[TenantId(1)], 5);
    EXPECT_EQ(got[TenantId(2)], 10);
    EXPECT_TRUE(resources.RemoveOrder("default", "ann"));
    for (const Lease& lease : ClaimMany(5)) EXPECT_EQ(lease.tenant, TenantId(1));
}

TEST_P(Resources, WhatHasWaitedLongEnoughGoesFirst) {
    ASSERT_TRUE(resources.SetOrder({.queue = "*", .aging = 1min}, "ann").has_value());
    TaskId old = Make({.priority = 100});
    Advance(10min);
    TaskId fresh = Make({.priority = 105});
    TaskId urgent = Make({.priority = 200});
    EXPECT_THAT(TasksOf(ClaimMany(1)), ElementsAre(urgent));
    EXPECT_THAT(TasksOf(ClaimMany(1)), ElementsAre(old));
    EXPECT_THAT(TasksOf(ClaimMany(1)), ElementsAre(fresh));
    EXPECT_FALSE(resources.SetOrder({.queue = "*", .aging = -1min}, "ann").has_value());
}

TEST_P(Resources, PriorityComesBeforeWhatIsBlocked) {
    Limit("gpu", 1);
    NewTask first = Needing({{"gpu"}});
    first.priority = 200;
    TaskId a = Make(first);
    TaskId b = Make(first);
    TaskId plain = Make({.priority = 10});
    EXPECT_THAT(TasksOf(ClaimMany(10)), ElementsAre(a, plain));
    EXPECT_THAT(Why(b), ElementsAre(Condition::kResourceFull));
}

// ---- the worked example ----

TEST_P(Resources, CapacityTwoTheThirdWaitsUntilOneIsDone) {
    Limit("llm", 2);
    TaskId a = Make(Needing({{"llm"}}));
    TaskId b = Make(Needing({{"llm"}}));
    TaskId c = Make(Needing({{"llm"}}));
    std::vector<Lease> running = ClaimMany(10);
    EXPECT_THAT(TasksOf(running), ElementsAre(a, b));
    EXPECT_EQ(Held("llm"), 2);
    EXPECT_THAT(Why(c), ElementsAre(Condition::kResourceFull));
    Complete(running[0]);
    EXPECT_EQ(Held("llm"), 1);
    EXPECT_THAT(Why(c), ElementsAre(Condition::kEligible));
    EXPECT_THAT(TasksOf(ClaimMany(10)), ElementsAre(c));
    EXPECT_EQ(Held("llm"), 2);
}

TEST_P(Resources, ANodeRunsWhatItCanOffer) {
    // A database that takes two at a time, and a model server that runs beside one of two nodes
    // and takes one. Both kinds of work are in one queue.
    Limit("database", 2);
    Limit("ollama", 1);
    std::vector<TaskId> summaries, imports;
    for (int i = 0; i < 3; ++i) summaries.push_back(Make(Needing({{"ollama"}}, "t")));
    for (int i = 0; i < 4; ++i) imports.push_back(Make(Needing({{"database"}}, "u")));
    ClaimRequest without;
    without.withheld = {"ollama"};
    without.session = OpenSession(limits::kLeaseMax, "node-a");
    ClaimRequest with;
    with.session = OpenSession(limits::kLeaseMax, "node-b");
    // The node without it runs what it can: as many imports as the database takes.
    std::vector<Lease> a = ClaimMany(10, without);
    EXPECT_THAT(TasksOf(a), ElementsAre(imports[0], imports[1]));
    // The other gets the one summary that may run, and no import beyond the two.
    std::vector<Lease> b = ClaimMany(10, with);
    EXPECT_THAT(TasksOf(b), ElementsAre(summaries[0]));
    EXPECT_THAT(ClaimMany(10, with), IsEmpty());
    // One import is over: whoever asks first gets the next.
    Complete(a[0]);
    std::vector<Lease> c = ClaimMany(10, with);
    EXPECT_THAT(TasksOf(c), ElementsAre(imports[2]));
    // The model server goes away on its node: nobody can run summaries, imports go on.
    Complete(b[0]);
    ClaimRequest gone = with;
    gone.withheld = {"ollama"};
    EXPECT_THAT(ClaimMany(10, gone), IsEmpty());
    EXPECT_THAT(Why(summaries[1], gone), ElementsAre(Condition::kResourceWithheld));
    EXPECT_THAT(ClaimMany(10, with), SizeIs(1));
    EXPECT_EQ(Held("ollama"), 1);
    EXPECT_EQ(Held("database"), 2);
}

// ---- explain and claim cannot disagree ----

TEST_P(Resources, EligibleIfAndOnlyIfTheNextClaimTakesIt) {
    Limit("a", 2);
    Limit("b", 3);
    Limit("host:*", 1);
    ResourceChange rated{.name = "c"};
    rated.rate = Rate{.count = 2, .period = 1h};
    ASSERT_TRUE(resources.Change(rated, "ann").has_value());
    base::SeededRandom seeded(7);
    std::vector<TaskId> tasks;
    std::vector<Lease> running;
    for (int round = 0; round < 12; ++round) {
        for (int i = 0; i < 6; ++i) {
            NewTask task{.type = seeded.Below(2) == 0 ? "t" : "u"};
            Needs needs;
            if (seeded.Below(2) == 0) needs.push_back({"a", 1 + static_cast<int>(seeded.Below(2))});
            if (seeded.Below(3) == 0) needs.push_back({"b", 1});
            if (seeded.Below(5) == 0) needs.push_back({"c", 1});
            if (seeded.Below(4) == 0)
                needs.push_back({seeded.Below(2) == 0 ? "host:x" : "host:y", 1});
            task.needs = needs;
            if (seeded.Below(5) == 0) task.labels = {{"big"}};
            if (seeded.Below(4) == 0) task.order_key = seeded.Below(2) == 0 ? "k" : "l";
            if (seeded.Below(6) == 0) task.delay = 1h;
            task.priority = static_cast<int>(seeded.Below(3)) * 50;
            tasks.push_back(Make(task));
        }
        ClaimRequest claimer{
            .session = Worker(), .limit = limits::kClaimBatch, .types = {"t", "u"}};
        if (seeded.Below(2) == 0) claimer.labels = {"big"};
        if (seeded.Below(3) == 0) claimer.withheld = {"b"};
        if (seeded.Below(3) == 0) claimer.type_room = {{"t", 2}};
        if (seeded.Below(3) == 0) claimer.resource_room = {{"b", 1}};
        std::set<TaskId> eligible;
        for (TaskId task : tasks) {
            if (Why(task, claimer).front() == Condition::kEligible) eligible.insert(task);
        }
        std::set<TaskId> taken;
        for (const Lease& lease : Claim(claimer).leases) {
            taken.insert(lease.task);
            running.push_back(lease);
        }
        EXPECT_EQ(eligible, taken) << "round " << round;
        while (!running.empty() && seeded.Below(3) != 0) {
            std::size_t one = seeded.Below(running.size());
            Kind kind = seeded.Below(4) == 0 ? Kind::kSnooze : Kind::kComplete;
            Settle(
                seeded.Below(12) == 0 ? Unavailable(running[one], "a") : Outcome(running[one], kind)
            );
            running.erase(running.begin() + static_cast<std::ptrdiff_t>(one));
        }
        Advance(seeded.Below(2) == 0 ? 20min : 1s);
    }
}

}  // namespace
}  // namespace stint::conformance
