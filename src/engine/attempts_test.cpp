#include "engine/attempts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "base/random.h"

namespace stint::engine {
namespace {

AttemptPtr Held() {
    return std::make_shared<Attempt>(store::Lease{}, SessionId{}, nullptr);
}

// A process that was frozen sweeps its own session: what it calls "not started" must stay so.
TEST(Attempts, WhatIsForbiddenNeverBeginsAndIsStillReturnedOnce) {
    AttemptPtr attempt = Held();
    EXPECT_TRUE(attempt->Forbid());
    EXPECT_TRUE(attempt->Forbid()) << "whoever asks again hears the same";
    EXPECT_FALSE(attempt->Begin(base::Instant{}, Duration::zero()));
    EXPECT_FALSE(attempt->began());
    EXPECT_TRUE(attempt->Return());
    EXPECT_FALSE(attempt->Return());
    EXPECT_FALSE(attempt->Forbid()) << "it is over";
}

TEST(Attempts, WhatHasBegunIsNotForbidden) {
    AttemptPtr attempt = Held();
    EXPECT_TRUE(attempt->Begin(base::Instant{}, Duration::zero()));
    EXPECT_FALSE(attempt->Forbid());
    EXPECT_TRUE(attempt->running());
    AttemptPtr given_up = Held();
    EXPECT_TRUE(given_up->Forbid());
    EXPECT_EQ(given_up->Abandon(), Attempt::Abandoned::kUnstarted);
}

// Executors wake one another; one that is not woken leaves its attempt waiting for ever.
TEST(Attempts, WhoeverSleepsIsWokenForEachThatWaits) {
    constexpr int kThreads = 4, kRounds = 300;
    AttemptTable table;
    std::atomic<int> inside{0};
    std::atomic<int> wanted{0};
    std::vector<std::jthread> takers;
    for (int i = 0; i < kThreads; ++i) {
        takers.emplace_back([&](std::stop_token stop) {
            for (auto crew = table.WaitForCrew(stop); !crew.empty();
                 crew = table.WaitForCrew(stop)) {
                // Held until all of the round are inside at once: nobody takes two of them.
                ++inside;
                while (inside < wanted && !stop.stop_requested()) std::this_thread::yield();
                table.Remove(*crew.front());
            }
        });
    }
    base::Clock& clock = base::SystemClock();
    for (int round = 0; round < kRounds; ++round) {
        inside = 0;
        wanted = 1 + round % kThreads;
        std::vector<AttemptPtr> attempts;
        for (int i = 0; i < wanted; ++i) {
            store::Lease lease;
            lease.token = base::SystemRandom().MakeId<LeaseToken>();
            attempts.push_back(std::make_shared<Attempt>(lease, SessionId{}, nullptr));
        }
        table.Add(attempts);
        ASSERT_TRUE(table.WaitEmpty(clock, {}, clock.Now() + std::chrono::seconds{30}))
            << inside << " of " << wanted << " in round " << round;
    }
}

// A lock that is missing shows under ThreadSanitizer, which runs this test too.
TEST(Attempts, TheTableLosesAndDoublesNoneUnderThreads) {
    constexpr int kThreads = 3, kEach = 400;
    AttemptTable table;
    std::vector<std::vector<TaskId>> taken(kThreads);
    std::vector<std::jthread> takers;
    for (auto& mine : taken) {
        takers.emplace_back([&](std::stop_token stop) {
            for (auto crew = table.WaitForCrew(stop); !crew.empty();
                 crew = table.WaitForCrew(stop)) {
                mine.push_back(crew.front()->lease.task);
                table.Remove(*crew.front());
            }
        });
    }
    std::jthread watcher([&](std::stop_token stop) {
        while (!stop.stop_requested()) {
            EXPECT_LE(table.size(), kThreads * kEach);
            table.StopSession(SessionId{}, StopReason::kLeaseLost);
            (void)table.Busy();
        }
    });
    {
        std::vector<std::jthread> adders;
        for (int thread = 0; thread < kThreads; ++thread) {
            adders.emplace_back([&, thread] {
                for (int i = 1; i <= kEach; ++i) {
                    store::Lease lease;
                    lease.task = TaskId(thread * kEach + i);
                    lease.token = base::SystemRandom().MakeId<LeaseToken>();
                    table.Add(std::make_shared<Attempt>(lease, SessionId{}, nullptr));
                }
            });
        }
    }
    base::Clock& clock = base::SystemClock();
    EXPECT_TRUE(table.WaitEmpty(clock, {}, clock.Now() + std::chrono::seconds{30}));
    takers.clear();
    std::multiset<TaskId> all;
    for (const auto& mine : taken) all.insert(mine.begin(), mine.end());
    EXPECT_EQ(all.size(), static_cast<std::size_t>(kThreads * kEach));
    EXPECT_EQ(std::set<TaskId>(all.begin(), all.end()).size(), all.size());
    EXPECT_EQ(table.waiting(), 0);
}

}  // namespace
}  // namespace stint::engine
