// One simulated run: a seed in, a report out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/faults.h"
#include "sim/focus.h"
#include "sim/oracle.h"
#include "sim/world.h"

namespace stint::sim {

inline constexpr std::uint64_t kDefaultSteps = 4'000;
inline constexpr int kDefaultNodes = 3;

struct RunOptions {
    std::uint64_t seed = 1;
    std::uint64_t steps = kDefaultSteps;  // points under faults; then everything is healed
    int nodes = kDefaultNodes;
    Focus focus = Focus::kDrawn;
    bool trace = false;
    std::vector<std::string> ignore = {};  // see Oracle::Ignore
};

struct RunReport {
    RunOptions options;
    std::uint64_t steps = 0;  // in all
    Virtual time{};
    std::uint64_t trace_hash = 0;
    std::uint64_t tasks = 0;
    std::uint64_t commits = 0;
    std::uint64_t crashes = 0;
    FaultCounts faults{};
    std::optional<Violation> violation;
};

RunReport Simulate(const RunOptions& options);

// The violation with its history, and the command that shows it again.
std::string Describe(const RunReport& report, std::string_view bug);

}  // namespace stint::sim
