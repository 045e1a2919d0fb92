// Threads that submit for a benchmark.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/bench_rig.h"

namespace stint::cli {

// Each runs `work` with its number. The first that fails tells the others to stop.
class BenchThreads {
public:
    BenchThreads(BenchRig& rig, int count, std::function<void(int)> work);
    ~BenchThreads();  // waits for them
    BenchThreads(const BenchThreads&) = delete;
    BenchThreads& operator=(const BenchThreads&) = delete;

    bool failed() const { return failed_; }
    bool running() const { return running_ > 0; }
    // Until all have ended; `meanwhile` is called now and then. Throws what one of them threw, or
    // because of a signal, or because the time is over.
    void Await(const std::function<void()>& meanwhile);

private:
    void Run(int number);

    BenchRig& rig_;
    const std::function<void(int)> work_;
    std::atomic<bool> failed_{false};
    std::atomic<int> running_{0};
    std::mutex mutex_;
    std::exception_ptr problem_;  // guarded by mutex_
    std::vector<std::jthread> threads_;
};

}  // namespace stint::cli
