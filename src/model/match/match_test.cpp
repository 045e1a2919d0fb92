#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/random.h"
#include "model/limits.h"
#include "model/match/expression.h"

namespace stint::model::match {
namespace {

using base::Json;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

bool Matches(std::string_view text, std::string_view event) {
    auto parsed = Expression::Parse(text);
    if (!parsed) ADD_FAILURE() << text << ": " << parsed.error().message;
    return parsed && parsed->Matches(Json::parse(event)).value();
}

std::string Refusal(std::string_view text) {
    auto parsed = Expression::Parse(text);
    return parsed ? "accepted" : parsed.error().message;
}

TEST(Match, TheExamplesOfTriggers) {
    EXPECT_TRUE(Matches("mimeType = 'audio/mpeg'", R"({"mimeType":"audio/mpeg"})"));
    EXPECT_FALSE(Matches("mimeType = 'audio/mpeg'", R"({"mimeType":"audio/ogg"})"));
    EXPECT_TRUE(Matches("size > 1048576", R"({"size":1048577})"));
    EXPECT_FALSE(Matches("size > 1048576", R"({"size":1048576})"));
    EXPECT_TRUE(Matches("mimeType startsWith 'image/'", R"({"mimeType":"image/png"})"));
    EXPECT_FALSE(Matches("mimeType startsWith 'image/'", R"({"mimeType":"an image/"})"));
    std::string_view both = "mimeType contains 'zip' AND size > 1024";
    EXPECT_TRUE(Matches(both, R"({"mimeType":"application/zip","size":2000})"));
    EXPECT_FALSE(Matches(both, R"({"mimeType":"application/zip","size":1000})"));
    std::string_view either = "filename endsWith '.pdf' OR mimeType = 'application/pdf'";
    EXPECT_TRUE(Matches(either, R"({"filename":"a.pdf","mimeType":"text/plain"})"));
    EXPECT_TRUE(Matches(either, R"({"filename":"a","mimeType":"application/pdf"})"));
    EXPECT_FALSE(Matches(either, R"({"filename":"a.pdf.txt","mimeType":"text/plain"})"));
}

TEST(Match, AndBindsCloserThanOrAndNotClosest) {
    EXPECT_TRUE(Matches("true OR false AND false", "{}"));
    EXPECT_FALSE(Matches("(true OR false) AND false", "{}"));
    EXPECT_TRUE(Matches("NOT false OR true AND false", "{}"));
    EXPECT_FALSE(Matches("NOT (a = 1)", R"({"a":1})"));
    EXPECT_FALSE(Matches("NOT a = 1", R"({"a":1})"));
    EXPECT_TRUE(Matches("not not a = 1", R"({"a":1})"));
}

TEST(Match, FieldsReachIntoTheEvent) {
    std::string_view event = R"({"a":{"b":[10,{"c d":"x"}]},"in":1,"odd'name":2})";
    EXPECT_TRUE(Matches("a.b[0] = 10", event));
    EXPECT_TRUE(Matches("a.b[1]['c d'] = 'x'", event));
    EXPECT_TRUE(Matches("a['b'][0] >= 10", event));
    EXPECT_TRUE(Matches("['in'] = 1", event));
    EXPECT_TRUE(Matches("['odd''name'] = 2", event));
    EXPECT_TRUE(Matches("a.b[2] = null", event));
    EXPECT_TRUE(Matches("a.b.c.d = null", event));
}

TEST(Match, WhatIsMissingIsNullAndNullEqualsOnlyNull) {
    EXPECT_TRUE(Matches("gone = null", "{}"));
    EXPECT_TRUE(Matches("gone = null", R"({"gone":null})"));
    EXPECT_TRUE(Matches("gone != 0", "{}"));
    EXPECT_FALSE(Matches("gone = 0", "{}"));
    EXPECT_FALSE(Matches("gone = ''", "{}"));
    EXPECT_FALSE(Matches("gone < 1", "{}"));
    EXPECT_FALSE(Matches("gone >= 1", "{}"));
    EXPECT_FALSE(Matches("gone startsWith ''", "{}"));
    EXPECT_FALSE(Matches("gone", "{}"));
    EXPECT_TRUE(Matches("NOT gone", "{}"));
}

TEST(Match, DifferentKindsAreDifferentAndNotOrdered) {
    EXPECT_FALSE(Matches("a = '1'", R"({"a":1})"));
    EXPECT_TRUE(Matches("a != '1'", R"({"a":1})"));
    EXPECT_FALSE(Matches("a < '2'", R"({"a":1})"));
    EXPECT_FALSE(Matches("a >= '2'", R"({"a":1})"));
    EXPECT_FALSE(Matches("a = true", R"({"a":1})"));
    EXPECT_FALSE(Matches("a", R"({"a":"true"})"));
    EXPECT_TRUE(Matches("a", R"({"a":true})"));
}

TEST(Match, NumbersAreComparedExactly) {
    EXPECT_TRUE(Matches("a = 1.0", R"({"a":1})"));
    EXPECT_TRUE(Matches("a > 9007199254740992.0", R"({"a":9007199254740993})"));
    EXPECT_TRUE(Matches("a < 9007199254740993", R"({"a":9007199254740992.0})"));
    EXPECT_TRUE(Matches("a > -1.5", R"({"a":-1})"));
    EXPECT_TRUE(Matches("a < -0.5", R"({"a":-1})"));
    EXPECT_TRUE(Matches("a > 9223372036854775807", R"({"a":18446744073709551615})"));
    EXPECT_TRUE(Matches("a < 1e300", R"({"a":18446744073709551615})"));
    EXPECT_TRUE(Matches("a > -1e300", R"({"a":-5})"));
    EXPECT_TRUE(Matches("a > -1", R"({"a":18446744073709551615})"));
    EXPECT_TRUE(Matches("a < b", R"({"a":18446744073709551614,"b":18446744073709551615})"));
    EXPECT_TRUE(Matches("a = 7", R"({"a":7})"));
}

TEST(Match, ListsAndArrays) {
    EXPECT_TRUE(Matches("a in (1, 'x', null)", R"({"a":"x"})"));
    EXPECT_TRUE(Matches("a in (1, 'x', null)", "{}"));
    EXPECT_TRUE(Matches("a not in (1, 2)", R"({"a":3})"));
    EXPECT_TRUE(Matches("tags contains 'red'", R"({"tags":["blue","red"]})"));
    EXPECT_FALSE(Matches("tags contains 're'", R"({"tags":["blue","red"]})"));
    EXPECT_TRUE(Matches("a = b", R"({"a":{"x":[1,2]},"b":{"x":[1,2.0]}})"));
    EXPECT_FALSE(Matches("a = b", R"({"a":{"x":[1,2]},"b":{"y":[1,2]}})"));
}

TEST(Match, CelSpellsTheSame) {
    auto same = [](std::string_view one, std::string_view other) {
        auto a = Expression::Parse(one);
        auto b = Expression::Parse(other);
        return a && b && *a == *b;
    };
    EXPECT_TRUE(same("a == \"x\" && !(b >= 2) || c", "a = 'x' AND NOT b >= 2 OR c"));
    EXPECT_TRUE(same("a.b.startsWith('x')", "a.b startsWith 'x'"));
    EXPECT_TRUE(same("a.contains(\"x\") && b.endsWith('y')", "a contains 'x' and b endsWith 'y'"));
    EXPECT_TRUE(same("a in ['x', 1]", "a IN ('x', 1)"));
    EXPECT_TRUE(same("a <> 1", "a != 1"));
}

TEST(Match, ErrorsSayWhereAndWhatWasExpected) {
    EXPECT_EQ(
        Refusal(""), "column 1: expected a field, a value, NOT or a parenthesis, found the end"
    );
    EXPECT_EQ(
        Refusal("size >"),
        "column 7: expected a field, a value, NOT or a parenthesis, found the end"
    );
    EXPECT_EQ(
        Refusal("size > > 3"), "column 8: expected a field, a value, NOT or a parenthesis, found >"
    );
    EXPECT_EQ(Refusal("mimeType 'zip'"), "column 10: expected AND, OR or the end, found 'zip'");
    EXPECT_EQ(Refusal("(a = 1"), "column 7: expected a closing parenthesis, found the end");
    EXPECT_EQ(Refusal("a = 'x"), "column 5: the string that begins here has no closing '");
    EXPECT_EQ(Refusal("a in (b)"), "column 7: expected a value in the list, found b");
    EXPECT_EQ(Refusal("a in ()"), "column 7: expected a value in the list, found )");
    EXPECT_EQ(
        Refusal("a in (1"), "column 8: expected a comma or the end of the list, found the end"
    );
    EXPECT_EQ(
        Refusal("a < b < c"),
        "column 7: expected AND, OR or the end: comparisons are not chained, found <"
    );
    EXPECT_EQ(
        Refusal("a[-1] = 2"),
        "column 3: expected an index of 0 or more, or a name in quotes, found -1"
    );
    EXPECT_EQ(Refusal("a. = 2"), "column 4: expected the name of a field after the dot, found =");
    EXPECT_EQ(
        Refusal("a = 18446744073709551616"),
        "column 5: 18446744073709551616 is out of range; whole numbers go from "
        "-9223372036854775808 to 18446744073709551615, those beyond are written with an exponent: "
        "1e20"
    );
    EXPECT_NE(Refusal("a = -9223372036854775809").find("out of range"), std::string::npos);
    EXPECT_NE(Refusal("a ~ 'x'").find("column 3"), std::string::npos);
    EXPECT_NE(Refusal("a = 1.2.3").find("1.2.3 is not a number"), std::string::npos);
}

TEST(Match, ColumnsCountCharacters) {
    EXPECT_THAT(Refusal("é = 1 ~"), StartsWith("column 7: "));
    EXPECT_THAT(Refusal("a = 'äöü' ~"), StartsWith("column 11: "));
    EXPECT_THAT(Refusal("名 = '名前"), StartsWith("column 5: "));
    EXPECT_THAT(Refusal("ß >"), StartsWith("column 4: "));
}

TEST(Match, WholeNumbersAreAllThatEventsMayHold) {
    constexpr std::string_view kLargest = R"({"a":18446744073709551615})";
    EXPECT_TRUE(Matches("a = 18446744073709551615", kLargest));
    EXPECT_FALSE(Matches("a = 18446744073709551614", kLargest));
    EXPECT_TRUE(Matches("a >= 9223372036854775808", kLargest));
    EXPECT_TRUE(Matches("a in (1, 18446744073709551615)", kLargest));
    EXPECT_TRUE(Matches("a < 18446744073709551615", R"({"a":-1})"));
    EXPECT_TRUE(Matches("a = -9223372036854775808", R"({"a":-9223372036854775808})"));
    EXPECT_TRUE(Matches("a = 1e20", R"({"a":100000000000000000000})"));
}

TEST(Match, EverySpellingOfNestingCounts) {
    auto methods = [](int depth) {
        std::string text = "a";
        for (int i = 0; i < depth; ++i) text = "a.contains(" + text + ")";
        return text;
    };
    auto not_in = [](int depth) {
        std::string text;
        for (int i = 0; i < depth; ++i) text += "NOT ";
        return text + "a not in (1)";
    };
    EXPECT_EQ(Refusal(methods(limits::kMatchDepth - 1)), "accepted");
    EXPECT_THAT(Refusal(methods(limits::kMatchDepth)), HasSubstr("nested more than"));
    EXPECT_THAT(Refusal(methods(200)), HasSubstr("nested more than"));
    EXPECT_EQ(Refusal(not_in(limits::kMatchDepth - 2)), "accepted");
    EXPECT_THAT(Refusal(not_in(limits::kMatchDepth - 1)), HasSubstr("nested more than"));
    for (const std::string& text :
         {methods(limits::kMatchDepth - 1), not_in(limits::kMatchDepth - 2)}) {
        auto parsed = Expression::Parse(text).value();
        EXPECT_TRUE(Expression::Parse(parsed.Print()).value() == parsed) << parsed.Print();
    }
}

TEST(Match, WhatWouldBePrintedLongerThanItMayBeIsRefused) {
    std::string quotes = "a == \"" + std::string(3'000, '\'') + "\"";
    EXPECT_THAT(Refusal(quotes), HasSubstr("has 6006 bytes when it is written out"));
    std::string chain = "a";
    for (int i = 1; i < 1'000; ++i) chain += "||a";
    EXPECT_THAT(Refusal(chain), HasSubstr("has 4996 bytes when it is written out"));
    EXPECT_EQ(Refusal("a == \"" + std::string(2'000, '\'') + "\""), "accepted");
}

TEST(Match, TextDepthAndWorkAreLimited) {
    EXPECT_NE(Refusal(std::string(limits::kMatchText + 1, ' ')).find("at most"), std::string::npos);
    auto nested = [](int depth) {
        return std::string(static_cast<std::size_t>(depth), '(') + "a" +
               std::string(static_cast<std::size_t>(depth), ')');
    };
    EXPECT_EQ(Refusal(nested(limits::kMatchDepth - 1)), "accepted");
    EXPECT_NE(Refusal(nested(limits::kMatchDepth)).find("nested more than"), std::string::npos);
    EXPECT_NE(Refusal(std::string(4000, '!') + "a").find("nested more than"), std::string::npos);
    Json wide = {{"a", Json::array()}};
    for (std::size_t i = 0; i <= limits::kMatchFuel; ++i) wide["a"].push_back(i);
    auto answer = Expression::Parse("a contains 'x'").value().Matches(wide);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::kLimit);
}

TEST(Match, SearchingATextThatIsMadeToBeSlowIsNot) {
    Json event = {{"text", std::string(1 << 20, 'a')}};
    std::string sought = std::string(3'000, 'a') + "b";
    auto answer = Expression::Parse("text contains '" + sought + "'").value().Matches(event);
    EXPECT_FALSE(answer.value());
    event["text"] = std::string(1 << 20, 'a') + "b";
    EXPECT_TRUE(Expression::Parse("text contains '" + sought + "'").value().Matches(event).value());
}

// Any expression of the grammar, as a careless author would write it.
class Author {
public:
    explicit Author(std::uint64_t seed) : random_(seed) {}

    // One inside the other, up to and beyond what is allowed, in every spelling that nests.
    std::string Nested() {
        std::string text = Condition(0);
        bool operand = false;  // it may stand beside an operator as it is
        auto alone = [&] { return operand ? text : "(" + text + ")"; };
        for (auto levels = random_.Below(limits::kMatchDepth + 10); levels > 0; --levels) {
            switch (random_.Below(6)) {
                case 0:
                    text = "(" + text + ")";
                    operand = true;
                    break;
                case 1:
                    text = Pick({"NOT ", "!", "not "}) + text;
                    operand = false;
                    break;
                case 2:
                    text = alone() + Pick({" not in (1)", " in ['x', 2]"});
                    operand = false;
                    break;
                case 3:
                    text = Pick({alone() + " = ", alone() + " < "}) + Literal();
                    operand = false;
                    break;
                default:
                    text = Field() + Method() + "(" + alone() + ")";
                    operand = true;
            }
        }
        return text;
    }

    std::string Condition(int depth) {
        switch (depth > 0 ? random_.Below(8) : 4 + random_.Below(4)) {
            case 0:
                return Condition(depth - 1) + Pick({" AND ", " and ", "&&"}) + Condition(depth - 1);
            case 1:
                return Condition(depth - 1) + Pick({" OR ", " or ", " || "}) + Condition(depth - 1);
            case 2:
                return Pick({"NOT ", "!", "not "}) + Condition(depth - 1);
            case 3:
                return "(" + Condition(depth - 1) + ")";
            case 4:
                return Field() + Pick({" in (", " not in ("}) + Literal() + ", " + Literal() + ")";
            case 5:
                return Field() +
                       Pick(
                           {" = ",
                            "==",
                            " != ",
                            "<",
                            " <= ",
                            ">",
                            ">=",
                            " startsWith ",
                            " contains "}
                       ) +
                       Literal();
            case 6:
                return Literal() + Pick({" endsWith ", " = ", " < "}) + Field();
            default:
                return Field() + Method() + "(" + Argument(depth) + ")" +
                       Pick({"", "", " = true", " in (true)"});
        }
    }

private:
    std::string Method() { return Pick({".startsWith", ".endsWith", ".contains", ".CONTAINS"}); }
    std::string Argument(int depth) {
        if (depth == 0 || random_.Below(3) == 0) return Pick({Literal(), Field()});
        return "(" + Condition(depth - 1) + ")";
    }
    std::string Pick(std::vector<std::string> from) { return from[random_.Below(from.size())]; }
    std::string Field() {
        std::string field = Pick({"a", "b", "size", "['odd ''one']", "Not_a_word"});
        while (random_.Below(3) == 0)
            field += Pick({".c", ".in", "[0]", "[12]", "['x y']", "['d']"});
        return field;
    }
    std::string Literal() {
        return Pick(
            {"1",
             "-7",
             "18446744073709551615",
             "0.5",
             "-2.5e-3",
             "1e300",
             "3.0",
             "'it''s'",
             "\"say \"\"x\"\"\"",
             "''",
             "true",
             "NULL",
             "false"}
        );
    }
    base::SeededRandom random_;
};

TEST(Match, PrintingAndParsingAgainIsTheIdentity) {
    std::vector<Json> events = {
        Json::parse(R"({"a":1,"b":"it's","size":0.5})"),
        Json::parse(R"({"a":{"c":[true,null],"in":-7},"b":[1,2],"odd 'one":""})"),
        Json::parse("[]")};
    int refused = 0;
    for (std::uint64_t seed = 1; seed <= 10'000; ++seed) {
        const bool nested = seed % 10 == 0;  // those take their time
        std::string text = nested ? Author(seed).Nested() : Author(seed).Condition(4);
        auto first = Expression::Parse(text);
        refused += first ? 0 : 1;
        if (!first && (nested || text.size() > 2'000)) {
            ASSERT_THAT(first.error().message, AnyOf(HasSubstr("nested more"), HasSubstr("bytes")))
                << text;
            continue;
        }
        ASSERT_TRUE(first) << text << ": " << first.error().message;
        std::string printed = first->Print();
        auto second = Expression::Parse(printed);
        ASSERT_TRUE(second) << text << " → " << printed << ": " << second.error().message;
        ASSERT_TRUE(*first == *second) << text << " → " << printed;
        ASSERT_EQ(second->Print(), printed);
        for (const Json& event : events) {
            ASSERT_EQ(first->Matches(event).value(), second->Matches(event).value()) << text;
        }
    }
    EXPECT_GT(refused, 100);
    EXPECT_LT(refused, 3'000);
}

TEST(Match, NoBytesBreakTheParser) {
    base::SeededRandom random(7);
    constexpr std::string_view kAlphabet = "ab.'\"()[],=!<>&| 019eE-inNOTandor\xc3\xa9\n";
    for (int round = 0; round < 20'000; ++round) {
        std::string text;
        for (auto size = random.Below(40); size > 0; --size)
            text += kAlphabet[random.Below(kAlphabet.size())];
        auto parsed = Expression::Parse(text);
        if (!parsed) {
            ASSERT_FALSE(parsed.error().message.empty());
            continue;
        }
        ASSERT_TRUE(Expression::Parse(parsed->Print()).value() == *parsed) << text;
    }
}

}  // namespace
}  // namespace stint::model::match
