#include "cli/workers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>

#include "base/clock.h"
#include "cli/exit_code.h"

namespace stint::cli {

namespace {

std::string MakeLogFile() {
    const char* directory = std::getenv("TMPDIR");
    std::string name = fmt::format(
        "{}/stint-workers-XXXXXX", directory != nullptr && *directory != '\0' ? directory : "/tmp"
    );
    int fd = mkstemp(name.data());
    if (fd < 0) return "/dev/null";
    close(fd);
    return name;
}

}  // namespace

WorkerProcesses::WorkerProcesses(std::string store, std::vector<std::string> words)
    : store_(std::move(store)), log_(MakeLogFile()) {
    words_ = {"worker", "start", "--config", "/dev/null", "--quiet", "--log-level", "warn"};
    words_.insert(words_.end(), words.begin(), words.end());
}

WorkerProcesses::~WorkerProcesses() {
    children_.clear();
    if (log_ != "/dev/null") unlink(log_.c_str());
}

Child WorkerProcesses::Spawn() const {
    return Child::Spawn(words_, store_, log_);
}

void WorkerProcesses::Start(int count) {
    for (int i = 0; i < count; ++i) children_.push_back(Spawn());
}

void WorkerProcesses::KillAndRestart(std::size_t index) {
    children_.at(index).Kill();
    children_.at(index) = Spawn();
}

std::string WorkerProcesses::LogTail() const {
    std::ifstream file(log_);
    std::ostringstream text;
    text << file.rdbuf();
    std::string all = text.str();
    constexpr std::size_t kShown = 2000;
    return all.size() <= kShown ? all : all.substr(all.size() - kShown);
}

void WorkerProcesses::CheckAlive() {
    for (Child& child : children_) {
        if (child.Running()) continue;
        throw CommandError(
            kFailed, fmt::format("a worker process ended by itself; its last words:\n{}", LogTail())
        );
    }
}

void WorkerProcesses::AwaitLive(node::Client& client, const StopOnSignal& signals) {
    base::Instant limit = base::SystemClock().Now() + std::chrono::seconds{30};
    while (true) {
        CheckSignals(signals);
        CheckAlive();
        std::set<std::int64_t> live;
        for (const auto& session : client.Sessions()) {
            if (session.state == model::SessionState::kLive) live.insert(session.pid);
        }
        bool all = true;
        for (const Child& child : children_) all = all && live.contains(child.pid());
        if (all) return;
        if (base::SystemClock().Now() > limit) {
            throw CommandError(
                kFailed,
                fmt::format("the workers did not come up within 30 s; their log:\n{}", LogTail())
            );
        }
        Pause(signals, Duration{20});
    }
}

void WorkerProcesses::Stop() {
    for (const Child& child : children_) child.Signal(SIGTERM);
    for (Child& child : children_) child.Stop(10);
    children_.clear();
}

void CheckSignals(const StopOnSignal& signals) {
    if (signals.signal() == 0) return;
    throw CommandError(128 + signals.signal(), "interrupted");
}

void Pause(const StopOnSignal& signals, Duration duration) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    base::Clock& clock = base::SystemClock();
    base::Instant until = clock.Now() + duration;
    while (clock.Now() < until && !signals.token().stop_requested()) {
        clock.WaitUntil(lock, wake, signals.token(), until);
    }
}

}  // namespace stint::cli
