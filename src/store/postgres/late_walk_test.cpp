#include "store/postgres/late_walk.h"

#include <gmock/gmock.h>

#include <utility>

namespace stint::store::pg {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

class LateWalkTest : public ::testing::Test {
protected:
    // All pieces, each of which takes so long; how many there were.
    int WalkAll(base::Instant::duration cost) {
        int pieces = 0;
        for (; auto piece = walk_.Next(now_); ++pieces) walk_.Passed(*piece, cost);
        return pieces;
    }

    LateWalk walk_;
    base::Instant now_ = base::Instant{} + seconds{1000};
};

TEST_F(LateWalkTest, GoesFromWhereTheMarksWereToWhereTheyAre) {
    walk_.Begin(now_, {{3, 70}, {5, 40}}, {{3, 170}, {4, 20}, {5, 40}});
    auto piece = walk_.Next(now_);
    ASSERT_TRUE(piece);
    EXPECT_THAT(piece->lanes, UnorderedElementsAre(3, 4)) << "lane 5 has not moved";
    for (std::size_t i = 0; i < 2; ++i) {
        bool three = piece->lanes[i] == 3;
        EXPECT_EQ(piece->low[i], three ? 70 : 0) << "of lane 4 nothing was known";
        EXPECT_EQ(piece->high[i], three ? 170 : 20);
    }
    walk_.Passed(*piece, milliseconds{1});
    EXPECT_FALSE(walk_.Next(now_));
}

TEST_F(LateWalkTest, InPiecesNothingIsLeftOut) {
    walk_.Begin(now_, {{3, 70}}, {{3, 1'000'000}, {4, 350'000}});
    std::int64_t three = 70, four = 0;
    int pieces = 0;
    while (auto piece = walk_.Next(now_)) {
        ++pieces;
        for (std::size_t i = 0; i < piece->lanes.size(); ++i) {
            std::int64_t& at = piece->lanes[i] == 3 ? three : four;
            EXPECT_EQ(piece->low[i], at);
            at = piece->high[i];
        }
        walk_.Passed(*piece, milliseconds{20});
    }
    EXPECT_EQ(three, 1'000'000);
    EXPECT_EQ(four, 350'000);
    EXPECT_EQ(pieces, 10);
}

TEST_F(LateWalkTest, PiecesAreAsLargeAsTheTimeTheyTakeAllows) {
    walk_.Begin(now_, {}, {{3, 10'000'000}});
    EXPECT_LT(WalkAll(milliseconds{1}), 15);
    walk_.Begin(now_, {}, {{3, 300'000'000}});
    EXPECT_GT(WalkAll(seconds{1}), 1000);
}

TEST_F(LateWalkTest, ManyShortPiecesMakeNoneThatIsTooLong) {
    walk_.Begin(now_, {}, {{3, 1'000'000'000}});
    WalkAll(milliseconds{1});
    walk_.Begin(now_, {}, {{3, 1'000'000'000}});
    EXPECT_LE(walk_.Next(now_)->high[0], 1'000'000);
}

TEST_F(LateWalkTest, OnABusyLaneOneBeginsEveryFiveSecondsOrMoreRarelyWhenItIsDear) {
    walk_.Begin(now_, {}, {{3, 10}});
    WalkAll(milliseconds{20});
    EXPECT_FALSE(walk_.MayBegin(now_ + milliseconds{4900}, false));
    EXPECT_TRUE(walk_.MayBegin(now_ + seconds{5}, false));
    EXPECT_TRUE(walk_.MayBegin(now_ + milliseconds{100}, true)) << "nothing else to do";
    walk_.Begin(now_, {}, {{3, 10}});
    WalkAll(seconds{2});
    EXPECT_FALSE(walk_.MayBegin(now_ + seconds{9}, true));
    EXPECT_TRUE(walk_.MayBegin(now_ + seconds{10}, false));
}

TEST_F(LateWalkTest, AfterALongOneTheyAreAsShortAsBefore) {
    // Half of what a fifth of the time can look at comes anew; before that, ten minutes of it.
    constexpr auto kPerPlace = std::chrono::microseconds{5};
    constexpr std::int64_t kPlacesPerSecond = 20'000;
    std::int64_t from = 0, last = 0;
    for (base::Instant end = now_ + std::chrono::hours{1}; now_ < end; now_ += milliseconds{10}) {
        if (walk_.MayBegin(now_, false)) {
            auto upto = (now_ - base::Instant{}) / milliseconds{1} * kPlacesPerSecond / 1000;
            walk_.Begin(now_, {{3, from}}, {{3, upto}});
            last = upto - std::exchange(from, upto);
        }
        if (!walk_.MayGoOn(now_, false)) continue;
        if (auto piece = walk_.Next(now_)) {
            walk_.Passed(*piece, (piece->high[0] - piece->low[0]) * kPerPlace);
        }
    }
    EXPECT_LT(last, 10 * kPlacesPerSecond);
}

TEST_F(LateWalkTest, BetweenPiecesClaimsHaveTheirTime) {
    walk_.Begin(now_, {}, {{3, 1'000'000}});
    walk_.Passed(*walk_.Next(now_), milliseconds{100});
    EXPECT_FALSE(walk_.MayGoOn(now_ + milliseconds{499}, false));
    EXPECT_TRUE(walk_.MayGoOn(now_ + milliseconds{500}, false));
    EXPECT_TRUE(walk_.MayGoOn(now_ + milliseconds{101}, true));
}

TEST_F(LateWalkTest, APieceThatFailsIsTriedAgainLaterAndSmaller) {
    walk_.Begin(now_, {}, {{3, 1'000'000}});
    auto piece = walk_.Next(now_);
    EXPECT_FALSE(walk_.Next(now_)) << "somebody is at it";
    walk_.Failed(seconds{30});
    EXPECT_FALSE(walk_.MayGoOn(now_ + seconds{149}, true));
    EXPECT_TRUE(walk_.MayGoOn(now_ + seconds{150}, true));
    auto again = walk_.Next(now_);
    EXPECT_THAT(again->low, ElementsAre(0));
    EXPECT_EQ(again->high[0], piece->high[0] / 4);
}

}  // namespace
}  // namespace stint::store::pg
