#include "engine/machine.h"

#include "base/check.h"
#include "base/result.h"

namespace stint::engine {

using model::WorkerEvent;
using model::WorkerState;

WorkerState Machine::state() const {
    std::lock_guard guard(mutex_);
    return state_;
}

bool Machine::Fire(WorkerEvent event) {
    std::unique_lock lock(mutex_);
    bool moved = Move(lock, event);
    CHECK_WHY(
        moved || state_ == WorkerState::kDraining || state_ == WorkerState::kStopped,
        fmt::format("{} in {}", model::WorkerEventName(event), model::WorkerStateName(state_))
    );
    return moved;
}

bool Machine::TryFire(WorkerEvent event) {
    std::unique_lock lock(mutex_);
    return Move(lock, event);
}

bool Machine::ToPolling() {
    std::unique_lock lock(mutex_);
    switch (state_) {
        case WorkerState::kPolling:
            return true;
        case WorkerState::kProcessing:
            return Move(lock, WorkerEvent::kSlotsFree);
        case WorkerState::kReportingSuccess:
        case WorkerState::kReportingFailure:
            return Move(lock, WorkerEvent::kReported);
        case WorkerState::kIdle:
            return Move(lock, WorkerEvent::kSleepElapsed) &&
                   Move(lock, WorkerEvent::kConnectedSkip);
        default:
            return false;
    }
}

bool Machine::Move(std::unique_lock<std::mutex>& lock, WorkerEvent event) {
    CHECK(lock.owns_lock());
    auto next = model::Next(state_, event);
    if (!next) return false;
    log_.Debug(
        "state",
        {{"from", std::string(model::WorkerStateName(state_))},
         {"to", std::string(model::WorkerStateName(*next))},
         {"event", std::string(model::WorkerEventName(event))}}
    );
    state_ = *next;
    return true;
}

}  // namespace stint::engine
