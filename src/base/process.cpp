#include "base/process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace stint::base {

namespace {

// The fields of /proc/N/stat behind the name, which may hold spaces and brackets; the first is the
// state, field 3 of proc(5).
std::vector<std::string> StatOf(pid_t process) {
    std::ifstream file(fmt::format("/proc/{}/stat", process));
    std::string text;
    std::getline(file, text);
    std::size_t name = text.rfind(')');
    if (name == std::string::npos) return {};
    std::istringstream fields(text.substr(name + 1));
    std::vector<std::string> all;
    for (std::string field; fields >> field;) all.push_back(field);
    return all;
}

std::int64_t Field(const std::vector<std::string>& stat, std::size_t number) {
    constexpr std::size_t kFirst = 3;
    std::int64_t value = 0;
    if (number - kFirst >= stat.size()) return value;
    const std::string& text = stat[number - kFirst];
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

}  // namespace

std::chrono::nanoseconds CpuOf(pid_t process) {
    clockid_t clock{};
    timespec used{};
    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0) return {};
    return std::chrono::seconds{used.tv_sec} + std::chrono::nanoseconds{used.tv_nsec};
}

std::chrono::nanoseconds CpuOfEndedChildren(pid_t process) {
    constexpr std::size_t kUser = 16, kSystem = 17;
    auto stat = StatOf(process);
    std::int64_t ticks = Field(stat, kUser) + Field(stat, kSystem);
    return std::chrono::nanoseconds{std::chrono::seconds{1}} * ticks / sysconf(_SC_CLK_TCK);
}

std::int64_t PeakMemory(pid_t process) {
    std::ifstream file(fmt::format("/proc/{}/status", process));
    for (std::string line; std::getline(file, line);) {
        constexpr std::string_view kName = "VmHWM:";
        if (!line.starts_with(kName)) continue;
        std::istringstream words(line.substr(kName.size()));
        std::int64_t kib = 0;
        words >> kib;
        return kib * 1024;
    }
    return 0;
}

std::string ProgramOf(pid_t process) {
    std::ifstream file(fmt::format("/proc/{}/comm", process));
    std::string name;
    std::getline(file, name);
    return name;
}

pid_t ParentOf(pid_t process) {
    constexpr std::size_t kParent = 4;
    return static_cast<pid_t>(Field(StatOf(process), kParent));
}

std::vector<pid_t> ChildrenOf(pid_t process) {
    std::vector<pid_t> children;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
        std::string name = entry.path().filename().string();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        pid_t other = 0;
        std::from_chars(name.data(), name.data() + name.size(), other);
        if (ParentOf(other) == process) children.push_back(other);
    }
    return children;
}

}  // namespace stint::base
