#include "store/postgres/ticks.h"

#include <gmock/gmock.h>

namespace stint::store::pg {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class TicksTest : public ::testing::Test {
protected:
    // A claim that was sent with these marks and had the transaction `own`.
    void Tick(std::int64_t mark, std::uint64_t own, std::vector<std::uint64_t> running = {}) {
        std::uint64_t question = ticks_.Ask({{3, mark}});
        ticks_.Answer(question, {.next = own, .running = std::move(running), .own = own});
    }
    // What is owed so far is looked at by somebody.
    void Settle() {
        if (ticks_.owed()) ticks_.TakeOwed();
    }

    Ticks ticks_;
};

TEST_F(TicksTest, WhileNothingMovesAndNothingEndsThereIsNothingToLookFor) {
    Tick(10, 100);
    Tick(10, 101, {90});
    Tick(10, 102, {90});
    EXPECT_FALSE(ticks_.owed());
}

TEST_F(TicksTest, MarksThatMovedMayHavePassedOverWhatBeganAndEndedMeanwhile) {
    Tick(10, 100);
    Tick(20, 105);
    ASSERT_TRUE(ticks_.owed());
    EXPECT_THAT(ticks_.TakeOwed(), ElementsAre(Pair(3, 10)));
    EXPECT_FALSE(ticks_.owed());
    Tick(30, 110);
    EXPECT_THAT(ticks_.TakeOwed(), ElementsAre(Pair(3, 20)));
}

TEST_F(TicksTest, ATransactionThatHasEndedIsLookedForFromBeforeItBegan) {
    Tick(10, 100);
    Tick(20, 200);
    Tick(30, 300, {205});
    Tick(40, 400, {205});
    Settle();
    Tick(40, 401, {205});
    EXPECT_FALSE(ticks_.owed()) << "it goes on";
    Tick(40, 402);
    EXPECT_THAT(ticks_.TakeOwed(), ElementsAre(Pair(3, 20)));
}

TEST_F(TicksTest, WhatIsNotListedBecauseNothingAboveItHasEndedIsWatchedToo) {
    Tick(10, 100);
    // 150 and 151 have numbers, and perhaps run; who asks is 152.
    ticks_.Answer(ticks_.Ask({{3, 20}}), {.next = 150, .running = {}, .own = 152});
    Settle();
    ticks_.Answer(ticks_.Ask({{3, 20}}), {.next = 150, .running = {}, .own = 152});
    EXPECT_FALSE(ticks_.owed()) << "none of them is known to have ended";
    Tick(20, 160, {150});
    EXPECT_THAT(ticks_.TakeOwed(), ElementsAre(Pair(3, 10))) << "151 has, and began after 100";
    Tick(20, 170);
    EXPECT_THAT(ticks_.TakeOwed(), ElementsAre(Pair(3, 10)));
}

TEST_F(TicksTest, WhatBeganBeforeAllTicksIsLookedForFromTheBegin) {
    Tick(10, 100, {50});
    Tick(10, 101);
    ASSERT_TRUE(ticks_.owed());
    EXPECT_THAT(ticks_.TakeOwed(), IsEmpty());
}

TEST_F(TicksTest, AnAnswerWithoutANumberOfItsOwnIsNoTick) {
    Tick(10, 100);
    ticks_.Answer(ticks_.Ask({{3, 20}}), {.next = 150, .running = {120}});
    Settle();
    // Had it been one, what is above 150 would count as begun after the mark was at 20.
    Tick(20, 200, {160});
    Settle();
    Tick(20, 201);
    EXPECT_THAT(ticks_.TakeOwed(), ElementsAre(Pair(3, 10)));
}

TEST_F(TicksTest, AMillionSavepointsAreNotWatched) {
    Tick(10, 100);
    ticks_.Answer(ticks_.Ask({{3, 20}}), {.next = 150, .running = {}, .own = 1'000'150});
    EXPECT_THAT(ticks_.TakeOwed(), ElementsAre(Pair(3, 10)));
    EXPECT_TRUE(ticks_.Wants({{3, 20}})) << "it was no tick";
}

TEST_F(TicksTest, AnAnswerToAnEarlierQuestionIsNotTaken) {
    Tick(10, 100);
    std::uint64_t early = ticks_.Ask({{3, 20}});
    std::uint64_t late = ticks_.Ask({{3, 30}});
    ticks_.Answer(early, {.next = 150, .running = {}, .own = 150});
    EXPECT_FALSE(ticks_.owed());
    ticks_.Answer(late, {.next = 160, .running = {}, .own = 160});
    EXPECT_TRUE(ticks_.owed());
}

TEST_F(TicksTest, AfterAnHourTheBeginningIsStillKnown) {
    Tick(10, 100);
    for (std::uint64_t i = 1; i <= 20'000; ++i) {
        Tick(10 + static_cast<std::int64_t>(i), 100 + 10 * i, {105});
        Settle();
    }
    Tick(20'010, 300'000);
    EXPECT_THAT(ticks_.TakeOwed(), ElementsAre(Pair(3, 10)));
}

TEST_F(TicksTest, WhatIsReadyAgainBelowIsLookedForBelow) {
    Tick(10, 100);
    Tick(20, 200);
    Settle();
    Tick(20, 300, {250});
    ticks_.Lower(3, 6);
    ticks_.Lower(4, 1);
    Tick(20, 301);
    EXPECT_THAT(ticks_.TakeOwed(), ElementsAre(Pair(3, 5))) << "250 may hold it";
}

TEST_F(TicksTest, AnIdleOneAsksOnlyWhereItCanLearnSomething) {
    EXPECT_FALSE(ticks_.Wants({}));
    Tick(10, 100);
    EXPECT_FALSE(ticks_.Wants({{3, 10}}));
    EXPECT_TRUE(ticks_.Wants({{3, 11}}));
    Tick(10, 101, {90});
    EXPECT_TRUE(ticks_.Wants({{3, 10}})) << "it began before all that is known";
    Tick(10, 102);
    Tick(10, 110, {105});
    EXPECT_FALSE(ticks_.Wants({{3, 10}})) << "nothing was passed over since it began";
}

TEST(InProgress, IsReadAsTheServerWritesIt) {
    InProgress some = ParseInProgress("10:20:10,14,15");
    EXPECT_EQ(some.next, 20u);
    EXPECT_THAT(some.running, ElementsAre(10, 14, 15));
    InProgress none = ParseInProgress("4294967296000:4294967296000:");
    EXPECT_EQ(none.next, 4294967296000u);
    EXPECT_THAT(none.running, IsEmpty());
}

}  // namespace
}  // namespace stint::store::pg
