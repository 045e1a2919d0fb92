// Files and standard input as a command's words name them.
#pragma once

#include <fstream>
#include <istream>
#include <string>

namespace stint::cli {

// Throw CommandError when it cannot be read.
std::string ReadAll(std::istream& input, const std::string& what);
std::ifstream OpenFile(const std::string& path);
// FILE, or - for standard input.
std::string ReadFile(const std::string& path);
// JSON itself, @FILE, or - for standard input; nothing is null.
std::string ReadInput(const std::string& word);

}  // namespace stint::cli
