// Seats: a claim that takes more than its worker runs at once holds units only for those that run.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/resource_suite.h"
#include "model/limits.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

class Seats : public ResourceSuite {
protected:
    std::vector<Lease> ClaimAhead(int limit, int at_once, ClaimRequest request = {}) {
        request.at_once = at_once;
        return ClaimMany(limit, std::move(request));
    }
    std::vector<TaskId> MakeNeeding(int count, const Needs& needs = {{"gpu", 1}}) {
        return MakeMany(count, Needing(needs));
    }
    static std::set<std::int64_t> GroupsOf(const std::vector<Lease>& leases) {
        std::set<std::int64_t> groups;
        for (const Lease& lease : leases) groups.insert(lease.group);
        return groups;
    }
    void Set(const ResourceChange& change) {
        auto changed = resources.Change(change, "ann");
        ASSERT_TRUE(changed.has_value()) << changed.error().message;
    }
    // However they are left: the units of two seats until there are fewer tasks than that.
    void LeaveOneByOne(const std::vector<Lease>& leases, const std::function<void(Lease)>& leave) {
        auto left = static_cast<int>(leases.size());
        for (const Lease& lease : leases) {
            EXPECT_EQ(Held("gpu"), std::min(2, left));
            leave(lease);
            --left;
        }
        EXPECT_EQ(Held("gpu"), 0);
    }
};
INSTANTIATE_TEST_SUITE_P(Store, Seats, testing::ValuesIn(Backends()), &BackendName);

TEST_P(Seats, MoreIsTakenThanThereAreUnitsAndTheUnitsAreThoseOfTheSeats) {
    Limit("gpu", 8);
    MakeNeeding(30);
    std::vector<Lease> leases = ClaimAhead(20, 4);
    ASSERT_THAT(leases, SizeIs(20));
    EXPECT_EQ(Held("gpu"), 4);
    EXPECT_THAT(GroupsOf(leases), SizeIs(1));
    EXPECT_NE(leases[0].group, 0);
    for (const Lease& lease : leases) EXPECT_EQ(lease.seats, 4);
    EXPECT_THAT(resources.Find("gpu")->holders, SizeIs(4));
    EXPECT_EQ(resources.Find("gpu")->waiting, 10);
}

TEST_P(Seats, WhoDoesNotSayHowManyItRunsHasUnitsForEach) {
    Limit("gpu", 8);
    MakeNeeding(30);
    std::vector<Lease> leases = ClaimMany(20);
    ASSERT_THAT(leases, SizeIs(8));
    EXPECT_EQ(Held("gpu"), 8);
    EXPECT_THAT(GroupsOf(leases), ElementsAre(0));
}

TEST_P(Seats, WhereThereAreFewUnitsTheyCarryWhatASlotWould) {
    Limit("gpu", 2);
    MakeNeeding(40);
    std::vector<Lease> leases = ClaimAhead(20, 4);
    EXPECT_THAT(leases, SizeIs(10)) << "five for each of four slots; there are two units";
    EXPECT_EQ(Held("gpu"), 2);
    for (const Lease& lease : leases) EXPECT_EQ(lease.seats, 2);
    EXPECT_THAT(ClaimAhead(20, 4), IsEmpty());
}

TEST_P(Seats, ASettlementGivesBackOnlyWhatNobodyOfTheGroupNeedsAnyMore) {
    Limit("gpu", 8);
    MakeNeeding(6);
    LeaveOneByOne(ClaimAhead(6, 2), [&](const Lease& lease) { Complete(lease); });
}

TEST_P(Seats, InWhateverOrderTheyEnd) {
    Limit("gpu", 8);
    MakeNeeding(6);
    std::vector<Lease> leases = ClaimAhead(6, 2);
    std::reverse(leases.begin(), leases.end());
    LeaveOneByOne(leases, [&](const Lease& lease) { Complete(lease); });
}

TEST_P(Seats, SettledTogetherTheyGiveBackTheSame) {
    Limit("gpu", 8);
    MakeNeeding(9);
    std::vector<Lease> leases = ClaimAhead(9, 3);
    std::vector<Settlement> some;
    // Some of those that hold, and some of those that do not.
    for (std::size_t i : {8U, 0U, 7U, 1U, 2U}) some.push_back(Outcome(leases[i], Kind::kComplete));
    for (const SettleReply& reply : store.Settle(some)) {
        EXPECT_EQ(reply.kind, SettleReply::Kind::kAccepted);
    }
    EXPECT_EQ(Held("gpu"), 3) << "four are left";
    some.clear();
    for (std::size_t i : {3U, 6U}) some.push_back(Outcome(leases[i], Kind::kComplete));
    store.Settle(some);
    EXPECT_EQ(Held("gpu"), 2);
    some.clear();
    for (std::size_t i : {4U, 5U}) some.push_back(Outcome(leases[i], Kind::kComplete));
    store.Settle(some);
    EXPECT_EQ(Held("gpu"), 0);
}

