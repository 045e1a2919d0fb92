// Flows as the store keeps them: recorded steps and signals. Part of every Store, see
// Store::Flows(): the same errors, clock and threads.
//
// What a flow records needs the token of its lease: who has lost the task can record nothing. A
// flow that waits for a signal sleeps as a task that is not due. The lock on its row decides
// between a signal that comes and an attempt that lies down: either the signal finds it sleeping
// and wakes it, or the settlement finds that the signal has come and does not put it to sleep.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/flow.h"
#include "model/limits.h"
#include "store/store.h"

namespace stint::store {

struct FlowWrite {
    TaskId task;
    LeaseToken token;
    FlowStep step;  // its number and its times are the store's
    // Of a sleep its length, of a signal how long it is waited for; none = without end.
    std::optional<Duration> length;
    std::optional<NewTask> child;  // made with the step
};

struct FlowReply {
    enum class Kind : std::uint8_t {
        kRecorded,  // now, or before: `step` is what stands in the record
        kLost,      // the token is not the current one; nothing was changed
        kStopping,  // the task is to be cancelled: nothing new is begun
        kRefused,   // see the message; nothing was changed
        kFull,      // the called task's queue is full, see the message; nothing was changed
    };
    Kind kind = Kind::kRecorded;
    FlowStep step;
    std::string message;
    Time now{};
    std::string queue;  // of the child, for the wake-up
    bool due_now = false;
};

struct SignalReply {
    enum class Kind : std::uint8_t {
        kAccepted,
        kExisting,  // the same id said the same before
        kConflict,  // the same id said something else before
        kNotFound,
        kFinished,  // the task is over
        kFull,      // too many wait already
        kInvalid,
    };
    Kind kind = Kind::kAccepted;
    std::string message;
    bool woken = false;  // the flow slept for it and is due now
    std::string queue;   // then
};

struct FlowFork {
    TaskId from;
    std::string step;  // the first that is not taken over
    int occurrence = 1;
    NewTask task;  // what runs with what was recorded before it
};
struct ForkReply {
    enum class Kind : std::uint8_t { kCreated, kNotFound, kRefused };
    Kind kind = Kind::kCreated;
    TaskId task;
    int steps = 0;  // taken over
    std::string message;
    std::string queue;
    bool due_now = false;
};

struct FlowListRequest {
    std::optional<TenantId> tenant;
    std::optional<TaskId> before;  // keyset: only ids below
    int limit = limits::kListPageDefault;
};

class FlowStore {
public:
    virtual ~FlowStore() = default;

    // At the begin of an attempt: what was recorded, without signals. Nothing: the token does not
    // hold the task.
    virtual std::optional<FlowHistory> Begin(TaskId task, LeaseToken token) = 0;
    // Adds the step, or ends one that is open. The same again changes nothing.
    virtual FlowReply Record(const FlowWrite& write) = 0;
    // Takes the next signal of the name `step.about` for this step. An open step: there is none
    // yet, and the next one wakes the task when it sleeps.
    virtual FlowReply AwaitSignal(const FlowWrite& write) = 0;

    virtual SignalReply Signal(const NewSignal& signal) = 0;
    virtual ForkReply Fork(const FlowFork& fork) = 0;

    virtual std::optional<FlowHistory> Get(TaskId task) = 0;
    virtual std::vector<FlowRecord> List(const FlowListRequest& request) = 0;  // newest first
    // Forgets flows whose tasks are no longer kept; returns how many were looked at.
    virtual int Tidy(int limit) = 0;
};

}  // namespace stint::store
