// Resources that an attempt asks for while it runs: Context::Require.
#pragma once

#include <string_view>

#include "model/needs.h"

namespace stint::engine {

// Ends the handler. No std::exception, so that a handler which catches those lets it pass.
struct GiveSlotBack {};

// Throws std::invalid_argument for a name or a number that no task could be submitted with.
void CheckNeed(std::string_view resource, int units);

// Used by the handler's thread only.
class Requirements {
public:
    // Throws GiveSlotBack unless `held` covers it.
    void Require(const model::Needs& held, std::string_view resource, int units);
    // All that the task needs from now on; empty: nothing was missing.
    model::Needs Take() { return std::move(needed_); }

private:
    model::Needs needed_;
};

}  // namespace stint::engine
