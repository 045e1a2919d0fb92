#include "cli/signals.h"

#include <pthread.h>

#include <ctime>

namespace stint::cli {

StopOnSignal::StopOnSignal() {
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ours, &before_);
    listener_ = std::jthread([this, ours](std::stop_token over) {
        timespec look_again{.tv_sec = 0, .tv_nsec = 50'000'000};
        while (!over.stop_requested()) {
            int got = sigtimedwait(&ours, nullptr, &look_again);
            if (got <= 0) continue;
            signal_ = got;
            stop_.request_stop();
        }
    });
}

StopOnSignal::~StopOnSignal() {
    listener_.request_stop();
    listener_.join();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace stint::cli
