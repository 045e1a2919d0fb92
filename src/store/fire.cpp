#include "store/fire.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/text.h"

namespace stint::store {

namespace {

using Kind = FiringRecord::Kind;
using base::Bug;
using base::Planted;

// One action on its way: what it leads to, and what still has to be found out.
struct Step {
    std::size_t outcome = 0;
    const Action* action = nullptr;
    FiringTables::Firing firing;
    std::optional<std::size_t> submitted;  // its place among the tasks
    std::optional<JoinKey> round;          // that this one completes
    std::string refused;                   // why its task cannot be made
    std::string waits;                     // why it has to wait, if it has to
};

class Fires {
public:
    Fires(FiringTables& tables, std::span<const EventOutcome> outcomes)
        : tables_(tables), outcomes_(outcomes), replies_(outcomes.size()) {}

    std::vector<FireReply> Run() {
        locked_ = tables_.Lock(outcomes_);
        now_ = tables_.Now();
        Collect();
        Arrive();
        SubmitAll();
        FinishAll();
        Write();
        return std::move(replies_);
    }

private:
    void Collect() {
        for (std::size_t i = 0; i < outcomes_.size(); ++i) {
            auto event = locked_.find(outcomes_[i].event);
            bool pending = event != locked_.end() && event->second.pending;
            if (!pending && !Planted(Bug::kFireWithoutRecord)) {
                replies_[i].ignored = true;
                continue;
            }
            if (event == locked_.end()) continue;
            for (const Action& action : outcomes_[i].actions) {
                bool fired = event->second.fired.contains({action.workflow, action.trigger});
                if (fired && !Planted(Bug::kFireWithoutRecord)) continue;
                Step& step = steps_.emplace_back();
                step.outcome = i;
                step.action = &action;
                step.firing.depth = event->second.depth;
                FiringRecord& record = step.firing.record;
                record.event = outcomes_[i].event;
                record.tenant = event->second.tenant;
                record.workflow = action.workflow;
                record.trigger = action.trigger;
                record.version = action.version;
                record.at = now_;
            }
        }
    }

    // Members come to their joins one after the other, in the order of their events.
    void Arrive() {
        std::set<JoinKey> keys;
        for (const Step& step : steps_) {
            if (const auto* arrival = std::get_if<JoinArrival>(&step.action->what)) {
                keys.insert(arrival->key);
            }
        }
        if (keys.empty()) return;
        newest_ = tables_.Rounds(keys);
        for (Step& step : steps_) {
            const auto* arrival = std::get_if<JoinArrival>(&step.action->what);
            if (arrival == nullptr) continue;
            // A round that this very call completes may yet be refused: what comes behind it has
            // to wait until that is known.
            if (completing_.contains(arrival->key)) {
                step.waits = "the join's task is being created";
                continue;
            }
            ArriveOne(step, *arrival);
        }
    }

    void ArriveOne(Step& step, const JoinArrival& arrival) {
        std::optional<JoinInstance> newest;
        if (auto found = newest_.find(arrival.key); found != newest_.end()) newest = found->second;
        JoinStep arrived = model::Arrive(newest, arrival, now_);
        FiringRecord& record = step.firing.record;
        record.kind = arrived.kind == JoinStep::Kind::kAbsorbed ? Kind::kAbsorbed : Kind::kJoined;
        if (arrived.kind == JoinStep::Kind::kFull) {
            completing_.insert(arrival.key);
            step.round = arrival.key;
            before_[arrival.key] = newest;
            const JoinInstance& full = arrived.changed.back();
            base::Json fields = FieldsOf(full);
            auto task = MakeTask(arrival.submit, fields, fields);
            if (task) Queue(step, std::move(*task));
            if (!task) step.refused = task.error().message;
        }
        for (JoinInstance& round : arrived.changed) {
            newest_[arrival.key] = round;
            changed_[{arrival.key, round.generation}] = std::move(round);
        }
    }

