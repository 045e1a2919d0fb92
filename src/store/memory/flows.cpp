#include "store/memory/flows.h"

#include <algorithm>

namespace stint::store::memory {

namespace {

class Tables final : public FlowTables {
public:
    Tables(Ops& ops, Data& data) : ops_(ops), data_(data) {}

    Time Now() override { return ops_.now(); }
    Hold Holds(TaskId task, LeaseToken token) override {
        auto found = data_.live.find(task);
        if (found == data_.live.end()) return Hold::kLost;
        const Task& one = found->second;
        bool held = one.record.state == State::kInProgress && token.valid() && one.token == token;
        if (!held) return Hold::kLost;
        return one.record.cancel_requested ? Hold::kStopping : Hold::kHeld;
    }
    std::optional<TaskState> StateOf(TaskId task) override {
        auto record = ops_.Get(task);
        if (!record) return std::nullopt;
        return TaskState{record->state, record->tenant};
    }
    std::optional<FlowRecord> Find(TaskId task) override {
        auto found = data_.flows.find(task);
        if (found == data_.flows.end()) return std::nullopt;
        return found->second.record;
    }
    FlowRecord Make(TaskId task, TenantId tenant) override {
        auto [flow, made] = data_.flows.try_emplace(task);
        if (made) {
            flow->second.record.task = task;
            flow->second.record.tenant = tenant;
            flow->second.record.started_at = Now();
        }
        return flow->second.record;
    }
    void Save(const FlowRecord& flow) override { data_.flows.at(flow.task).record = flow; }
    std::vector<FlowStep> Steps(TaskId task) override { return data_.flows.at(task).steps; }
    std::optional<FlowStep> Step(TaskId task, std::string_view name, int occurrence) override {
        for (const FlowStep& step : data_.flows.at(task).steps) {
            if (step.name == name && step.occurrence == occurrence) return step;
        }
        return std::nullopt;
    }
    void Add(TaskId task, const FlowStep& step) override {
        data_.flows.at(task).steps.push_back(step);
    }
    void End(TaskId task, const FlowStep& ended) override {
        for (FlowStep& step : data_.flows.at(task).steps) {
            if (step.no == ended.no) step = ended;
        }
    }
    std::optional<FlowSignal> NextSignal(TaskId task, std::string_view name) override {
        for (const FlowSignal& signal : data_.flows.at(task).signals) {
            if (signal.name == name && signal.step == 0) return signal;
        }
        return std::nullopt;
    }
    std::optional<FlowSignal> SignalById(TaskId task, std::string_view id) override {
        auto flow = data_.flows.find(task);
        if (flow == data_.flows.end()) return std::nullopt;
        auto found = std::ranges::find(flow->second.signals, id, &FlowSignal::id);
        if (found == flow->second.signals.end()) return std::nullopt;
        return *found;
    }
    void Add(TaskId task, const FlowSignal& signal) override {
        data_.flows.at(task).signals.push_back(signal);
    }
    void Take(TaskId task, const FlowSignal& taken) override {
        for (FlowSignal& signal : data_.flows.at(task).signals) {
            if (signal.no == taken.no) signal.step = taken.step;
        }
    }
    SubmitReply Submit(const NewTask& task) override { return ops_.Submit({&task, 1}).front(); }
    std::optional<std::string> Wake(TaskId task, std::string_view actor, const std::string& reason)
        override {
        return ops_.WakeSleeper(task, actor, reason);
    }

private:
    Ops& ops_;
    Data& data_;
};

}  // namespace

std::optional<std::string> Ops::WakeSleeper(
    TaskId id, std::string_view actor, const std::string& reason
) {
    Task* task = Find(id);
    if (task == nullptr || task->record.state != State::kOpen || task->record.due_at <= now_) {
        return std::nullopt;
    }
    Move(*task, Event::kEdit, {.actor = actor, .reason = reason});
    Wait(*task, now_);
    return task->record.queue;
}

bool Ops::SignalCame(TaskId task) const {
    auto flow = data_.flows.find(task);
    return flow != data_.flows.end() && flow->second.record.came;
}

template <class Work>
auto FlowDoor::Do(Work&& work) {
    std::optional<decltype(work(std::declval<FlowTables&>(), std::declval<Data&>()))> reply;
    run_([&](Ops& ops, Data& data) {
        Tables tables(ops, data);
        reply.emplace(work(tables, data));
    });
    return std::move(*reply);
}

std::optional<FlowHistory> FlowDoor::Begin(TaskId task, LeaseToken token) {
    return Do([&](FlowTables& tables, Data&) { return BeginFlow(tables, task, token); });
}

FlowReply FlowDoor::Record(const FlowWrite& write) {
    return Do([&](FlowTables& tables, Data&) { return RecordStep(tables, write); });
}

FlowReply FlowDoor::AwaitSignal(const FlowWrite& write) {
    return Do([&](FlowTables& tables, Data&) { return store::AwaitSignal(tables, write); });
}

SignalReply FlowDoor::Signal(const NewSignal& signal) {
    return Do([&](FlowTables& tables, Data&) { return SignalFlow(tables, signal); });
}

ForkReply FlowDoor::Fork(const FlowFork& fork) {
    return Do([&](FlowTables& tables, Data&) { return ForkFlow(tables, fork); });
}

std::optional<FlowHistory> FlowDoor::Get(TaskId task) {
    return Do([&](FlowTables& tables, Data& data) -> std::optional<FlowHistory> {
        auto found = data.flows.find(task);
        if (found == data.flows.end()) return std::nullopt;
        const FlowData& flow = found->second;
        return FlowHistory{flow.record, flow.steps, flow.signals, tables.Now()};
    });
}

std::vector<FlowRecord> FlowDoor::List(const FlowListRequest& request) {
    return Do([&](FlowTables&, Data& data) {
        std::vector<FlowRecord> flows;
        for (auto flow = data.flows.rbegin(); flow != data.flows.rend(); ++flow) {
            if (static_cast<int>(flows.size()) >= request.limit) break;
            const FlowRecord& record = flow->second.record;
            if (request.before && record.task >= *request.before) continue;
            if (request.tenant && record.tenant != *request.tenant) continue;
            flows.push_back(record);
        }
        return flows;
    });
}

int FlowDoor::Tidy(int limit) {
    return Do([&](FlowTables&, Data& data) {
        int forgotten = 0;
        std::erase_if(data.flows, [&](const auto& flow) {
            bool kept = data.live.contains(flow.first) || data.finished.contains(flow.first);
            return !kept && forgotten < limit && ++forgotten > 0;
        });
        return forgotten;
    });
}

}  // namespace stint::store::memory
