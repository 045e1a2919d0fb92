#include "wake/file_wake.h"

#include "base/thread.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace stint::wake {

namespace {

std::string DirectoryOf(const std::string& path) {
    auto parent = std::filesystem::path(path).parent_path();
    return parent.empty() ? "." : parent.string();
}

}  // namespace

FileWake::FileWake(FileWakeOptions options)
    : options_(std::move(options)),
      log_name_(std::filesystem::path(options_.path).filename().string() + "-wal"),
      log_(options_.log, "wake") {
    inotify_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    stop_event_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    // The directory, not the log itself: that comes and goes.
    bool watching = inotify_ >= 0 && stop_event_ >= 0 &&
                    inotify_add_watch(inotify_, DirectoryOf(options_.path).c_str(), IN_MODIFY) >= 0;
    if (!watching) {
        log_.Warn(
            "the store's file cannot be watched; work from other processes is found by polling",
            {{"file", options_.path}, {"error", std::strerror(errno)}}
        );
        return;
    }
    thread_ = base::StartThread([this](const std::stop_token& stop) { Watch(stop); });
}

FileWake::~FileWake() {
    if (thread_.joinable()) {
        thread_.request_stop();
        eventfd_write(stop_event_, 1);
        thread_.join();
    }
    if (inotify_ >= 0) close(inotify_);
    if (stop_event_ >= 0) close(stop_event_);
}

void FileWake::Watch(const std::stop_token& stop) {
    const std::array<Hint, 3> something = {
        Hint{.kind = Hint::Kind::kTaskAvailable, .queue = {}, .task = {}},
        Hint{.kind = Hint::Kind::kTaskFinished, .queue = {}, .task = {}},
        Hint{.kind = Hint::Kind::kEventPublished, .queue = {}, .task = {}},
    };
    while (!stop.stop_requested()) {
        std::array<pollfd, 2> files = {
            pollfd{.fd = inotify_, .events = POLLIN, .revents = 0},
            pollfd{.fd = stop_event_, .events = POLLIN, .revents = 0},
        };
        poll(files.data(), files.size(), -1);
        if (stop.stop_requested()) return;
        if (!SawCommit()) continue;
        local_.Signal(something);
        Rest(stop);
    }
}

bool FileWake::SawCommit() const {
    alignas(inotify_event) std::array<char, 4096> buffer{};
    bool saw = false;
    while (true) {
        ssize_t size = read(inotify_, buffer.data(), buffer.size());
        if (size <= 0) return saw;
        for (ssize_t at = 0; at < size;) {
            const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
            saw = saw || (event->len > 0 && log_name_ == event->name) ||
                  (event->mask & IN_Q_OVERFLOW) != 0;
            at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
        }
    }
}

// A busy file changes thousands of times a second; nobody needs to hear each.
void FileWake::Rest(const std::stop_token& stop) const {
    if (stop.stop_requested()) return;
    pollfd stopping{.fd = stop_event_, .events = POLLIN, .revents = 0};
    poll(&stopping, 1, static_cast<int>(options_.between.count()));
}

}  // namespace stint::wake
