// What is done to flows, written once, over rows that each store brings under lock and writes back.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/flows.h"

namespace stint::store {

// Within one transaction.
class FlowTables {
public:
    virtual ~FlowTables() = default;

    virtual Time Now() = 0;
    enum class Hold : std::uint8_t { kLost, kHeld, kStopping };
    // Whether this token holds the task. It cannot lose it before the transaction ends.
    virtual Hold Holds(TaskId task, LeaseToken token) = 0;
    struct TaskState {
        State state = State::kOpen;
        TenantId tenant = kDefaultTenant;
    };
    virtual std::optional<TaskState> StateOf(TaskId task) = 0;

    // Locked until the end of the transaction, for whoever asks for the same.
    virtual std::optional<FlowRecord> Find(TaskId task) = 0;
    virtual FlowRecord Make(TaskId task, TenantId tenant) = 0;  // or finds what is there
    virtual void Save(const FlowRecord& flow) = 0;
    virtual std::vector<FlowStep> Steps(TaskId task) = 0;  // by number
    virtual std::optional<FlowStep> Step(TaskId task, std::string_view name, int occurrence) = 0;
    virtual void Add(TaskId task, const FlowStep& step) = 0;
    virtual void End(TaskId task, const FlowStep& step) = 0;  // its state, result and time

    virtual std::optional<FlowSignal> NextSignal(TaskId task, std::string_view name) = 0;
    virtual std::optional<FlowSignal> SignalById(TaskId task, std::string_view id) = 0;
    virtual void Add(TaskId task, const FlowSignal& signal) = 0;
    virtual void Take(TaskId task, const FlowSignal& signal) = 0;  // by signal.step

    virtual SubmitReply Submit(const NewTask& task) = 0;
    // Makes a sleeping task due now, and tells its queue. Nothing: it does not sleep.
    virtual std::optional<std::string> Wake(
        TaskId task, std::string_view actor, const std::string& reason
    ) = 0;
};

std::optional<FlowHistory> BeginFlow(FlowTables& tables, TaskId task, LeaseToken token);
FlowReply RecordStep(FlowTables& tables, const FlowWrite& write);
FlowReply AwaitSignal(FlowTables& tables, const FlowWrite& write);
SignalReply SignalFlow(FlowTables& tables, const NewSignal& signal);
ForkReply ForkFlow(FlowTables& tables, const FlowFork& fork);

}  // namespace stint::store
