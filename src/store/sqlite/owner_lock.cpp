#include "store/sqlite/owner_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "store/sqlite/process.h"
#include "store/store.h"

namespace stint::store::lite {

namespace {
std::string LockPath(const std::string& database) {
    return database + ".lock";
}
}  // namespace

std::optional<OwnerLock> OwnerLock::TryTake(const std::string& database) {
    std::string path = LockPath(database);
    Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!fd.valid()) {
        throw Unavailable(fmt::format("cannot open the lock {}: {}", path, std::strerror(errno)));
    }
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return std::nullopt;
    std::string text =
        fmt::format("pid {} on {}: {}\n", getpid(), HostName(), CommandOfThisProcess());
    // For people only: the lock itself is what counts.
    if (ftruncate(fd.get(), 0) != 0 || pwrite(fd.get(), text.data(), text.size(), 0) < 0) {
        throw Unavailable(fmt::format("cannot write the lock {}: {}", path, std::strerror(errno)));
    }
    return OwnerLock(std::move(fd));
}

std::string OwnerLock::Holder(const std::string& database) {
    std::ifstream file(LockPath(database));
    std::string text(std::istreambuf_iterator<char>(file), {});
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

}  // namespace stint::store::lite
