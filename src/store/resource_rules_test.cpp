#include "store/resource_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/limits.h"
#include "store/resource_book.h"

namespace stint::store {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): units

const Time kNow{std::chrono::seconds{1'000'000}};

BreakerEvidence By(TaskId task, Time at = kNow) {
    return {.at = at, .task = task, .type = "t", .node = NodeId(1), .message = "refused"};
}

TEST(Breaker, OpensTriesAndCloses) {
    ResourceSettings settings{.name = "db"};
    ResourceState state;
    Report(settings, state, By(TaskId(1)), {});
    EXPECT_EQ(BreakerOf(state, kNow), BreakerState::kOpen);
    EXPECT_TRUE(SupplyOf(settings, state, 0, kNow).closed);
    EXPECT_EQ(SupplyOf(settings, state, 0, kNow).until, kNow + 10s);
    // What had started before says it too: it stays as long.
    Report(settings, state, By(TaskId(2), kNow + 1s), {});
    EXPECT_EQ(state.closed_until, kNow + 10s);
    Time then = kNow + 10s;
    EXPECT_EQ(SupplyOf(settings, state, 0, then).starts, 1);
    Start(settings, state, TaskId(3), then);
    EXPECT_EQ(SupplyOf(settings, state, 0, then).starts, 0);
    Report(settings, state, By(TaskId(3), then), {});
    EXPECT_EQ(state.closed_until, then + 20s);
    then += 20s;
    Start(settings, state, TaskId(4), then);
    // It was cut off: somebody else tries.
    End(state, TaskId(4), false);
    EXPECT_EQ(SupplyOf(settings, state, 0, then).starts, 1);
    Start(settings, state, TaskId(5), then);
    End(state, TaskId(5), true);
    EXPECT_EQ(BreakerOf(state, then), BreakerState::kClosed);
    EXPECT_EQ(state.failures, 0);
    EXPECT_EQ(state.evidence.size(), 3U);
}

TEST(Breaker, WaitsDoubleUpToTheMost) {
    ResourceSettings settings{.name = "db"};
    settings.breaker = {.failures = 1, .open_for = 1s, .open_at_most = 3s};
    ResourceState state;
    Time now = kNow;
    Report(settings, state, By(TaskId(1), now), {});
    for (Duration expected : {Duration(2s), Duration(3s), Duration(3s)}) {
        now = *state.closed_until;
        Start(settings, state, TaskId(2), now);
        Report(settings, state, By(TaskId(2), now), {});
        EXPECT_EQ(*state.closed_until - now, expected);
    }
}

TEST(Breaker, ATrialIsTheOnlyOneHoweverLongItTakes) {
    ResourceSettings settings{.name = "db"};
    ResourceState state;
    Report(settings, state, By(TaskId(1)), {});
    Start(settings, state, TaskId(2), kNow + 10s);
    EXPECT_EQ(SupplyOf(settings, state, 0, kNow + 1h).starts, 0);
    // One that had started before: evidence, no more.
    Report(settings, state, By(TaskId(3), kNow + 1h), {});
    EXPECT_EQ(state.trial, TaskId(2));
    EXPECT_EQ(state.evidence.size(), 2U);
    End(state, TaskId(3), true);
    EXPECT_EQ(BreakerOf(state, kNow + 1h), BreakerState::kHalfOpen);
    End(state, TaskId(2), true);
    EXPECT_EQ(BreakerOf(state, kNow + 1h), BreakerState::kClosed);
}

TEST(Breaker, ATrialThatHoldsItNoMoreIsNotWaitedFor) {
    ResourceBook book;
    ASSERT_TRUE(book.Change({.name = "db", .capacity = {{5}}}, "ann", kNow).has_value());
    book.Report("db", By(TaskId(1)), {});
    const Time then = kNow + 10s;
    book.Take(TaskId(2), {{"db", 1}}, then);
    auto starts = [&] {
        std::map<std::string, Supply> supplies;
        book.Supplies({{"db", 1}}, then, supplies);
        return supplies.at("db").starts;
    };
    EXPECT_EQ(starts(), 0);
    book.entries.at("db").holders.clear();  // as if its slot were lost
    EXPECT_EQ(starts(), 1);
}

// Times that were read before others wrote theirs: no more starts than the period has tokens.
TEST(Rate, NobodyCountsTheSameTimeTwice) {
    ResourceSettings settings{.name = "api", .rate = Rate{.count = 10, .period = 1s, .burst = 1}};
    ResourceState state;
    int starts = 0;
    for (int ms = 0; ms < 10'000; ++ms) {
        // Every other one has read the clock half a second ago.
        Time now = kNow + std::chrono::milliseconds(ms) - (ms % 2 == 0 ? 500ms : 0ms);
        if (SupplyOf(settings, state, 0, now).starts == 0) continue;
        Start(settings, state, TaskId(1), now);
        ++starts;
    }
    EXPECT_LE(starts, 102);
    EXPECT_GE(starts, 90);
}

TEST(Rate, AClockThatIsSetBackStopsNothing) {
    ResourceSettings settings{.name = "api", .rate = Rate{.count = 60, .period = 1min, .burst = 1}};
    ResourceState state;
    Start(settings, state, TaskId(1), kNow);
    Time now = kNow - 1h;
    int starts = 0;
    for (int s = 0; s < 60; ++s, now += 1s) {
        if (SupplyOf(settings, state, 0, now).starts == 0) continue;
        Start(settings, state, TaskId(1), now);
        ++starts;
    }
    EXPECT_GE(starts, 58);
    EXPECT_LE(starts, 61);
}

