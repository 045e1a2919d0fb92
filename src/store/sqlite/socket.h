// A stream between two processes of this machine: length-prefixed frames over a unix socket.
#pragma once

#include <stint/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stint::store::lite {

inline constexpr std::size_t kFrameMax = std::size_t{256} << 20;

// Owns a file descriptor.
class Fd {
public:
    Fd() = default;
    explicit Fd(int fd) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(other.Release()) {}
    Fd& operator=(Fd&& other) noexcept;
    ~Fd();
    int get() const { return fd_; }
    bool valid() const { return fd_ >= 0; }
    int Release();

private:
    int fd_ = -1;
};

// Where the owner listens: beside the file; under a short name when the file's own is too long.
std::string SocketPath(const std::string& database);

// Both name paths of any length, by way of the directory's descriptor.
Fd Listen(
    const std::string& path, int backlog
);  // mode 0600; replaces a stale one; accepting does not block; throws Unavailable
// nullopt: nobody listens, or the listener's queue stays full.
std::optional<Fd> Connect(const std::string& path, Duration timeout);
void SetReceiveTimeout(const Fd& fd, Duration timeout);
void SetSendTimeout(const Fd& fd, Duration timeout);
// False: nothing came, not even the end, within the timeout.
bool AwaitReadable(const Fd& fd, Duration timeout);

struct Peer {
    std::int64_t pid = 0;
    bool same_user = false;
};
Peer PeerOf(const Fd& fd);

// False: the other side is gone or takes nothing, and will not have received the whole frame once
// the descriptor is closed.
bool SendFrame(const Fd& fd, std::string_view frame);
bool SendFrame(const Fd& fd, std::string_view head, std::string_view rest);  // of one frame

enum class Received : std::uint8_t { kFrame, kGone, kTimeout, kTooLarge };
Received ReceiveFrame(const Fd& fd, std::string& frame, std::size_t most);

}  // namespace stint::store::lite
