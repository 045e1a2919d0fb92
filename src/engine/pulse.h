// A flag that ends a wait: what a loop sleeps on.
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#include "base/clock.h"

namespace stint::engine {

class Pulse {
public:
    void Poke() {
        {
            std::lock_guard guard(mutex_);
            if (std::exchange(poked_, true)) return;  // whoever waits is on its way already
        }
        wake_.notify_all();
    }

    // Until poked, stopped or `until`. Consumes the poke.
    void Wait(base::Clock& clock, std::stop_token stop, base::Instant until) {
        for (;;) {
            if (clock.Now() >= until) return;
            std::unique_lock lock(mutex_);
            if (poked_ || stop.stop_requested()) {
                poked_ = false;
                return;
            }
            clock.WaitUntil(lock, wake_, stop, until);
        }
    }

private:
    std::mutex mutex_;
    std::condition_variable_any wake_;
    bool poked_ = false;
};

}  // namespace stint::engine
