// Ends a process that was asked to stop: ask, terminate after a grace, kill after another.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <csignal>
#include <stop_token>

#include "base/clock.h"
#include "engine/isolate/spawn.h"

namespace stint::engine::isolate {

// Makes a stop token something that poll() can wait for.
class StopEvent {
public:
    explicit StopEvent(std::stop_token stop)
        : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
          callback_(std::move(stop), [this] { eventfd_write(event_.get(), 1); }) {}
    int fd() const { return event_.get(); }

private:
    Fd event_;
    std::stop_callback<std::function<void()>> callback_;
};

class Keeper {
public:
    // Real time: processes know no other.
    Keeper(const Child& child, Duration grace) : child_(child), grace_(grace) {}

    bool stopping() const { return step_ != Step::kRunning; }
    // The stop was requested. `ask` first: a child that listens gets a grace before it is
    // signalled.
    void Begin(bool ask) {
        if (stopping()) return;
        step_ = ask ? Step::kAsked : Step::kTerminated;
        if (!ask) child_.SignalGroup(SIGTERM);
        next_ = base::SystemClock().Now() + grace_;
    }
    // Goes on when its time has come.
    void Advance() {
        if (!stopping() || base::SystemClock().Now() < next_) return;
        if (step_ == Step::kAsked) {
            child_.SignalGroup(SIGTERM);
            step_ = Step::kTerminated;
            next_ += grace_ / 4;
        } else {
            child_.SignalGroup(SIGKILL);
            next_ += grace_;
        }
    }
    // How long poll() may wait.
    int Milliseconds(Duration longest) const {
        if (!stopping()) return static_cast<int>(longest.count());
        auto left = std::chrono::ceil<Duration>(next_ - base::SystemClock().Now());
        return static_cast<int>(std::clamp(left, Duration{0}, longest).count());
    }

private:
    enum class Step : std::uint8_t { kRunning, kAsked, kTerminated };
    const Child& child_;
    const Duration grace_;
    Step step_ = Step::kRunning;
    base::Instant next_{};
};

}  // namespace stint::engine::isolate
