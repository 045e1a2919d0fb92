// JSON, by nlohmann/json: the one header through which the rooms reach it.
#pragma once

#include <stint/result.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

namespace stint::base {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // keeps the order in which members were added

// One complete JSON value in UTF-8, no U+0000 in any string or name, no byte-order mark, arrays and
// objects nested at most `max_depth` deep. The message starts with what is wrong, without a name:
// "is not JSON at byte 4: …", "holds U+0000, …".
Result<void> CheckJson(std::string_view text, std::size_t max_depth);

// Parses what CheckJson accepts; an error otherwise.
Result<Json> ParseJson(std::string_view text, std::size_t max_depth);

}  // namespace stint::base
