// The demos' verdicts: each promise, when it is broken, is the end of "ok".
#include "cli/demo_verdict.h"

#include <gtest/gtest.h>

#include <functional>

namespace stint::cli {
namespace {

using namespace std::chrono_literals;

Tally Good(std::size_t tasks) {
    Tally tally;
    tally.asked = tally.accepted = tally.completed = tasks;
    tally.recovered = 1;
    return tally;
}

template <class Verdict>
void ExpectBroken(const Verdict& good, const std::vector<std::function<void(Verdict&)>>& ways) {
    EXPECT_TRUE(good.good());
    for (std::size_t i = 0; i < ways.size(); ++i) {
        Verdict broken = good;
        ways[i](broken);
        EXPECT_FALSE(broken.good()) << "way " << i;
    }
}

TEST(DemoVerdict, ATallyIsGoodOnlyIfAllAreCompleteOnce) {
    ExpectBroken<Tally>(
        Good(3),
        {[](Tally& t) { t.accepted = 2; },
         [](Tally& t) { t.completed = 2; },
         [](Tally& t) { t.lost = 1; },
         [](Tally& t) { t.unfinished = 1; },
         [](Tally& t) { t.doubled = 1; },
         [](Tally& t) { t = Tally{}; }}
    );
}

TEST(DemoVerdict, AThrottleHoldsExactlyAndAWorkerWasKilled) {
    ThrottleVerdict good{.tally = Good(9), .most = 3, .could = 3, .killed = true, .broken = {}};
    ExpectBroken<ThrottleVerdict>(
        good,
        {[](ThrottleVerdict& v) { v.tally.completed = 8; },
         [](ThrottleVerdict& v) { v.most = 4; },
         [](ThrottleVerdict& v) { v.most = 2; },
         [](ThrottleVerdict& v) { v.killed = false; },
         [](ThrottleVerdict& v) { v.tally.recovered = 0; },
         [](ThrottleVerdict& v) { v.broken = "what is held (I6)"; }}
    );
}

TEST(DemoVerdict, ThereIsTimeForAKill) {
    EXPECT_EQ(LengthOfEach(10, 100, 50ms), 1500ms) << "all at once";
    EXPECT_EQ(LengthOfEach(60, 2, 50ms), 50ms);
    EXPECT_EQ(LengthOfEach(60, 6, 50ms), 150ms);
}

TEST(DemoVerdict, NoMoreCanHoldThanThereAreTasks) {
    EXPECT_EQ(CouldHold(3, 2, 8, 100), 3u);
    EXPECT_EQ(CouldHold(30, 2, 8, 100), 16u);
    EXPECT_EQ(CouldHold(30, 2, 8, 10), 10u);
}

TEST(DemoVerdict, AFanoutGoesOnOnceWithTheRightSum) {
    FanoutVerdict good{
        .children = Good(9),
        .parent = Good(1),
        .wanted = 9,
        .resumed = 1,
        .sum = true,
        .killed = true};
    ExpectBroken<FanoutVerdict>(
        good,
        {[](FanoutVerdict& v) { v.children.lost = 1; },
         [](FanoutVerdict& v) { v.parent.doubled = 1; },
         [](FanoutVerdict& v) { v.wanted = 10; },
         [](FanoutVerdict& v) { v.resumed = 0; },
         [](FanoutVerdict& v) { v.resumed = 2; },
         [](FanoutVerdict& v) { v.sum = false; },
         [](FanoutVerdict& v) { v.killed = false; },
         [](FanoutVerdict& v) { v.children.recovered = 0; }}
    );
}

model::ScheduleRun RunAt(int second, std::int64_t task) {
    model::ScheduleRun run;
    run.instant = Time(std::chrono::seconds(second));
    if (task != 0) run.task = TaskId(task);
    return run;
}

ScheduleVerdict Judged(const std::vector<model::ScheduleRun>& runs, bool killed = true) {
    ScheduleVerdict verdict;
    verdict.wanted = 3;
    verdict.killed = killed;
    verdict.Add(runs, 1s);
    verdict.submitted = verdict.tasks;
    verdict.tally = Good(verdict.tasks);
    return verdict;
}

TEST(DemoVerdict, AScheduleHasOneTaskPerInstantAndNoGap) {
    EXPECT_TRUE(Judged({RunAt(1, 10), RunAt(2, 11), RunAt(3, 12)}).good());
    EXPECT_FALSE(Judged({RunAt(1, 10), RunAt(2, 11), RunAt(3, 12)}, false).good());
    EXPECT_FALSE(Judged({RunAt(1, 10), RunAt(2, 11), RunAt(4, 12)}).good()) << "a gap";
    EXPECT_FALSE(Judged({RunAt(1, 10), RunAt(2, 11)}).good()) << "too few";
    EXPECT_FALSE(Judged({RunAt(1, 10), RunAt(2, 11), RunAt(3, 12), RunAt(3, 13)}).good());
    EXPECT_FALSE(Judged({RunAt(1, 10), RunAt(2, 11), RunAt(3, 11)}).good()) << "one task twice";
    EXPECT_FALSE(Judged({RunAt(1, 10), RunAt(2, 11), RunAt(3, 0)}).good()) << "one skipped";
    ScheduleVerdict more = Judged({RunAt(1, 10), RunAt(2, 11), RunAt(3, 12)});
    ++more.submitted;
    EXPECT_FALSE(more.good()) << "a task that no run names";
}

}  // namespace
}  // namespace stint::cli
