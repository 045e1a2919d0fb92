// Events and joins, and what must have become of them.
#include <fmt/format.h>

#include "base/json.h"
#include "sim/clock.h"
#include "sim/faulty_store.h"
#include "sim/workload.h"

namespace stint::sim {

namespace {

using model::EventState;
using model::JoinState;
using std::chrono::milliseconds;

constexpr int kClients = 2;
constexpr int kMostEvents = 12;                          // of one client
constexpr int kKeys = 3;                                 // of pairs: most keys see several rounds
constexpr Virtual kPatience = std::chrono::minutes{20};  // for an event to be processed, at the end

constexpr std::string_view kDefinition = R"({"name":"sim",
  "triggers":[
    {"name":"one","on":"sim.event","submit":{"type":"sim.work","input":{"n":"${a}"}}},
    {"name":"two","on":"sim.event","match":"b >= 0 AND $event.depth < 1",
     "submit":{"type":"sim.work","input":{"n":"${b}"}}},
    {"name":"left","on":"sim.pair",
     "submit":{"type":"sim.left","input":{"n":"${a}","pair":"${pair}"}}},
    {"name":"right","on":"sim.pair",
     "submit":{"type":"sim.right","input":{"n":"${b}","pair":"${pair}"}}}],
  "joins":[
    {"name":"pairs","types":["sim.left","sim.right"],"key":"input.pair","ttl":"30d",
     "submit":{"type":"sim.joined"}}]})";

struct Published {
    EventNo no;
    std::vector<std::string> triggers;  // that it must have fired
};

class Events final : public Workload {
public:
    Events(Setting& setting, PlanBook& plans) : setting_(setting), plans_(plans) {}

    void Setup() override {
        auto definition = model::WorkflowFromJson(kDefinition);
        (void)setting_.store.Events().PutWorkflow(definition.value(), "sim").value();
        for (int i = 0; i < kClients; ++i) {
            Process& process = setting_.world.NewProcess(fmt::format("publisher{}", i));
            setting_.world.Spawn(process, "publishes", [this, i] {
                ++busy_;
                Client(i);
                --busy_;
            });
        }
    }
    void Finish() override {
        finishing_ = true;
        give_up_ = setting_.world.now() + kPatience;
    }
    bool Finished() const override {
        return busy_ == 0 && (NothingPending() || setting_.world.now() > give_up_);
    }
    void Check() override {
        for (const Published& event : published_) CheckEvent(event);
        CheckJoins();
    }

private:
    base::SeededRandom& random() { return setting_.world.random(); }
    store::EventStore& events() const { return setting_.store.Events(); }

    bool NothingPending() const {
        store::EventFilter filter;
        filter.states = {EventState::kPending};
        filter.limit = 1;
        return events().ListEvents(filter).empty();
    }

