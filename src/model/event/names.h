// What events, workflows and their parts may be called.
#pragma once

#include <stint/result.h>

#include <cstddef>
#include <string_view>

namespace stint::model {

// Letters, digits and . _ - : / @ +; not empty.
Result<void> CheckName(std::string_view field, std::string_view value, std::size_t limit);
// Any text on one line; may be empty.
Result<void> CheckLine(std::string_view field, std::string_view value, std::size_t limit);

}  // namespace stint::model
