#include "store/sqlite/socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/clock.h"
#include "base/hash.h"
#include "store/store.h"

namespace stint::store::lite {

namespace {

constexpr std::size_t kNameMax = 80;
constexpr std::size_t kShortFrame = 64 << 10;

Unavailable Failed(std::string_view what, const std::string& path) {
    return Unavailable(fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
}

// An address must fit some hundred bytes. /proc/self/fd/N names the directory in a few.
class Address {
public:
    explicit Address(const std::string& path) {
        std::string text = path;
        if (text.size() >= sizeof address_.sun_path) {
            std::filesystem::path whole(path);
            directory_ = Fd(open(whole.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
            if (!directory_.valid()) throw Failed("open the directory of", path);
            text = fmt::format("/proc/self/fd/{}/{}", directory_.get(), whole.filename().string());
        }
        address_.sun_family = AF_UNIX;
        std::memcpy(address_.sun_path, text.c_str(), text.size() + 1);
    }
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
    static socklen_t size() { return sizeof(sockaddr_un); }

private:
    Fd directory_;
    sockaddr_un address_{};
};

// Length as eight bytes of the machine's own order: both ends are on one machine.
bool SendAll(int fd, const char* data, std::size_t size) {
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        data += sent;
        size -= static_cast<std::size_t>(sent);
    }
    return true;
}

void SetTimeout(const Fd& fd, int option, Duration timeout) {
    timeval value{};
    value.tv_sec = timeout.count() / 1000;
    value.tv_usec = timeout.count() % 1000 * 1000;
    setsockopt(fd.get(), SOL_SOCKET, option, &value, sizeof value);
}

Received ReceiveAll(int fd, char* data, std::size_t size) {
    while (size > 0) {
        ssize_t got = recv(fd, data, size, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Received::kTimeout;
        if (got <= 0) return Received::kGone;
        data += got;
        size -= static_cast<std::size_t>(got);
    }
    return Received::kFrame;
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
    if (this != &other) {
        if (fd_ >= 0) close(fd_);
        fd_ = other.Release();
    }
    return *this;
}

Fd::~Fd() {
    if (fd_ >= 0) close(fd_);
}

int Fd::Release() {
    return std::exchange(fd_, -1);
}

std::string SocketPath(const std::string& database) {
    std::filesystem::path path = std::filesystem::absolute(database);
    std::string name = path.filename().string() + ".sock";
    if (name.size() > kNameMax) name = "stint-" + base::Sha256Hex(name).substr(0, 32) + ".sock";
    return (path.parent_path() / name).string();
}

Fd Listen(const std::string& path, int backlog) {
    Address address(path);
    Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.valid()) throw Failed("make a socket for", path);
    unlink(path.c_str());  // a stale one: only the holder of the lock gets here
    if (bind(fd.get(), address.get(), Address::size()) != 0) throw Failed("make the socket", path);
    // Before it listens, so that nobody else can connect in between.
    if (chmod(path.c_str(), 0600) != 0) throw Failed("protect the socket", path);
    if (listen(fd.get(), backlog) != 0) throw Failed("listen on the socket", path);
    return fd;
}

std::optional<Fd> Connect(const std::string& path, Duration timeout) {
    Address address(path);
    Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd.valid()) throw Failed("make a socket for", path);
    SetSendTimeout(fd, timeout);
    while (connect(fd.get(), address.get(), Address::size()) != 0) {
        if (errno == EINTR) continue;
        return std::nullopt;
    }
    return fd;
}

void SetReceiveTimeout(const Fd& fd, Duration timeout) {
    SetTimeout(fd, SO_RCVTIMEO, timeout);
}

void SetSendTimeout(const Fd& fd, Duration timeout) {
    SetTimeout(fd, SO_SNDTIMEO, timeout);
}

bool AwaitReadable(const Fd& fd, Duration timeout) {
    base::Instant until = base::SystemClock().Now() + timeout;
    while (true) {
        auto left = std::chrono::ceil<Duration>(until - base::SystemClock().Now());
        pollfd wait{fd.get(), POLLIN, 0};
        int ready = poll(&wait, 1, static_cast<int>(std::max<Duration::rep>(left.count(), 0)));
        if (ready >= 0 || errno != EINTR) return ready != 0;
    }
}

Peer PeerOf(const Fd& fd) {
    ucred facts{};
    socklen_t size = sizeof facts;
    if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &facts, &size) != 0) return {};
    return {facts.pid, facts.uid == geteuid()};
}

bool SendFrame(const Fd& fd, std::string_view frame) {
    return SendFrame(fd, {}, frame);
}

bool SendFrame(const Fd& fd, std::string_view head, std::string_view rest) {
    std::uint64_t size = head.size() + rest.size();
    std::string first(reinterpret_cast<const char*>(&size), sizeof size);
    first += head;
    // What is short goes in one call.
    std::size_t inlined = rest.size() <= kShortFrame ? rest.size() : 0;
    first += rest.substr(0, inlined);
    rest.remove_prefix(inlined);
    return SendAll(fd.get(), first.data(), first.size()) &&
           SendAll(fd.get(), rest.data(), rest.size());
}

Received ReceiveFrame(const Fd& fd, std::string& frame, std::size_t most) {
    std::uint64_t size = 0;
    Received received = ReceiveAll(fd.get(), reinterpret_cast<char*>(&size), sizeof size);
    if (received != Received::kFrame) return received;
    if (size > most) return Received::kTooLarge;
    frame.resize(size);
    return ReceiveAll(fd.get(), frame.data(), size);
}

}  // namespace stint::store::lite
