// A machine that runs a worker: one process after another, each with a fresh session and the same
// host name. The worker is the engine's own, driven stepwise: one fiber per loop of the threaded
// way.
#pragma once

#include <memory>
#include <string>

#include "engine/registry.h"
#include "sim/setting.h"

namespace stint::sim {

class Node {
public:
    // `fill` registers the handlers of each new process.
    Node(Setting& setting, int number, std::function<void(engine::Registry&, store::Store&)> fill);
    ~Node();

    // Starts a process. The one before must be gone.
    void Boot();
    bool up() const;  // its last process has fibers that live
    void Crash();     // at some point within the next few dozens
    void Pause();     // longer than the lease, or not
    void StepClock();
    void SpoilLink();  // to the store, for some leases
    void Disarm();     // takes back what is to come
    void Drain();      // asks for a graceful stop

private:
    struct Life;
    std::string StateDir(int boot) const;
    void KeepFiles();

    Setting& setting_;
    const std::string name_;
    const std::function<void(engine::Registry&, store::Store&)> fill_;
    const double rate_;
    int boots_ = 0;
    Process* process_ = nullptr;
    std::weak_ptr<Life> life_;  // owned by its fibers: when the last one ends, all of it is gone
};

}  // namespace stint::sim
