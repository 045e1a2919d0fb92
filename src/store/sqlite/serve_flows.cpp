#include "store/sqlite/serve.h"
#include "store/sqlite/wire_flows.h"

namespace stint::store::lite {

bool ServeFlows(Operation operation, FlowStore& s, Decoder& in, Encoder& out) {
    switch (operation) {
        case Operation::kFlowBegin:
            Reply<TaskId, LeaseToken>(in, out, [&](auto& task, auto& token) {
                return s.Begin(task, token);
            });
            return true;
        case Operation::kFlowRecord:
            Reply<FlowWrite>(in, out, [&](auto& x) { return s.Record(x); });
            return true;
        case Operation::kFlowAwait:
            Reply<FlowWrite>(in, out, [&](auto& x) { return s.AwaitSignal(x); });
            return true;
        case Operation::kFlowSignal:
            Reply<NewSignal>(in, out, [&](auto& x) { return s.Signal(x); });
            return true;
        case Operation::kFlowFork:
            Reply<FlowFork>(in, out, [&](auto& x) { return s.Fork(x); });
            return true;
        case Operation::kFlowGet:
            Reply<TaskId>(in, out, [&](auto& x) { return s.Get(x); });
            return true;
        case Operation::kFlowList:
            Reply<FlowListRequest>(in, out, [&](auto& x) { return s.List(x); });
            return true;
        case Operation::kFlowTidy:
            Reply<int>(in, out, [&](auto& x) { return s.Tidy(x); });
            return true;
        default:
            return false;
    }
}

}  // namespace stint::store::lite
