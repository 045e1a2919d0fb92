// The worker's own state, moved only through the table in model/worker_state. It says what the
// claim loop does; with several slots attempts run beside it, and it is Processing while it waits
// for one.
#pragma once

#include <mutex>

#include "base/log.h"
#include "model/worker_state.h"

namespace stint::engine {

class Machine {
public:
    explicit Machine(const base::Logger& log) : log_(log.For("worker")) {}

    model::WorkerState state() const;

    // The event must be possible, unless the worker is stopping: then it is ignored (false).
    bool Fire(model::WorkerEvent event);
    // For threads beside the loop: false when the event is not possible now.
    bool TryFire(model::WorkerEvent event);
    // From wherever the loop rests to Polling. False: it is stopping, or its store is broken.
    bool ToPolling();

private:
    bool Move(std::unique_lock<std::mutex>& lock, model::WorkerEvent event);

    const base::Logger log_;
    mutable std::mutex mutex_;
    model::WorkerState state_ = model::WorkerState::kStartup;  // guarded by mutex_
};

}  // namespace stint::engine
