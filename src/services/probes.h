// Which resources this process offers in its claims: each is checked again and again, on a thread
// of its own, and what does not work is withheld. In memory only: what one process cannot reach,
// another may.
#pragma once

#include <stint/probe.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "engine/pulse.h"

namespace stint::services {

// How often in a row it must fail to be withheld, and succeed to be offered again. Pure.
class ProbeTally {
public:
    ProbeTally(int fail_after, int pass_after) : fail_after_(fail_after), pass_after_(pass_after) {}

    // True: it is offered now and was not before, or the other way round. The first check decides
    // at once when it fails.
    bool Note(bool works);
    bool offered() const { return offered_; }
    int failures() const { return failures_; }

private:
    const int fail_after_, pass_after_;
    bool known_ = false;  // it was checked
    bool offered_ = false;
    int failures_ = 0, successes_ = 0;  // in a row
};

class Probes {
public:
    // Throws std::invalid_argument for a probe that cannot be.
    Probes(base::Clock& clock, base::Logger log, std::vector<Probe> probes);
    ~Probes();  // Stop()
    Probes(const Probes&) = delete;
    Probes& operator=(const Probes&) = delete;

    // Called when a resource is offered again. Before Start.
    void OnOffered(std::function<void()> listener);
    void Start();
    void Stop();  // idempotent; a callback that hangs is left behind with a log line
    bool empty() const { return watched_.empty(); }

    // Resources of which a probe has not succeeded often enough, or is late. Any thread.
    std::vector<std::string> Withheld() const;
    std::vector<ProbeInfo> Look() const;

private:
    struct Watched;  // shared with its thread, which may outlive us
    struct Listener;
    static void Watch(
        const std::shared_ptr<Watched>& watched,
        const std::shared_ptr<Listener>& listener,
        std::stop_token stop
    );

    base::Clock& clock_;
    base::Logger log_;
    const std::shared_ptr<Listener> listener_;
    std::vector<std::shared_ptr<Watched>> watched_;
    std::mutex life_;
    std::vector<std::jthread> threads_;  // guarded by life_
};

}  // namespace stint::services
