// Something that happened, published by a program or by a task.
#pragma once

#include <stint/ids.h>
#include <stint/result.h>
#include <stint/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "model/limits.h"

namespace stint::model {

struct NewEvent {
    TenantId tenant = kDefaultTenant;
    std::string source = {};  // who says it
    // With the source: which event. Said again within the retention it is the same event and fires
    // nothing. Empty: an event of its own each time.
    std::string id = {};
    std::string type = {};
    std::string data = "null";      // JSON
    std::optional<Time> time = {};  // when it happened; none = when it is published
    TaskId cause = {};              // the task that publishes it; none = somebody outside
};
Result<void> Validate(const NewEvent& event);

// What a known id stands for: true when the two say the same.
bool SaysTheSame(const NewEvent& again, std::string_view type, std::string_view data);

enum class EventState : std::uint8_t {
    kPending,   // not yet looked at, or something it fires has to wait
    kDone,      // everything it fires has been fired
    kUnwanted,  // no definition had a use for it
    kRefused,   // see the reason; nothing (more) is fired
};
std::string_view EventStateName(EventState state);
std::optional<EventState> EventStateNamed(std::string_view name);

struct EventRecord {
    EventNo no;
    TenantId tenant = kDefaultTenant;
    std::string source;
    std::string id;
    std::string type;
    std::string data;
    Time time{};
    TaskId cause;
    int depth = 0;  // 0: from outside; one more than the event that led to its cause
    EventState state = EventState::kPending;
    std::string reason;  // why refused, why still pending
    int tries = 0;       // how often a node took it
    Time published_at{};
    std::optional<Time> processed_at;
};

// Types of the engine's own events begin with it; nobody else may publish them.
inline constexpr std::string_view kOwnEvents = "stint.";
// A task is complete, and some join waits for tasks of its type. Its data is {"task": "<id>"}.
inline constexpr std::string_view kTaskComplete = "stint.task.complete";

// Why an event at this depth is not looked at any more; empty = it is.
std::string TooDeep(int depth);

// What expressions and templates see: the members of the data, and $event with source, id, type,
// time and depth. Data that is not an object is $event.data.
base::Json FieldsOf(const EventRecord& event);

}  // namespace stint::model
