#include "store/sqlite/shared_flows.h"

#include "store/sqlite/shared_call.h"
#include "store/sqlite/wire_flows.h"

namespace stint::store::lite {

std::optional<FlowHistory> SharedFlows::Begin(TaskId task, LeaseToken token) {
    return store_.Do<std::optional<FlowHistory>>(
        Operation::kFlowBegin,
        [&](DirectStore& s) { return s.Flows().Begin(task, token); },
        task,
        token
    );
}

FlowReply SharedFlows::Record(const FlowWrite& write) {
    return store_.Do<FlowReply>(
        Operation::kFlowRecord, [&](DirectStore& s) { return s.Flows().Record(write); }, write
    );
}

FlowReply SharedFlows::AwaitSignal(const FlowWrite& write) {
    return store_.Do<FlowReply>(
        Operation::kFlowAwait, [&](DirectStore& s) { return s.Flows().AwaitSignal(write); }, write
    );
}

SignalReply SharedFlows::Signal(const NewSignal& signal) {
    return store_.Do<SignalReply>(
        Operation::kFlowSignal, [&](DirectStore& s) { return s.Flows().Signal(signal); }, signal
    );
}

ForkReply SharedFlows::Fork(const FlowFork& fork) {
    return store_.Do<ForkReply>(
        Operation::kFlowFork, [&](DirectStore& s) { return s.Flows().Fork(fork); }, fork
    );
}

std::optional<FlowHistory> SharedFlows::Get(TaskId task) {
    return store_.Do<std::optional<FlowHistory>>(
        Operation::kFlowGet, [&](DirectStore& s) { return s.Flows().Get(task); }, task
    );
}

std::vector<FlowRecord> SharedFlows::List(const FlowListRequest& request) {
    return store_.Do<std::vector<FlowRecord>>(
        Operation::kFlowList, [&](DirectStore& s) { return s.Flows().List(request); }, request
    );
}

int SharedFlows::Tidy(int limit) {
    return store_.Do<int>(
        Operation::kFlowTidy, [&](DirectStore& s) { return s.Flows().Tidy(limit); }, limit
    );
}

}  // namespace stint::store::lite