    void Client(int number) {
        FaultyStore store(setting_.world, setting_.faults, setting_.oracle, setting_.store);
        for (int i = 0; i < kMostEvents && !finishing_; ++i) {
            PublishUntilStored(store, Make(fmt::format("{}-{}", number, i)));
            setting_.world.Sleep(setting_.world.Between(milliseconds{1}, milliseconds{2'500}));
        }
    }

    model::NewEvent Make(std::string id) {
        model::NewEvent event;
        event.source = "sim";
        event.id = std::move(id);
        Plan plan;
        if (random().Below(3) == 0) {
            plan.behaviour = static_cast<Behaviour>(random().Below(kBehaviourCount));
        }
        std::int64_t a = plans_.Add(plan);
        std::int64_t b = plans_.Add({});
        if (random().Below(2) == 0) {
            event.type = "sim.event";
            if (random().Below(3) == 0) b = -1;
            event.data = fmt::format(R"({{"a":{},"b":{}}})", a, b);
        } else {
            event.type = "sim.pair";
            event.data =
                fmt::format(R"({{"a":{},"b":{},"pair":"k{}"}})", a, b, random().Below(kKeys));
        }
        return event;
    }

    // As a program does that must not lose it: the id makes a second time harmless.
    void PublishUntilStored(store::Store& store, const model::NewEvent& event) {
        while (true) {
            try {
                store::PublishReply reply = store.Events().Publish({&event, 1}).at(0);
                if (reply.kind > store::PublishReply::Kind::kExisting) {
                    setting_.oracle.Violate("I8", {}, "an event is refused: " + reply.message);
                }
                Published stored{reply.no, {}};
                bool pair = event.type == "sim.pair";
                bool two = base::ReadJson(event.data)["b"].get<int>() >= 0;
                if (pair) stored.triggers = {"left", "right"};
                if (!pair) stored.triggers = {"one"};
                if (!pair && two) stored.triggers.emplace_back("two");
                published_.push_back(std::move(stored));
                // And sometimes it is not sure, and says it again.
                if (random().Below(4) != 0) return;
            } catch (const store::Unavailable&) {
            } catch (const store::CommitUnknown&) {
            }
            setting_.world.Sleep(setting_.world.Between(milliseconds{1}, milliseconds{700}));
        }
    }

    void CheckEvent(const Published& event) {
        auto violate = [&](const std::string& what) {
            setting_.oracle.Violate("L1", {}, fmt::format("event {} {}", event.no.value(), what));
        };
        auto record = events().GetEvent(event.no);
        if (!record) return violate("is gone");
        if (record->state != EventState::kDone) {
            return violate("is " + std::string(EventStateName(record->state)));
        }
        store::FiringFilter filter;
        filter.event = event.no;
        std::map<std::string, int> fired;
        for (const store::FiringRecord& firing : events().Firings(filter)) {
            ++fired[firing.trigger];
            if (setting_.oracle.Find(firing.task) == nullptr) {
                violate("fired a task that is not there");
            }
        }
        for (const std::string& trigger : event.triggers) {
            if (fired[trigger] != 1) violate("has not fired " + trigger);
        }
        if (fired.size() != event.triggers.size()) violate("fired what it did not match");
    }

    // I10: one task per (key, generation), made of one of each; and none is missing.
    void CheckJoins() {
        std::map<std::pair<std::string, int>, int> made;  // key, generation
        std::map<std::string, std::set<std::string>> complete;
        for (TaskId id : setting_.oracle.Tasks()) {
            const model::TaskRecord& task = *setting_.oracle.Find(id);
            base::Json input = base::ReadJson(task.input);
            if (task.type == kJoined) {
                bool whole = input["outputs"].contains(kLeft) && input["outputs"].contains(kRight);
                if (!whole) setting_.oracle.Violate("I10", id, "a join's task without a member");
                ++made[{input["key"].get<std::string>(), input["generation"].get<int>()}];
                continue;
            }
            bool member = task.type == kLeft || task.type == kRight;
            if (member && task.state == model::State::kComplete) {
                complete[input["pair"].get<std::string>()].insert(task.type);
            }
        }
        for (const auto& [round, count] : made) {
            if (count == 1) continue;
            setting_.oracle.Violate(
                "I10",
                {},
                fmt::format("round {} of {} fired {} times", round.second, round.first, count)
            );
        }
        for (const auto& [key, types] : complete) {
            if (types.size() == 2 && !made.contains({key, 1})) {
                setting_.oracle.Violate("I10", {}, "all members of " + key + " are complete");
            }
        }
        CheckRounds(made);
    }

    void CheckRounds(const std::map<std::pair<std::string, int>, int>& made) {
        std::set<TaskId> used;
        std::size_t fired = 0;
        store::JoinFilter filter;
        filter.limit = 1'000;
        for (const model::JoinInstance& round : events().Joins(filter)) {
            fired += round.state == JoinState::kFired ? 1 : 0;
            for (const model::JoinPart& part : round.parts) {
                if (used.insert(part.task).second) continue;
                setting_.oracle.Violate("I10", part.task, "a member counts in two rounds");
            }
        }
        if (fired != made.size()) {
            setting_.oracle.Violate(
                "I10", {}, fmt::format("{} rounds fired, {} tasks are there", fired, made.size())
            );
        }
    }

    Setting& setting_;
    PlanBook& plans_;
    std::vector<Published> published_;
    int busy_ = 0;
    bool finishing_ = false;
    Virtual give_up_ = Virtual::max();
};

}  // namespace

std::unique_ptr<Workload> EventWorkload(Setting& setting, PlanBook& plans) {
    return std::make_unique<Events>(setting, plans);
}

}  // namespace stint::sim
