// Seeds: every one must keep every invariant, and be the same run each time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "sim/campaign.h"

namespace stint::sim {
namespace {

constexpr std::uint64_t kSeeds = 500;
constexpr std::uint64_t kSeedsOfTheHour = 100;

TEST(Sim, ASeedIsTheSameRunEachTime) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        RunReport first = Simulate({.seed = seed});
        RunReport second = Simulate({.seed = seed});
        EXPECT_EQ(first.trace_hash, second.trace_hash) << "seed " << seed;
        EXPECT_EQ(first.steps, second.steps) << "seed " << seed;
        EXPECT_EQ(first.time, second.time) << "seed " << seed;
        EXPECT_EQ(first.commits, second.commits) << "seed " << seed;
    }
    EXPECT_NE(Simulate({.seed = 1}).trace_hash, Simulate({.seed = 2}).trace_hash);
}

TEST(Sim, EverySeedKeepsEveryInvariant) {
    CampaignReport report = RunCampaign({.seeds = kSeeds});
    fmt::print("{}", Summary(report));
    if (report.failed) ADD_FAILURE() << Describe(*report.failed, "");
    EXPECT_EQ(report.violations, 0u);
    // A campaign that strikes nothing proves nothing.
    for (std::size_t fault = 0; fault < report.faults.size(); ++fault) {
        EXPECT_GT(report.faults[fault], 0u) << FaultName(static_cast<Fault>(fault));
    }
    EXPECT_GT(report.tasks, kSeeds * 5);
}

// Always the same seeds would only ever prove the same runs. The report names the one that fails.
TEST(Sim, SeedsOfTheHourKeepEveryInvariant) {
    auto hours = std::chrono::duration_cast<std::chrono::hours>(
        base::SystemClock().WallTime().time_since_epoch()
    );
    auto first = static_cast<std::uint64_t>(hours.count()) * kSeedsOfTheHour;
    CampaignReport report = RunCampaign({.first = {.seed = first}, .seeds = kSeedsOfTheHour});
    fmt::print("from seed {}: {}", first, Summary(report));
    if (report.failed) ADD_FAILURE() << Describe(*report.failed, "");
}

}  // namespace
}  // namespace stint::sim
