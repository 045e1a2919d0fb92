// What must be true when all faults are healed and the work is done.
#include <fmt/format.h>

#include <algorithm>

#include "sim/clock.h"
#include "sim/oracle.h"

namespace stint::sim {

using model::IsTerminal;
using model::State;

namespace {

// Tasks due later than this are not waited for.
constexpr std::chrono::hours kInSight{1};

}  // namespace

bool Oracle::Quiet() const {
    return !FirstUnfinished().valid();
}

bool Oracle::OutOfSight(TaskId id) const {
    const model::TaskRecord* task = Find(id);
    if (task == nullptr) return false;
    if (task->state == State::kOpen || task->state == State::kError) {
        return task->due_at > now() + kInSight;
    }
    auto wait = waits_.find(id);
    if (task->state != State::kBlocked || wait == waits_.end()) return false;
    return std::ranges::any_of(wait->second.ended, [this](const auto& member) {
        return !member.second && OutOfSight(member.first);
    });
}

TaskId Oracle::FirstUnfinished() const {
    for (const auto& [id, shadow] : shadows_) {
        const model::TaskRecord& task = shadow.record;
        if (IsTerminal(task.state) || OutOfSight(id)) continue;
        return id;
    }
    return {};
}

std::string Oracle::Unfinished() const {
    std::string text;
    for (const auto& [id, shadow] : shadows_) {
        const model::TaskRecord& task = shadow.record;
        if (IsTerminal(task.state)) continue;
        text += fmt::format(
            " {} {} {} (due {:+.1f} s, attempt {}, claim {}, {}{});",
            id.value(),
            task.type,
            model::StateName(task.state),
            std::chrono::duration<double>(task.due_at - now()).count(),
            task.attempt,
            task.claim_no,
            task.suspect ? "suspect " : "",
            task.cancel_requested ? "cancel requested" : ""
        );
    }
    return text;
}

Virtual Oracle::LastDue() const {
    Time last = kBegin;
    for (const auto& [id, shadow] : shadows_) {
        const model::TaskRecord& task = shadow.record;
        if (!IsTerminal(task.state) && task.due_at <= now() + kInSight) {
            last = std::max(last, task.due_at);
        }
    }
    return last - kBegin - world_.clock_step();
}

void Oracle::CheckTask(const Shadow& shadow) {
    const TaskId id = shadow.record.id;
    auto stored = store_.Get(id);
    if (!stored) return Violate("I1", id, "a stored task is gone");
    if (stored->state != shadow.record.state || stored->claim_no != shadow.record.claim_no ||
        stored->attempt != shadow.record.attempt) {
        Violate("I15", id, "the task is not as its commits left it");
    }
    std::optional<State> state;
    int count = 0;
    for (const model::AuditEntry& entry : store_.Audit({.task = id})) {
        ++count;
        if (entry.from != state || model::Next(state, entry.event) != entry.to) {
            Violate("I15", id, fmt::format("audit entry {} does not follow the one before", count));
        }
        state = entry.to;
    }
    if (state != stored->state || count != shadow.entries) {
        Violate("I15", id, "the audit log does not replay to the task's state");
    }
    auto attempts = store_.Attempts(id);
    if (static_cast<int>(attempts.size()) != stored->claim_no) {
        Violate(
            "I4",
            id,
            fmt::format("{} claims, {} attempts on record", stored->claim_no, attempts.size())
        );
    }
    for (const model::AttemptRecord& attempt : attempts) {
        if (IsTerminal(stored->state) && attempt.end == model::AttemptEnd::kRunning) {
            Violate("I2", id, "a finished task has a running attempt");
        }
    }
}

void Oracle::CheckEnd() {
    for (const auto& [id, shadow] : shadows_) {
        CheckTask(shadow);
        CheckExecution(shadow.record);
    }
    for (const auto& [task, count] : effects_) {
        const model::TaskRecord* record = Find(task);
        if (count != 1 || record == nullptr || record->state != State::kComplete) {
            Violate("I16", task, fmt::format("{} effects for one completion", count));
        }
    }
    for (const auto& [id, shadow] : shadows_) {
        bool done = shadow.record.type == "sim.tx" && shadow.record.state == State::kComplete;
        if (done && !effects_.contains(id)) Violate("I16", id, "completed without its effects");
    }
    for (const store::CheckFinding& finding : store_.Check()) {
        if (!finding.ok) Violate("check", {}, finding.what + ": " + finding.detail);
    }
}

}  // namespace stint::sim
