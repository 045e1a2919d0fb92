// The flows of the shared store as one simulated process sees them.
#pragma once

#include "store/flows.h"

namespace stint::sim {

class FaultyStore;
class Oracle;

class FaultyFlows final : public store::FlowStore {
public:
    FaultyFlows(FaultyStore& store, store::Store& inner, Oracle& oracle)
        : store_(store), inner_(inner), oracle_(oracle) {}

    std::optional<model::FlowHistory> Begin(TaskId task, LeaseToken token) override;
    store::FlowReply Record(const store::FlowWrite& write) override;
    store::FlowReply AwaitSignal(const store::FlowWrite& write) override;
    store::SignalReply Signal(const model::NewSignal& signal) override;
    store::ForkReply Fork(const store::FlowFork& fork) override;
    std::optional<model::FlowHistory> Get(TaskId task) override;
    std::vector<model::FlowRecord> List(const store::FlowListRequest& request) override;
    int Tidy(int limit) override;

private:
    // I3: only with the token that holds the task now.
    void CheckFence(const store::FlowWrite& write, const store::FlowReply& reply, bool held);
    bool Holds(const store::FlowWrite& write);

    FaultyStore& store_;
    store::Store& inner_;
    Oracle& oracle_;
};

}  // namespace stint::sim
