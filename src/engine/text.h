// Texts of foreign origin, made fit to be stored: valid UTF-8, within their limits.
#pragma once

#include <string>
#include <string_view>

namespace stint::engine {

// At most `limit` bytes: cut on a character's boundary, with a marker that says how much is
// missing.
std::string CutText(std::string_view text, std::size_t limit);

// The same, keeping the end instead of the beginning.
std::string CutToTail(std::string_view text, std::size_t limit);

std::string PrintableAscii(std::string_view text);

// The name of a type as people write it.
std::string Demangle(const char* name);

}  // namespace stint::engine
