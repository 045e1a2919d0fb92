// Deletions in time: marking objects, taking marks away, and the sweep that submits the tasks of
// those whose time has come. Every node sweeps and none of them leads: the store hands each mark to
// one of them, and a kind no faster than its pace.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "engine/pulse.h"
#include "model/steps.h"
#include "store/results.h"
#include "wake/wake.h"

namespace stint::services {

struct DeletionWish {
    TenantId tenant = kDefaultTenant;
    std::string kind, key;
    std::string initiator;
    model::NewTask task;
    std::vector<model::NewTask> follow_ups;
    Duration grace{};
};

// Errors of the request are in the results; a store that fails throws, as store.h says.
class DeletionDesk {
public:
    DeletionDesk(store::Store& store, wake::Wake& wake, base::Clock& clock, base::Logger log)
        : store_(store), wake_(wake), clock_(clock), log_(std::move(log)) {}
    ~DeletionDesk() { Stop(); }

    Result<model::Deletion> Mark(const DeletionWish& wish);
    Result<model::Deletion> Unmark(TenantId tenant, std::string_view kind, std::string_view key);
    Result<std::vector<model::Deletion>> List(const store::DeletionsRequest& request);
    Result<void> SetPace(const model::Pace& pace);

    // One round of the sweep. Returns when to come back. Does not throw for a store that fails.
    base::Instant RunOnce();
    // The same from a thread of its own, until Stop().
    void Start(Duration look_every, Duration error_wait);
    void Stop();  // idempotent

private:
    bool Round();  // true: there may be more
    void Begin(std::span<const model::Deletion> deletions);
    std::optional<model::NewTask> TaskOf(const model::Deletion& deletion);
    Result<void> CheckOver(const model::Deletion& begun);

    store::Store& store_;
    wake::Wake& wake_;
    base::Clock& clock_;
    base::Logger log_;
    Duration look_every_ = std::chrono::seconds{5};
    Duration error_wait_ = std::chrono::seconds{5};
    std::atomic<bool> told_{true};  // there may be something that nobody has seen yet
    base::Instant looked_{};        // by itself, of the real clock
    engine::Pulse pulse_;
    std::mutex life_;
    std::jthread thread_;  // guarded by life_
};

}  // namespace stint::services
