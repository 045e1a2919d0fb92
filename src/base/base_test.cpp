#include <gtest/gtest.h>
#include <stint/ids.h>

#include <set>
#include <thread>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "base/planted_bug.h"
#include "base/random.h"
#include "base/result.h"
#include "base/test_point.h"

namespace stint::base {
namespace {

TEST(Ids, ParseAcceptsOnlyPositiveDecimals) {
    EXPECT_EQ(TaskId::Parse("17"), TaskId(17));
    EXPECT_EQ(TaskId::Parse("9223372036854775807")->value(), INT64_MAX);
    for (std::string_view bad : {"", "0", "-1", "1x", " 1", "9223372036854775808", "0x10"}) {
        EXPECT_EQ(TaskId::Parse(bad), std::nullopt) << bad;
    }
}

TEST(Ids, RandomIdsSurviveTheirText) {
    auto id = SystemRandom().MakeId<SessionId>();
    EXPECT_TRUE(id.valid());
    EXPECT_EQ(SessionId::Parse(id.ToString()), id);
    EXPECT_EQ(id.ToString().size(), 32u);
    EXPECT_EQ(SessionId::Parse("zz"), std::nullopt);
    EXPECT_EQ(SessionId::Parse(std::string(32, 'g')), std::nullopt);
}

TEST(Random, SameSeedSameNumbersOtherSeedOthers) {
    SeededRandom a(1), b(1), c(2);
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 1000; ++i) {
        auto number = a.Next();
        EXPECT_EQ(number, b.Next());
        EXPECT_NE(number, c.Next());
        seen.insert(number);
    }
    EXPECT_EQ(seen.size(), 1000u);
    for (int i = 0; i < 1000; ++i) {
        double fraction = a.Fraction();
        EXPECT_GE(fraction, 0.0);
        EXPECT_LT(fraction, 1.0);
    }
}

TEST(Random, SystemRandomDoesNotRepeat) {
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 10'000; ++i) seen.insert(SystemRandom().Next());
    EXPECT_EQ(seen.size(), 10'000u);
}

TEST(ManualClock, MovesOnlyWhenTold) {
    ManualClock clock;
    auto before = clock.Now();
    auto wall = clock.WallTime();
    EXPECT_EQ(clock.Now(), before);
    clock.Advance(std::chrono::seconds{3});
    EXPECT_EQ(clock.Now() - before, std::chrono::seconds{3});
    EXPECT_EQ(clock.WallTime() - wall, std::chrono::seconds{3});
}

TEST(ManualClock, WaiterReturnsWhenItsInstantIsReached) {
    ManualClock clock;
    std::mutex mutex;
    std::condition_variable_any wake;
    auto until = clock.Now() + std::chrono::hours{1};
    std::jthread waiter([&](std::stop_token stop) {
        std::unique_lock lock(mutex);
        while (clock.Now() < until) clock.WaitUntil(lock, wake, stop, until);
    });
    clock.Advance(std::chrono::hours{1});
    waiter.join();  // hangs, and the test times out, if the waiter does not see it
}

TEST(SystemClock, StopEndsAWait) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::jthread waiter([&](std::stop_token stop) {
        std::unique_lock lock(mutex);
        auto until = SystemClock().Now() + std::chrono::hours{1};
        while (!stop.stop_requested()) SystemClock().WaitUntil(lock, wake, stop, until);
    });
    waiter.request_stop();
    waiter.join();
}

TEST(Result, ValueThrowsTheError) {
    Result<int> good = 3;
    Result<int> bad = MakeError(Code::kConflict, "task {} is finished", 7);
    EXPECT_EQ(good.value(), 3);
    EXPECT_FALSE(bad);
    EXPECT_EQ(bad.error().message, "task 7 is finished");
    EXPECT_THROW(bad.value(), BadResult);
    Result<void> nothing = bad.error();
    EXPECT_THROW(nothing.value(), BadResult);
}

TEST(Result, EveryCodeHasAName) {
    std::set<std::string_view> names;
    for (int code = 0; code <= static_cast<int>(Code::kLimit); ++code) {
        names.insert(CodeName(static_cast<Code>(code)));
    }
    EXPECT_EQ(names.size(), static_cast<std::size_t>(Code::kLimit) + 1);
}

TEST(TestPoint, ReachesTheListenerOnlyWhileThereIsOne) {
    std::vector<std::string> reached;
    TestPoint("base.before");
    SetTestPointListener([&](std::string_view name) { reached.emplace_back(name); });
    TestPoint("base.during");
    SetTestPointListener({});
    TestPoint("base.after");
    EXPECT_EQ(reached, std::vector<std::string>{"base.during"});
}

TEST(Guarded, ThreadsDoNotLoseUpdates) {
    Guarded<int> count(0);
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < 1000; ++i) count.With([](int& n) { ++n; });
            });
        }
    }
    EXPECT_EQ(count.With([](int& n) { return n; }), 4000);
}

TEST(Logger, AThrowingSinkBreaksNothing) {
    Logger logger([](const LogRecord&) { throw 1; }, "base");
    logger.Error("disk is full");
    int seen = 0;
    Logger counting(
        [&](const LogRecord& record) {
            ++seen;
            EXPECT_EQ(record.room, "base");
            EXPECT_EQ(record.fields.at(0).second, "17");
        },
        "base"
    );
    counting.Info("claimed", {{"task", "17"}});
    EXPECT_EQ(seen, 1);
}

TEST(PlantedBug, NamesGoBothWays) {
    EXPECT_EQ(BugNamed(BugName(Bug::kNoFence)), Bug::kNoFence);
    EXPECT_EQ(BugNamed("no such bug"), Bug::kNone);
}

}  // namespace
}  // namespace stint::base
