// The simulator's own ground: one runs at a time, the seed decides, time jumps, the dead stay dead.
#include "sim/world.h"

#include <gtest/gtest.h>

#include <mutex>
#include <string>

#include "base/test_point.h"
#include "sim/clock.h"
#include "sim/faults.h"
#include "sim/hints.h"

namespace stint::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string Interleaving(std::uint64_t seed, std::uint64_t* hash) {
    World world(seed, false);
    std::string order;
    Process& process = world.NewProcess("p");
    for (char name : {'a', 'b', 'c'}) {
        world.Spawn(process, std::string(1, name), [&world, &order, name] {
            for (int i = 0; i < 20; ++i) {
                order += name;
                world.Point("turn");
            }
        });
    }
    world.Direct(seconds{1}, UINT64_MAX);
    *hash = world.trace_hash();
    return order;
}

TEST(World, OneSeedIsOneInterleaving) {
    std::uint64_t first = 0, second = 0, other = 0;
    EXPECT_EQ(Interleaving(7, &first), Interleaving(7, &second));
    EXPECT_EQ(first, second);
    EXPECT_NE(Interleaving(7, &first), Interleaving(8, &other));
    EXPECT_NE(first, other);
}

TEST(World, TimeJumpsToTheNextSleeper) {
    World world(1, false);
    Process& process = world.NewProcess("p");
    Virtual woke{};
    world.Spawn(process, "sleeper", [&] {
        world.Sleep(std::chrono::hours{5});
        woke = world.now();
    });
    world.Direct(std::chrono::hours{9}, UINT64_MAX);
    EXPECT_EQ(woke, std::chrono::hours{5});
    EXPECT_EQ(world.now(), std::chrono::hours{9});
}

TEST(World, DeathUnwindsEveryFiberAndReachesThroughCatchAll) {
    World world(3, false);
    Process& process = world.NewProcess("p");
    int destroyed = 0, after = 0;
    struct Witness {
        int& count;
        ~Witness() { ++count; }
    };
    for (int i = 0; i < 3; ++i) {
        world.Spawn(process, "f", [&] {
            Witness witness{destroyed};
            try {
                for (;;) world.Point("loop");
            } catch (...) {  // a handler's wrapper would do this
            }
            world.Point("after");
            ++after;
        });
    }
    world.CrashIn(process, 25);
    world.Direct(seconds{1}, UINT64_MAX);
    EXPECT_EQ(destroyed, 3);
    EXPECT_EQ(after, 0);
    EXPECT_EQ(world.Alive(process), 0);
    EXPECT_EQ(world.crashes(), 1u);
}

TEST(World, AFrozenProcessDoesNotRunAndComesBack) {
    World world(4, false);
    Process& frozen = world.NewProcess("frozen");
    Virtual longest{};
    world.Spawn(frozen, "f", [&] {
        Virtual before = world.now();
        for (int i = 0; i < 50; ++i) {
            world.Point("step");
            longest = std::max(longest, world.now() - before);
            before = world.now();
        }
    });
    world.PauseIn(frozen, 10, seconds{60});
    world.Direct(seconds{100}, UINT64_MAX);
    EXPECT_GE(longest, seconds{60});
    EXPECT_EQ(world.Alive(frozen), 0);
}

TEST(World, ALockHeldAcrossAPointDoesNotBlockTheBaton) {
    World world(5, false);
    Process& process = world.NewProcess("p");
    std::mutex mutex;
    int inside = 0, most = 0, done = 0;
    for (int i = 0; i < 4; ++i) {
        world.Spawn(process, "f", [&] {
            for (int round = 0; round < 10; ++round) {
                std::lock_guard guard(mutex);
                most = std::max(most, ++inside);
                world.Point("under the lock");
                --inside;
            }
            ++done;
        });
    }
    world.Direct(seconds{10}, UINT64_MAX);
    EXPECT_EQ(done, 4);
    EXPECT_EQ(most, 1);
}

TEST(SimClock, RunsAtItsOwnRateAndStepsOnlyOnTheWall) {
    World world(6, false);
    SimClock clock(world, 1.05);
    base::Instant before = clock.Now();
    world.Direct(world.now() + seconds{100}, UINT64_MAX);
    auto passed = clock.Now() - before;
    EXPECT_NEAR(std::chrono::duration<double>(passed).count(), 105, 0.1);
    Time wall = clock.WallTime();
    clock.Step(std::chrono::hours{-1});
    EXPECT_LT(clock.WallTime(), wall - std::chrono::minutes{59});
    EXPECT_GE(clock.Now(), before + passed);
}

TEST(SimWake, AHintWakesTheSleeperAndIsDeliveredOnItsFiber) {
    World world(8, false);
    Faults faults(world);
    faults.Heal();
    Post post(world, faults);
    SimWake sender(post), receiver(post);
    int heard = 0;
    receiver.Subscribe([&](const wake::Hint&) { ++heard; });
    Process& process = world.NewProcess("p");
    Virtual woke{};
    world.Spawn(process, "receiver", [&] {
        receiver.SleepUntil(seconds{50});
        receiver.Deliver();
        woke = world.now();
    });
    world.Direct(seconds{1}, UINT64_MAX);
    wake::Hint hint{};
    sender.Signal({&hint, 1});
    world.Direct(seconds{60}, UINT64_MAX);
    EXPECT_EQ(heard, 1);
    EXPECT_LT(woke, seconds{2});
}

}  // namespace
}  // namespace stint::sim
