// What Fire() does, written once for every store: a store gives it the rows, under lock, and writes
// what comes out. All of it is one transaction of the store.
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "store/events.h"
#include "store/store.h"

namespace stint::store {

// The rows of one transaction.
class FiringTables {
public:
    virtual ~FiringTables() = default;

    struct Locked {
        EventNo event;
        TenantId tenant;
        bool pending = false;
        int depth = 0;
        std::set<std::pair<std::string, std::string>> fired;  // workflow, trigger
    };
    // Publishes an event that is `here`.
    virtual PublishReply Publish(const NewEvent& event) = 0;
    // Nobody else changes them until the end. Those that are not there are left out.
    virtual std::map<EventNo, Locked> Lock(std::span<const EventOutcome> outcomes) = 0;
    // The newest round of each, locked likewise, also where there is none yet. Of a key that fired
    // once and is remembered without its round: a round that has fired.
    virtual std::map<JoinKey, JoinInstance> Rounds(const std::set<JoinKey>& keys) = 0;
    virtual std::vector<SubmitReply> Submit(std::span<const NewTask> tasks) = 0;
    virtual Result<State> Finish(const BackgroundFinish& finish) = 0;
    virtual bool IsTerminal(TaskId task) = 0;
    virtual Time Now() = 0;

    struct Ending {
        EventNo event;
        EventState state = EventState::kPending;
        std::string reason;
        Duration later{};  // of one that stays pending
    };
    struct Firing {
        FiringRecord record;
        int depth = 0;  // of its event
    };
    // `rounds`: with all of their parts. Those that are `once` and have fired are remembered.
    virtual void Save(
        std::span<const Ending> endings,
        std::span<const Firing> firings,
        std::span<const JoinInstance> rounds
    ) = 0;
};

std::vector<FireReply> FireAll(FiringTables& tables, std::span<const EventOutcome> outcomes);

// The actor of a change that a trigger makes.
std::string TriggerActor(const Action& action);
BackgroundFinish FinishOf(const Action& action, const Action::Finish& finish);

}  // namespace stint::store