TEST_P(Seats, EveryWayOutOfALeaseLeavesTheUnitsToThoseThatAreLeft) {
    Limit("gpu", 8);
    NewTask task = Needing({{"gpu", 1}});
    task.retry = Fixed(5, 24h);
    for (bool last_first : {false, true}) {
        MakeMany(8, task);
        std::vector<Lease> leases = ClaimAhead(8, 2);
        ASSERT_THAT(leases, SizeIs(8));
        if (last_first) std::reverse(leases.begin(), leases.end());
        std::vector<Kind> kinds = {
            Kind::kComplete,
            Kind::kRetry,
            Kind::kDead,
            Kind::kSnooze,
            Kind::kBackground,
            Kind::kCancelled,
            Kind::kRelease,
            Kind::kBlocked};
        LeaveOneByOne(leases, [&](const Lease& lease) {
            Kind kind = kinds.back();
            kinds.pop_back();
            Settlement settlement = Outcome(lease, kind, 24h);
            if (kind == Kind::kRetry || kind == Kind::kDead) settlement.error = Failure();
            if (kind == Kind::kBlocked) {
                settlement.children = {{.id = store.ReserveIds(1), .type = "u", .delay = 24h}};
                settlement.end = AttemptEnd::kBlocked;
            }
            EXPECT_EQ(Settle(settlement).kind, SettleReply::Kind::kAccepted);
        });
    }
}

TEST_P(Seats, ATaskThatIsCutOffByASweeperLeavesItsUnitToTheOthers) {
    Limit("gpu", 8);
    NewTask slow = Needing({{"gpu", 1}});
    slow.timeout = 1min;
    slow.retry = Fixed(5, 24h);
    MakeMany(2, Needing({{"gpu", 1}}));
    MakeMany(2, slow);
    std::vector<Lease> leases = ClaimAhead(4, 1);
    ASSERT_THAT(leases, SizeIs(4));
    Advance(5min);
    store.Renew({.session = Worker(), .lease = limits::kLeaseMax});
    EXPECT_THAT(ReclaimAll().tasks, SizeIs(2));
    EXPECT_EQ(Held("gpu"), 1) << "the two others are left";
    Complete(leases[0]);
    EXPECT_EQ(Held("gpu"), 1);
    Complete(leases[1]);
    EXPECT_EQ(Held("gpu"), 0);
}

TEST_P(Seats, TheDeathOfASessionGivesBackAll) {
    Limit("gpu", 4);
    MakeNeeding(12);
    std::vector<Lease> leases = ClaimAhead(12, 3);
    ASSERT_THAT(leases, SizeIs(12));
    EXPECT_EQ(Held("gpu"), 3);
    Complete(leases[5]);
    Crash(leases[0]);
    EXPECT_EQ(Held("gpu"), 0);
    EXPECT_EQ(Settle(Outcome(leases[1], Kind::kComplete)).kind, SettleReply::Kind::kLost);
    EXPECT_EQ(Held("gpu"), 0);
}

TEST_P(Seats, ASweepThatComesToSomeOfThemOnlyLeavesWhatTheRestNeeds) {
    Limit("gpu", 4);
    MakeNeeding(12);
    std::vector<Lease> leases = ClaimAhead(12, 2);
    Advance(limits::kLeaseMax + 1min);
    store.Reclaim({.limit = 5});
    EXPECT_EQ(Held("gpu"), 2);
    ReclaimAll();
    EXPECT_EQ(Held("gpu"), 0);
}

TEST_P(Seats, TwoWorkersShareWhatThereIs) {
    Limit("gpu", 5);
    MakeNeeding(60);
    ClaimRequest other{.session = OpenSession(limits::kLeaseMax, "host-b")};
    std::vector<Lease> one = ClaimAhead(20, 4);
    std::vector<Lease> two = ClaimAhead(20, 4, other);
    EXPECT_THAT(one, SizeIs(20));
    EXPECT_THAT(two, SizeIs(5)) << "one unit is left, and carries five";
    EXPECT_EQ(two.at(0).seats, 1);
    EXPECT_EQ(Held("gpu"), 5);
    std::set<TaskId> all;
    for (const auto* leases : {&one, &two}) {
        for (const Lease& lease : *leases) EXPECT_TRUE(all.insert(lease.task).second);
    }
    EXPECT_THAT(ClaimAhead(20, 4), IsEmpty());
    for (std::size_t i = 0; i < 17; ++i) Complete(one[i]);
    EXPECT_EQ(Held("gpu"), 4) << "three of the first worker are left, for four seats";
    EXPECT_THAT(ClaimAhead(20, 4, other), SizeIs(5));
}

