#include "engine/breaker.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/engine_rig.h"

namespace stint::engine {
namespace {

struct BreakerRig {
    base::ManualClock clock;
    base::SeededRandom random{3};
    Metrics metrics;
    Breaker breaker{clock, random, metrics, 5s};
};

TEST(BreakerTest, BacksOffWithGrowingJitteredWaits) {
    BreakerRig rig;
    std::vector<std::chrono::nanoseconds> waits;
    for (int i = 0; i < 12; ++i) {
        ASSERT_FALSE(rig.breaker.Blocked());
        auto wait = rig.breaker.Failed() - rig.clock.Now();
        waits.push_back(wait);
        EXPECT_TRUE(rig.breaker.Blocked());
        rig.clock.Advance(wait);
    }
    EXPECT_GE(waits[0], 25ms);
    EXPECT_LE(waits[0], 50ms);
    EXPECT_GT(waits[5], 4 * waits[0]);
    EXPECT_GE(waits[11], 2500ms);
    EXPECT_LE(waits[11], 5s);
    EXPECT_NE(waits[10], waits[11]);
}

TEST(BreakerTest, OpenItAdmitsOneProber) {
    BreakerRig rig;
    for (int i = 0; i < Breaker::kOpenAfter; ++i)
        rig.clock.Advance(rig.breaker.Failed() - rig.clock.Now());
    EXPECT_TRUE(rig.breaker.open());
    EXPECT_FALSE(rig.breaker.Blocked()) << "the prober";
    EXPECT_TRUE(rig.breaker.Blocked()) << "the others wait for it";
    rig.breaker.Succeeded();
    EXPECT_TRUE(rig.breaker.closed());
    EXPECT_FALSE(rig.breaker.Blocked());
    EXPECT_FALSE(rig.breaker.Blocked());
}

TEST(BreakerTest, SeveralLoopsFailingTogetherCountOnce) {
    BreakerRig rig;
    for (int i = 0; i < 10; ++i) rig.breaker.Failed();
    EXPECT_FALSE(rig.breaker.open());
    EXPECT_EQ(rig.metrics.store_errors, 10u);
}

TEST(BreakerTest, AProberThatNeverComesBackIsReplaced) {
    BreakerRig rig;
    for (int i = 0; i < Breaker::kOpenAfter; ++i)
        rig.clock.Advance(rig.breaker.Failed() - rig.clock.Now());
    EXPECT_FALSE(rig.breaker.Blocked());
    rig.clock.Advance(31s);
    EXPECT_FALSE(rig.breaker.Blocked());
}

TEST(BreakerTest, AnUrgentCallerWaitsForTheTimeButNotForTheProber) {
    BreakerRig rig;
    while (!rig.breaker.open()) rig.clock.Advance(rig.breaker.Failed() - rig.clock.Now());
    rig.breaker.Failed();
    EXPECT_TRUE(rig.breaker.Blocked(Breaker::Caller::kUrgent)) << "the backoff holds for all";
    rig.clock.Advance(10s);
    EXPECT_FALSE(rig.breaker.Blocked()) << "the prober";
    EXPECT_TRUE(rig.breaker.Blocked());
    EXPECT_FALSE(rig.breaker.Blocked(Breaker::Caller::kUrgent));
}

}  // namespace
}  // namespace stint::engine
