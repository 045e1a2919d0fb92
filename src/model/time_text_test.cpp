#include "model/time_text.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace stint::model {
namespace {

using namespace std::chrono_literals;

TEST(TimeText, ReadsDurations) {
    EXPECT_EQ(ParseDuration("250ms").value(), 250ms);
    EXPECT_EQ(ParseDuration("90s").value(), 90s);
    EXPECT_EQ(ParseDuration("5m").value(), 5min);
    EXPECT_EQ(ParseDuration("2h").value(), 2h);
    EXPECT_EQ(ParseDuration("3d").value(), 72h);
    EXPECT_EQ(ParseDuration("1h30m").value(), 90min);
    EXPECT_EQ(ParseDuration("1s500ms").value(), 1500ms);
    EXPECT_EQ(ParseDuration("0").value(), 0ms);
}

TEST(TimeText, RefusesWhatIsNoDuration) {
    for (const char* text :
         {"",
          "90",
          "s",
          "-5s",
          "+5s",
          "5 s",
          "5x",
          "5s5m",
          "1.5s",
          "5mm",
          "99999999999999d",
          "5s1s",
          "3652d10000000000d",
          "9223372036854775807ms"}) {
        auto result = ParseDuration(text);
        ASSERT_FALSE(result.has_value()) << text;
        EXPECT_EQ(result.error().code, Code::kInvalid);
        EXPECT_NE(result.error().message.find("90s"), std::string::npos) << "the cure is named";
    }
}

TEST(TimeText, FormatIsReadBack) {
    for (Duration duration :
         {Duration{0},
          Duration{1},
          Duration{999},
          Duration{1000},
          Duration{90'000},
          Duration{86'400'000},
          Duration{90'061'001}}) {
        EXPECT_EQ(ParseDuration(FormatDuration(duration)).value(), duration);
    }
    EXPECT_EQ(FormatDuration(90s), "1m30s");
    EXPECT_EQ(FormatDuration(-5s), "-5s");
}

TEST(TimeText, RoughForPeople) {
    EXPECT_EQ(RoughDuration(12ms), "12ms");
    EXPECT_EQ(RoughDuration(1550ms), "1.5s");
    EXPECT_EQ(RoughDuration(59s), "59s");
    EXPECT_EQ(RoughDuration(200s), "3m 20s");
    EXPECT_EQ(RoughDuration(125min), "2h 5m");
    EXPECT_EQ(RoughDuration(76h), "3d 4h");
    EXPECT_EQ(RoughDuration(-59s), "-59s");
}

TEST(TimeText, ReadsInstants) {
    Time now{1'700'000'000s};
    EXPECT_EQ(ParseTime("now", now).value(), now);
    EXPECT_EQ(ParseTime("now+10m", now).value(), now + 10min);
    EXPECT_EQ(ParseTime("now-2h", now).value(), now - 2h);
    EXPECT_EQ(ParseTime("2023-11-14T22:13:20Z", {}).value(), now);
    EXPECT_EQ(ParseTime("2023-11-15T00:13:20+02:00", {}).value(), now);
    EXPECT_EQ(ParseTime("2023-11-14T17:43:20-04:30", {}).value(), now);
    EXPECT_EQ(ParseTime("2023-11-14T22:13:20.5Z", {}).value(), now + 500ms);
    EXPECT_EQ(
        ParseTime("2023-11-14T22:13:20.123456789Z", {}).value(),
        now + std::chrono::microseconds{123'456}
    );
    EXPECT_EQ(ParseTime(base::Iso8601(now + 1ms), {}).value(), now + 1ms);
}

TEST(TimeText, RefusesWhatIsNoInstant) {
    for (const char* text :
         {"",
          "tomorrow",
          "2023-11-14",
          "2023-11-14T22:13Z",
          "2023-11-14T22:13:20",
          "now*2",
          "2023-02-30T00:00:00Z",
          "2023-11-14T24:00:00Z",
          "2023-11-14T22:13:20Zx",
          "2023-11-14T22:13:20.Z",
          "2023-11-14T22:13:20+2:00",
          "now+10"}) {
        EXPECT_FALSE(ParseTime(text, {}).has_value()) << text;
    }
}

}  // namespace
}  // namespace stint::model
