#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/task.h"

namespace stint::model {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Op = InputMatch::Op;

TaskRecord Sample() {
    TaskRecord task;
    task.id = TaskId(1);
    task.type = "mail.send";
    task.queue = "mail";
    task.state = State::kComplete;
    task.tags = {"a", "b"};
    task.created_at = Time{100s};
    task.finished_at = Time{200s};
    task.parent = TaskId(7);
    task.input = R"({"n":5,"f":1.0,"s":"mid","t":true,"z":null,"o":{"p":{"q":"x"}},"l":[1],)"
                 R"("big":9007199254740993,"huge":18446744073709551615,"neg":-1})";
    return task;
}

bool Has(const TaskFilter& filter) {
    return Matches(filter, Sample());
}

TEST(Filters, EmptyMatchesEverything) {
    EXPECT_TRUE(Has({}));
}

TEST(Filters, EachFieldDecides) {
    EXPECT_TRUE(Has({.tenant = TenantId(1)}));
    EXPECT_FALSE(Has({.tenant = TenantId(2)}));
    EXPECT_TRUE(Has({.states = {State::kOpen, State::kComplete}}));
    EXPECT_FALSE(Has({.states = {State::kOpen}}));
    EXPECT_TRUE(Has({.types = {"x", "mail.send"}}));
    EXPECT_FALSE(Has({.types = {"mail"}}));
    EXPECT_TRUE(Has({.types = {"mail.*"}}));
    EXPECT_TRUE(Has({.types = {"*"}}));
    EXPECT_FALSE(Has({.types = {"mail.x*"}}));
    EXPECT_TRUE(Has({.queues = {"x", "mail"}}));
    EXPECT_FALSE(Has({.queues = {"mai"}}));
    EXPECT_TRUE(Has({.tags = {"b", "a"}}));
    EXPECT_FALSE(Has({.tags = {"a", "c"}}));
    EXPECT_TRUE(Has({.parent = TaskId(7)}));
    EXPECT_FALSE(Has({.parent = TaskId(8)}));
}

TEST(Filters, RangesIncludeTheirStartOnly) {
    EXPECT_TRUE(Has({.created_from = Time{100s}}));
    EXPECT_FALSE(Has({.created_from = Time{101s}}));
    EXPECT_FALSE(Has({.created_to = Time{100s}}));
    EXPECT_TRUE(Has({.created_to = Time{101s}}));
    EXPECT_TRUE(Has({.finished_from = Time{200s}, .finished_to = Time{201s}}));
    EXPECT_FALSE(Has({.finished_to = Time{200s}}));
    TaskRecord open = Sample();
    open.finished_at.reset();
    EXPECT_FALSE(Matches({.finished_to = Time{900s}}, open));
}

TEST(Filters, InputComparesByTypeAndValue) {
    struct Case {
        const char* path;
        const char* value;
        // equal, not equal, <, <=, >, >=
        const char* want;
    };
    for (const Case& c : {
             Case{"n", "5", "10,01"},
             Case{"n", "5.0", "10,01"},
             Case{"n", "6", "01,1100"},
             Case{"n", "4", "01,0011"},
             Case{"n", "\"5\"", "01,0000"},
             Case{"f", "1", "10,01"},
             Case{"s", "\"mid\"", "10,01"},
             Case{"s", "\"na\"", "01,1100"},
             Case{"s", "\"ma\"", "01,0011"},
             Case{"s", "1", "01,0000"},
             Case{"t", "true", "10,0000"},
             Case{"t", "false", "01,0000"},
             Case{"z", "null", "10,0000"},
             Case{"z", "0", "01,0000"},
             Case{"o", "1", "01,0000"},
             Case{"o.p.q", "\"x\"", "10,01"},
             Case{"l", "1", "01,0000"},
             Case{"none", "1", "00,0000"},
             Case{"none", "null", "00,0000"},
             Case{"n.x", "1", "00,0000"},
             Case{"l.0", "1", "00,0000"},
             Case{"o.none", "1", "00,0000"},
             Case{"big", "9007199254740993", "10,01"},
             Case{"big", "9007199254740992", "01,0011"},
             Case{"huge", "-1", "01,0011"},
             Case{"neg", "18446744073709551615", "01,1100"},
             Case{"neg", "-1", "10,01"},
         }) {
        // "01" after the comma is short for "<= and >= only", the case of equal values.
        std::string want = c.want;
        if (want.substr(3) == "01") want = want.substr(0, 3) + "0101";
        std::string got;
        for (Op op :
             {Op::kEqual,
              Op::kNotEqual,
              Op::kLess,
              Op::kLessEqual,
              Op::kGreater,
              Op::kGreaterEqual}) {
            got += Has({.input = {{c.path, op, c.value}}}) ? '1' : '0';
            if (op == Op::kNotEqual) got += ',';
        }
        EXPECT_EQ(got, want) << c.path << " with " << c.value;
    }
}

TEST(Filters, AllInputMatchesMustHold) {
    EXPECT_TRUE(Has({.input = {{"n", Op::kEqual, "5"}, {"s", Op::kEqual, "\"mid\""}}}));
    EXPECT_FALSE(Has({.input = {{"n", Op::kEqual, "5"}, {"s", Op::kEqual, "\"x\""}}}));
}

TEST(Filters, ValidationNamesWhatIsWrong) {
    auto why = [](const TaskFilter& filter) {
        auto result = Validate(filter);
        return result ? std::string() : result.error().message;
    };
    EXPECT_EQ(why({}), "");
    EXPECT_EQ(why({.types = {"a*", "*"}, .input = {{"a.b-c d", Op::kLess, "-1e3"}}}), "");
    EXPECT_THAT(why({.types = {"a*b"}}), HasSubstr("type is \"a*b\"; give a name, or a prefix"));
    EXPECT_THAT(why({.types = {""}}), HasSubstr("type is \"\""));
    EXPECT_THAT(
        why({.created_from = Time{2s}, .created_to = Time{2s}}), HasSubstr("created_from is")
    );
    EXPECT_THAT(
        why({.finished_from = Time{2s}, .finished_to = Time{1s}}), HasSubstr("finished_from is")
    );
    for (const char* path : {"", ".a", "a.", "a..b", "a\"b", "a\\b", "a\nb", "\xFF"}) {
        EXPECT_THAT(why({.input = {{path, Op::kEqual, "1"}}}), HasSubstr("input path is")) << path;
    }
    for (const char* value : {"", "x", "[1]", "{}", "1 2"}) {
        EXPECT_THAT(why({.input = {{"a", Op::kEqual, value}}}), HasSubstr("input value is"))
            << value;
    }
    EXPECT_THAT(why({.tags = std::vector<std::string>(17, "t")}), HasSubstr("tags has 17 entries"));
    EXPECT_THAT(why({.input = std::vector<InputMatch>(17)}), HasSubstr("input has 17 entries"));
}

}  // namespace
}  // namespace stint::model
