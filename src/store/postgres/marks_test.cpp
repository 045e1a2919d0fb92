#include "store/postgres/marks.h"

#include <gmock/gmock.h>

namespace stint::store::pg {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

using Depth = Marks::Depth;

class MarksTest : public ::testing::Test {
protected:
    // Everything was looked at, which took so long.
    void Everywhere(std::chrono::nanoseconds cost = milliseconds{0}, bool more = true) {
        marks_.Looked({}, now_, now_ + cost, more);
    }
    void Lower(int lane, std::int64_t position) {
        std::pair<int, std::int64_t> place{lane, position};
        marks_.Lower({&place, 1});
    }
    // Time goes on, with somebody looking.
    void Pass(milliseconds time) {
        for (; time.count() > 0; time -= milliseconds{50}) {
            now_ += milliseconds{50};
            marks_.Current(now_);
        }
    }

    // A claim came back short, and looking everywhere is dear.
    Marks::Snapshot OwedFrom70To170() {
        Everywhere(seconds{1});
        marks_.Advance(3, 70);
        Pass(milliseconds{600});
        marks_.Advance(3, 170);
        marks_.Owe();
        return marks_.Current(now_);
    }

    Marks marks_{seconds{10}};
    base::Instant now_ = base::Instant{} + seconds{1000};
};

TEST_F(MarksTest, ALaneIsLookedAtBehindWhatWasTaken) {
    Everywhere();
    marks_.Advance(3, 70);
    marks_.Advance(3, 50);
    Marks::Snapshot current = marks_.Current(now_);
    EXPECT_THAT(current.lanes, ElementsAre(3));
    EXPECT_THAT(current.positions, ElementsAre(70));
}

TEST_F(MarksTest, SomethingReadyBelowLowersTheMark) {
    Everywhere();
    marks_.Advance(3, 70);
    Lower(3, 60);
    Lower(4, 1);
    Lower(3, 65);
    EXPECT_THAT(marks_.Current(now_).positions, ElementsAre(59));
}

TEST_F(MarksTest, WhatIsLoweredDuringAClaimStaysLow) {
    Everywhere();
    marks_.Advance(3, 70);
    Marks::Snapshot look = marks_.Current(now_);
    Lower(3, 60);
    marks_.Looked(look, now_, now_, true);
    marks_.Advance(3, 80);
    marks_.LowerAgain(look);
    EXPECT_THAT(marks_.Current(now_).positions, ElementsAre(59));
}

TEST_F(MarksTest, WhenTooMuchWasLoweredDuringAClaimEverythingIsLookedAt) {
    Everywhere();
    marks_.Advance(3, 70);
    Marks::Snapshot look = marks_.Current(now_);
    for (int i = 0; i < 1000; ++i) Lower(3 + i, 60);
    marks_.Advance(3, 80);
    marks_.LowerAgain(look);
    Marks::Snapshot all = marks_.Current(now_);
    EXPECT_TRUE(all.everywhere());
    marks_.Looked(all, now_, now_, false);
    EXPECT_FALSE(marks_.Current(now_).everywhere());
}

TEST_F(MarksTest, TheHeadsOfAnyNumberOfLanesAreNotLowerings) {
    Everywhere(seconds{1});
    marks_.Advance(3, 70);
    Marks::Snapshot look = marks_.Current(now_);
    std::vector<std::pair<int, std::int64_t>> heads;
    for (int lane = 0; lane < 1000; ++lane) heads.emplace_back(lane, 50);
    marks_.SetHeads(heads);
    marks_.Advance(3, 90);
    marks_.LowerAgain(look);
    Marks::Snapshot next = marks_.Current(now_);
    EXPECT_EQ(next.depth, Depth::kMarks);
    for (std::size_t i = 0; i < next.lanes.size(); ++i) {
        EXPECT_EQ(next.positions[i], next.lanes[i] == 3 ? 90 : 49);
    }
}

TEST_F(MarksTest, ALookDoesNotRaiseWhatAnotherHasLoweredMeanwhile) {
    Everywhere(seconds{1});
    marks_.Advance(3, 70);
    Pass(milliseconds{600});
    marks_.Owe();
    Marks::Snapshot look = marks_.Current(now_);
    ASSERT_EQ(look.depth, Depth::kMomentAgo);
    Everywhere(seconds{1});
    marks_.Advance(3, 20);
    marks_.Looked(look, now_, now_, true);
    EXPECT_THAT(marks_.Current(now_).positions, ElementsAre(20));
}

TEST_F(MarksTest, NowAndThenEverythingIsLookedAt) {
    Everywhere();
    marks_.Advance(3, 70);
    EXPECT_THAT(marks_.Current(now_ + seconds{9}).lanes, ElementsAre(3));
    EXPECT_TRUE(marks_.Current(now_ + seconds{10}).everywhere());
}

TEST_F(MarksTest, NotEvenThenWhenItWouldTakeAllTheTime) {
    Everywhere(seconds{2});
    marks_.Advance(3, 70);
    EXPECT_FALSE(marks_.Current(now_ + seconds{99}).everywhere());
    EXPECT_TRUE(marks_.Current(now_ + seconds{100}).everywhere());
}

TEST_F(MarksTest, WhileItIsCheapAClaimThatFoundNothingLooksEverywhereAtOnce) {
    EXPECT_FALSE(marks_.Deeper(now_, Depth::kEverywhere)) << "it did look everywhere";
    Everywhere(milliseconds{1});
    marks_.Advance(3, 70);
    auto deeper = marks_.Deeper(now_ + milliseconds{2}, Depth::kMarks);
    ASSERT_TRUE(deeper);
    EXPECT_TRUE(deeper->everywhere());
    EXPECT_TRUE(marks_.Idle(now_ + milliseconds{2}).everywhere());
}

TEST_F(MarksTest, WhenItIsDearItLooksWhereTheMarksWereAMomentAgo) {
    Everywhere(milliseconds{50});
    marks_.Advance(3, 70);
    Pass(milliseconds{600});
    marks_.Advance(3, 170);
    EXPECT_THAT(marks_.Current(now_).positions, ElementsAre(170));
    auto deeper = marks_.Deeper(now_, Depth::kMarks);
    ASSERT_TRUE(deeper);
    EXPECT_EQ(deeper->depth, Depth::kMomentAgo);
    EXPECT_THAT(deeper->positions, ElementsAre(70));
    EXPECT_THAT(marks_.Idle(now_).positions, ElementsAre(70));
    EXPECT_FALSE(marks_.Deeper(now_, Depth::kMomentAgo));
    Pass(milliseconds{2000});
    EXPECT_TRUE(marks_.Deeper(now_, Depth::kMarks)->everywhere()) << "a fiftieth of the time";
}

TEST_F(MarksTest, AfterAShortClaimOneOfTheNextLooksThere) {
    Marks::Snapshot look = OwedFrom70To170();
    EXPECT_EQ(look.depth, Depth::kMomentAgo);
    marks_.Looked(look, now_, now_ + milliseconds{10}, false);
    EXPECT_EQ(marks_.Current(now_).depth, Depth::kMarks);
    EXPECT_THAT(marks_.Current(now_).positions, ElementsAre(170)) << "all was seen";
    marks_.Owe();
    EXPECT_EQ(marks_.Current(now_ + milliseconds{190}).depth, Depth::kMarks) << "too dear";
    EXPECT_EQ(marks_.Current(now_ + milliseconds{200}).depth, Depth::kMomentAgo);
}

TEST_F(MarksTest, ALookThatIsFullGoesOnBehindWhatItTook) {
    Marks::Snapshot look = OwedFrom70To170();
    marks_.Looked(look, now_, now_, true);
    marks_.Advance(3, 90);
    EXPECT_THAT(marks_.Current(now_).positions, ElementsAre(90));
    Everywhere();
    EXPECT_TRUE(marks_.Current(now_).everywhere()) << "of nothing it is known that it is empty";
}

TEST_F(MarksTest, ALookThatSawTheEndLeavesThem) {
    EXPECT_TRUE(marks_.Advance(3, 70));
    EXPECT_FALSE(marks_.Advance(3, 50));
    Everywhere(milliseconds{0}, false);
    EXPECT_THAT(marks_.Current(now_).positions, ElementsAre(70));
}

TEST_F(MarksTest, AMomentAgoIsNeverAboveTheMarks) {
    Everywhere(seconds{1});
    marks_.Advance(3, 70);
    Pass(milliseconds{600});
    Everywhere(seconds{1});
    marks_.Advance(3, 20);
    EXPECT_THAT(marks_.Deeper(now_, Depth::kMarks)->positions, ElementsAre(20));
    Lower(3, 11);
    EXPECT_THAT(marks_.Deeper(now_, Depth::kMarks)->positions, ElementsAre(10));
}

}  // namespace
}  // namespace stint::store::pg
