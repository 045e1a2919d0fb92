// Hints between the processes that share a SQLite file: every commit is written to the file's
// write-ahead log, and the kernel tells who watches it (inotify). Nothing is sent, so nothing can
// be forgotten by a sender; a hint only says that something changed, not what.
//
// One thread of its own. Where watching is refused (too many watches), hints stay within the
// process, it is said once, and polling finds the rest.
#pragma once

#include <stint/log.h>

#include <string>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "wake/local.h"

namespace stint::wake {

struct FileWakeOptions {
    std::string path;  // of the SQLite file
    LogSink log;
    Duration between = std::chrono::milliseconds{5};  // hints about other processes, at most
};

class FileWake final : public Wake {
public:
    explicit FileWake(FileWakeOptions options);
    ~FileWake() override;
    FileWake(const FileWake&) = delete;
    FileWake& operator=(const FileWake&) = delete;

    // Subscribers in this process hear it at once, with its details.
    void Signal(std::span<const Hint> hints) override { local_.Signal(hints); }
    int Subscribe(std::function<void(const Hint&)> listener) override {
        return local_.Subscribe(std::move(listener));
    }
    void Unsubscribe(int subscription) override { local_.Unsubscribe(subscription); }

private:
    void Watch(const std::stop_token& stop);
    bool SawCommit() const;  // reads what is pending; true if the log was among it
    void Rest(const std::stop_token& stop) const;

    const FileWakeOptions options_;
    const std::string log_name_;  // "<file>-wal", without directory
    const base::Logger log_;
    LocalWake local_;
    int inotify_ = -1;
    int stop_event_ = -1;
    std::jthread thread_;  // last: the others outlive it
};

}  // namespace stint::wake