    void Queue(Step& step, NewTask task) {
        task.tenant = step.firing.record.tenant;
        task.actor = TriggerActor(*step.action);
        step.submitted = tasks_.size();
        tasks_.push_back(std::move(task));
    }

    void SubmitAll() {
        for (Step& step : steps_) {
            if (const auto* task = std::get_if<NewTask>(&step.action->what)) Queue(step, *task);
        }
        std::vector<SubmitReply> replies;
        for (std::span<const NewTask> left = tasks_; !left.empty();) {
            auto batch = left.first(std::min<std::size_t>(left.size(), limits::kSubmitBatch));
            for (SubmitReply& reply : tables_.Submit(batch)) replies.push_back(std::move(reply));
            left = left.subspan(batch.size());
        }
        for (Step& step : steps_) {
            if (step.submitted) Submitted(step, replies.at(*step.submitted));
            if (!step.refused.empty()) Refused(step);
        }
    }

    void Refused(Step& step) {
        FiringRecord& record = step.firing.record;
        record.kind = Kind::kRefused;
        record.message = step.refused;
        if (step.round) EndRound(*step.round, record);
    }

    void Submitted(Step& step, const SubmitReply& reply) {
        const EventOutcome& outcome = outcomes_[step.outcome];
        FiringRecord& record = step.firing.record;
        if (reply.kind == SubmitReply::Kind::kQueueFull && !outcome.last) {
            step.waits = reply.message;
            if (step.round) Restore(*step.round);
            return;
        }
        record.task = reply.accepted() ? reply.id : TaskId();
        if (!reply.accepted()) {
            record.kind = Kind::kRefused;
            record.message = reply.message;
        } else if (!step.round) {
            bool made = reply.kind == SubmitReply::Kind::kCreated ||
                        reply.kind == SubmitReply::Kind::kReplaced;
            record.kind = made ? Kind::kSubmitted : Kind::kExisting;
        }
        if (reply.accepted() && reply.due_now) {
            replies_[step.outcome].queues.push_back(reply.queue);
        }
        if (step.round) EndRound(*step.round, record);
    }

    void EndRound(const JoinKey& key, const FiringRecord& record) {
        JoinInstance& round = changed_.at({key, newest_.at(key).generation});
        round.state = record.task.valid() ? JoinState::kFired : JoinState::kRefused;
        round.task = record.task;
        round.message = record.message;
        round.ended_at = now_;
    }

    // As if the member that completed it had not come yet.
    void Restore(const JoinKey& key) {
        int generation = newest_.at(key).generation;
        const std::optional<JoinInstance>& before = before_.at(key);
        if (before && before->generation == generation) {
            changed_[{key, generation}] = *before;
        } else {
            changed_.erase({key, generation});
        }
    }

    void FinishAll() {
        for (Step& step : steps_) {
            if (const auto* finish = std::get_if<Action::Finish>(&step.action->what)) {
                FinishOne(step, *finish);
            } else if (const auto* no = std::get_if<Action::Refusal>(&step.action->what)) {
                step.firing.record.kind = Kind::kRefused;
                step.firing.record.message = no->message;
            }
        }
    }

    void FinishOne(Step& step, const Action::Finish& finish) {
        const BackgroundFinish request = FinishOf(*step.action, finish);
        Result<State> done = tables_.Finish(request);
        FiringRecord& record = step.firing.record;
        record.kind = done ? Kind::kFinished : Kind::kRefused;
        if (done) {
            record.task = request.task;
            return;
        }
        record.message = done.error().message;
        // Its handler may not have returned yet.
        bool may_come = done.error().code == Code::kConflict && !outcomes_[step.outcome].last &&
                        !tables_.IsTerminal(request.task);
        if (may_come) step.waits = done.error().message;
    }

