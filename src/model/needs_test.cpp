#include "model/needs.h"

#include <gtest/gtest.h>

namespace stint::model {
namespace {

TEST(Needs, HeldUnitsCoverAsManyAndFewerOfTheSameName) {
    Needs held = {{"gpu", 2}};
    EXPECT_TRUE(Covers(held, "GPU", 2));
    EXPECT_TRUE(Covers(held, "gpu", 1));
    EXPECT_FALSE(Covers(held, "gpu", 3));
    EXPECT_FALSE(Covers(held, "disk", 1));
}

TEST(Needs, TextIsReadAndWritten) {
    EXPECT_EQ(ParseNeed("Host:example.org").value(), (Need{"host:example.org", 1}));
    EXPECT_EQ(ParseNeed("gpu=12").value(), (Need{"gpu", 12}));
    EXPECT_EQ(NeedsText({{"disk", 2}, {"gpu", 1}}), "disk=2, gpu");
    for (const char* wrong : {"", "=2", "gpu=", "gpu=0", "gpu=-1", "gpu=2x", "gpu=99999999999"}) {
        auto parsed = ParseNeed(wrong);
        ASSERT_FALSE(parsed) << wrong;
        EXPECT_NE(parsed.error().message.find("NAME=UNITS"), std::string::npos);
    }
}

}  // namespace
}  // namespace stint::model
