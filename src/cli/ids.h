// Task ids given as words, or `-` for standard input.
#pragma once

#include <stint/ids.h>

#include <istream>
#include <string>
#include <vector>

namespace stint::cli {

// The ids in order, repeated ones once. `-` stands for all that `input` holds, separated by spaces
// or lines. Throws CommandError for what is no id.
std::vector<TaskId> ReadIds(const std::vector<std::string>& words, std::istream& input);

}  // namespace stint::cli
