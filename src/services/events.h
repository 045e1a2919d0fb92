// Processes events: asks the definitions what each of them fires, and has the store do it. Any
// number of nodes may: the store hands an event to one at a time, and records each firing once.
//
// Driven with a thread (Start, Stop) or stepwise (RunOnce).
#pragma once

#include <stint/log.h>
#include <stint/options.h>
#include <atomic>

#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "engine/pulse.h"
#include "services/definitions.h"
#include "store/events.h"
#include "store/store.h"
#include "wake/wake.h"

namespace stint::services {

struct EventServiceOptions {
    PollOptions poll = {};
    Duration error_wait = std::chrono::seconds{5};
    Duration tidy_every = std::chrono::seconds{60};
    Duration taken = model::limits::kEventTaken;  // then another node may have the event, too
    LogSink log = {};
};

class EventService {
public:
    EventService(
        store::Store& store,
        wake::Wake& wake,
        base::Clock& clock,
        base::Random& random,
        EventServiceOptions options
    );
    ~EventService();
    EventService(const EventService&) = delete;
    EventService& operator=(const EventService&) = delete;

    // Something was heard since the last look that makes another worth while.
    bool told() const { return told_; }

    void Start();
    void Stop();  // returns when the step that runs is over; idempotent

    // Processes what is pending, ends joins whose time is over, forgets what is old. Returns when
    // it wants to be called next. Does not throw for a store that fails.
    base::Instant RunOnce();

    // Stores it and wakes those who process events. An event without an id gets one, so that a
    // publish whose end is unknown can be repeated, for some seconds; only then is it kUnknown.
    Result<EventNo> Publish(model::NewEvent event);

    // An event that stays in this process: what it fires is done now, in one transaction, and only
    // that is stored; nothing when it fires nothing. The same source and id again fires nothing and
    // returns what it fired. Throws what the store throws.
    Result<std::vector<store::FiringRecord>> HandleHere(const model::NewEvent& event);

private:
    template <class Work>
    std::invoke_result_t<Work> Surely(Work work);
    Result<std::vector<store::FiringRecord>> FireHere(
        const model::NewEvent& event, std::vector<store::Action> actions
    );
    base::Instant Process();
    void Tidy();
    std::shared_ptr<const Definitions> At(std::int64_t revision);
    std::shared_ptr<const Definitions> Recent();
    store::EventOutcome OutcomeOf(
        const model::EventRecord& event,
        const Definitions& definitions,
        Time now,
        std::size_t& bytes  // grows by those of the texts that it holds
    );
    void KeepTenantsApart(TenantId tenant, std::vector<store::Action>& actions);
    void Fire(std::span<const store::EventOutcome> outcomes);
    void NoteFailure(const store::EventOutcome& failed, const std::string& why, int tries);
    void Tell(std::span<const store::FireReply> replies);
    base::Instant Later(Duration time);
    void Hear(const wake::Hint& hint);

    store::Store& store_;
    wake::Wake& wake_;
    base::Clock& clock_;
    base::Random& random_;
    const EventServiceOptions options_;
    const base::Logger log_;

    std::atomic<bool> told_{true};  // there may be something that nobody has seen yet
    base::Instant looked_{};        // by itself, of the real clock
    engine::Pulse pulse_;
    int subscription_ = 0;
    Duration idle_;  // the next wait, while nothing is found
    base::Instant tidy_at_{};
    bool failing_ = false;

    std::mutex mutex_;
    std::shared_ptr<const Definitions> definitions_;  // guarded by mutex_; null: none known yet
    std::int64_t revision_ = -1;                      // guarded by mutex_
    base::Instant read_at_{};                         // guarded by mutex_: the definitions

    std::jthread thread_;
};

}  // namespace stint::services
