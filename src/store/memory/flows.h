// The memory store's flows.
#pragma once

#include <functional>

#include "store/flow_work.h"
#include "store/memory/ops.h"

namespace stint::store::memory {

class FlowDoor final : public FlowStore {
public:
    // Calls its argument as one operation of the store.
    using Run = std::function<void(const std::function<void(Ops&, Data&)>&)>;
    explicit FlowDoor(Run run) : run_(std::move(run)) {}

    std::optional<FlowHistory> Begin(TaskId task, LeaseToken token) override;
    FlowReply Record(const FlowWrite& write) override;
    FlowReply AwaitSignal(const FlowWrite& write) override;
    SignalReply Signal(const NewSignal& signal) override;
    ForkReply Fork(const FlowFork& fork) override;
    std::optional<FlowHistory> Get(TaskId task) override;
    std::vector<FlowRecord> List(const FlowListRequest& request) override;
    int Tidy(int limit) override;

private:
    template <class Work>
    auto Do(Work&& work);

    const Run run_;
};

}  // namespace stint::store::memory
