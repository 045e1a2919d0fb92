#include "cli/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <string_view>
#include <system_error>
#include <utility>

namespace stint::cli {

namespace {

// Between fork and exec: only calls that are safe there.
[[noreturn]] void BecomeWorker(char* const* argv, char* const* env, int log, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // it died in between
    int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    dup2(log >= 0 ? log : nothing, STDERR_FILENO);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execve("/proc/self/exe", argv, env);
    _exit(127);
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

}  // namespace

Child Child::Spawn(
    const std::vector<std::string>& words, const std::string& store, const std::string& log
) {
    std::vector<std::string> arguments = {"stint"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    std::vector<std::string> variables = {"STINT_STORE=" + store};
    for (char** variable = environ; *variable != nullptr; ++variable) {
        // Settings of the person who started us are not those of our workers.
        if (!std::string_view(*variable).starts_with("STINT_")) variables.emplace_back(*variable);
    }
    std::vector<char*> argv = Pointers(arguments), env = Pointers(variables);
    int log_fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) BecomeWorker(argv.data(), env.data(), log_fd, parent);
    int error = errno;
    if (log_fd >= 0) close(log_fd);
    if (pid < 0) throw std::system_error(error, std::generic_category(), "cannot start a worker");
    return Child(pid);
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {
}
Child& Child::operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
}
Child::~Child() {
    Kill();
}

bool Child::Running() {
    if (pid_ < 0) return false;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == 0) return true;
    pid_ = -1;
    return false;
}

void Child::Signal(int number) const {
    if (pid_ > 0) kill(pid_, number);
}

void Child::Kill() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
}

void Child::Stop(int seconds) {
    Signal(SIGTERM);
    timespec slice{.tv_sec = 0, .tv_nsec = 10'000'000};
    for (int i = 0; i < seconds * 100; ++i) {
        if (!Running()) return;
        nanosleep(&slice, nullptr);
    }
    Kill();
}

}  // namespace stint::cli
