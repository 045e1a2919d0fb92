// Events: what each of them fired, and the joins of what came of it.
#include <algorithm>

#include "evidence.h"
#include "model/limits.h"
#include "store/events.h"

namespace stint::chaos {

namespace {

using Firing = store::FiringRecord;
using model::State;
using model::TaskRecord;

// ---- triggers ----------------------------------------------------------------------------------

class EventsCheck {
public:
    EventsCheck(const Evidence& evidence, Findings& findings)
        : evidence_(evidence), events_(evidence.store.Events()), findings_(findings) {}

    void Run() {
        ReadEvents();
        auto accepted = evidence_.Accepted(Kind::kEvent);
        for (const auto& [key, number] : accepted) CheckEvent(key, number);
        if (accepted.empty() || accepted.size() != published_) {
            findings_.Add("{} events are stored, {} were accepted", published_, accepted.size());
        }
        CheckMembers();
        CheckJoins();
        findings_.Count("events", static_cast<std::int64_t>(accepted.size()));
        findings_.Count("firings", fired_);
        findings_.Count("joins", joins_);
    }

private:
    void ReadEvents() {
        store::EventFilter filter;
        filter.limit = model::limits::kListPage;
        while (true) {
            auto page = events_.ListEvents(filter);
            if (page.empty()) break;
            filter.before = page.back().no;
            for (model::EventRecord& event : page) Read(std::move(event));
        }
    }
    void Read(model::EventRecord event) {
        if (event.state == model::EventState::kPending) {
            findings_.Add("event {} is stuck: {} (L1)", event.no.value(), event.reason);
        }
        published_ += event.type == kHappened ? 1u : 0u;
        store::FiringFilter of_event;
        of_event.event = event.no;
        auto firings = events_.Firings(of_event);
        fired_ += static_cast<int>(firings.size());
        std::set<std::string> triggers;
        for (const Firing& firing : firings) {
            if (!triggers.insert(firing.trigger).second) {
                findings_.Add("event {} fired {} twice (I10)", event.no.value(), firing.trigger);
            }
            if (firing.kind == Firing::Kind::kRefused) {
                findings_.Add("event {}: {}", event.no.value(), firing.message);
            }
        }
        if (event.type == model::kTaskComplete) Arrived(event, firings);
        firings_.emplace(event.no, std::move(firings));
        records_.emplace(event.no, std::move(event));
    }

    // An event of the engine's own: a member of the join is complete.
    void Arrived(const model::EventRecord& event, const std::vector<Firing>& firings) {
        auto data = nlohmann::json::parse(event.data);
        auto task = TaskId::Parse(data.at("task").get<std::string>());
        if (!task || firings.size() != 1) {
            return findings_.Add(
                "event {} of a member came to {} joins", event.no.value(), firings.size()
            );
        }
        if (!arrived_.emplace(*task, firings.front()).second) {
            findings_.Add("task {} was told to its join twice (I10)", task->value());
        }
    }

    void CheckEvent(const std::string& key, std::int64_t number) {
        auto record = records_.find(EventNo(number));
        if (record == records_.end() || record->second.id != key) {
            return findings_.Add("{}: accepted as event {}, now gone (I1)", key, number);
        }
        if (record->second.state != model::EventState::kDone) {
            findings_.Add("{}: {}", key, EventStateName(record->second.state));
        }
        auto event = Codec<Happening>::Decode(record->second.data);
        std::map<std::string, std::string_view> expected = {
            {"left", kLeft.name}, {"right", kRight.name}};
        if (event.wanted) expected["more"] = kMore.name;
        const auto& firings = firings_[EventNo(number)];
        if (firings.size() != expected.size()) {
            findings_.Add(
                "{}: fired {} triggers instead of {} (I10)", key, firings.size(), expected.size()
            );
        }
        for (const Firing& firing : firings) {
            const TaskRecord* task = evidence_.Find(firing.task.value());
            if (task == nullptr || task->type != expected[firing.trigger] ||
                Codec<Happening>::Decode(task->input).key != key) {
                findings_.Add("{}: {} did not submit its task (I10)", key, firing.trigger);
            }
        }
        wanted_ += event.wanted ? 1u : 0u;
    }

    // ---- joins ---------------------------------------------------------------------------------

    struct Pair {
        Evidence::Tasks members;
        std::size_t absorbed = 0;
        std::vector<model::JoinInstance> rounds;
        std::map<int, const TaskRecord*> made;  // by generation
    };

