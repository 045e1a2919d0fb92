// A workflow of simulated processes.
#pragma once

#include "engine/registry.h"
#include "sim/setting.h"

namespace stint::sim {

inline constexpr std::string_view kFlowType = "sim.flow";

void RegisterFlow(engine::Registry& registry, Setting& setting);

}  // namespace stint::sim
