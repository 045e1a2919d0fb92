#include "node/paths.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

namespace stint::node {

const char* const kVersion = STINT_VERSION;

std::string HostName() {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == 0) return "unnamed";
    return name.data();
}

std::string DefaultStateDir(const StoreUrl& url) {
    if (url.kind == StoreUrl::Kind::kSqlite) return url.path + ".state";
    if (url.kind == StoreUrl::Kind::kMemory) return {};
    // NOLINTNEXTLINE(concurrency-mt-unsafe): read once, before threads are started
    if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && state[0] == '/') {
        return std::string(state) + "/stint";
    }
    // NOLINTNEXTLINE(concurrency-mt-unsafe): as above
    if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
        return std::string(home) + "/.local/state/stint";
    }
    return {};
}

std::string StateDirOfStore(const std::string& state_dir, const std::string& identity) {
    return state_dir.empty() ? state_dir : state_dir + "/" + identity;
}

}  // namespace stint::node