    void CheckMembers() {
        for (std::string_view type : {kLeft.name, kRight.name}) {
            if (evidence_.OfType(type).size() != published_) {
                findings_.Add(
                    "{} tasks of {} for {} events (I10)",
                    evidence_.OfType(type).size(),
                    type,
                    published_
                );
            }
            for (const TaskRecord* task : evidence_.OfType(type)) Place(*task);
        }
        if (evidence_.OfType(kMore.name).size() != wanted_) {
            findings_.Add(
                "{} of {} wanted tasks (I10)", evidence_.OfType(kMore.name).size(), wanted_
            );
        }
    }
    void Place(const TaskRecord& task) {
        Pair& pair = pairs_[Codec<Happening>::Decode(task.input).pair];
        if (task.state != State::kComplete) {
            if (!evidence_.Quarantined(task))
                findings_.Add("task {} of an event: {}", task.id.value(), task.reason);
            return;
        }
        pair.members.push_back(&task);
        auto arrived = arrived_.find(task.id);
        if (arrived == arrived_.end()) {
            return findings_.Add(
                "task {} is complete, and its join was not told (I10)", task.id.value()
            );
        }
        pair.absorbed += arrived->second.kind == Firing::Kind::kAbsorbed ? 1u : 0u;
    }

    void CheckJoins() {
        store::JoinFilter filter;
        filter.workflow = kWorkflow;
        filter.limit = model::limits::kListPage;
        while (true) {
            auto page = events_.Joins(filter);
            if (page.empty()) break;
            filter.before = page.back().no;
            for (auto& round : page) pairs_[round.key.key].rounds.push_back(std::move(round));
        }
        for (const TaskRecord* task : evidence_.OfType(kPair.name)) {
            auto input = Codec<Joined>::Decode(task->input);
            if (!pairs_[input.key].made.emplace(input.generation, task).second) {
                findings_.Add("{}: round {} fired twice (I10)", input.key, input.generation);
            }
        }
        for (const auto& [key, pair] : pairs_) CheckPair(key, pair);
    }

    void CheckPair(const std::string& key, const Pair& pair) {
        std::set<int> generations;
        std::size_t fired = 0, waiting = 0;
        for (const model::JoinInstance& round : pair.rounds) {
            if (!generations.insert(round.generation).second) {
                findings_.Add("{}: two rounds {} (I10)", key, round.generation);
            }
            if (round.state == model::JoinState::kFired) {
                ++fired;
                CheckFired(key, pair, round);
            } else {
                waiting += round.parts.size();
            }
        }
        joins_ += static_cast<int>(fired);
        if (fired != pair.made.size()) {
            findings_.Add("{}: {} rounds fired {} tasks (I10)", key, fired, pair.made.size());
        }
        // Every member is of one round, or came when its round had one like it.
        if (2 * fired + waiting + pair.absorbed != pair.members.size()) {
            findings_.Add(
                "{}: {} members, of which {} rounds of two, {} waiting, {} absorbed (I10)",
                key,
                pair.members.size(),
                fired,
                waiting,
                pair.absorbed
            );
        }
        if (pair.members.size() == 2 && fired != 1) {
            findings_.Add("{}: both members are complete, and {} rounds fired (I10)", key, fired);
        }
    }

    // The task that it made was given the members' outputs.
    void CheckFired(const std::string& key, const Pair& pair, const model::JoinInstance& round) {
        auto made = pair.made.find(round.generation);
        if (made == pair.made.end() || made->second->id != round.task) {
            return findings_.Add(
                "{}: the task of round {} is missing (I10)", key, round.generation
            );
        }
        auto input = Codec<Joined>::Decode(made->second->input);
        for (std::string_view type : {kLeft.name, kRight.name}) {
            std::string name(type);
            auto id = TaskId::Parse(input.tasks.value(name, ""));
            const TaskRecord* member = id ? evidence_.Find(id->value()) : nullptr;
            if (member == nullptr || !used_.insert(*id).second || member->type != type ||
                input.outputs.at(name) != nlohmann::json::parse(member->output)) {
                findings_.Add(
                    "{}: round {} fired with another {} (I10)", key, round.generation, type
                );
            }
        }
    }

    const Evidence& evidence_;
    store::EventStore& events_;
    Findings& findings_;
    std::map<EventNo, model::EventRecord> records_;
    std::map<EventNo, std::vector<Firing>> firings_;
    std::map<TaskId, Firing> arrived_;  // member → what the join did about it
    std::map<std::string, Pair> pairs_;
    std::set<TaskId> used_;  // members of rounds that fired
    std::size_t published_ = 0, wanted_ = 0;
    int fired_ = 0, joins_ = 0;
};

}  // namespace

void CheckEvents(const Evidence& evidence, Findings& findings) {
    EventsCheck(evidence, findings).Run();
}

}  // namespace stint::chaos
