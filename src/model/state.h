// The one author of state changes: the table (State, Event) → State, or refused.
//
// Stores may not invent transitions: memory and SQLite ask Next(), PostgreSQL encodes the same
// table in its statements, and the conformance suite compares every pair. docs/internals/states.md
// is printed from this table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stint::model {

// The numbers are stored (view task_status) and never change.
enum class State : std::uint8_t {
    kOpen = 0,        // waiting to be claimed: due or not, resource free or not
    kInProgress = 1,  // held by a worker, under a lease
    kBlocked = 2,     // waits for other tasks
    kBackground = 3,  // runs outside; completed from outside
    kComplete = 4,    // terminal: succeeded
    kError = 5,       // failed, will be tried again when due
    kCancelled = 6,   // terminal: by request
    kDead = 7,        // terminal: failed for good, with a reason
};
inline constexpr int kStateCount = 8;

enum class Event : std::uint8_t {
    kSubmit,             // (none) → OPEN
    kClaim,              // a worker takes the lease
    kRetryDue,           // the wait after a failure is over
    kComplete,           // the holder, or the completer of a background task, reports success
    kBlock,              // the holder waits for subtasks, or a new task for others
    kUnblock,            // what it waited for is over
    kBackground,         // the holder leaves the rest to the outside
    kFailRetryable,      // failed, attempts left
    kFailFinal,          // failed for good
    kSnooze,             // the holder asks to be run again later; the attempt is refunded
    kRelease,            // a draining worker hands back; the attempt is refunded
    kReclaim,            // the lease ended without an outcome, attempts left
    kQuarantine,         // crashed too often while alone
    kBackgroundTimeout,  // nobody completed it in time, attempts left
    kCancel,             // by request
    kExpire,             // not started by its deadline
    kOperatorRetry,      // an operator asks for another generation, or for a retry now
    kEdit,               // changed while waiting; the state stays
};
inline constexpr int kEventCount = 18;

constexpr bool IsTerminal(State state) {
    return state == State::kComplete || state == State::kCancelled || state == State::kDead;
}

std::string_view StateName(State state);            // "open", "in_progress", …: doors use these
std::string_view StateCode(State state);            // "OPEN", "IN_PROGRESS", …: stored codes
std::optional<State> StateNamed(std::string_view);  // either spelling
std::string_view EventName(Event event);            // "submit", "claim", …
std::optional<Event> EventNamed(std::string_view);

// The state after `event`, or nullopt when the table refuses it. nullopt `from` = not yet there.
std::optional<State> Next(std::optional<State> from, Event event);

struct Transition {
    std::optional<State> from;
    Event event;
    State to;
    std::string_view who;   // which part of the engine makes it
    std::string_view what;  // one sentence for the table in the docs
};
std::span<const Transition> Transitions();

// The text of docs/internals/states.md.
std::string StatesDocument();

}  // namespace stint::model
