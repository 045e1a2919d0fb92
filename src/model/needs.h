// Words of needs.
#pragma once

#include <stint/result.h>

#include <string>
#include <string_view>

#include "model/placement.h"

namespace stint::model {

// What is held is enough for so many units of this one.
bool Covers(const Needs& held, std::string_view resource, int units);

// "gpu", or "gpu=2".
Result<Need> ParseNeed(std::string_view text);

// "gpu=2, license"
std::string NeedsText(const Needs& needs);

}  // namespace stint::model
