// SIGINT and SIGTERM as a stop token, for commands that wait or clean up.
#pragma once

#include <atomic>
#include <csignal>
#include <stop_token>
#include <thread>

namespace stint::cli {

// While it lives, the two signals do not end the process: they request a stop. Make it before other
// threads, which inherit the mask. Children made by Child::Spawn have the mask reset.
class StopOnSignal {
public:
    StopOnSignal();
    ~StopOnSignal();
    StopOnSignal(const StopOnSignal&) = delete;
    StopOnSignal& operator=(const StopOnSignal&) = delete;

    std::stop_token token() const { return stop_.get_token(); }
    int signal() const { return signal_; }  // which one came; 0 = none

private:
    sigset_t before_;
    std::stop_source stop_;
    std::atomic<int> signal_{0};
    std::jthread listener_;
};

}  // namespace stint::cli
