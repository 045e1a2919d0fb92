// Parents and their rounds of subtasks; flows and what they have recorded.
#include <algorithm>
#include <limits>

#include "evidence.h"
#include "store/flows.h"

namespace stint::chaos {

namespace {

using model::Event;
using model::State;
using model::TaskRecord;

// ---- parents -----------------------------------------------------------------------------------

class FamilyCheck {
public:
    FamilyCheck(const Evidence& evidence, const TaskRecord& parent, Findings& findings)
        : evidence_(evidence),
          parent_(parent),
          family_(Codec<Family>::Decode(parent.input)),
          findings_(findings) {}

    void Run() {
        const Evidence::Tasks& children = evidence_.ChildrenOf(parent_.id);
        if (evidence_.Quarantined(parent_) || evidence_.AnyQuarantined(children)) return;
        for (const TaskRecord* child : children) Place(*child);
        CheckWaits();
        if (parent_.state != State::kComplete) {
            return findings_.Add(
                "{}: ended {} ({})", family_.key, StateName(parent_.state), parent_.reason
            );
        }
        CheckRounds();
    }

private:
    void Place(const TaskRecord& task) {
        Child child = Codec<Child>::Decode(task.input);
        if (!children_.emplace(std::pair(child.round, child.index), &task).second) {
            findings_.Add(
                "{}: child {} of round {} was made twice (I9)",
                family_.key,
                child.index,
                child.round
            );
        }
        State expected = child.dies ? State::kDead : State::kComplete;
        if (task.state != expected) {
            findings_.Add(
                "{}: child {} is {}", family_.key, task.id.value(), StateName(task.state)
            );
        }
    }

    // A wait per round, each ended once; whoever claims the parent then finds all of them over.
    void CheckWaits() {
        int waits = 0, released = 0;
        for (const model::AuditEntry& entry : evidence_.AuditOf(parent_.id)) {
            waits += entry.event == Event::kBlock ? 1 : 0;
            released += entry.event == Event::kUnblock ? 1 : 0;
            if (entry.event == Event::kClaim && released > 0) AllOver(released - 1, entry.at);
        }
        if (waits != family_.rounds || released != family_.rounds) {
            findings_.Add(
                "{}: {} rounds, {} waits, {} times released (I9)",
                family_.key,
                family_.rounds,
                waits,
                released
            );
        }
    }
    void AllOver(int round, Time at) {
        for (const auto& [place, child] : children_) {
            if (place.first != round || (child->finished_at && *child->finished_at <= at)) continue;
            findings_.Add(
                "{}: went on after round {} before task {} was over (I9)",
                family_.key,
                round,
                child->id.value()
            );
        }
    }

    // What the parent has gathered is what its children's records say.
    void CheckRounds() {
        FamilyDone done = Codec<FamilyDone>::Decode(parent_.output);
        if (done.key != family_.key || done.fencing != parent_.claim_no) {
            findings_.Add(
                "{}: holds the outcome of {}, claim {} (I3)", family_.key, done.key, done.fencing
            );
        }
        auto all = static_cast<std::size_t>(family_.rounds * family_.children);
        if (children_.size() != all ||
            done.rounds.size() != static_cast<std::size_t>(family_.rounds)) {
            findings_.Add(
                "{}: {} children and {} rounds instead of {} and {} (I9)",
                family_.key,
                children_.size(),
                done.rounds.size(),
                all,
                family_.rounds
            );
        }
        for (int round = 0; round < static_cast<int>(done.rounds.size()); ++round) {
            CheckRound(round, done.rounds[static_cast<std::size_t>(round)]);
        }
    }
    void CheckRound(int round, const std::vector<ChildDone>& outputs) {
        int expected = family_.children - (family_.black_sheep ? 1 : 0);
        if (static_cast<int>(outputs.size()) != expected) {
            findings_.Add(
                "{}: {} outputs of round {} instead of {} (I9)",
                family_.key,
                outputs.size(),
                round,
                expected
            );
        }
        for (const ChildDone& output : outputs) {
            auto child = children_.find({round, output.index});
            if (output.round == round && child != children_.end() &&
                child->second->claim_no == output.fencing) {
                continue;
            }
            findings_.Add(
                "{}: round {} was given an output that is not child {}'s (I9)",
                family_.key,
                round,
                output.index
            );
        }
    }

