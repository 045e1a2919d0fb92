// Flows as the file's owner sees them.
#pragma once

#include "store/flow_work.h"
#include "store/sqlite/reader_pool.h"
#include "store/sqlite/writer.h"

namespace stint::store::lite {

class DirectFlows final : public FlowStore {
public:
    DirectFlows(Writer& writer, ReaderPool& readers, base::Clock& clock)
        : writer_(writer), readers_(readers), clock_(clock) {}

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
    auto Change(Work&& work);
    template <class Question>
    auto Ask(Question&& question);

    Writer& writer_;
    ReaderPool& readers_;
    base::Clock& clock_;
};

}  // namespace stint::store::lite