TEST_P(Seats, ALoweredCapacityHoldsForWhatComesNext) {
    Limit("gpu", 4);
    MakeNeeding(30);
    std::vector<Lease> leases = ClaimAhead(8, 4);
    Limit("gpu", 1);
    EXPECT_EQ(Held("gpu"), 4);
    EXPECT_THAT(ClaimAhead(8, 4), IsEmpty());
    for (std::size_t i = 0; i < 7; ++i) Complete(leases[i]);
    EXPECT_EQ(Held("gpu"), 1);
    EXPECT_THAT(ClaimAhead(8, 4), IsEmpty());
    Complete(leases[7]);
    EXPECT_THAT(ClaimAhead(8, 4), SizeIs(2)) << "one seat";
    EXPECT_EQ(Held("gpu"), 1);
}

TEST_P(Seats, TasksOfOtherNeedsAreOfOtherGroups) {
    Limit("gpu", 4);
    Limit("disk", 8);
    MakeNeeding(8, {{"gpu", 1}});
    MakeNeeding(8, {{"disk", 3}, {"gpu", 1}});
    MakeNeeding(4, {});
    std::vector<Lease> leases = ClaimAhead(20, 2);
    std::map<Needs, std::set<std::int64_t>> groups;
    std::map<Needs, int> seats;
    for (const Lease& lease : leases) {
        groups[lease.placement.needs].insert(lease.group);
        seats[lease.placement.needs] = lease.seats;
    }
    EXPECT_THAT(leases, SizeIs(20));
    EXPECT_EQ(groups[{}], (std::set<std::int64_t>{0}));
    ASSERT_THAT(groups[Needs({{"gpu", 1}})], SizeIs(1));
    ASSERT_THAT(groups[Needs({{"disk", 3}, {"gpu", 1}})], SizeIs(1));
    EXPECT_NE(groups[Needs({{"gpu", 1}})], groups[Needs({{"disk", 3}, {"gpu", 1}})]);
    EXPECT_EQ(Held("gpu"), seats[Needs({{"gpu", 1}})] + seats[Needs({{"disk", 3}, {"gpu", 1}})]);
    EXPECT_EQ(Held("disk"), 3 * seats[Needs({{"disk", 3}, {"gpu", 1}})]);
    for (const Lease& lease : leases) Complete(lease);
    EXPECT_EQ(Held("gpu"), 0);
    EXPECT_EQ(Held("disk"), 0);
}

TEST_P(Seats, WhereStartsCountNobodyGoesBehind) {
    ResourceChange rated{.name = "gpu"};
    rated.capacity = 4;
    rated.rate = Rate{.count = 100, .period = 1s, .burst = 100};
    Set(rated);
    MakeNeeding(20);
    std::vector<Lease> leases = ClaimAhead(20, 2);
    EXPECT_THAT(leases, SizeIs(4));
    EXPECT_THAT(GroupsOf(leases), ElementsAre(0));
}

TEST_P(Seats, NorWhereFailuresInARowAreCounted) {
    ResourceChange patient{.name = "gpu"};
    patient.capacity = 4;
    patient.breaker = Breaker{.failures = 3};
    Set(patient);
    MakeNeeding(20);
    EXPECT_THAT(GroupsOf(ClaimAhead(20, 2)), ElementsAre(0));
}

TEST_P(Seats, NorWhereOneTriesWhatWasDown) {
    Limit("gpu", 4);
    MakeNeeding(20);
    Settle(Unavailable(ClaimOne(), "gpu", 1min));
    Advance(2min);
    std::vector<Lease> trial = ClaimAhead(20, 2);
    ASSERT_THAT(trial, SizeIs(1));
    EXPECT_EQ(trial[0].group, 0);
    Complete(trial[0]);
    EXPECT_THAT(ClaimAhead(10, 2), SizeIs(10)) << "it works";
}

TEST_P(Seats, NorWhereTheWorkerTakesOnlySoManyOfSomething) {
    Limit("gpu", 4);
    MakeNeeding(20);
    ClaimRequest limited{.type_room = {{"t", 10}}};
    EXPECT_THAT(GroupsOf(ClaimAhead(20, 2, limited)), ElementsAre(0));
    EXPECT_EQ(Held("gpu"), 4);
}

