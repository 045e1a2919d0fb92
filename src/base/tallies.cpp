#include "base/tallies.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace stint::base {

namespace {

Tallies own;
std::atomic<Tallies*> current{&own};

}  // namespace

Tallies& ProcessTallies() {
    return *current.load(std::memory_order_relaxed);
}

void ShareTallies(const std::string& path) {
    auto fail = [&path](const char* what) {
        throw std::system_error(errno, std::generic_category(), std::string(what) + " " + path);
    };
    int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) fail("cannot open");
    // Zeros are tallies of nothing. Allocated, so that a full disk is told here and not by SIGBUS.
    int error = posix_fallocate(fd, 0, sizeof(Tallies));
    void* page = MAP_FAILED;
    if (error == 0) {
        page = mmap(nullptr, sizeof(Tallies), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        error = errno;
    }
    close(fd);
    errno = error;
    if (page == MAP_FAILED) fail("cannot map");
    // Never unmapped: threads may count until the process ends.
    current = static_cast<Tallies*>(page);
}

}  // namespace stint::base
