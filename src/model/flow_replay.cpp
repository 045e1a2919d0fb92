#include "model/flow_replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/result.h"
#include "base/text.h"

namespace stint::model {

namespace {

using base::MakeError;
using base::Quoted;

constexpr std::string_view kCure =
    "Nothing was executed. Run code in which it is as recorded (guard a change with "
    "flow.Version()), then retry the task";

std::string NameOf(std::string_view name, int occurrence) {
    if (occurrence == 1) return Quoted(name);
    return fmt::format("{} (occurrence {})", Quoted(name), occurrence);
}

bool HasEffect(const FlowStep& step) {
    return step.kind == StepKind::kRun || step.kind == StepKind::kCall ||
           step.kind == StepKind::kSignal;
}

}  // namespace

std::string StepText(StepKind kind, std::string_view about) {
    switch (kind) {
        case StepKind::kCall:
            return fmt::format("call of {}", about);
        case StepKind::kSignal:
            return "wait for a signal";
        case StepKind::kAny:
            return "wait for any of several calls";
        default:
            return std::string(StepKindName(kind));
    }
}

FlowReplay::FlowReplay(std::vector<FlowStep> steps) {
    for (FlowStep& step : steps) {
        Key key{step.name, step.occurrence};
        by_no_.emplace(step.no, key);
        steps_.emplace(std::move(key), std::move(step));
    }
}

const FlowStep* FlowReplay::Find(std::string_view name, int occurrence) const {
    auto found = steps_.find(Key{std::string(name), occurrence});
    return found == steps_.end() ? nullptr : &found->second;
}

// Whether the code may still come to it: not past it, and not without it on purpose.
bool FlowReplay::MayCome(const FlowStep& step) const {
    if (reached_.contains(step.no) || retired_.contains(step.name)) return false;
    return step.late || step.no > last_;
}

const FlowStep* FlowReplay::NextUnreached() const {
    // What cannot come now never will: the next look begins behind it.
    for (auto it = by_no_.lower_bound(looked_); it != by_no_.end(); ++it) {
        looked_ = it->first;
        const FlowStep& step = steps_.at(it->second);
        if (MayCome(step)) return &step;
    }
    return nullptr;
}

// The next that the code may come to of those that have had an effect.
const FlowStep* FlowReplay::NextEffect() const {
    if (NextUnreached() == nullptr) return nullptr;
    for (auto it = by_no_.lower_bound(looked_); it != by_no_.end(); ++it) {
        const FlowStep& step = steps_.at(it->second);
        if (HasEffect(step) && MayCome(step)) return &step;
    }
    return nullptr;
}

// Of those that were recorded before step number `no` one that had an effect and that the code has
// not asked for: it cannot come to it any more.
const FlowStep* FlowReplay::PassedBy(int no) {
    auto it = by_no_.lower_bound(passed_);
    for (; it != by_no_.end() && it->first < no; ++it) {
        const FlowStep& step = steps_.at(it->second);
        if (HasEffect(step) && !step.late && MayCome(step)) return &step;
    }
    passed_ = std::max(passed_, no);
    return nullptr;
}

Result<FlowReplay::Found> FlowReplay::AskNew(const StepAsked& asked, int occurrence) const {
    // Another kind of step with the same effect cannot be told from a new one; a call can.
    const FlowStep* next = asked.kind == StepKind::kCall ? NextEffect() : nullptr;
    bool renamed = next != nullptr && next->kind == asked.kind && next->about == asked.about &&
                   next->hash == asked.hash;
    if (!renamed) return Found{occurrence, nullptr};
    return MakeError(
        Code::kConflict,
        "step {} is a {} with the very input that step {} is recorded with, which the code "
        "has not asked for: a renamed step would be executed twice. {}",
        NameOf(asked.name, occurrence),
        StepText(asked.kind, asked.about),
        NameOf(next->name, next->occurrence),
        kCure
    );
}

Result<FlowReplay::Found> FlowReplay::Ask(const StepAsked& asked) {
    const int occurrence = ++asked_[asked.name];
    const FlowStep* step = Find(asked.name, occurrence);
    if (step == nullptr) return AskNew(asked, occurrence);
    const std::string name = NameOf(asked.name, occurrence);
    if (step->kind != asked.kind || step->about != asked.about) {
        return MakeError(
            Code::kConflict,
            "step {} is recorded as a {}, and the code asks for a {}. {}",
            name,
            StepText(step->kind, step->about),
            StepText(asked.kind, asked.about),
            kCure
        );
    }
    if (step->hash != asked.hash) {
        return MakeError(
            Code::kConflict,
            "step {}, a {}, is recorded with another input (hash {}) than the code gives it now "
            "(hash {}). {}",
            name,
            StepText(step->kind, step->about),
            step->hash,
            asked.hash,
            kCure
        );
    }
    if (!step->late && step->no < last_) {
        return MakeError(
            Code::kConflict,
            "step {} is recorded as number {}, before step {}, and the code asks for it after that "
            "one. {}",
            name,
            step->no,
            Quoted(by_no_.at(last_).first),
            kCure
        );
    }
    if (!step->late) {
        if (const FlowStep* missed = PassedBy(step->no)) return Missed(*missed, name);
        last_ = step->no;
    }
    reached_.insert(step->no);
    return Found{occurrence, step};
}

Error FlowReplay::Missed(const FlowStep& step, const std::string& where) {
    return MakeError(
        Code::kConflict,
        "the code came to {} without step {}, a {}, which is recorded as number {}: it was "
        "removed or renamed, or comes in another order now. Say flow.Retired({}) before that if it "
        "is meant, or run code that has it; then retry the task",
        where,
        NameOf(step.name, step.occurrence),
        StepText(step.kind, step.about),
        step.no,
        Quoted(step.name)
    );
}

const FlowStep& FlowReplay::Add(const FlowStep& step) {
    Key key{step.name, step.occurrence};
    by_no_[step.no] = key;
    reached_.insert(step.no);
    return steps_[key] = step;
}

Result<void> FlowReplay::AtEnd() const {
    for (const auto& [no, key] : by_no_) {
        const FlowStep& step = steps_.at(key);
        if (reached_.contains(no) || retired_.contains(key.first) || !HasEffect(step)) continue;
        return Missed(step, "its end");
    }
    return {};
}

}  // namespace stint::model