TEST_P(Seats, NobodyGoesBehindWhileAnotherWaitsForTheUnits) {
    Limit("gpu", 3);
    NewTask large = Needing({{"gpu", 3}});
    large.priority = 200;
    std::vector<Lease> holder = (MakeNeeding(1), ClaimMany(1));
    TaskId first = Make(large);
    MakeNeeding(20);
    std::vector<Lease> leases = ClaimAhead(20, 4);
    EXPECT_THAT(leases, SizeIs(2)) << "the two units that are free, and nothing behind them";
    EXPECT_THAT(GroupsOf(leases), ElementsAre(0));
    for (const Lease& lease : leases) Complete(lease);
    Complete(holder[0]);
    EXPECT_EQ(ClaimAhead(20, 4).at(0).task, first);
}

TEST_P(Seats, ALimitOfAQueueThatIsSetWhileTheyRunCountsTheSeats) {
    Limit("gpu", 4);
    MakeNeeding(10);
    std::vector<Lease> leases = ClaimAhead(10, 2);
    Limit("queue:default", 5);
    EXPECT_EQ(Held("queue:default"), 2);
    EXPECT_EQ(Held("gpu"), 2);
    std::reverse(leases.begin(), leases.end());
    for (std::size_t i = 0; i < 9; ++i) Complete(leases[i]);
    EXPECT_EQ(Held("queue:default"), 1);
    Complete(leases[9]);
    EXPECT_EQ(Held("queue:default"), 0);
    EXPECT_EQ(Held("gpu"), 0);
}

// What is set for one queue is not needed by those of another.
TEST_P(Seats, AGroupIsOfOneQueueAndTypeSoThatALimitOfThoseCountsAllOfIt) {
    Limit("gpu", 2);
    NewTask of_other = Needing({{"gpu", 1}});
    of_other.queue = "other";
    MakeMany(2, of_other);
    MakeNeeding(2);
    std::vector<Lease> leases = ClaimAhead(4, 2);
    int others = 0;
    std::map<std::int64_t, std::set<std::string>> queues;
    for (const Lease& lease : leases) {
        queues[lease.group].insert(lease.queue);
        others += lease.queue == "other" ? 1 : 0;
    }
    for (const auto& [group, names] : queues) {
        if (group != 0) EXPECT_THAT(names, SizeIs(1));
    }
    ASSERT_GT(others, 0);
    Limit("queue:other", 1);
    EXPECT_GE(Held("queue:other"), 1) << "one of them may run";
}

TEST_P(Seats, AResourceThatIsRemovedAndSetAgainCountsNoFewerThanRun) {
    Limit("gpu", 4);
    MakeNeeding(10);
    std::vector<Lease> leases = ClaimAhead(10, 3);
    resources.Remove("gpu", "ann");
    Complete(leases[9]);
    Complete(leases[8]);
    Limit("gpu", 4);
    EXPECT_GE(Held("gpu"), 3);
    for (std::size_t i = 0; i < 8; ++i) Complete(leases[i]);
    EXPECT_EQ(Held("gpu"), 0);
}

TEST_P(Seats, AGroupOfMoreThanALeaseHoldsIsSeveral) {
    Limit("gpu", 8);
    constexpr int kMany = 2 * limits::kGroupMembers + 88;
    MakeNeeding(kMany);
    std::vector<Lease> leases = ClaimAhead(kMany, 4);
    ASSERT_THAT(leases, SizeIs(kMany));
    EXPECT_EQ(Held("gpu"), 4);
    std::map<std::int64_t, int> seats;
    for (const Lease& lease : leases) seats[lease.group] = lease.seats;
    EXPECT_THAT(seats, SizeIs(3));
    int all = 0;
    for (const auto& [group, of] : seats) all += of;
    EXPECT_EQ(all, 4);
    std::vector<Settlement> settlements;
    for (const Lease& lease : leases) settlements.push_back(Outcome(lease, Kind::kComplete));
    store.Settle(settlements);
    EXPECT_EQ(Held("gpu"), 0);
}

TEST_P(Seats, WhatIsHeldIsTheSameAfterTheStoreWasOpenedAgain) {
    Limit("gpu", 4);
    MakeNeeding(8);
    std::vector<Lease> leases = ClaimAhead(8, 2);
    std::shared_ptr<Store> again = OpenAgain();
    std::reverse(leases.begin(), leases.end());
    auto left = static_cast<int>(leases.size());
    for (const Lease& lease : leases) {
        EXPECT_EQ(again->Resources().Find("gpu")->held, std::min(2, left--));
        Settlement done = Outcome(lease, Kind::kComplete);
        EXPECT_EQ(again->Settle({&done, 1}).at(0).kind, SettleReply::Kind::kAccepted);
    }
    EXPECT_EQ(again->Resources().Find("gpu")->held, 0);
}

}  // namespace
}  // namespace stint::conformance
