#include "cli/output.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/log_lines.h"
#include "cli/percentiles.h"
#include "cli/progress.h"

namespace stint::cli {
namespace {

using namespace std::chrono_literals;

Listing TwoTasks() {
    Listing listing;
    listing.name = "tasks";
    listing.headers = {"ID", "STATE", "NOTE"};
    listing.rows = {
        {{"7"}, {"complete", Tint::kGood}, {"größer"}}, {{"1234"}, {"dead", Tint::kBad}, {""}}};
    listing.objects = {{{"id", "7"}}, {{"id", "1234"}}};
    listing.ids = {"7", "1234"};
    listing.extra["next"] = nullptr;
    return listing;
}

std::string Printed(Format format, bool color) {
    testing::internal::CaptureStdout();
    Output(format, color).Print(TwoTasks());
    return testing::internal::GetCapturedStdout();
}

TEST(Output, TableAlignsAndLeavesNoTrailingSpaces) {
    EXPECT_EQ(
        Printed(Format::kTable, false),
        "ID    STATE     NOTE\n"
        "7     complete  größer\n"
        "1234  dead\n"
    );
}

TEST(Output, ColourDoesNotChangeTheColumns) {
    EXPECT_EQ(
        Printed(Format::kTable, true),
        "\x1b[2mID\x1b[0m    \x1b[2mSTATE\x1b[0m     \x1b[2mNOTE\x1b[0m\n"
        "7     \x1b[32mcomplete\x1b[0m  größer\n"
        "1234  \x1b[31mdead\x1b[0m\n"
    );
}

TEST(Output, FormatsForPrograms) {
    auto json = base::OrderedJson::parse(Printed(Format::kJson, true));
    EXPECT_EQ(json["tasks"].size(), 2u);
    EXPECT_TRUE(json["next"].is_null());
    EXPECT_EQ(Printed(Format::kJsonl, true), "{\"id\":\"7\"}\n{\"id\":\"1234\"}\n");
    EXPECT_EQ(Printed(Format::kIds, true), "7\n1234\n");
    EXPECT_EQ(Printed(Format::kNone, true), "");
}

TEST(Output, EmptyTableIsSilent) {
    testing::internal::CaptureStdout();
    Listing listing = TwoTasks();
    listing.rows.clear();
    Output(Format::kTable, false).Print(listing);
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(Output, ShortenCutsBetweenCharactersAndHidesControls) {
    EXPECT_EQ(Shorten("größe", 5), "größe");
    EXPECT_EQ(Shorten("größer", 5), "größ…");
    EXPECT_EQ(Shorten("a\nb\x1b[31m", 20), "a b [31m");
    EXPECT_EQ(Shorten("", 5), "");
}

class ColorTest : public testing::Test {
protected:
    void SetUp() override {
        for (const char* name : {"NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"}) unsetenv(name);
    }
    void TearDown() override { SetUp(); }
};

TEST_F(ColorTest, EnvironmentAndSetting) {
    EXPECT_FALSE(WantColor("auto")) << "a test's output is no terminal";
    EXPECT_TRUE(WantColor("always"));
    setenv("FORCE_COLOR", "1", 1);
    EXPECT_TRUE(WantColor("auto"));
    EXPECT_FALSE(WantColor("never"));
    setenv("NO_COLOR", "1", 1);
    EXPECT_FALSE(WantColor("auto"));
    EXPECT_TRUE(WantColor("always"));
}

TEST(Progress, ShowsCountRateAndTimeLeft) {
    EXPECT_EQ(ProgressText(0, 300, 0ms), "[--------------------]   0/300");
    EXPECT_EQ(ProgressText(150, 300, 2s), "[##########----------] 150/300   75/s   eta 2s");
    EXPECT_EQ(ProgressText(300, 300, 4s), "[####################] 300/300   75/s");
    EXPECT_EQ(ProgressText(1, 4, 1s), "[#####---------------] 1/4   1.0/s   eta 3s");
    EXPECT_EQ(ProgressText(0, 0, 1s), "[####################] 0/0");
}

TEST(Percentiles, NearestRank) {
    std::vector<double> samples;
    for (int i = 100; i >= 1; --i) samples.push_back(i);
    Percentiles p = Summarise(samples);
    EXPECT_EQ(p.p50, 50);
    EXPECT_EQ(p.p95, 95);
    EXPECT_EQ(p.p99, 99);
    EXPECT_EQ(p.max, 100);
    EXPECT_EQ(Summarise({7}).p50, 7);
    EXPECT_EQ(Summarise({7}).p99, 7);
    EXPECT_EQ(Summarise({}).max, 0);
}

TEST(LogLines, HumanAndJson) {
    LogRecord record{
        .level = LogLevel::kWarn,
        .room = "claim",
        .message = "slow",
        .fields = {{"task", "17"}, {"why", "two words"}}};
    EXPECT_EQ(HumanLogLine(record, "T"), "T warn  claim: slow  task=17  why=\"two words\"");
    EXPECT_EQ(
        JsonLogLine(record, "T"),
        R"({"time":"T","level":"warn","room":"claim","message":"slow",)"
        R"("task":"17","why":"two words"})"
    );
}

}  // namespace
}  // namespace stint::cli
