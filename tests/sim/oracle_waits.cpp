// Waits: who waits for what, when that is over, and what must follow at once.
#include <fmt/format.h>

#include <algorithm>

#include "sim/oracle.h"

namespace stint::sim {

using model::Event;
using model::IsTerminal;
using model::OnFailure;
using model::State;
using model::WaitVerdict;

void Oracle::NoteWait(
    TaskId waiter, const model::WaitOn& policy, std::vector<TaskId> on, bool started
) {
    WaitShadow wait{.policy = policy, .started = started, .ended = {}};
    for (TaskId task : on) {
        const model::TaskRecord* record = Find(task);
        bool over = record != nullptr && IsTerminal(record->state);
        wait.ended[task] = over ? std::optional(record->state) : std::nullopt;
    }
    waits_[waiter] = std::move(wait);
}

WaitVerdict Oracle::VerdictOf(const WaitShadow& wait) {
    int pending = 0, complete = 0, failed = 0;
    for (const auto& [task, ended] : wait.ended) {
        ++(!ended ? pending : *ended == State::kComplete ? complete : failed);
    }
    if (wait.policy.any && complete > 0) return WaitVerdict::kSucceeded;
    bool fast = wait.policy.on_failure != OnFailure::kWaitForAll ||
                (wait.policy.any && !wait.policy.need_success);
    if (failed > 0 && (fast || pending == 0)) return WaitVerdict::kFailed;
    return pending > 0 ? WaitVerdict::kGoesOn : WaitVerdict::kSucceeded;
}

void Oracle::JudgeWaits(const std::map<TaskId, Change>& changes) {
    for (const auto& [task, change] : changes) {
        auto end = std::ranges::find_if(change.transitions, [](const auto& transition) {
            return IsTerminal(transition.entry.to);
        });
        if (end == change.transitions.end()) continue;
        for (auto& [waiter, wait] : waits_) {
            auto member = wait.ended.find(task);
            if (member != wait.ended.end() && !member->second) member->second = end->entry.to;
        }
    }
    std::erase_if(waits_, [&](const auto& item) {
        const auto& [waiter, wait] = item;
        const model::TaskRecord* record = Find(waiter);
        if (record == nullptr) return true;
        if (record->state == State::kBlocked) {
            if (VerdictOf(wait) != WaitVerdict::kGoesOn) {
                Violate("I9", waiter, "waits, and what it waited for is over");
            }
            return false;
        }
        auto change = changes.find(waiter);
        if (change != changes.end()) JudgeEndOfWait(wait, change->second);
        return true;
    });
}

void Oracle::JudgeEndOfWait(const WaitShadow& wait, const Change& change) {
    auto unblocked = std::ranges::find_if(change.transitions, [](const auto& transition) {
        return transition.entry.event == Event::kUnblock;
    });
    if (unblocked == change.transitions.end()) return;  // cancelled, or it need not wait at all
    TaskId waiter = change.after.id;
    WaitVerdict verdict = VerdictOf(wait);
    if (verdict == WaitVerdict::kGoesOn) {
        return Violate("I9", waiter, "went on before what it waited for was over");
    }
    bool failed = verdict == WaitVerdict::kFailed;
    if (!wait.started && failed && wait.policy.need_success) {
        Violate("I9", waiter, "starts although what it needs has failed");
    }
    model::Stage stage = failed ? model::Stage::kError : model::Stage::kResume;
    if (wait.started && change.after.stage != stage) {
        Violate(
            "I9", waiter, fmt::format("resumes at stage {}", model::StageName(change.after.stage))
        );
    }
}

// Live ones, through live ones.
std::vector<TaskId> Oracle::Below(TaskId task) const {
    std::vector<TaskId> found{task};
    for (std::size_t i = 0; i < found.size(); ++i) {
        for (const auto& [id, shadow] : shadows_) {
            bool live = !IsTerminal(shadow.record.state);
            if (live && shadow.record.parent == found[i]) found.push_back(id);
        }
    }
    found.erase(found.begin());
    return found;
}

}  // namespace stint::sim
