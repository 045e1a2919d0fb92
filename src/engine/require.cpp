#include "engine/require.h"

#include <stdexcept>

#include "model/placement.h"

namespace stint::engine {

void CheckNeed(std::string_view resource, int units) {
    auto valid = model::ValidateNeeds("resource", {{std::string(resource), units}});
    if (!valid) throw std::invalid_argument(valid.error().message);
}

void Requirements::Require(const model::Needs& held, std::string_view resource, int units) {
    if (model::Covers(held, resource, units)) return;
    CheckNeed(resource, units);
    needed_ = model::Together(held, {{std::string(resource), units}});
    throw GiveSlotBack{};
}

}  // namespace stint::engine
