// Starting a process of our own group, and ending it with all that it started. Never through a
// shell.
#pragma once

#include <stint/time.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stint::engine::isolate {

// A file descriptor that closes itself.
class Fd {
public:
    Fd() = default;
    explicit Fd(int fd) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Fd() { Close(); }
    int get() const { return fd_; }
    bool open() const { return fd_ >= 0; }
    void Close();

private:
    int fd_ = -1;
};

struct Pipe {
    Fd read, write;
};
Pipe MakePipe();                     // both ends close on exec
std::pair<Fd, Fd> MakeSocketPair();  // likewise
void SetNonBlocking(const Fd& fd);

struct SpawnLimits {
    std::uint64_t memory_bytes = 0;        // address space; 0 = none
    Duration cpu_time = Duration::zero();  // 0 = none
};

struct SpawnRequest {
    std::string file;                             // executed; searched in PATH when it has no slash
    std::vector<std::string> argv;                // argv[0] included
    std::optional<std::vector<std::string>> env;  // "NAME=value"; none = ours
    std::string directory = {};                   // empty = ours
    // Which of our descriptors becomes which of the child's; all others are closed. Those below 3
    // that are not named become /dev/null.
    std::vector<std::pair<int, int>> fds;
    SpawnLimits limits = {};
    // A second process, in the same group, that ends the group when this process dies, however it
    // dies. For programs that do not notice it themselves.
    bool guarded = false;
};

// How a process ended.
struct Exit {
    std::optional<int> code;
    std::optional<int> signal;
    Duration cpu_time{};  // that it used
};

class Child {
public:
    // Throws std::system_error, also when the file cannot be executed.
    static Child Spawn(const SpawnRequest& request);
    Child(Child&& other) noexcept
        : pid_(std::exchange(other.pid_, -1)),
          pidfd_(std::move(other.pidfd_)),
          guardian_(std::exchange(other.guardian_, -1)),
          life_(std::move(other.life_)),
          collected_(other.collected_) {}
    Child& operator=(Child&&) = delete;
    ~Child();  // kills the group and waits, if that has not happened

    // Readable when the process has ended.
    int pidfd() const { return pidfd_.get(); }
    pid_t pid() const { return pid_; }

    void SignalGroup(int signal) const;
    // The process has ended (pidfd is readable): ends the rest of its group, collects it.
    Exit Collect();

private:
    Child(pid_t pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
    void Guard();
    pid_t pid_ = -1;
    Fd pidfd_;
    pid_t guardian_ = -1;
    Fd life_;  // closed by our death, whatever its cause
    bool collected_ = false;
};

std::string SignalName(int signal);  // "SIGSEGV", or "signal 64"

}  // namespace stint::engine::isolate
