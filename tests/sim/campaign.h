// Many seeds in a row, and the bugs that prove they would see one.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/planted_bug.h"
#include "sim/run.h"

namespace stint::sim {

struct Campaign {
    RunOptions first;  // its seed is the first one
    std::uint64_t seeds = 500;
    bool stop_at_violation = true;
};

struct CampaignReport {
    std::uint64_t seeds = 0;
    std::uint64_t steps = 0;
    std::uint64_t tasks = 0;
    std::uint64_t commits = 0;
    std::uint64_t crashes = 0;
    std::uint64_t violations = 0;
    Virtual time{};
    std::uint64_t trace_hash = 0;  // of all runs
    std::chrono::duration<double> took{};
    FaultCounts faults{};
    std::optional<RunReport> failed;  // the first one
};

CampaignReport RunCampaign(const Campaign& campaign);
std::string Summary(const CampaignReport& report);

// Every bug that can be planted, whether or not this build has them.
std::vector<base::Bug> PlantedBugs();

}  // namespace stint::sim
