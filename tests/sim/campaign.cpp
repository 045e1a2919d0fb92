#include "sim/campaign.h"

#include <fmt/format.h>

#include "base/clock.h"

namespace stint::sim {

CampaignReport RunCampaign(const Campaign& campaign) {
    CampaignReport total;
    base::Instant began = base::SystemClock().Now();
    for (std::uint64_t i = 0; i < campaign.seeds; ++i) {
        RunOptions options = campaign.first;
        options.seed += i;
        RunReport report = Simulate(options);
        ++total.seeds;
        total.steps += report.steps;
        total.tasks += report.tasks;
        total.commits += report.commits;
        total.crashes += report.crashes;
        total.time += report.time;
        total.trace_hash = total.trace_hash * 31 + report.trace_hash;
        for (std::size_t fault = 0; fault < report.faults.size(); ++fault) {
            total.faults[fault] += report.faults[fault];
        }
        if (!report.violation) continue;
        ++total.violations;
        if (!total.failed) total.failed = std::move(report);
        if (campaign.stop_at_violation) break;
    }
    total.took = base::SystemClock().Now() - began;
    return total;
}

std::string Summary(const CampaignReport& report) {
    double simulated = std::chrono::duration<double>(report.time).count();
    std::string text = fmt::format(
        "{} seeds in {:.1f} s ({:.1f} seeds/s); {:.0f} s of virtual time; {} steps; {} tasks; "
        "{} commits; {} processes died; trace {:016x}\n",
        report.seeds,
        report.took.count(),
        static_cast<double>(report.seeds) / report.took.count(),
        simulated,
        report.steps,
        report.tasks,
        report.commits,
        report.crashes,
        report.trace_hash
    );
    text += "faults:";
    for (std::size_t fault = 0; fault < report.faults.size(); ++fault) {
        text += fmt::format(
            "{} {} {}",
            fault == 0 ? "" : ",",
            FaultName(static_cast<Fault>(fault)),
            report.faults[fault]
        );
    }
    return text + fmt::format("\nviolations: {}\n", report.violations);
}

std::vector<base::Bug> PlantedBugs() {
    std::vector<base::Bug> bugs;
    for (int number = 1; number < 256; ++number) {
        auto bug = static_cast<base::Bug>(number);
        if (base::BugName(bug) == "none") break;
        bugs.push_back(bug);
    }
    return bugs;
}

}  // namespace stint::sim
