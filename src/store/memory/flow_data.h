// What the memory store remembers of one flow.
#pragma once

#include <vector>

#include "model/flow.h"

namespace stint::store::memory {

struct FlowData {
    model::FlowRecord record;
    std::vector<model::FlowStep> steps;
    std::vector<model::FlowSignal> signals;
};

}  // namespace stint::store::memory
