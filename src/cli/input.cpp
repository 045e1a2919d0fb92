#include "cli/input.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <system_error>

#include "base/text.h"
#include "cli/exit_code.h"

namespace stint::cli {

std::string ReadAll(std::istream& input, const std::string& what) {
    std::ostringstream text;
    text << input.rdbuf();
    if (input.bad()) throw CommandError(kUsage, fmt::format("cannot read {}", what));
    return text.str();
}

std::ifstream OpenFile(const std::string& path) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
        throw CommandError(kUsage, fmt::format("{} is a directory", base::Quoted(path)));
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        std::string why = std::generic_category().message(errno);
        throw CommandError(kUsage, fmt::format("cannot read {}: {}", base::Quoted(path), why));
    }
    return file;
}

std::string ReadFile(const std::string& path) {
    if (path == "-") return ReadAll(std::cin, "standard input");
    std::ifstream file = OpenFile(path);
    return ReadAll(file, path);
}

std::string ReadInput(const std::string& word) {
    if (word.empty()) return "null";
    if (word == "-") return ReadFile(word);
    return word[0] == '@' ? ReadFile(word.substr(1)) : word;
}

}  // namespace stint::cli
