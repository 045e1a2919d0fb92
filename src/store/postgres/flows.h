// Flows: recorded steps and signals.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "store/flow_work.h"
#include "store/postgres/db.h"

namespace stint::store::pg {

class PostgresStore;

class PostgresFlows final : public FlowStore {
public:
    explicit PostgresFlows(PostgresStore& store) : store_(store) {}

    std::optional<FlowHistory> Begin(TaskId task, LeaseToken token) override;
    FlowReply Record(const FlowWrite& write) override;
    FlowReply AwaitSignal(const FlowWrite& write) override;
    SignalReply Signal(const NewSignal& signal) override;
    ForkReply Fork(const FlowFork& fork) override;
    std::optional<FlowHistory> Get(TaskId task) override;
    std::vector<FlowRecord> List(const FlowListRequest& request) override;
    int Tidy(int limit) override;

    // Of tasks that are about to sleep, those whose signal has come. None of the others can be
    // signalled before the transaction ends.
    std::set<TaskId> Awake(Transaction& transaction, std::vector<std::int64_t> tasks);

private:
    template <class Work>
    auto Change(Work&& work);

    PostgresStore& store_;
};

}  // namespace stint::store::pg