TEST(Rate, IsABucket) {
    ResourceSettings settings{.name = "api", .rate = Rate{.count = 10, .period = 1s, .burst = 5}};
    ResourceState state;
    EXPECT_EQ(SupplyOf(settings, state, 0, kNow).starts, 5);
    for (int i = 0; i < 5; ++i) Start(settings, state, TaskId(1), kNow);
    Supply none = SupplyOf(settings, state, 0, kNow);
    EXPECT_EQ(none.starts, 0);
    EXPECT_EQ(none.until, kNow + 100ms);
    EXPECT_EQ(SupplyOf(settings, state, 0, *none.until).starts, 1);
    EXPECT_EQ(SupplyOf(settings, state, 0, kNow + 1h).starts, 5);
}

TEST(ResourceTexts, ReadBackAsWritten) {
    ResourceSettings settings{.name = "a", .capacity = 3, .rate = Rate{5, 1min, 2}};
    settings.changed_by = "ann";
    settings.changed_at = kNow;
    ResourceSettings read = SettingsOf("a", SettingsText(settings));
    EXPECT_EQ(read.capacity, settings.capacity);
    EXPECT_EQ(read.rate, settings.rate);
    EXPECT_EQ(read.breaker, settings.breaker);
    EXPECT_EQ(read.changed_at, settings.changed_at);
    ResourceState state;
    EXPECT_EQ(StateText(state), "");
    Report(settings, state, By(TaskId(7)), 1h);
    Start(settings, state, TaskId(8), kNow);
    EXPECT_TRUE(StateOf(StateText(state)) == state);
    QueueOrder order{.queue = "q", .fair = true, .weights = {{TenantId(2), 3}}, .aging = 5s};
    EXPECT_EQ(OrderOf("q", OrderText(order)), order);
}

TEST(ResourceBook, OneOfAPatternIsThereWhileItIsUsed) {
    ResourceBook book;
    ASSERT_TRUE(book.Change({.name = "host:*", .capacity = {{1}}}, "ann", kNow).has_value());
    ASSERT_TRUE(book.Change({.name = "host:a*", .capacity = {{2}}}, "ann", kNow).has_value());
    EXPECT_EQ(PatternFor(book.entries, "host:abc"), "host:a*");
    EXPECT_EQ(PatternFor(book.entries, "host:b"), "host:*");
    EXPECT_EQ(PatternFor(book.entries, "other"), "");
    book.Take(TaskId(1), {{"host:b", 1}, {"other", 1}}, kNow);
    EXPECT_EQ(book.Record("host:b", kNow)->held, 1);
    EXPECT_FALSE(book.Record("other", kNow).has_value());
    EXPECT_TRUE(book.Idle({}, kNow, 9).empty());
    book.Release(TaskId(1), ResourceBook::Outcome::kWorked);
    EXPECT_TRUE(book.Idle({"host:b"}, kNow, 9).empty());
    EXPECT_EQ(book.Idle({}, kNow, 9), std::vector<std::string>{"host:b"});
    book.Forget("host:b");
    EXPECT_FALSE(book.Record("host:b", kNow).has_value());
    EXPECT_EQ(book.NeedsOf({}, "q", "t"), Needs{});
    ASSERT_TRUE(book.Change({.name = "queue:*", .capacity = {{1}}}, "ann", kNow).has_value());
    EXPECT_EQ(book.NeedsOf({}, "Q", "t"), (Needs{{"queue:q", 1}}));
    // Of a task that was accepted with it: once.
    EXPECT_EQ(book.NeedsOf({{"queue:q", 1}}, "Q", "t"), (Needs{{"queue:q", 1}}));
    EXPECT_EQ(LeadsOf(LeadsText({{TenantId(3), 0.25}})), (Leads{{TenantId(3), 0.25}}));
    EXPECT_EQ(LeadsOf(""), Leads{});
}

TEST(ResourceBook, HasNoMoreNamesOfPatternsThanTheLimit) {
    ResourceBook book;
    ASSERT_TRUE(book.Change({.name = "host:*", .capacity = {{1}}}, "ann", kNow).has_value());
    for (int i = 0; i < limits::kPatternNames; ++i) {
        EXPECT_FALSE(book.Crowded());
        std::string name = "host:" + std::to_string(i);
        book.entries[name].resource.settings.name = name;
        book.entries[name].resource.pattern = "host:*";
    }
    EXPECT_TRUE(book.Crowded());
    std::map<std::string, Supply> supplies;
    book.Supplies({{"host:7", 1}, {"host:new", 1}}, kNow, supplies);
    EXPECT_EQ(supplies.at("host:7").units, 1);
    EXPECT_EQ(supplies.at("host:new").units, 0);
    EXPECT_FALSE(supplies.at("host:new").capacity.has_value());
}

TEST(ResourceBook, HasNoMoreNamesOfReportsThanTheLimit) {
    ResourceBook book;
    ASSERT_TRUE(book.Change({.name = "own", .capacity = {{1}}}, "ann", kNow).has_value());
    BreakerEvidence evidence{.at = kNow, .message = "down"};
    for (int i = 0; i < limits::kPatternNames; ++i) {
        std::string name = "host-" + std::to_string(i);
        book.entries[name].resource.settings.name = name;
    }
    EXPECT_TRUE(book.Crowded());
    book.Report("host-new", evidence, {});
    EXPECT_FALSE(book.entries.contains("host-new"));
    book.Report("own", evidence, {});
    EXPECT_EQ(book.entries.at("own").resource.state.evidence.size(), 1u);
    book.Forget("host-7");
    book.Report("host-new", evidence, {});
    EXPECT_TRUE(book.entries.contains("host-new"));
}

}  // namespace
}  // namespace stint::store
