// The known name a person most likely meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stint::base {

// Edits (insert, delete, replace, swap of neighbours) from one word to the other, case ignored.
int EditDistance(std::string_view a, std::string_view b);

// The candidate that is nearest to `word`, or empty when none is near enough to be worth naming.
std::string_view Nearest(std::string_view word, std::span<const std::string_view> candidates);
std::string_view Nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace stint::base
