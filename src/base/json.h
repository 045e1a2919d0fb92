// JSON, by nlohmann/json: the one header through which the rooms reach it.
#pragma once

#include <stint/result.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace stint::base {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // keeps the order in which members were added

// One complete JSON value in UTF-8, no U+0000 in any string or name, no byte-order mark, arrays and
// objects nested at most `max_depth` deep. The message starts with what is wrong, without a name:
// "is not JSON at byte 4: …", "holds U+0000, …".
Result<void> CheckJson(std::string_view text, std::size_t max_depth);

// Parses what CheckJson accepts; an error otherwise.
Result<Json> ParseJson(std::string_view text, std::size_t max_depth);

// Reading and writing are compiled once, here: every file that did it itself took ten seconds more.

// Text that Stint wrote itself, without the checks above. What is not JSON is a value that
// is_discarded(); asking it for members throws Json::exception.
Json ReadJson(std::string_view text);
OrderedJson ReadOrderedJson(std::string_view text);

// On one line, or on several with `indent` spaces. Bytes that are not UTF-8 become U+FFFD.
std::string JsonText(const Json& json, int indent = -1);
std::string JsonText(const OrderedJson& json, int indent = -1);

// A list of strings, and back: ["a","b"]. Reading anything else throws Json::exception.
std::string JsonList(const std::vector<std::string>& strings);
std::vector<std::string> ReadJsonList(std::string_view text);

}  // namespace stint::base
