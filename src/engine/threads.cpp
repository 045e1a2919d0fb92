// Worker with threads: loops around the steps of core.cpp, and their end.
#include <algorithm>

#include "base/check.h"
#include "base/thread.h"
#include "engine/core.h"
#include "model/limits.h"

namespace stint::engine {

namespace {

constexpr Duration kLongestSleep = std::chrono::minutes{10};

}  // namespace

void Worker::Core::StartThreads() {
    threaded = true;
    attempts.aside().UseThreads();
    auto loop = [this](Pulse& pulse, auto step) {
        loops.push_back(base::StartThread([this, &pulse, step](std::stop_token stop) mutable {
            while (!stop.stop_requested()) {
                base::Instant next{};
                try {
                    next = step();
                } catch (const std::exception& error) {
                    // Not the store's: steps take care of that. Say it and go on.
                    ++parts.metrics.loop_errors;
                    parts.log.Error("a loop failed unexpectedly", {{"error", error.what()}});
                    next = parts.clock.Now() + options.error_wait;
                }
                base::Instant latest = parts.clock.Now() + kLongestSleep;
                pulse.Wait(parts.clock, stop, std::min(next, latest));
            }
        }));
    };
    loop(claim_pulse, [this] { return ClaimOnce(); });
    loop(settle_pulse, [this] { return SettleOnce(); });
    loop(renew_pulse, [this] {
        base::Instant due = session.renew_at();
        return due <= parts.clock.Now() ? RenewOnce() : due;
    });
    loop(watch_pulse, [this] { return WatchOnce(); });
    loop(sweep_pulse, [this, sweep = base::Instant{}, housekeep = base::Instant{}]() mutable {
        base::Instant now = parts.clock.Now();
        if (sweep <= now) sweep = SweepOnce();
        if (housekeep <= now) housekeep = HousekeepOnce();
        return std::min(sweep, housekeep);
    });
    for (int i = 0; i < options.slots; ++i) {
        auto runner = std::make_shared<Runner>();
        // A thread that is left behind touches neither `this` nor anything of it after Run.
        std::jthread thread = base::StartThread([this, runner](std::stop_token stop) {
            for (;;) {
                std::vector<AttemptPtr> crew = attempts.WaitForCrew(stop);
                if (crew.empty()) return;
                {
                    std::lock_guard guard(runner->mutex);
                    runner->crew = crew;
                }
                if (!executor.Run(crew)) return;
                std::lock_guard guard(runner->mutex);
                runner->crew.clear();
            }
        });
        runners.push_back({std::move(runner), std::move(thread)});
    }
}

void Worker::Core::StopThreads() {
    for (std::jthread& loop : loops) loop.request_stop();
    for (RunnerThread& runner : runners) runner.thread.request_stop();
    for (std::jthread& loop : loops) loop.join();
    loops.clear();
    for (RunnerThread& runner : runners) {
        std::unique_lock lock(runner.runner->mutex);
        bool left_behind = std::ranges::any_of(runner.runner->crew, &Attempt::left_behind);
        lock.unlock();
        if (left_behind) {
            runner.thread.detach();
        } else {
            runner.thread.join();
        }
    }
    runners.clear();
    attempts.aside().Finish(model::limits::kAsideGrace);
}

void Worker::Core::SayUnhealthy() {
    std::string why = std::to_string(executor.threads_lost()) + " of " +
                      std::to_string(options.slots) +
                      " slots are lost to handlers that ignored their timeouts";
    parts.log.Error("unhealthy: no more is claimed", {{"why", why}});
    if (!options.on_unhealthy) return;
    auto tell = [callback = options.on_unhealthy, log = parts.log, why] {
        try {
            callback(why);
        } catch (const std::exception& error) {
            log.Error("on_unhealthy threw", {{"error", error.what()}});
        } catch (...) {
            log.Error("on_unhealthy threw");
        }
    };
    if (!threaded) return tell();
    unhealthy_teller = base::StartThread(tell);
}

void Worker::Start() {
    std::lock_guard guard(core_->life_mutex);
    CHECK_WHY(core_->life == Core::Life::kNew, "a worker starts once");
    core_->life = Core::Life::kStarted;
    core_->StartThreads();
}

void Worker::Stop() {
    Stop(core_->options.drain);
}

void Worker::Stop(Duration drain) {
    InHook::Refuse("Stop()");
    {
        std::unique_lock lock(core_->life_mutex);
        if (core_->life == Core::Life::kNew) return;
        if (core_->life != Core::Life::kStarted) {
            core_->life_changed.wait(lock, [&] { return core_->life == Core::Life::kStopped; });
            return;
        }
        core_->life = Core::Life::kStopping;
    }
    core_->Shut(drain, core_->hurry.get_token());
    core_->StopThreads();
    {
        std::lock_guard guard(core_->life_mutex);
        core_->life = Core::Life::kStopped;
    }
    core_->life_changed.notify_all();
}

void Worker::StopNow() {
    InHook::Refuse("StopNow()");
    core_->hurry.request_stop();
    Stop(Duration::zero());
}

}  // namespace stint::engine
