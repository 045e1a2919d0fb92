// Zones of the simulated world: UTC, and one where clocks go back by a minute soon after the run
// has begun.
#pragma once

#include "model/calendar/zone.h"
#include "services/zones.h"

namespace stint::sim {

inline constexpr const char* kFoldZone = "Sim/Fold";
model::Zone FoldZone();
services::ZoneSource SimZones();

}  // namespace stint::sim
