#include "store/postgres/marks.h"

#include <gmock/gmock.h>

namespace stint::store::pg {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MarksTest : public ::testing::Test {
protected:
    Marks marks_{seconds{10}};
    base::Instant now_ = base::Instant{} + seconds{1000};
};

TEST_F(MarksTest, ALaneIsLookedAtBehindWhatWasTaken) {
    marks_.Rescanned(now_, now_);
    marks_.Advance(3, 70);
    marks_.Advance(3, 50);
    Marks::Snapshot current = marks_.Current(now_);
    EXPECT_THAT(current.lanes, ElementsAre(3));
    EXPECT_THAT(current.positions, ElementsAre(70));
}

TEST_F(MarksTest, SomethingReadyBelowLowersTheMark) {
    marks_.Rescanned(now_, now_);
    marks_.Advance(3, 70);
    marks_.Lower(3, 60);
    marks_.Lower(4, 1);
    marks_.Lower(3, 65);
    EXPECT_THAT(marks_.Current(now_).positions, ElementsAre(59));
}

TEST_F(MarksTest, NowAndThenEverythingIsLookedAt) {
    marks_.Rescanned(now_, now_);
    marks_.Advance(3, 70);
    EXPECT_THAT(marks_.Current(now_ + seconds{9}).lanes, ElementsAre(3));
    EXPECT_THAT(marks_.Current(now_ + seconds{10}).lanes, IsEmpty());
}

TEST_F(MarksTest, WhileItIsCheapAShortClaimLooksEverywhereAtOnce) {
    EXPECT_FALSE(marks_.RescanNow(now_));  // nothing was taken: the claim did look everywhere
    marks_.Rescanned(now_, now_ + milliseconds{1});
    marks_.Advance(3, 70);
    EXPECT_TRUE(marks_.RescanNow(now_ + milliseconds{2}));
}

TEST_F(MarksTest, WhenItIsDearItTakesAtMostATwentiethOfTheTime) {
    marks_.Rescanned(now_, now_ + milliseconds{50});
    marks_.Advance(3, 70);
    EXPECT_FALSE(marks_.RescanNow(now_ + milliseconds{900}));
    EXPECT_TRUE(marks_.RescanNow(now_ + milliseconds{1000}));
}

TEST_F(MarksTest, ALookThatDidNotGetToTheEndLeavesThem) {
    EXPECT_TRUE(marks_.Advance(3, 70));
    EXPECT_FALSE(marks_.Advance(3, 50));
    marks_.Rescanned(now_, now_, false);
    EXPECT_THAT(marks_.Current(now_).positions, ElementsAre(70));
    marks_.Rescanned(now_, now_, true);
    EXPECT_THAT(marks_.Current(now_).positions, IsEmpty());
}

}  // namespace
}  // namespace stint::store::pg
