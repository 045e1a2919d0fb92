// Leases of a group: no more of them run at once than it has seats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "engine/attempts.h"
#include "store/resources.h"
#include "support/engine_rig.h"

namespace stint::engine {
namespace {

using model::State;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<AttemptPtr> GroupOf(
    int members, int seats, std::int64_t group = 7, std::shared_ptr<const HandlerEntry> handler = {}
) {
    static base::SeededRandom random(1);
    std::vector<AttemptPtr> attempts;
    for (int i = 0; i < members; ++i) {
        store::Lease lease;
        lease.token = random.MakeId<LeaseToken>();
        lease.type = "t";
        lease.group = group;
        lease.seats = seats;
        attempts.push_back(std::make_shared<Attempt>(std::move(lease), SessionId{}, handler));
    }
    return attempts;
}

TEST(Seats, NoMoreAreTakenThanThereAreSeatsAndTheEndOfOneLetsTheNextGo) {
    AttemptTable table;
    std::vector<AttemptPtr> group = GroupOf(4, 2);
    table.Add(group);
    std::vector<AttemptPtr> first = table.TakeCrew(), second = table.TakeCrew();
    ASSERT_THAT(first, SizeIs(1));
    ASSERT_THAT(second, SizeIs(1));
    EXPECT_THAT(table.TakeCrew(), IsEmpty());
    EXPECT_EQ(table.waiting(), 2);
    EXPECT_EQ(table.seats(), 2);
    table.Remove(*second[0]);
    std::vector<AttemptPtr> third = table.TakeCrew();
    ASSERT_THAT(third, SizeIs(1));
    EXPECT_EQ(third[0], group[2]) << "in the order of the claim";
    EXPECT_THAT(table.TakeCrew(), IsEmpty());
    table.Remove(*first[0]);
    table.Remove(*third[0]);
    EXPECT_EQ(table.seats(), 1) << "one is left";
    ASSERT_THAT(table.TakeCrew(), SizeIs(1));
    table.Remove(*group[3]);
    EXPECT_EQ(table.seats(), 0);
}

TEST(Seats, OthersGoPastThoseThatWaitForOne) {
    AttemptTable table;
    std::vector<AttemptPtr> group = GroupOf(3, 1), others = GroupOf(2, 1, 8),
                            free = GroupOf(1, 0, 0);
    table.Add(group);
    table.Add(others);
    table.Add(free);
    EXPECT_EQ(table.TakeCrew().at(0), group[0]);
    EXPECT_EQ(table.TakeCrew().at(0), others[0]);
    EXPECT_EQ(table.TakeCrew().at(0), free[0]);
    EXPECT_THAT(table.TakeCrew(), IsEmpty());
}

TEST(Seats, WhatIsHandedBackBeforeItRanTakesNobodysSeat) {
    AttemptTable table;
    std::vector<AttemptPtr> group = GroupOf(4, 1);
    table.Add(group);
    ASSERT_THAT(table.TakeCrew(), SizeIs(1));
    ASSERT_THAT(table.TakeCrew(), IsEmpty()) << "the others wait for the seat";
    for (const AttemptPtr& attempt : table.TakeAllWaiting()) table.Remove(*attempt);
    EXPECT_EQ(table.waiting(), 0);
    std::vector<AttemptPtr> later = GroupOf(1, 1);
    table.Add(later);
    EXPECT_THAT(table.TakeCrew(), IsEmpty()) << "the seat is taken";
    table.Remove(*group[0]);
    EXPECT_EQ(table.TakeCrew().at(0), later[0]);
}

TEST(Seats, ThoseThatWaitForOneAreStalledAsAllThatWait) {
    AttemptTable table;
    std::vector<AttemptPtr> group = GroupOf(3, 1);
    base::Instant now = base::Instant{} + 10s;
    for (const AttemptPtr& attempt : group) attempt->waits_since = now;
    table.Add(group);
    ASSERT_THAT(table.TakeCrew(), SizeIs(1));
    ASSERT_THAT(table.TakeCrew(), IsEmpty());
    EXPECT_EQ(table.oldest_waiting(), now);
    EXPECT_THAT(table.TakeStalled(now - 1s), IsEmpty());
    EXPECT_THAT(table.TakeStalled(now), SizeIs(2));
    EXPECT_EQ(table.oldest_waiting(), std::nullopt);
}

TEST(Seats, ABatchIsOfAsManyAsHaveSeats) {
    auto entry = std::make_shared<HandlerEntry>();
    entry->type = "t";
    entry->batch = [](std::span<const detail::ErasedItem> items) {
        return std::vector<detail::ErasedEnd>(items.size());
    };
    entry->batch_most = 5;
    AttemptTable table;
    table.Add(GroupOf(8, 3, 7, entry));
    table.Add(GroupOf(4, 1, 8, entry));
    std::vector<AttemptPtr> crew = table.TakeCrew();
    EXPECT_THAT(crew, SizeIs(4)) << "three of the one group, one of the other";
    EXPECT_THAT(table.TakeCrew(), IsEmpty());
    for (const AttemptPtr& attempt : crew) table.Remove(*attempt);
    EXPECT_THAT(table.TakeCrew(), SizeIs(4));
}

TEST(Seats, AThreadThatIsLeftBehindKeepsItsSeat) {
    AttemptTable table;
    std::vector<AttemptPtr> group = GroupOf(3, 1);
    table.Add(group);
    ASSERT_EQ(table.TakeCrew().at(0), group[0]);
    ASSERT_TRUE(group[0]->Begin({}, {}));
    ASSERT_EQ(group[0]->Abandon(), Attempt::Abandoned::kRunning);
    table.Remove(*group[0]);
    EXPECT_THAT(table.TakeCrew(), IsEmpty());
    EXPECT_THAT(table.TakeWaitingWith(*group[0]), SizeIs(2)) << "so they are handed back";
}

// Executors that sleep must be woken when a seat is free, or the rest waits for ever.
TEST(Seats, WithThreadsAllRunAndNeverMoreAtOnceThanThereAreSeats) {
    constexpr int kMembers = 300, kSeats = 3;
    AttemptTable table;
    std::atomic<int> running{0}, most{0};
    std::vector<std::jthread> takers;
    for (int i = 0; i < 8; ++i) {
        takers.emplace_back([&](std::stop_token stop) {
            for (auto crew = table.WaitForCrew(stop); !crew.empty();
                 crew = table.WaitForCrew(stop)) {
                int now = ++running;
                for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
                }
                std::this_thread::yield();
                --running;
                table.Remove(*crew.front());
            }
        });
    }
    table.Add(GroupOf(kMembers, kSeats));
    base::Clock& clock = base::SystemClock();
    EXPECT_TRUE(table.WaitEmpty(clock, {}, clock.Now() + 30s));
    EXPECT_LE(most, kSeats);
    for (std::jthread& taker : takers) taker.request_stop();
}

// ---- a worker ----

struct SeatRig : Rig {
    SeatRig() {
        options.slots = 2;
        options.claim_ahead = 6;
        options.lease = model::LeasePolicy::Patient();
        store::ResourceChange gpu{.name = "gpu"};
        gpu.capacity = 8;
        EXPECT_TRUE(memory.Resources().Change(gpu, "test"));
    }
    TaskId SubmitNeeding() {
        model::NewTask task;
        task.needs = model::Needs{{"gpu", 1}};
        return Submit("t", task);
    }
    int Held() { return memory.Resources().Find("gpu")->held; }
};

TEST(Seats, AWorkerHoldsUnitsForWhatItRunsAndNotForWhatItHasAhead) {
    SeatRig rig;
    int most = 0;
    rig.Handle("t", [&](Context&, std::string_view) {
        most = std::max(most, rig.Held());
        return Done();
    });
    rig.Open();
    std::vector<TaskId> ids;
    for (int i = 0; i < 8; ++i) ids.push_back(rig.SubmitNeeding());
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), 8);
    EXPECT_EQ(rig.Held(), 2);
    rig.Drive();
    for (TaskId id : ids) EXPECT_EQ(rig.StateOf(id), State::kComplete);
    EXPECT_EQ(most, 2);
    EXPECT_EQ(rig.Held(), 0);
}

TEST(Seats, WhatIsNotBegunIsHandedBackWhenTheResourceTurnsOutToBeDown) {
    SeatRig rig;
    int calls = 0;
    rig.Handle("t", [&](Context&, std::string_view) -> Outcome<std::string> {
        ++calls;
        return Outcome<std::string>(ResourceUnavailable("gpu", "no answer"));
    });
    rig.Open();
    std::vector<TaskId> ids;
    for (int i = 0; i < 8; ++i) ids.push_back(rig.SubmitNeeding());
    rig.worker->ClaimOnce();
    ASSERT_EQ(rig.worker->running(), 8);
    rig.worker->RunOneAttempt();
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.worker->running(), 0);
    EXPECT_EQ(calls, 1) << "one found out for all";
    EXPECT_EQ(rig.Held(), 0);
    for (TaskId id : ids) EXPECT_EQ(rig.Get(id).attempt, 0);
}

}  // namespace
}  // namespace stint::engine