    void Write() {
        std::vector<FiringTables::Firing> firings;
        std::map<std::size_t, std::string> waits;
        std::set<std::size_t> acted;
        for (const Step& step : steps_) {
            acted.insert(step.outcome);
            if (!step.waits.empty()) {
                waits.emplace(step.outcome, step.waits);
                continue;
            }
            firings.push_back(step.firing);
            replies_[step.outcome].fired.push_back(step.firing.record);
        }
        std::vector<FiringTables::Ending> endings;
        for (std::size_t i = 0; i < outcomes_.size(); ++i) {
            if (replies_[i].ignored) continue;
            const EventOutcome& outcome = outcomes_[i];
            FiringTables::Ending& ending = endings.emplace_back();
            ending.event = outcome.event;
            auto waiting = waits.find(i);
            if (waiting != waits.end() || !outcome.wait.empty()) {
                replies_[i].pending = true;
                ending.reason = outcome.wait.empty() ? waiting->second : outcome.wait;
                ending.later = outcome.later;
            } else if (!outcome.refusal.empty()) {
                ending.state = EventState::kRefused;
                ending.reason = outcome.refusal;
            } else {
                ending.state = outcome.actions.empty() ? EventState::kUnwanted : EventState::kDone;
            }
        }
        std::vector<JoinInstance> rounds;
        for (auto& [key, round] : changed_) rounds.push_back(std::move(round));
        tables_.Save(endings, firings, rounds);
    }

    FiringTables& tables_;
    const std::span<const EventOutcome> outcomes_;
    std::vector<FireReply> replies_;
    Time now_{};
    std::map<EventNo, FiringTables::Locked> locked_;
    std::vector<Step> steps_;
    std::vector<NewTask> tasks_;
    std::map<JoinKey, JoinInstance> newest_;
    std::map<JoinKey, std::optional<JoinInstance>> before_;
    std::set<JoinKey> completing_;
    std::map<std::pair<JoinKey, int>, JoinInstance> changed_;
};

constexpr std::array kKinds = {
    std::string_view{"submitted"},
    std::string_view{"existing"},
    std::string_view{"finished"},
    std::string_view{"joined"},
    std::string_view{"absorbed"},
    std::string_view{"refused"},
    std::string_view{"followed"},
};

}  // namespace

std::string_view FiringKindName(FiringRecord::Kind kind) {
    return kKinds.at(static_cast<std::size_t>(kind));
}

std::string TriggerActor(const Action& action) {
    return base::CleanText(
        fmt::format("trigger:{}/{}", action.workflow, action.trigger), limits::kActor
    );
}

BackgroundFinish FinishOf(const Action& action, const Action::Finish& finish) {
    BackgroundFinish request;
    request.task = finish.what.task;
    request.token = finish.what.token;
    request.actor = TriggerActor(action);
    request.success = finish.what.success;
    request.output = finish.what.output;
    request.jitter = finish.jitter;
    if (request.success) return request;
    request.error.message = finish.what.message.empty() ? "an event says so" : finish.what.message;
    request.error.retryable = finish.what.retryable;
    return request;
}

std::vector<FireReply> FireAll(FiringTables& tables, std::span<const EventOutcome> outcomes) {
    bool here = std::any_of(outcomes.begin(), outcomes.end(), [](const EventOutcome& outcome) {
        return outcome.here.has_value();
    });
    if (!here) return Fires(tables, outcomes).Run();
    std::vector<EventOutcome> numbered(outcomes.begin(), outcomes.end());
    std::vector<std::optional<PublishReply>> published(outcomes.size());
    for (std::size_t i = 0; i < numbered.size(); ++i) {
        if (!numbered[i].here) continue;
        PublishReply reply = tables.Publish(*numbered[i].here);
        bool fires = reply.kind == PublishReply::Kind::kAccepted && !reply.refused;
        numbered[i].event = fires ? reply.no : EventNo();
        published[i] = std::move(reply);
    }
    std::vector<FireReply> replies = Fires(tables, numbered).Run();
    for (std::size_t i = 0; i < replies.size(); ++i) replies[i].published = published[i];
    return replies;
}

}  // namespace stint::store
