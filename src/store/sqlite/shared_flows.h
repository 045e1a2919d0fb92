// Flows as every process sees them.
#pragma once

#include "store/flows.h"

namespace stint::store::lite {

class SharedStore;

class SharedFlows final : public FlowStore {
public:
    explicit SharedFlows(SharedStore& store) : store_(store) {}

    std::optional<FlowHistory> Begin(TaskId task, LeaseToken token) override;
    FlowReply Record(const FlowWrite& write) override;
    FlowReply AwaitSignal(const FlowWrite& write) override;
    SignalReply Signal(const NewSignal& signal) override;
    ForkReply Fork(const FlowFork& fork) override;
    std::optional<FlowHistory> Get(TaskId task) override;
    std::vector<FlowRecord> List(const FlowListRequest& request) override;
    int Tidy(int limit) override;

private:
    SharedStore& store_;
};

}  // namespace stint::store::lite
