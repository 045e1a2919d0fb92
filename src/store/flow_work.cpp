#include "store/flow_work.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/planted_bug.h"
#include "base/text.h"

namespace stint::store {

namespace {

using base::Bug;
using base::Planted;
using base::Quoted;
using Hold = FlowTables::Hold;

FlowReply Refuse(std::string message) {
    FlowReply reply;
    reply.kind = FlowReply::Kind::kRefused;
    reply.message = std::move(message);
    return reply;
}

// Why the flow cannot record this; empty = it can. What has begun can always end, of whatever
// number.
std::string OverLimit(const FlowRecord& flow, const FlowStep& step, bool known) {
    if (!known && flow.steps >= limits::kFlowSteps) {
        return fmt::format(
            "flow {} has recorded {} steps, which is the limit: let it call another flow for a "
            "part of its work",
            flow.task.value(),
            flow.steps
        );
    }
    if (flow.bytes + static_cast<std::int64_t>(step.result.size()) > limits::kFlowBytes) {
        return fmt::format(
            "the recorded results of flow {} would have more than {} bytes with step {}: keep "
            "large things elsewhere and record where they are",
            flow.task.value(),
            limits::kFlowBytes,
            Quoted(step.name)
        );
    }
    return {};
}

// Held, in order to record something.
FlowReply::Kind Check(FlowTables& tables, const FlowWrite& write) {
    if (Planted(Bug::kFlowStepUnfenced)) return FlowReply::Kind::kRecorded;
    switch (tables.Holds(write.task, write.token)) {
        case Hold::kLost:
            return FlowReply::Kind::kLost;
        case Hold::kStopping:
            // What was done is recorded all the same; nothing new begins.
            return write.step.state == StepState::kOpen ? FlowReply::Kind::kStopping
                                                        : FlowReply::Kind::kRecorded;
        case Hold::kHeld:
            break;
    }
    return FlowReply::Kind::kRecorded;
}

FlowStep AddStep(FlowTables& tables, FlowRecord& flow, const FlowWrite& write) {
    FlowStep step = write.step;
    step.no = ++flow.steps;
    step.at = tables.Now();
    if (write.length) step.due_at = step.at + *write.length;
    if (step.state != StepState::kOpen) step.ended_at = step.at;
    flow.bytes += static_cast<std::int64_t>(step.result.size());
    tables.Add(flow.task, step);
    return step;
}

void EndStep(FlowTables& tables, FlowRecord& flow, FlowStep& step) {
    step.ended_at = tables.Now();
    flow.bytes += static_cast<std::int64_t>(step.result.size());
    tables.End(flow.task, step);
}

FlowReply Recorded(FlowTables& tables, FlowStep step) {
    FlowReply reply;
    reply.step = std::move(step);
    reply.now = tables.Now();
    return reply;
}

}  // namespace

std::optional<FlowHistory> BeginFlow(FlowTables& tables, TaskId task, LeaseToken token) {
    if (tables.Holds(task, token) == Hold::kLost) return std::nullopt;
    auto state = tables.StateOf(task);
    if (!state) return std::nullopt;
    FlowHistory history;
    history.flow = tables.Make(task, state->tenant);
    if (!history.flow.awaits.empty()) {
        // It does not sleep any more.
        history.flow.awaits.clear();
        history.flow.came = false;
        tables.Save(history.flow);
    }
    history.steps = tables.Steps(task);
    history.now = tables.Now();
    return history;
}

FlowReply RecordStep(FlowTables& tables, const FlowWrite& write) {
    if (auto valid = Validate(write.step); !valid) return Refuse(valid.error().message);
    FlowReply::Kind kind = Check(tables, write);
    FlowReply reply;
    reply.kind = kind;
    if (kind != FlowReply::Kind::kRecorded) return reply;
    std::optional<FlowRecord> flow = tables.Find(write.task);
    if (!flow) return Refuse("the flow has not begun");
    std::optional<FlowStep> known = tables.Step(write.task, write.step.name, write.step.occurrence);
    if (known && (known->state != StepState::kOpen || write.step.state == StepState::kOpen)) {
        return Recorded(tables, std::move(*known));
    }
    if (std::string why = OverLimit(*flow, write.step, known.has_value()); !why.empty()) {
        return Refuse(why);
    }
    if (known) {
        known->state = write.step.state;
        known->result = write.step.result;
        EndStep(tables, *flow, *known);
        tables.Save(*flow);
        return Recorded(tables, std::move(*known));
    }
    FlowWrite made = write;
    SubmitReply submitted;
    if (write.child) {
        submitted = tables.Submit(*write.child);
        if (!submitted.accepted()) {
            reply = Refuse(submitted.message);
            if (submitted.kind == SubmitReply::Kind::kQueueFull)
                reply.kind = FlowReply::Kind::kFull;
            return reply;
        }
        made.step.task = submitted.id;
    }
    FlowStep step = AddStep(tables, *flow, made);
    tables.Save(*flow);
    reply = Recorded(tables, std::move(step));
    reply.queue = submitted.queue;
    reply.due_now = submitted.due_now;
    return reply;
}

FlowReply AwaitSignal(FlowTables& tables, const FlowWrite& write) {
    if (auto valid = Validate(write.step); !valid) return Refuse(valid.error().message);
    FlowReply reply;
    reply.kind = Check(tables, write);
    if (reply.kind != FlowReply::Kind::kRecorded) return reply;
    std::optional<FlowRecord> flow = tables.Find(write.task);
    if (!flow) return Refuse("the flow has not begun");
    std::optional<FlowStep> step = tables.Step(write.task, write.step.name, write.step.occurrence);
    if (step && step->state != StepState::kOpen) return Recorded(tables, std::move(*step));
    if (!step) {
        if (std::string why = OverLimit(*flow, write.step, false); !why.empty()) return Refuse(why);
        step = AddStep(tables, *flow, write);
    }
    flow->awaits.clear();
    flow->came = false;
    if (auto signal = tables.NextSignal(write.task, step->about)) {
        step->state = StepState::kDone;
        step->result = signal->payload;
        EndStep(tables, *flow, *step);
        signal->step = step->no;
        if (!Planted(Bug::kFlowSignalTwice)) {
            tables.Take(write.task, *signal);
            --flow->waiting;
        }
    } else if (step->due_at && *step->due_at <= tables.Now()) {
        step->state = StepState::kTimedOut;
        EndStep(tables, *flow, *step);
    } else {
        flow->awaits = step->about;
    }
    tables.Save(*flow);
    return Recorded(tables, std::move(*step));
}

SignalReply SignalFlow(FlowTables& tables, const NewSignal& signal) {
    using Kind = SignalReply::Kind;
    auto answer = [](Kind kind, std::string message) {
        SignalReply reply;
        reply.kind = kind;
        reply.message = std::move(message);
        return reply;
    };
    if (auto valid = Validate(signal); !valid) {
        return answer(Kind::kInvalid, valid.error().message);
    }
    auto task = tables.StateOf(signal.task);
    if (!task) {
        return answer(Kind::kNotFound, fmt::format("there is no task {}", signal.task.value()));
    }
    if (!signal.id.empty()) {
        // Also of a flow that is over by now: whoever sends it again learns that it has arrived.
        if (auto known = tables.SignalById(signal.task, signal.id)) {
            if (known->name == signal.name && known->payload == signal.payload) {
                return answer(Kind::kExisting, {});
            }
            return answer(
                Kind::kConflict,
                fmt::format(
                    "the id {} was given to a signal {} of task {} with another payload; use a new "
                    "id for a new signal",
                    Quoted(signal.id),
                    Quoted(known->name),
                    signal.task.value()
                )
            );
        }
    }
    if (IsTerminal(task->state)) {
        return answer(
            Kind::kFinished,
            fmt::format(
                "task {} is {}: it takes no more signals",
                signal.task.value(),
                StateName(task->state)
            )
        );
    }
    FlowRecord flow = tables.Make(signal.task, task->tenant);
    if (flow.waiting >= limits::kFlowSignals) {
        return answer(
            Kind::kFull,
            fmt::format(
                "{} signals wait for task {} already, which is the limit: does the flow ask for "
                "{}?",
                flow.waiting,
                signal.task.value(),
                Quoted(signal.name)
            )
        );
    }
    if (!signal.id.empty() && tables.SignalById(signal.task, signal.id)) {
        return SignalFlow(tables, signal);  // it came while we waited for the lock
    }
    FlowSignal added;
    added.no = ++flow.signals;
    added.name = signal.name;
    added.id = signal.id;
    added.payload = signal.payload;
    added.at = tables.Now();
    tables.Add(signal.task, added);
    ++flow.waiting;
    SignalReply reply;
    if (flow.awaits == signal.name && !flow.came) {
        flow.came = !Planted(Bug::kFlowSignalLost);
        std::string reason = "signal " + Quoted(signal.name);
        if (auto queue = tables.Wake(signal.task, signal.actor, reason)) {
            reply.woken = true;
            reply.queue = *queue;
        }
    }
    tables.Save(flow);
    return reply;
}

ForkReply ForkFlow(FlowTables& tables, const FlowFork& fork) {
    ForkReply reply;
    auto refuse = [&](ForkReply::Kind kind, std::string message) {
        reply.kind = kind;
        reply.message = std::move(message);
        return reply;
    };
    if (!tables.Find(fork.from)) {
        return refuse(
            ForkReply::Kind::kNotFound,
            fmt::format("task {} has recorded nothing as a flow", fork.from.value())
        );
    }
    std::optional<FlowStep> first = tables.Step(fork.from, fork.step, fork.occurrence);
    if (!first) {
        return refuse(
            ForkReply::Kind::kNotFound,
            fmt::format(
                "flow {} has recorded no step {} (occurrence {}); `stint flow show {}` lists them",
                fork.from.value(),
                Quoted(fork.step),
                fork.occurrence,
                fork.from.value()
            )
        );
    }
    SubmitReply submitted = tables.Submit(fork.task);
    if (submitted.kind != SubmitReply::Kind::kCreated) {
        std::string why = submitted.message;
        if (why.empty()) why = "another task stands for it already: leave out its keys";
        return refuse(ForkReply::Kind::kRefused, why);
    }
    FlowRecord flow = tables.Make(submitted.id, fork.task.tenant);
    for (FlowStep& step : tables.Steps(fork.from)) {
        bool waits = step.kind == StepKind::kSignal && step.state == StepState::kOpen;
        if (step.no >= first->no || waits) continue;
        flow.steps = std::max(flow.steps, step.no);
        flow.bytes += static_cast<std::int64_t>(step.result.size());
        tables.Add(submitted.id, step);
        ++reply.steps;
    }
    tables.Save(flow);
    reply.task = submitted.id;
    reply.queue = submitted.queue;
    reply.due_now = submitted.due_now;
    return reply;
}

}  // namespace stint::store