    const Evidence& evidence_;
    const TaskRecord& parent_;
    const Family family_;
    Findings& findings_;
    std::map<std::pair<int, int>, const TaskRecord*> children_;  // (round, index)
};

bool WasRecovered(const Evidence& evidence, TaskId task) {
    return std::ranges::any_of(evidence.AuditOf(task), [](const model::AuditEntry& entry) {
        return entry.event == Event::kReclaim;
    });
}

// Those that were accepted are there, no others, and each is looked at.
template <class Check>
void CheckAll(
    const Evidence& evidence, Kind kind, std::string_view type, Findings& findings, Check check
) {
    auto accepted = evidence.Accepted(kind);
    int recovered = 0;
    for (const auto& [key, number] : accepted) {
        const TaskRecord* task = evidence.Find(number);
        if (task == nullptr) {
            findings.Add("{}: accepted as {}, now gone (I1)", key, number);
            continue;
        }
        recovered += WasRecovered(evidence, task->id) ? 1 : 0;
        check(key, *task);
    }
    if (accepted.empty() || accepted.size() != evidence.OfType(type).size()) {
        findings.Add(
            "{} of {} are stored, {} were accepted (I8)",
            evidence.OfType(type).size(),
            type,
            accepted.size()
        );
    }
    findings.Count(fmt::format("{}s", KindName(kind)), static_cast<std::int64_t>(accepted.size()));
    findings.Count(fmt::format("{}s_recovered", KindName(kind)), recovered);
}

// ---- flows -------------------------------------------------------------------------------------

class FlowCheck {
public:
    FlowCheck(const Evidence& evidence, std::string key, const TaskRecord& task, Findings& findings)
        : evidence_(evidence), key_(std::move(key)), task_(task), findings_(findings) {}

    void Run() {
        const Evidence::Tasks& children = evidence_.ChildrenOf(task_.id);
        if (evidence_.Quarantined(task_) || evidence_.AnyQuarantined(children)) return;
        if (task_.state != State::kComplete) {
            return findings_.Add("{}: ended {} ({})", key_, StateName(task_.state), task_.reason);
        }
        auto history = evidence_.store.Flows().Get(task_.id);
        if (!history) return findings_.Add("{}: has no record", key_);
        for (const model::FlowStep& step : history->steps) CheckStep(step);
        if (steps_.size() != kFlowSteps.size()) {
            findings_.Add("{}: {} steps instead of {}", key_, steps_.size(), kFlowSteps.size());
        }
        if (children.size() != 4) {
            findings_.Add("{}: called {} tasks instead of 4", key_, children.size());
        }
        if (!steps_["rest"].due_at || steps_["word"].at < steps_["rest"].due_at) {
            findings_.Add("{}: slept less than it asked for (I14)", key_);
        }
        CheckSignal(*history);
        CheckOutput();
        CheckJournal();
    }

private:
    void CheckStep(const model::FlowStep& step) {
        bool known = std::ranges::find(kFlowSteps, step.name) != kFlowSteps.end();
        if (!known || !steps_.emplace(step.name, step).second) {
            findings_.Add("{}: step {} is recorded once more", key_, step.name);
        }
        // Nobody waits for the task that sends the signal, which is looked at below; a sleep is
        // over when its time is.
        bool open =
            step.name == "post" || step.name == "word" || step.kind == model::StepKind::kSleep;
        if (step.state != model::StepState::kDone && !open) {
            findings_.Add("{}: step {} is {}", key_, step.name, StepStateName(step.state));
        }
        if (step.kind != model::StepKind::kCall) return;
        const TaskRecord* called = evidence_.Find(step.task.value());
        if (called == nullptr || called->parent != task_.id) {
            findings_.Add("{}: step {} names a task that is not its own", key_, step.name);
        }
    }

