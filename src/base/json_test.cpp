#include "base/json.h"

#include <gtest/gtest.h>

#include <string>

namespace stint::base {
namespace {

std::string Why(std::string_view text, std::size_t depth = 64) {
    auto result = CheckJson(text, depth);
    return result ? "" : result.error().message;
}

TEST(Json, AcceptsEveryKindOfValue) {
    for (std::string_view text :
         {"null",
          "true",
          "0",
          "-1.5e3",
          "\"\"",
          "\"gr\xC3\xBC\xC3\x9F\"",
          "[]",
          "{}",
          " {\"a\": [1, {\"b\": null}]} ",
          "18446744073709551615",
          "\"\\ud83d\\ude00\""}) {
        EXPECT_EQ(Why(text), "") << text;
    }
}

TEST(Json, RefusesWhatIsNotOneJsonValue) {
    for (std::string_view text :
         {"",
          " ",
          "nul",
          "{",
          "[1,]",
          "{\"a\":}",
          "1 2",
          "'a'",
          "{a:1}",
          "\"\x01\"",
          "NaN",
          "// c\n1",
          "1e999",
          "\xEF\xBB\xBF{}",
          "\"\xC3\"",
          "\"\xED\xA0\x80\"",
          "\"\\ud800\"",
          "\"\xC0\x80\""}) {
        EXPECT_NE(Why(text), "") << text;
    }
    EXPECT_NE(Why(std::string_view("1\0", 2)), "");
    EXPECT_NE(Why(std::string_view("\"a\0b\"", 5)), "");
}

TEST(Json, RefusesNulInStringsAndNamesAndSaysSo) {
    EXPECT_NE(Why("\"a\\u0000b\"").find("U+0000"), std::string::npos);
    EXPECT_NE(Why("{\"a\\u0000\": 1}").find("U+0000"), std::string::npos);
    EXPECT_EQ(Why("\"\\\\u0000\""), "");
}

TEST(Json, CountsDepthNotMembers) {
    EXPECT_EQ(Why("[[1],[2],[3]]", 2), "");
    EXPECT_NE(Why("[[[1]]]", 2).find("deeper than 2"), std::string::npos);
    EXPECT_NE(Why("{\"a\":{\"b\":{}}}", 2), "");
    EXPECT_NE(Why(std::string(100'000, '['), 64), "");  // no recursion: no overflow
}

TEST(Json, SaysWhereItIsWrong) {
    EXPECT_NE(Why("[1, x]").find("at byte 5"), std::string::npos) << Why("[1, x]");
}

TEST(Json, ParsesWhatItAccepts) {
    EXPECT_EQ(ParseJson("{\"a\":[1]}", 4).value()["a"][0], 1);
    EXPECT_FALSE(ParseJson("[", 4));
}

}  // namespace
}  // namespace stint::base
