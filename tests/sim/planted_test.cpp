// The prover proved: each planted bug is found, and the table says how fast.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "sim/campaign.h"

namespace stint::sim {
namespace {

constexpr std::uint64_t kSeedsPerBug = 400;

// The first seed that breaks with the bug and not without it: only then the bug was seen.
std::optional<RunReport> FirstToSee(base::Bug bug) {
    for (std::uint64_t seed = 1; seed <= kSeedsPerBug; ++seed) {
        const RunOptions options{.seed = seed, .focus = FocusOf(bug)};
        base::PlantBug(bug);
        RunReport report = Simulate(options);
        base::PlantBug(base::Bug::kNone);
        if (report.violation && !Simulate(options).violation) return report;
    }
    return std::nullopt;
}

TEST(SimPlanted, EveryPlantedBugIsFound) {
    std::string table =
        fmt::format("{:<28} {:<9} {:>6} {:>9}  {}\n", "bug", "focus", "seed", "invariant", "what");
    std::vector<std::string> missed;
    for (base::Bug bug : PlantedBugs()) {
        std::optional<RunReport> report = FirstToSee(bug);
        if (!report) {
            missed.emplace_back(base::BugName(bug));
            table += fmt::format(
                "{:<28} {:<9} {:>6}\n", base::BugName(bug), FocusName(FocusOf(bug)), "-"
            );
            continue;
        }
        table += fmt::format(
            "{:<28} {:<9} {:>6} {:>9}  {}\n",
            base::BugName(bug),
            FocusName(report->options.focus),
            report->options.seed,
            report->violation->invariant,
            report->violation->what.substr(0, 70)
        );
    }
    fmt::print("{}", table);
    for (const std::string& name : missed) {
        ADD_FAILURE() << name << " was not found within " << kSeedsPerBug << " seeds";
    }
}

}  // namespace
}  // namespace stint::sim
