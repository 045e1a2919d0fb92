#include "engine/ahead.h"

#include <gtest/gtest.h>

#include "model/limits.h"
#include "support/engine_rig.h"

namespace stint::engine {
namespace {

TEST(Ahead, NothingIsTakenAheadBeforeAnythingIsKnown) {
    Ahead ahead(8, std::nullopt);
    EXPECT_EQ(ahead.limit(), 0);
    ahead.Claimed(5ms);
    EXPECT_EQ(ahead.limit(), 0);
    EXPECT_EQ(ahead.Room(8, 3, 0), 5);
}

TEST(Ahead, ShortAttemptsAreTakenAheadByTheirTimeAndTheTrips) {
    Ahead ahead(8, std::nullopt);
    ahead.Ran(10ms, 10);  // a millisecond each
    ahead.Claimed(5ms);
    EXPECT_EQ(ahead.limit(), 2 * 8 * 5);
}

TEST(Ahead, LongAttemptsAreNot) {
    Ahead ahead(8, std::nullopt);
    ahead.Ran(10s, 10);
    ahead.Claimed(5ms);
    EXPECT_EQ(ahead.limit(), 0);
}

TEST(Ahead, AnAttemptThatNoClockCanMeasureIsBounded) {
    Ahead ahead(8, std::nullopt);
    ahead.Ran(0ns, 10);
    ahead.Claimed(5ms);
    EXPECT_EQ(ahead.limit(), model::limits::kClaimAhead);
}

TEST(Ahead, ItFollowsWhatIsSeenByDegrees) {
    Ahead ahead(8, std::nullopt);
    ahead.Ran(10ms, 10);
    ahead.Claimed(5ms);
    int before = ahead.limit();
    ahead.Ran(100ms, 10);
    ahead.Claimed(5ms);
    EXPECT_LT(ahead.limit(), before);
    EXPECT_GT(ahead.limit(), 0);
    for (int i = 0; i < 50; ++i) {
        ahead.Ran(2s, 10);
        ahead.Claimed(5ms);
    }
    EXPECT_EQ(ahead.limit(), 0);
}

TEST(Ahead, MoreIsWantedWhenHalfOfItIsUsedUp) {
    Ahead ahead(8, std::nullopt);
    ahead.Ran(10ms, 10);
    ahead.Claimed(5ms);
    ASSERT_EQ(ahead.limit(), 80);
    EXPECT_EQ(ahead.Room(8, 49, 41), 0);
    EXPECT_EQ(ahead.Room(8, 48, 40), 40);
}

TEST(Ahead, AfterAStallNothingIsTakenAheadUntilAttemptsEndAgain) {
    Ahead ahead(8, std::nullopt);
    ahead.Ran(10ms, 10);
    ahead.Claimed(5ms);
    ahead.Stalled();
    ahead.Claimed(5ms);
    EXPECT_EQ(ahead.limit(), 0);
    ahead.Ran(10ms, 10);
    ahead.Claimed(5ms);
    EXPECT_GT(ahead.limit(), 0);
}

TEST(Ahead, WhoNamesANumberGetsIt) {
    Ahead ahead(8, 3);
    ahead.Ran(10ms, 10);
    ahead.Claimed(5ms);
    EXPECT_EQ(ahead.limit(), 3);
    EXPECT_EQ(ahead.Room(8, 10, 2), 1);
    EXPECT_FALSE(ahead.chosen());
}

// A claim takes five milliseconds, an attempt one.
struct AheadRig : Rig {
    AheadRig() {
        options.claim_ahead = std::nullopt;
        store.OnCall([this](std::string_view call) {
            if (call == "claim") clock.Advance(5ms);
        });
        Handle("t", [this](Context&, std::string_view) {
            clock.Advance(1ms);
            return Done();
        });
        for (int i = 0; i < 60; ++i) Submit("t");
        Open();
    }
    // As long as the worker takes no more than it has slots for.
    bool GetAhead() {
        for (int i = 0; i < 10 && worker->running() <= options.slots; ++i) {
            while (worker->RunOneAttempt()) {
            }
            worker->SettleOnce();
            worker->ClaimOnce();
        }
        return worker->running() > options.slots;
    }
};

TEST(AheadOfTheSlots, ShortTasksAreClaimedBeforeThereIsAFreeSlot) {
    AheadRig rig;
    EXPECT_TRUE(rig.GetAhead());
    EXPECT_LE(rig.worker->running(), rig.options.slots + 2 * rig.options.slots * 5);
    EXPECT_EQ(rig.metrics.stalled, 0u);
}

TEST(AheadOfTheSlots, WhatIsNotBegunWithinASecondGoesBackUnharmed) {
    AheadRig rig;
    ASSERT_TRUE(rig.GetAhead());
    auto held = static_cast<std::uint64_t>(rig.worker->running());
    rig.clock.Advance(990ms);
    base::Instant next = rig.worker->WatchOnce();
    EXPECT_EQ(rig.metrics.stalled, 0u);
    EXPECT_LE(next, rig.clock.Now() + 10ms) << "it looks again in time";
    rig.clock.Advance(10ms);
    rig.worker->WatchOnce();
    EXPECT_EQ(rig.metrics.stalled, held);
    EXPECT_EQ(rig.worker->running(), 0);
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.metrics.released, held);
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), rig.options.slots) << "nothing ahead after a stall";
    while (rig.worker->running() > 0) rig.Drive();
    EXPECT_EQ(rig.metrics.completed, 60u);
}

TEST(AheadOfTheSlots, TheTimeThatAClaimTakesIsNotTimeThatATaskWaits) {
    AheadRig rig;
    rig.store.OnCall([&](std::string_view call) {
        if (call == "claim") rig.clock.Advance(2s);
    });
    rig.Open();  // and claims
    ASSERT_EQ(rig.worker->running(), rig.options.slots);
    rig.worker->WatchOnce();
    EXPECT_EQ(rig.metrics.stalled, 0u);
    EXPECT_EQ(rig.worker->running(), rig.options.slots);
}

TEST(AheadOfTheSlots, ANumberThatWasAskedForStays) {
    AheadRig rig;
    rig.options.claim_ahead = 3;
    rig.Open();
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), 5);
    rig.clock.Advance(2s);
    rig.worker->WatchOnce();
    EXPECT_EQ(rig.worker->running(), 5);
    EXPECT_EQ(rig.metrics.stalled, 0u);
}

}  // namespace
}  // namespace stint::engine
