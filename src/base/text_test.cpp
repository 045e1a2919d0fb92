#include "base/text.h"

#include <gtest/gtest.h>

#include "base/hash.h"

namespace stint::base {
namespace {

using namespace std::chrono_literals;

TEST(Text, KnowsUtf8) {
    for (std::string_view good :
         {"",
          "abc",
          "\xC2\x80",
          "\xDF\xBF",
          "\xE0\xA0\x80",
          "\xED\x9F\xBF",
          "\xEE\x80\x80",
          "\xF0\x90\x80\x80",
          "\xF4\x8F\xBF\xBF"}) {
        EXPECT_TRUE(IsUtf8(good));
    }
    for (std::string_view bad :
         {"\x80",
          "\xC0\x80",
          "\xC1\xBF",
          "\xC2",
          "\xE0\x9F\xBF",
          "\xED\xA0\x80",
          "\xE2\x82",
          "\xF0\x8F\xBF\xBF",
          "\xF4\x90\x80\x80",
          "\xF5\x80\x80\x80",
          "a\xFFz"}) {
        EXPECT_FALSE(IsUtf8(bad));
    }
}

TEST(Text, CleansByReplacingCuttingBetweenCharactersAndDroppingNul) {
    EXPECT_EQ(CleanText("plain", 100), "plain");
    EXPECT_EQ(
        CleanText(
            "a\xFF"
            "b",
            100
        ),
        "a\xEF\xBF\xBD"
        "b"
    );
    EXPECT_EQ(CleanText("a\xC3\xA4", 2), "a");
    EXPECT_EQ(CleanText(std::string_view("a\0b", 3), 100), "ab");
    EXPECT_EQ(CleanText("abc", 0), "");
    EXPECT_TRUE(IsUtf8(CleanText(std::string(1000, '\xE2'), 500)));
}

TEST(Text, QuotesForMessages) {
    EXPECT_EQ(Quoted("a b"), "\"a b\"");
    EXPECT_EQ(Quoted("a\nb"), "\"a?b\"");
    EXPECT_EQ(Quoted(std::string(65, 'x')), '"' + std::string(64, 'x') + "…\"");
}

TEST(Text, WritesInstantsWithTheDigitsTheyNeed) {
    Time time{1'700'000'000s};
    EXPECT_EQ(Iso8601(time), "2023-11-14T22:13:20Z");
    EXPECT_EQ(Iso8601(time + 5ms), "2023-11-14T22:13:20.005Z");
    EXPECT_EQ(Iso8601(time + 7us), "2023-11-14T22:13:20.000007Z");
    EXPECT_EQ(Iso8601(Time{-1us}), "1969-12-31T23:59:59.999999Z");
}

TEST(Text, WritesDurationsInTheLargestUnitThatDivides) {
    EXPECT_EQ(DurationText(0ms), "0 s");
    EXPECT_EQ(DurationText(250ms), "250 ms");
    EXPECT_EQ(DurationText(90s), "90 s");
    EXPECT_EQ(DurationText(120s), "2 min");
    EXPECT_EQ(DurationText(24h), "24 h");
}

TEST(Hash, IsSha256) {
    EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace stint::base
