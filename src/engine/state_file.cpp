#include "engine/state_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace stint::engine {

namespace {

[[noreturn]] void Fail(const std::filesystem::path& path) {
    throw std::system_error(errno, std::generic_category(), path.string());
}

}  // namespace

StateFile StateFile::Create(const std::filesystem::path& path) {
    std::filesystem::create_directories(path.parent_path());
    int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) Fail(path);
    StateFile file(fd, path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) Fail(path);
    return file;
}

std::optional<StateFile> StateFile::Adopt(const std::filesystem::path& path) {
    int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return std::nullopt;
    StateFile file(fd, path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) return std::nullopt;
    // Somebody else may have adopted and removed it between our open and our lock.
    struct stat ours {};
    struct stat named {};
    if (fstat(fd, &ours) != 0 || stat(path.c_str(), &named) != 0) return std::nullopt;
    if (ours.st_ino != named.st_ino || ours.st_dev != named.st_dev) return std::nullopt;
    return file;
}

StateFile::StateFile(StateFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {
}

StateFile& StateFile::operator=(StateFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(path_, other.path_);
    return *this;
}

StateFile::~StateFile() {
    if (fd_ >= 0) close(fd_);
}

std::string StateFile::ReadAll() const {
    struct stat facts {};
    if (fstat(fd_, &facts) != 0) Fail(path_);
    std::string bytes(static_cast<std::size_t>(facts.st_size), '\0');
    std::size_t done = 0;
    while (done < bytes.size()) {
        ssize_t got =
            pread(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) Fail(path_);
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    bytes.resize(done);
    return bytes;
}

void StateFile::Remove() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
}

std::vector<std::filesystem::path> StateFiles(
    const std::filesystem::path& dir, std::string_view prefix, std::string_view suffix
) {
    std::vector<std::filesystem::path> found;
    std::error_code error;
    for (std::filesystem::directory_iterator it(dir, error), end; !error && it != end;
         it.increment(error)) {
        std::string name = it->path().filename().string();
        if (name.starts_with(prefix) && name.ends_with(suffix)) found.push_back(it->path());
    }
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace stint::engine
