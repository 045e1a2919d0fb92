#pragma once

#include <stint/result.h>
#include <stint/time.h>

#include <string_view>

namespace stint::model {

// What both databases, every calendar and the text of an instant can hold.
Result<void> CheckInstant(std::string_view field, Time at);

}  // namespace stint::model
