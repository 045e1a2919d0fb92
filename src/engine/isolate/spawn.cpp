#include "engine/isolate/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <system_error>

#include "base/check.h"

namespace stint::engine::isolate {

namespace {

[[noreturn]] void Fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

// Everything the child needs between fork and exec, prepared before: there only async-signal-safe
// calls are allowed.
struct Plan {
    std::vector<std::string> candidates;  // paths to try
    std::vector<char*> argv;
    std::vector<char*> env;
    const char* directory = nullptr;
    std::vector<std::pair<int, int>> fds;
    int highest = 2;
    SpawnLimits limits;
    int report = -1;  // a failure's errno goes here; closed by a successful exec
    // The child starts nothing before a byte comes here: a parent that dies first has started none.
    int go = -1;
    int go_write = -1;  // the parent's end of it
};

std::vector<std::string> Candidates(const std::string& file) {
    if (file.find('/') != std::string::npos) return {file};
    // tidy: allow env, because that is where programs are found
    const char* path = std::getenv("PATH");
    std::string list = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
    std::vector<std::string> found;
    std::size_t from = 0;
    while (from <= list.size()) {
        std::size_t to = std::min(list.find(':', from), list.size());
        if (to > from) found.push_back(list.substr(from, to - from) + "/" + file);
        from = to + 1;
    }
    return found;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

[[noreturn]] void Give(int report) {
    int error = errno;
    [[maybe_unused]] ssize_t ignored = write(report, &error, sizeof error);
    _exit(127);
}

bool Limit(int what, rlim_t soft, rlim_t hard) {
    rlimit limit{soft, hard};
    return setrlimit(static_cast<__rlimit_resource_t>(what), &limit) == 0;
}

bool ApplyLimits(const SpawnLimits& limits) {
    if (limits.memory_bytes > 0 && !Limit(RLIMIT_AS, limits.memory_bytes, limits.memory_bytes)) {
        return false;
    }
    if (limits.cpu_time > Duration::zero()) {
        auto seconds = static_cast<rlim_t>((limits.cpu_time.count() + 999) / 1000);
        if (!Limit(RLIMIT_CPU, seconds, seconds + 1)) return false;
    }
    return true;
}

void ResetSignals() {
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &standard, nullptr);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
}

// First to numbers that nobody uses, then to the wanted ones: a source may be another's goal.
bool ArrangeFds(Plan& plan) {
    int above = plan.highest + 1;
    for (auto& [ours, theirs] : plan.fds) {
        ours = fcntl(ours, F_DUPFD_CLOEXEC, above);
        if (ours < 0) return false;
    }
    plan.report = fcntl(plan.report, F_DUPFD_CLOEXEC, above);
    if (plan.report < 0) return false;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3 && null >= 0; ++fd) dup2(null, fd);
    for (const auto& [ours, theirs] : plan.fds) {
        if (dup2(ours, theirs) < 0) return false;
    }
    // Everything else goes with the exec.
    syscall(SYS_close_range, static_cast<unsigned>(above), ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
    return true;
}

// False when the parent died before it had somebody watch over us.
bool ToldToGo(const Plan& plan) {
    close(plan.go_write);  // ours would keep the pipe open for ever
    char byte = 0;
    ssize_t got = 0;
    do {
        got = read(plan.go, &byte, 1);
    } while (got < 0 && errno == EINTR);
    return got == 1;
}

[[noreturn]] void BecomeChild(Plan& plan) {
    setpgid(0, 0);
    ResetSignals();
    if (!ToldToGo(plan)) _exit(127);
    if (!ArrangeFds(plan)) Give(plan.report);
    if (plan.directory != nullptr && chdir(plan.directory) != 0) Give(plan.report);
    if (!ApplyLimits(plan.limits)) Give(plan.report);
    errno = ENOENT;
    int worst = ENOENT;
    for (const std::string& path : plan.candidates) {
        execve(path.c_str(), plan.argv.data(), plan.env.data());
        if (errno != ENOENT && errno != ENOTDIR) worst = errno;
    }
    errno = worst;
    Give(plan.report);
}

// Waits for the end of `life`, which comes with the death of the process that made us. Only
// async-signal-safe calls: this is a copy of a process with threads.
[[noreturn]] void BecomeGuardian(pid_t group, int life) {
    setpgid(0, group);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);  // what ends the group politely is not for us
    prctl(PR_SET_NAME, "stint-guardian");
    // Of its parent's descriptors it keeps none: it would keep them open for others.
    if (dup2(life, 0) < 0) _exit(127);
    syscall(SYS_close_range, 1U, ~0U, 0U);
    char byte = 0;
    while (read(0, &byte, 1) < 0 && errno == EINTR) {
    }
    // As long as we are in it, the number of the group is nobody else's.
    if (getpgrp() == group) kill(-group, SIGKILL);
    _exit(0);
}

Duration CpuTime(const rusage& usage) {
    auto milliseconds = [](const timeval& time) {
        return std::chrono::duration_cast<Duration>(
            std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec)
        );
    };
    return milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
}

}  // namespace

