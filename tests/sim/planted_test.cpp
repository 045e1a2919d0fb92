// The prover proved: each planted bug is found, and the table says how fast.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/campaign.h"

namespace stint::sim {
namespace {

constexpr std::uint64_t kSeedsPerBug = 400;

TEST(SimPlanted, EveryPlantedBugIsFound) {
    std::string table = fmt::format("{:<28} {:>6} {:>9}  {}\n", "bug", "seed", "invariant", "what");
    std::vector<std::string> missed;
    for (base::Bug bug : PlantedBugs()) {
        base::PlantBug(bug);
        CampaignReport report = RunCampaign({.seeds = kSeedsPerBug});
        base::PlantBug(base::Bug::kNone);
        if (!report.failed) {
            missed.emplace_back(base::BugName(bug));
            table += fmt::format("{:<28} {:>6}\n", base::BugName(bug), "-");
            continue;
        }
        table += fmt::format(
            "{:<28} {:>6} {:>9}  {}\n",
            base::BugName(bug),
            report.failed->options.seed,
            report.failed->violation->invariant,
            report.failed->violation->what.substr(0, 70)
        );
    }
    fmt::print("{}", table);
    for (const std::string& name : missed) {
        ADD_FAILURE() << name << " was not found within " << kSeedsPerBug << " seeds";
    }
}

}  // namespace
}  // namespace stint::sim
