// Events, the definitions that want them, and what they fired. Part of every Store, see
// Store::Events(): the same errors, clock and threads.
//
// An event is processed by any node: NextEvents hands it out for a while, the node finds out what
// it fires, and Fire does all of that in one transaction with the record that it was done. A node
// that dies in between, or two that have the same event, change nothing about "once": the record is
// what counts, not who holds the event.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/event/event.h"
#include "model/event/join.h"
#include "model/event/workflow.h"

namespace stint::store {

using namespace stint::model;  // NOLINT(google-build-using-namespace): the store speaks the model's
                               // words

struct PublishReply {
    enum class Kind : std::uint8_t {
        kAccepted,  // stored; see `refused`
        kExisting,  // the same source and id said the same before
        kConflict,  // the same source and id said something else before; nothing stored
        kInvalid,   // see the message; nothing stored
    };
    Kind kind = Kind::kAccepted;
    EventNo no;            // the event that now stands for it, where there is one
    std::string message;   // what is wrong and how to cure it; of a refused one, why
    bool refused = false;  // stored to be seen, but it will fire nothing
};

struct NextEventsRequest {
    int limit = limits::kEventBatch;
    Duration taken = limits::kEventTaken;  // handed out to nobody else for so long
};
struct NextEventsReply {
    std::vector<EventRecord> events;  // by number
    // Of the definitions; who knows another one reads them again before looking at the events.
    std::int64_t revision = 0;
    Time now{};
};

// ---- firing ------------------------------------------------------------------------------------

// What a trigger, or a join, does about an event.
struct Action {
    std::string workflow;
    std::string trigger;  // or the join's name
    int version = 0;      // of the definition
    struct Finish {
        Finishing what;
        double jitter = 0.5;
    };
    struct Refusal {  // it matched, but nothing can be made of the event
        std::string message;
    };
    std::variant<NewTask, Finish, JoinArrival, Refusal> what;
};

struct EventOutcome {
    EventNo event;
    std::vector<Action> actions;  // all of them; those that were recorded before are left out again
    std::string refusal;          // not empty: the event fires nothing, and this is why
    Duration later{};             // when to come again if something has to wait
    bool last = false;            // nothing waits any more: what cannot be done now is refused
    std::string wait = {};        // not empty: it stays pending whatever is fired, and this is why
    // An event that is published by this very call; `event` is none. It fires if it is a new one.
    std::optional<NewEvent> here = {};
};

struct FiringRecord {
    enum class Kind : std::uint8_t {
        kSubmitted,  // the task was created (or took the request over: unique keys, debounce)
        kExisting,   // a task stood for the request already
        kFinished,   // the background task was finished
        kJoined,     // counted by a join; `task`: the one that it created, if this completed it
        kAbsorbed,   // by a join that had this member, or has fired
        kRefused,    // see the message
        // No trigger's: the handler of a task that follows from the event submitted this one. The
        // workflow is empty, the trigger is the task's id.
        kFollowed,
    };
    EventNo event;
    TenantId tenant = kDefaultTenant;
    std::string workflow;
    std::string trigger;
    int version = 0;
    Kind kind = Kind::kSubmitted;
    TaskId task;
    std::string message;
    Time at{};
};
std::string_view FiringKindName(FiringRecord::Kind kind);

struct FireReply {
    bool pending = false;                   // something has to wait: the event comes again
    bool ignored = false;                   // it was not pending any more; nothing was done
    std::vector<FiringRecord> fired;        // by this call
    std::vector<std::string> queues;        // where tasks were made ready, for the wake-up
    std::optional<PublishReply> published;  // of an event that was published by the call
};

// ---- seeing ------------------------------------------------------------------------------------

struct EventFilter {
    std::optional<TenantId> tenant;
    std::vector<std::string> types;  // any of
    std::vector<EventState> states;  // any of
    std::optional<EventNo> before;   // keyset: only numbers below
    int limit = limits::kListPageDefault;
};

struct FiringFilter {
    EventNo event;         // of this event
    TaskId task;           // that made or finished this task
    std::string workflow;  // of this workflow (and tenant)
    TenantId tenant = kDefaultTenant;
    int limit = limits::kListPageDefault;
};

struct JoinFilter {
    std::optional<TenantId> tenant;
    std::string workflow;           // empty = all
    std::vector<JoinState> states;  // any of
    int limit = limits::kListPageDefault;
    std::optional<std::int64_t> before = {};  // keyset: only rounds with lower numbers
};

struct EventCountKey {
    std::string type;
    EventState state = EventState::kPending;
    friend auto operator<=>(const EventCountKey&, const EventCountKey&) = default;
};

struct TidyRequest {
    int limit = 500;  // rows of each kind per call; the caller comes back
    Duration kept = limits::kEventRetention;
};
struct TidyReply {
    std::vector<JoinInstance> expired;  // joins whose time is over
    int forgotten_events = 0;
    int forgotten_joins = 0;
    bool more = false;
};

class EventStore {
public:
    virtual ~EventStore() = default;

    virtual std::vector<PublishReply> Publish(std::span<const NewEvent> events) = 0;

    // The definition as it is stored now; its version stays when nothing is different.
    virtual Result<WorkflowRecord> PutWorkflow(
        const WorkflowDefinition& definition, std::string_view actor
    ) = 0;
    // False: there is none. What it has fired, and its open joins, stay visible; which keys fired
    // once is forgotten, here and when a join is put with another policy or no more.
    virtual bool RemoveWorkflow(TenantId tenant, std::string_view name) = 0;
    virtual std::vector<WorkflowRecord> Workflows() = 0;  // by tenant and name

    virtual NextEventsReply NextEvents(const NextEventsRequest& request) = 0;
    // One transaction for all of them, and for the publishing of those that are `here`.
    virtual std::vector<FireReply> Fire(std::span<const EventOutcome> outcomes) = 0;

    virtual std::optional<EventRecord> GetEvent(EventNo event) = 0;
    virtual std::vector<EventRecord> ListEvents(const EventFilter& filter) = 0;  // newest first
    virtual std::map<EventCountKey, std::int64_t> CountEvents() = 0;
    virtual std::vector<FiringRecord> Firings(const FiringFilter& filter
    ) = 0;                                                                  // newest event first
    virtual std::vector<JoinInstance> Joins(const JoinFilter& filter) = 0;  // newest first

    // Ends joins whose time is over; forgets what was processed long ago.
    virtual TidyReply Tidy(const TidyRequest& request) = 0;
};

}  // namespace stint::store