void Fd::Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
}

Pipe MakePipe() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) Fail("pipe");
    return {Fd(fds[0]), Fd(fds[1])};
}

std::pair<Fd, Fd> MakeSocketPair() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) Fail("socketpair");
    return {Fd(fds[0]), Fd(fds[1])};
}

void SetNonBlocking(const Fd& fd) {
    int flags = fcntl(fd.get(), F_GETFL);
    if (flags < 0 || fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) Fail("fcntl");
}

Child Child::Spawn(const SpawnRequest& request) {
    CHECK(!request.argv.empty());
    Plan plan;
    plan.candidates = Candidates(request.file);
    plan.argv = Pointers(request.argv);
    if (request.env) {
        plan.env = Pointers(*request.env);
    } else {
        for (char** entry = environ; *entry != nullptr; ++entry) plan.env.push_back(*entry);
        plan.env.push_back(nullptr);
    }
    if (!request.directory.empty()) plan.directory = request.directory.c_str();
    plan.fds = request.fds;
    for (const auto& [ours, theirs] : plan.fds) plan.highest = std::max(plan.highest, theirs);
    plan.limits = request.limits;
    Pipe report = MakePipe();
    plan.report = report.write.get();
    // One at a time: a child that another thread forks meanwhile would hold our end of the pipe
    // open, and we its.
    static std::mutex one_at_a_time;
    std::unique_lock until_told(one_at_a_time);
    Pipe go = MakePipe();
    plan.go = go.read.get();
    plan.go_write = go.write.get();

    pid_t pid = fork();
    if (pid < 0) Fail("fork");
    if (pid == 0) BecomeChild(plan);
    setpgid(pid, pid);  // both sides do it: whoever is first
    Child child(pid, Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))));
    report.write.Close();
    if (request.guarded) child.Guard();
    if (write(go.write.get(), "g", 1) != 1) Fail("write");  // ~Child ends it
    until_told.unlock();  // one whose directory does not answer must not keep the others waiting
    int error = 0;
    ssize_t got = 0;
    do {
        got = read(report.read.get(), &error, sizeof error);
    } while (got < 0 && errno == EINTR);
    if (got == sizeof error) {
        child.Collect();
        throw std::system_error(error, std::generic_category(), request.file);
    }
    if (!child.pidfd_.open()) Fail("pidfd_open");  // ~Child ends it
    return child;
}

void Child::Guard() {
    Pipe life = MakePipe();
    guardian_ = fork();
    if (guardian_ < 0) Fail("fork");
    if (guardian_ == 0) BecomeGuardian(pid_, life.read.get());
    setpgid(guardian_, pid_);  // both sides do it: whoever is first
    life_ = std::move(life.write);
}

Child::~Child() {
    if (pid_ > 0 && !collected_) Collect();
}

void Child::SignalGroup(int signal) const {
    if (pid_ > 0 && !collected_) kill(-pid_, signal);
}

Exit Child::Collect() {
    CHECK(!collected_);
    // Before it is collected: until then its number cannot be anybody else's.
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
    if (guardian_ > 0) {
        kill(guardian_, SIGKILL);
        while (waitpid(guardian_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    int status = 0;
    rusage usage{};
    while (wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    collected_ = true;
    Exit exit;
    exit.cpu_time = CpuTime(usage);
    if (WIFEXITED(status)) exit.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) exit.signal = WTERMSIG(status);
    return exit;
}

std::string SignalName(int signal) {
    const char* name = sigabbrev_np(signal);
    return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

}  // namespace stint::engine::isolate
