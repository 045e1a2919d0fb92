#include "services/event_explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "services/definitions.h"
#include "store/event_words.h"
#include "store/events.h"

namespace stint::services {

namespace {

using store::Action;

class Explainer {
public:
    Explainer(store::Store& store, const EventQuestion& question)
        : store_(store),
          question_(question),
          workflows_(store.Events().Workflows()),
          definitions_(workflows_) {
        for (const model::SessionRecord& session : store.Sessions()) {
            bool live = session.state == model::SessionState::kLive ||
                        session.state == model::SessionState::kDraining;
            if (!live) continue;
            ++workers_;
            served_.insert(session.types.begin(), session.types.end());
        }
    }

    std::vector<EventObstacle> Run() {
        if (question_.event.valid()) {
            auto event = store_.Events().GetEvent(question_.event);
            if (event && event->state == model::EventState::kPending) OfEvent(*event);
            return std::move(found_);
        }
        for (const store::WorkflowRecord& workflow : workflows_) OfDefinition(workflow);
        store::EventFilter pending;
        pending.tenant = question_.tenant;
        pending.states = {model::EventState::kPending};
        pending.limit = question_.limit;
        for (const model::EventRecord& event : store_.Events().ListEvents(pending)) OfEvent(event);
        store::JoinFilter open;
        open.tenant = question_.tenant;
        open.states = {model::JoinState::kOpen};
        open.limit = question_.limit;
        for (const model::JoinInstance& round : store_.Events().Joins(open)) OfRound(round);
        return std::move(found_);
    }

private:
    bool Wanted(TenantId tenant) const { return !question_.tenant || *question_.tenant == tenant; }
    bool Served(const std::string& type) const { return served_.contains(type); }

    void OfDefinition(const store::WorkflowRecord& workflow) {
        if (workflow.unreadable.empty() || !Wanted(workflow.definition.tenant)) return;
        EventObstacle& one = found_.emplace_back();
        one.workflow = workflow.definition.name;
        one.why = "this program cannot read it: " + workflow.unreadable;
    }

    void OfEvent(const model::EventRecord& event) {
        EventObstacle about;
        about.event = event.no;
        about.why = event.reason;
        if (about.why.empty()) about.why = definitions_.Unreadable(event.tenant);
        if (about.why.empty()) {
            about.why = workers_ == 0
                            ? "no worker is running on this store; start one: stint worker start"
                            : "no worker has finished looking at it yet";
        }
        found_.push_back(std::move(about));
        std::set<std::pair<std::string, std::string>> fired;
        store::FiringFilter filter;
        filter.event = event.no;
        filter.limit = model::limits::kListPage;
        for (const auto& one : store_.Events().Firings(filter)) {
            fired.emplace(one.workflow, one.trigger);
        }
        for (const Action& action : Actions(event)) {
            if (!fired.contains({action.workflow, action.trigger})) OfAction(event.no, action);
        }
    }

    std::vector<Action> Actions(const model::EventRecord& event) {
        if (event.type != model::kTaskComplete) return definitions_.ActionsFor(event).actions;
        auto task = store_.Get(store::CompletedBy(event));
        return task ? definitions_.ArrivalsOf(*task).actions : std::vector<Action>();
    }

    void OfAction(EventNo event, const Action& action) {
        const auto* task = std::get_if<model::NewTask>(&action.what);
        const auto* arrival = std::get_if<model::JoinArrival>(&action.what);
        if (task == nullptr && arrival == nullptr) return;
        const std::string& type = task != nullptr ? task->type : arrival->submit.type;
        if (Served(type)) return;
        EventObstacle& one = found_.emplace_back();
        one.event = event;
        one.workflow = action.workflow;
        one.trigger = action.trigger;
        if (arrival != nullptr) one.key = arrival->key.key;
        one.type = type;
        one.why = fmt::format("no running worker handles tasks of type {}, which it submits", type);
    }

    void OfRound(const model::JoinInstance& round) {
        const model::Join* join = JoinOf(round.key);
        if (join == nullptr) {
            Stops(round, "", "its join is not part of the workflow any more; it will expire");
            return;
        }
        for (const std::string& type : join->types) {
            bool there = std::any_of(
                round.parts.begin(),
                round.parts.end(),
                [&](const model::JoinPart& part) { return part.type == type; }
            );
            if (there || Served(type)) continue;
            Stops(
                round,
                type,
                fmt::format("no running worker handles tasks of type {}, which is missing", type)
            );
        }
        const std::string& type = join->submit.type;
        if (Served(type)) return;
        Stops(
            round,
            type,
            fmt::format("no running worker handles tasks of type {}, which it submits", type)
        );
    }

    const model::Join* JoinOf(const model::JoinKey& key) const {
        for (const store::WorkflowRecord& workflow : workflows_) {
            const model::WorkflowDefinition& definition = workflow.definition;
            if (definition.tenant != key.tenant || definition.name != key.workflow) continue;
            for (const model::Join& join : definition.joins) {
                if (join.name == key.join) return &join;
            }
        }
        return nullptr;
    }

    void Stops(const model::JoinInstance& round, const std::string& type, std::string why) {
        EventObstacle& one = found_.emplace_back();
        one.workflow = round.key.workflow;
        one.trigger = round.key.join;
        one.key = round.key.key;
        one.type = type;
        one.why = std::move(why);
    }

    store::Store& store_;
    const EventQuestion& question_;
    const std::vector<store::WorkflowRecord> workflows_;
    const Definitions definitions_;
    std::set<std::string> served_;
    int workers_ = 0;
    std::vector<EventObstacle> found_;
};

}  // namespace

std::vector<EventObstacle> ExplainEvents(store::Store& store, const EventQuestion& question) {
    return Explainer(store, question).Run();
}

}  // namespace stint::services
