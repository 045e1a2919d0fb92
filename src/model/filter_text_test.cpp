#include "model/filter_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stint::model {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Time kNow{1'700'000'000s};

TaskFilter Parse(std::string_view text) {
    auto filter = ParseFilter(text, kNow);
    EXPECT_TRUE(filter.has_value()) << text << ": " << (filter ? "" : filter.error().message);
    return filter ? *filter : TaskFilter{};
}

std::string Problem(std::string_view text) {
    auto filter = ParseFilter(text, kNow);
    EXPECT_FALSE(filter.has_value()) << text;
    return filter ? "" : filter.error().message;
}

TEST(FilterText, EmptyMatchesEverything) {
    for (std::string_view text : {"", "   \t\n"}) {
        TaskFilter filter = Parse(text);
        EXPECT_TRUE(filter.states.empty());
        EXPECT_TRUE(Matches(filter, TaskRecord{}));
    }
}

TEST(FilterText, NamesAndAlternatives) {
    TaskFilter filter = Parse("state:dead,error type:demo.*,echo queue:a tag:x tag:y");
    EXPECT_THAT(filter.states, ElementsAre(State::kDead, State::kError));
    EXPECT_THAT(filter.types, ElementsAre("demo.*", "echo"));
    EXPECT_THAT(filter.queues, ElementsAre("a"));
    EXPECT_THAT(filter.tags, ElementsAre("x", "y"));
}

TEST(FilterText, NumbersOfTenantAndParent) {
    TaskFilter filter = Parse("tenant:3 parent=17");
    EXPECT_EQ(filter.tenant, TenantId{3});
    EXPECT_EQ(filter.parent, TaskId{17});
}

TEST(FilterText, AgeCountsFromNow) {
    TaskFilter filter = Parse("age>2h age<1d");
    EXPECT_EQ(filter.created_to, kNow - 2h);
    EXPECT_EQ(filter.created_from, kNow - 24h + std::chrono::microseconds{1});
    EXPECT_EQ(Parse("age>=2h").created_to, kNow - 2h + std::chrono::microseconds{1});
    EXPECT_EQ(Parse("age<=2h").created_from, kNow - 2h);
}

TEST(FilterText, InstantsNarrowTogether) {
    TaskFilter filter = Parse("created>=now-2h created>=now-1h finished<2023-11-14T22:13:20Z");
    EXPECT_EQ(filter.created_from, kNow - 1h);
    EXPECT_EQ(filter.finished_to, kNow);
}

TEST(FilterText, InputPathsAndScalars) {
    TaskFilter filter = Parse(R"(input.user.id:42 input.name!=ann input.q:"4 2" input.ok:true)");
    ASSERT_EQ(filter.input.size(), 4u);
    EXPECT_EQ(filter.input[0].path, "user.id");
    EXPECT_EQ(filter.input[0].value, "42");
    EXPECT_EQ(filter.input[1].op, InputMatch::Op::kNotEqual);
    EXPECT_EQ(filter.input[1].value, R"("ann")");
    EXPECT_EQ(filter.input[2].value, R"("4 2")");
    EXPECT_EQ(filter.input[3].value, "true");
    EXPECT_EQ(Parse(R"(input.n:"42")").input[0].value, R"("42")") << "quoted is a string";
    EXPECT_EQ(Parse("input.n>=-1.5").input[0].op, InputMatch::Op::kGreaterEqual);
}

TEST(FilterText, QuotesMayHoldSpacesCommasAndQuotes) {
    EXPECT_THAT(Parse(R"(tag:"two words")").tags, ElementsAre("two words"));
    EXPECT_THAT(Parse(R"(queue:"a,b",c)").queues, ElementsAre("a,b", "c"));
    EXPECT_THAT(Parse(R"(tag:"say \"hi\"")").tags, ElementsAre(R"(say "hi")"));
}

TEST(FilterText, ErrorsPointAtTheTerm) {
    EXPECT_THAT(
        Problem("queue:a stat:dead"), HasSubstr(R"(filter term 2 ("stat:dead", column 9))")
    );
    EXPECT_THAT(Problem("stat:dead"), HasSubstr(R"(did you mean "state")"));
    EXPECT_THAT(Problem("state:daed"), HasSubstr(R"(did you mean "dead")"));
    EXPECT_THAT(Problem("state:nonsense"), HasSubstr("in_progress"));
    EXPECT_THAT(Problem("dead"), HasSubstr("FIELD:VALUE"));
    EXPECT_THAT(Problem("state:"), HasSubstr("value is missing"));
    EXPECT_THAT(Problem("state:dead,"), HasSubstr("value is missing"));
    EXPECT_THAT(Problem("state:dead state:open"), HasSubstr("given twice"));
    EXPECT_THAT(Problem("type>a"), HasSubstr("with : only"));
    EXPECT_THAT(Problem("tag:a,b"), HasSubstr("tag:a tag:b"));
    EXPECT_THAT(Problem("-queue:slow"), HasSubstr("negated"));
    EXPECT_THAT(Problem("age:2h"), HasSubstr("< <= > >="));
    EXPECT_THAT(Problem("age>2"), HasSubstr("90s"));
    EXPECT_THAT(Problem("created>yesterday"), HasSubstr("RFC 3339"));
    EXPECT_THAT(Problem("tenant:x"), HasSubstr("positive number"));
    EXPECT_THAT(Problem("input.:4"), HasSubstr("input.user.id:42"));
    EXPECT_THAT(Problem("input.a..b:4"), HasSubstr("path"));
    EXPECT_THAT(Problem("input.a:4,5"), HasSubstr("one value"));
    EXPECT_THAT(Problem(R"(tag:"open)"), HasSubstr("quote"));
    EXPECT_THAT(Problem(R"(tag:a"b)"), HasSubstr("quote"));
    EXPECT_THAT(Problem("id:17"), HasSubstr("stint task get"));
}

TEST(FilterText, AgreesWithTheReferenceMeaning) {
    TaskRecord task;
    task.type = "demo.sleep";
    task.queue = "q";
    task.state = State::kDead;
    task.input = R"({"user":{"id":42}})";
    task.created_at = kNow - 3h;
    task.tags = {"x"};
    EXPECT_TRUE(Matches(Parse("state:dead type:demo.* age>2h tag:x input.user.id:42"), task));
    EXPECT_FALSE(Matches(Parse("age>4h"), task));
    EXPECT_FALSE(Matches(Parse("input.user.id>42"), task));
    EXPECT_FALSE(Matches(Parse("type:demo"), task));
}

}  // namespace
}  // namespace stint::model
