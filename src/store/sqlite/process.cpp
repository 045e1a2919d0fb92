#include "store/sqlite/process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

namespace stint::store::lite {

namespace {

std::string ReadFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string BootId() {
    std::string id = ReadFile("/proc/sys/kernel/random/boot_id");
    while (!id.empty() && id.back() == '\n') id.pop_back();
    return id;
}

std::string PidNamespace() {
    std::array<char, 64> text{};
    ssize_t size = readlink("/proc/self/ns/pid", text.data(), text.size());
    return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : std::string();
}

// Field 22 of /proc/<pid>/stat; the command before it may hold anything, so count from its ")".
// A zombie has ended, whoever has not yet been told.
std::string StartTime(std::int64_t pid) {
    std::string stat = ReadFile(fmt::format("/proc/{}/stat", pid));
    std::size_t end = stat.rfind(')');
    if (end == stat.npos) return {};
    std::istringstream fields(stat.substr(end + 1));
    std::string field;
    for (int number = 3; number <= 22 && fields >> field; ++number) {
        if (number == 3 && (field == "Z" || field == "X")) return {};
    }
    return field;
}

}  // namespace

std::string ProcessIdentity(std::int64_t pid) {
    std::string start = StartTime(pid);
    if (start.empty()) return {};
    return fmt::format("{}/{}/{}/{}", BootId(), PidNamespace(), pid, start);
}

bool ProcessIsGone(std::string_view identity) {
    std::vector<std::string> parts;
    std::istringstream text{std::string(identity)};
    for (std::string part; std::getline(text, part, '/');) parts.push_back(part);
    if (parts.size() != 4) return false;
    if (parts[0] != BootId()) return true;
    if (parts[1] != PidNamespace()) return false;
    return StartTime(std::atoll(parts[2].c_str())) != parts[3];
}

std::string CommandOfThisProcess() {
    std::string command = ReadFile("/proc/self/cmdline");
    for (char& c : command) {
        if (c == '\0') c = ' ';
    }
    while (!command.empty() && command.back() == ' ') command.pop_back();
    return command.substr(0, 200);
}

std::string HostName() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}

}  // namespace stint::store::lite