    // The signal came once and was taken, unless it came too late: to the wait, or to the flow.
    void CheckSignal(const model::FlowHistory& history) {
        const model::FlowStep& word = steps_["word"];
        const TaskRecord* post = evidence_.Find(steps_["post"].task.value());
        bool gave_up = word.state == model::StepState::kTimedOut;
        if (gave_up && history.signals.empty() && post != nullptr) {
            late_ = post->finished_at > word.due_at;
            if (late_) return;
        }
        if (history.signals.size() != 1 || history.signals.front().id != "card") {
            return findings_.Add("{}: {} signals instead of one", key_, history.signals.size());
        }
        const model::FlowSignal& signal = history.signals.front();
        late_ = gave_up && signal.at > word.due_at;
        if (!late_ && (word.state != model::StepState::kDone || signal.step != word.no)) {
            findings_.Add("{}: the signal was not taken, step {} took it", key_, signal.step);
        }
    }

    void CheckOutput() {
        auto journey = Codec<Journey>::Decode(task_.input);
        auto done = Codec<Journeyed>::Decode(task_.output);
        recorded_ = {
            {"first", Text("first")},
            {"call", steps_["call"].result},
            {"sum", std::to_string(FlowSum(journey.number))},
            {"word", late_ ? "-1" : steps_["word"].result},
            {"id", Text("id")},
            {"last", Text("last")}};
        if (done.key != key_ || done.sum != FlowSum(journey.number) ||
            done.signal != (late_ ? -1 : journey.number) || done.id != recorded_["id"] ||
            done.stamp != recorded_["last"]) {
            findings_.Add("{}: its output {} is not what it has recorded", key_, task_.output);
        }
    }
    std::string Text(const std::string& step) {
        const std::string& result = steps_[step].result;
        return result.empty() ? result : Codec<std::string>::Decode(result);
    }

    // Whoever passed a step was given what is recorded, and who came later did nothing again.
    void CheckJournal() {
        auto found = evidence_.journals.flows.find(key_);
        if (found == evidence_.journals.flows.end())
            return findings_.Add("{}: nobody ran it", key_);
        std::map<std::string, std::int64_t> first_saw;
        for (const auto& line : found->second.saw) {
            if (recorded_[line.step] != line.value) {
                findings_.Add(
                    "{}: claim {} was told {} by step {}, and {} is recorded",
                    key_,
                    line.claim,
                    line.value,
                    line.step,
                    recorded_[line.step]
                );
            }
            auto [first, made] = first_saw.emplace(line.step, line.claim);
            if (!made) first->second = std::min(first->second, line.claim);
        }
        CheckEffects(found->second, first_saw);
    }
    void CheckEffects(
        const FlowJournal& journal, const std::map<std::string, std::int64_t>& first_saw
    ) {
        std::map<std::string, std::string> keys;
        std::set<std::pair<std::string, std::int64_t>> done;
        for (const auto& line : journal.effects) {
            if (keys.emplace(line.step, line.value).first->second != line.value) {
                findings_.Add("{}: step {} has two idempotency keys", key_, line.step);
            }
            auto first = first_saw.find(line.step);
            bool again = first != first_saw.end() && line.claim > first->second;
            if (!done.emplace(line.step, line.claim).second || again) {
                findings_.Add(
                    "{}: claim {} did step {} again, which was recorded",
                    key_,
                    line.claim,
                    line.step
                );
            }
        }
        if (keys.size() != 2) findings_.Add("{}: {} of 2 effects happened", key_, keys.size());
    }

    const Evidence& evidence_;
    const std::string key_;
    const TaskRecord& task_;
    Findings& findings_;
    bool late_ = false;  // the signal
    std::map<std::string, model::FlowStep> steps_;
    std::map<std::string, std::string> recorded_;  // as handlers write it down
};

}  // namespace

void CheckFamilies(const Evidence& evidence, Findings& findings) {
    CheckAll(evidence, Kind::kParent, kParent.name, findings, [&](const auto&, const auto& task) {
        FamilyCheck(evidence, task, findings).Run();
    });
    findings.Count("children", static_cast<std::int64_t>(evidence.OfType(kChild.name).size()));
}

void CheckFlows(const Evidence& evidence, Findings& findings) {
    CheckAll(evidence, Kind::kFlow, kFlow.name, findings, [&](const auto& key, const auto& task) {
        FlowCheck(evidence, key, task, findings).Run();
    });
}

}  // namespace stint::chaos
