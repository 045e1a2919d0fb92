#include "model/state.h"

#include <array>

#include "base/check.h"

namespace stint::model {

namespace {

using enum State;

constexpr std::array kStateNames = {
    std::string_view{"open"},
    std::string_view{"in_progress"},
    std::string_view{"blocked"},
    std::string_view{"background"},
    std::string_view{"complete"},
    std::string_view{"error"},
    std::string_view{"cancelled"},
    std::string_view{"dead"},
};
constexpr std::array kStateCodes = {
    std::string_view{"OPEN"},
    std::string_view{"IN_PROGRESS"},
    std::string_view{"BLOCKED"},
    std::string_view{"BACKGROUND"},
    std::string_view{"COMPLETE"},
    std::string_view{"ERROR"},
    std::string_view{"CANCELLED"},
    std::string_view{"DEAD"},
};
constexpr std::array kEventNames = {
    std::string_view{"submit"},
    std::string_view{"claim"},
    std::string_view{"retry_due"},
    std::string_view{"complete"},
    std::string_view{"block"},
    std::string_view{"unblock"},
    std::string_view{"background"},
    std::string_view{"fail_retryable"},
    std::string_view{"fail_final"},
    std::string_view{"snooze"},
    std::string_view{"release"},
    std::string_view{"reclaim"},
    std::string_view{"quarantine"},
    std::string_view{"background_timeout"},
    std::string_view{"cancel"},
    std::string_view{"expire"},
    std::string_view{"operator_retry"},
    std::string_view{"edit"},
};
static_assert(kStateNames.size() == kStateCount && kStateCodes.size() == kStateCount);
static_assert(kEventNames.size() == kEventCount);

constexpr std::array kTransitions = {
    Transition{{}, Event::kSubmit, kOpen, "submit", "A task is accepted."},
    Transition{
        kOpen,
        Event::kClaim,
        kInProgress,
        "claim",
        "A worker takes the lease; the attempt number grows by one."},
    Transition{kOpen, Event::kCancel, kCancelled, "cancel", "Cancelled before it started."},
    Transition{
        kOpen, Event::kExpire, kDead, "housekeeping", "Not started by its start-by deadline."},
    Transition{
        kOpen,
        Event::kBlock,
        kBlocked,
        "submit",
        "Submitted to start after other tasks, of which some are not finished."},
    Transition{kOpen, Event::kEdit, kOpen, "edit", "Changed while waiting."},
    Transition{
        kError,
        Event::kRetryDue,
        kOpen,
        "claim",
        "The wait after a failure is over; recorded by the claim that takes it."},
    Transition{
        kError, Event::kOperatorRetry, kOpen, "operator", "Tried again now instead of later."},
    Transition{
        kError, Event::kCancel, kCancelled, "cancel", "Cancelled while waiting for its next try."},
    Transition{
        kError,
        Event::kExpire,
        kDead,
        "housekeeping",
        "Not started again by its start-by deadline."},
    Transition{
        kError, Event::kFailFinal, kDead, "operator", "Given up while waiting for its next try."},
    Transition{kError, Event::kEdit, kError, "edit", "Changed while waiting for its next try."},
    Transition{kInProgress, Event::kComplete, kComplete, "settle", "The handler succeeded."},
    Transition{kInProgress, Event::kBlock, kBlocked, "settle", "The handler waits for subtasks."},
    Transition{
        kInProgress,
        Event::kBackground,
        kBackground,
        "settle",
        "The work goes on outside; the slot is free."},
    Transition{
        kInProgress,
        Event::kFailRetryable,
        kError,
        "settle",
        "Failed, attempts left: waits for its next try."},
    Transition{kInProgress, Event::kFailFinal, kDead, "settle", "Failed for good."},
    Transition{
        kInProgress,
        Event::kSnooze,
        kOpen,
        "settle",
        "Asked to be run again later; the attempt is refunded."},
    Transition{
        kInProgress,
        Event::kRelease,
        kOpen,
        "drain",
        "Handed back by a stopping worker; the attempt is refunded."},
    Transition{
        kInProgress,
        Event::kReclaim,
        kOpen,
        "recover",
        "The lease ended without an outcome; the attempt counts if it had started."},
    Transition{
        kInProgress,
        Event::kQuarantine,
        kDead,
        "recover",
        "Crashed its process too often while running alone."},
    Transition{
        kInProgress, Event::kCancel, kCancelled, "settle", "Stopped after a cancel request."},
    Transition{kBlocked, Event::kUnblock, kOpen, "settle", "What it waited for is over."},
    Transition{
        kBlocked, Event::kCancel, kCancelled, "cancel", "Cancelled while waiting for other tasks."},
    Transition{kBackground, Event::kComplete, kComplete, "completer", "Completed from outside."},
    Transition{
        kBackground,
        Event::kFailRetryable,
        kError,
        "completer",
        "Failed from outside, attempts left."},
    Transition{
        kBackground,
        Event::kFailFinal,
        kDead,
        "completer",
        "Failed from outside for good, or timed out with no attempts left."},
    Transition{
        kBackground,
        Event::kBackgroundTimeout,
        kOpen,
        "recover",
        "Nobody completed it in time, attempts left."},
    Transition{
        kBackground, Event::kCancel, kCancelled, "cancel", "Cancelled while it ran outside."},
    Transition{
        kDead, Event::kOperatorRetry, kOpen, "operator", "A new generation, with fresh attempts."},
    Transition{
        kCancelled,
        Event::kOperatorRetry,
        kOpen,
        "operator",
        "A new generation, with fresh attempts."},
};

constexpr int Index(std::optional<State> state) {
    return state ? static_cast<int>(*state) : kStateCount;
}

struct Table {
    std::array<std::array<std::optional<State>, kEventCount>, kStateCount + 1> next{};
    constexpr Table() {
        for (const Transition& transition : kTransitions) {
            next[Index(transition.from)][static_cast<int>(transition.event)] = transition.to;
        }
    }
};
constexpr Table kTable;

}  // namespace

std::string_view StateName(State state) {
    return kStateNames.at(static_cast<std::size_t>(state));
}
std::string_view StateCode(State state) {
    return kStateCodes.at(static_cast<std::size_t>(state));
}
std::string_view EventName(Event event) {
    return kEventNames.at(static_cast<std::size_t>(event));
}

std::optional<State> StateNamed(std::string_view name) {
    for (int i = 0; i < kStateCount; ++i) {
        if (kStateNames[i] == name || kStateCodes[i] == name) return static_cast<State>(i);
    }
    return std::nullopt;
}

std::optional<Event> EventNamed(std::string_view name) {
    for (int i = 0; i < kEventCount; ++i) {
        if (kEventNames[i] == name) return static_cast<Event>(i);
    }
    return std::nullopt;
}

std::optional<State> Next(std::optional<State> from, Event event) {
    return kTable.next[Index(from)][static_cast<int>(event)];
}

std::span<const Transition> Transitions() {
    return kTransitions;
}

}  // namespace stint::model
