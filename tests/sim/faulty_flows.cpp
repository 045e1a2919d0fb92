#include "sim/faulty_flows.h"

#include <fmt/format.h>

#include "sim/faulty_store.h"

namespace stint::sim {

using store::FlowReply;

bool FaultyFlows::Holds(const store::FlowWrite& write) {
    return !inner_.SettledBy(write.task, write.token).has_value();
}

void FaultyFlows::CheckFence(const store::FlowWrite& write, const FlowReply& reply, bool held) {
    if (held || reply.kind != FlowReply::Kind::kRecorded) return;
    oracle_.Violate(
        "I3",
        write.task,
        fmt::format("step {} is recorded by who has lost the task", write.step.name)
    );
}

std::optional<model::FlowHistory> FaultyFlows::Begin(TaskId task, LeaseToken token) {
    std::optional<model::FlowHistory> history;
    store_.AroundWrite("flows.begin", Call::kNone, [&] {
        history = inner_.Flows().Begin(task, token);
    });
    return history;
}
FlowReply FaultyFlows::Record(const store::FlowWrite& write) {
    FlowReply reply;
    store_.AroundWrite("flows.record", Call::kSubmit, [&] {
        bool held = Holds(write);
        reply = inner_.Flows().Record(write);
        CheckFence(write, reply, held);
    });
    return reply;
}
FlowReply FaultyFlows::AwaitSignal(const store::FlowWrite& write) {
    FlowReply reply;
    store_.AroundWrite("flows.await", Call::kNone, [&] {
        bool held = Holds(write);
        reply = inner_.Flows().AwaitSignal(write);
        CheckFence(write, reply, held);
    });
    return reply;
}
store::SignalReply FaultyFlows::Signal(const model::NewSignal& signal) {
    store::SignalReply reply;
    store_.AroundWrite("flows.signal", Call::kEdit, [&] { reply = inner_.Flows().Signal(signal); });
    return reply;
}
store::ForkReply FaultyFlows::Fork(const store::FlowFork& fork) {
    store::ForkReply reply;
    store_.AroundWrite("flows.fork", Call::kSubmit, [&] { reply = inner_.Flows().Fork(fork); });
    return reply;
}
std::optional<model::FlowHistory> FaultyFlows::Get(TaskId task) {
    std::optional<model::FlowHistory> history;
    store_.AroundRead("flows.get", [&] { history = inner_.Flows().Get(task); });
    return history;
}
std::vector<model::FlowRecord> FaultyFlows::List(const store::FlowListRequest& request) {
    std::vector<model::FlowRecord> flows;
    store_.AroundRead("flows.list", [&] { flows = inner_.Flows().List(request); });
    return flows;
}
int FaultyFlows::Tidy(int limit) {
    int looked = 0;
    store_.AroundWrite("flows.tidy", Call::kHousekeep, [&] {
        looked = inner_.Flows().Tidy(limit);
    });
    return looked;
}

}  // namespace stint::sim
