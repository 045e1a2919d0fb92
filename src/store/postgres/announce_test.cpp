#include "store/postgres/announce.h"

#include <gtest/gtest.h>

namespace stint::store::pg {
namespace {

using namespace std::chrono_literals;

// So many of `count` submits, one every `every`, tell of themselves when that takes `took`.
int Told(int count, std::chrono::microseconds every, std::chrono::microseconds took) {
    Announcements announcements;
    base::Instant now{1h}, over{};
    bool under_way = false;
    int told = 0;
    for (int i = 0; i < count; ++i, now += every) {
        if (under_way && over <= now) {
            announcements.Over(over);
            under_way = false;
        }
        if (!announcements.Turn(now)) continue;
        EXPECT_FALSE(under_way) << "two at a time";
        under_way = true;
        over = now + took;
        ++told;
    }
    return told;
}

TEST(Announcements, RareSubmitsTellOfThemselves) {
    EXPECT_EQ(Told(100, 5ms, 300us), 100);
    EXPECT_EQ(Told(100, 10ms, 1200us), 100);
}

TEST(Announcements, DenseOnesDoSoOnceInTenMilliseconds) {
    EXPECT_NEAR(Told(10'000, 100us, 300us), 100, 10);
}

TEST(Announcements, OneAtATimeAndNoMoreThanAFifthOfTheTime) {
    EXPECT_NEAR(Told(1'000, 5ms, 50ms), 20, 2);
    EXPECT_NEAR(Told(1'000, 5ms, 4s), 1, 1) << "as long as one is stuck no other is";
}

TEST(Announcements, AStallIsNotRememberedForLong) {
    Announcements announcements;
    base::Instant now{1h};
    ASSERT_TRUE(announcements.Turn(now));
    now += 60s;
    announcements.Over(now);
    EXPECT_FALSE(announcements.Turn(now + 900ms));
    EXPECT_TRUE(announcements.Turn(now + 1s));
}

TEST(Announcements, AServerThatRefusesOneIsLeftAloneForAWhile) {
    Announcements announcements;
    base::Instant now{1h};
    ASSERT_TRUE(announcements.Turn(now));
    announcements.Refused(now);
    announcements.Over(now);
    EXPECT_FALSE(announcements.Turn(now + 9s));
    EXPECT_TRUE(announcements.Turn(now + 10s));
}

}  // namespace
}  // namespace stint::store::pg
