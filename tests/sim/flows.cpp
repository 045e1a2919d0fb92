// Flows under crashes at every step boundary, and those who signal them.
#include "sim/flows.h"

#include <fmt/format.h>

#include <array>
#include <set>

#include "base/json.h"
#include "sim/clock.h"
#include "sim/faulty_store.h"
#include "sim/workload.h"

namespace stint::sim {

namespace {

using model::FlowStep;
using model::StepKind;
using model::StepState;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kClients = 2;
constexpr int kMostFlows = 4;  // of one client
// Longer than any run: a flow that sleeps through its signal is not seen again.
constexpr Duration kPatience = std::chrono::hours{24};
// A wake-up may lie a little ahead of a clock that was set back.
constexpr Virtual kClockSlack = std::chrono::minutes{2};

constexpr Task<Json, Json> kChild{kWork};

// One attempt of a simulated flow: what it does, and what it must not do again.
class Attempt {
public:
    Attempt(Setting& setting, Context& context) : setting_(setting), context_(context) {
        World::Shelter shelter;
        auto history = setting_.store.Flows().Get(context.id());
        if (!history) return;
        for (const FlowStep& step : history->steps) recorded_.insert(Name(step));
    }

    Json Run(Flow& flow) {
        base::Json results = base::Json::array();
        auto add = [&](const base::Json& one) { results.push_back(one); };
        add(Effect(flow, "reserve"));
        add(Call(flow, "charge"));
        for (int i = 0; i < 2; ++i) {
            for (Alarm* bell : setting_.bells) bell->Ring();
            add(base::ReadJson(flow.AwaitSignal<Json>("go", kPatience).value_or(Json{}).text));
        }
        add(Effect(flow, "ship"));
        add(base::Json(flow.Version("packing", 0, 2)));
        flow.Sleep("rest", seconds{2});
        auto silence = flow.AwaitSignal<Json>("nobody says this", seconds{1});
        add(silence ? base::ReadJson(silence->text) : base::Json());
        auto one = flow.Start("parcel", kChild, {"{}"});
        auto two = flow.Start("parcel", kChild, {"{}"});
        if (auto first = Race(flow, {one, two})) add(base::Json(*first));
        WaitForBoth(flow, one, two);
        add(base::Json(flow.NewId()));
        add(Effect(flow, "thank"));
        return {base::JsonText(results)};
    }

private:
    static std::string Name(const FlowStep& step) {
        return fmt::format("{}#{}", step.name, step.occurrence);
    }

    base::Json Effect(Flow& flow, const std::string& name) {
        Json done = flow.Run(name, [&] {
            if (recorded_.contains(name + "#1")) {
                setting_.oracle.Violate(
                    "I2", context_.id(), "step " + name + " was recorded and is done again"
                );
            }
            setting_.world.Point("flow.effect");
            if (setting_.world.random().Below(8) == 0) throw Retryable("simulated failure");
            return Json{std::to_string(context_.fencing_number())};
        });
        return base::ReadJson(done.text);
    }
    static std::optional<std::size_t> Race(Flow& flow, const std::vector<Started<Json>>& started) {
        try {
            return flow.AwaitAny("first parcel", started);
        } catch (const StepFailed&) {
            return std::nullopt;  // all have failed
        }
    }
    static void WaitForBoth(Flow& flow, const Started<Json>& one, const Started<Json>& two) {
        try {
            flow.AwaitAll(one, two);
        } catch (const StepFailed&) {  // NOLINT(bugprone-empty-catch): a parcel may be lost
        }
    }
    base::Json Call(Flow& flow, const std::string& name) {
        try {
            flow.Call(name, kChild, {"{}"});
            return "paid";
        } catch (const StepFailed&) {
            return "refused";
        }
    }

    Setting& setting_;
    Context& context_;
    std::set<std::string> recorded_;  // when this attempt began
};

class FlowWork final : public Workload {
public:
    explicit FlowWork(Setting& setting) : setting_(setting) {}

    void Setup() override {
        for (int i = 0; i < kClients; ++i) {
            Process& process = setting_.world.NewProcess(fmt::format("customer{}", i));
            Alarm& bell = bells_.at(static_cast<std::size_t>(i));
            setting_.bells.push_back(&bell);
            setting_.world.Spawn(process, "orders", [this, &bell] {
                ++busy_;
                Client(bell);
                --busy_;
            });
        }
    }
    void Finish() override { finishing_ = true; }
    bool Finished() const override {
        for (TaskId flow : flows_) CheckSleep(flow);
        return busy_ == 0;
    }
    void Check() override {
        for (TaskId flow : flows_) CheckRecord(flow);
    }

private:
    base::SeededRandom& random() { return setting_.world.random(); }

    template <class Work>
    void Insist(Work work) {
        while (true) {
            try {
                return work();
            } catch (const store::Unavailable&) {
            } catch (const store::CommitUnknown&) {
            }
            setting_.world.Sleep(setting_.world.Between(milliseconds{1}, milliseconds{700}));
        }
    }

    void Client(Alarm& bell) {
        FaultyStore store(setting_.world, setting_.faults, setting_.oracle, setting_.store);
        for (int i = 0; i < kMostFlows && !finishing_; ++i) {
            TaskId id;
            Insist([&] { id = store.ReserveIds(1); });
            model::NewTask task{.id = id, .type = std::string(kFlowType)};
            task.idempotency_key = fmt::format("flow-{}", id.value());
            Insist([&] { (void)store.Submit({&task, 1}); });
            flows_.push_back(id);
            for (int n = 1; n <= 2; ++n) {
                LetTimePass(bell);
                CheckSleep(id);
                SignalUntilKept(store, id, n);
            }
        }
    }

    // Some answer at the moment they are asked, before the flow has lain down to wait.
    void LetTimePass(Alarm& bell) {
        World& world = setting_.world;
        Virtual until = world.now() + world.Between(milliseconds{1}, seconds{3});
        if (random().Below(2) == 0) return world.SleepUntil(until);
        world.SleepUntil(until, bell);
        world.Sleep(world.Between({}, milliseconds{3}));
    }

    void SignalUntilKept(store::Store& store, TaskId flow, int n) {
        model::NewSignal signal{flow, "go", std::to_string(n), std::to_string(n), "customer"};
        Insist([&] {
            using Kind = store::SignalReply::Kind;
            store::SignalReply reply = store.Flows().Signal(signal);
            bool fine = reply.kind == Kind::kAccepted || reply.kind == Kind::kExisting ||
                        reply.kind == Kind::kFinished;
            if (!fine) setting_.oracle.Violate("I8", flow, "a signal: " + reply.message);
        });
        // And sometimes it is not sure, and says it again.
        if (random().Below(4) == 0) Insist([&] { (void)store.Flows().Signal(signal); });
    }

    // A flow does not sleep for a signal that is there.
    void CheckSleep(TaskId flow) const {
        auto history = setting_.store.Flows().Get(flow);
        auto task = setting_.store.Get(flow);
        if (!history || !task || task->state != model::State::kOpen) return;
        auto audit = setting_.store.Audit({.task = flow});
        bool lies_down = !audit.empty() && audit.back().event == model::Event::kSnooze;
        if (!lies_down || history->flow.awaits.empty()) return;
        if (task->due_at < setting_.store.Now() + kClockSlack) return;
        for (const model::FlowSignal& signal : history->signals) {
            if (signal.step != 0 || signal.name != history->flow.awaits) continue;
            setting_.oracle.Violate("L2", flow, "it sleeps for a signal that has come");
        }
    }

    void CheckRecord(TaskId flow) {
        CheckSleep(flow);
        auto history = setting_.store.Flows().Get(flow);
        auto task = setting_.store.Get(flow);
        if (!task) return setting_.oracle.Violate("I1", flow, "the flow is gone");
        if (!history) return;  // it never began
        int no = 0;
        base::Json results = base::Json::array();
        std::set<std::string> signals;
        for (const FlowStep& step : history->steps) {
            if (step.no != ++no) {
                setting_.oracle.Violate("I12", flow, fmt::format("step {} is missing", no));
            }
            Collect(step, results);
            bool twice = step.kind == StepKind::kSignal && step.state == StepState::kDone &&
                         !signals.insert(step.result).second;
            if (twice) setting_.oracle.Violate("I2", flow, "a signal was taken twice");
        }
        bool complete = task->state == model::State::kComplete;
        if (complete && base::ReadJson(task->output) != results) {
            setting_.oracle.Violate(
                "I2", flow, fmt::format("{} is not what is recorded", task->output)
            );
        }
    }

    // What the flow must have seen of this step, whichever attempt it was.
    static void Collect(const FlowStep& step, base::Json& results) {
        if (step.name == "charge") {
            results.push_back(step.state == StepState::kDone ? "paid" : "refused");
        } else if (step.state == StepState::kTimedOut) {
            results.push_back(nullptr);
        } else if (step.kind != StepKind::kCall && step.kind != StepKind::kSleep) {
            results.push_back(base::ReadJson(step.result));
        }
    }

    Setting& setting_;
    std::array<Alarm, kClients> bells_;
    std::vector<TaskId> flows_;
    int busy_ = 0;
    bool finishing_ = false;
};

}  // namespace

void RegisterFlow(engine::Registry& registry, Setting& setting) {
    model::TypeDefaults defaults;
    defaults.type = kFlowType;
    defaults.retry.max_attempts = 12;
    defaults.retry.first_delay = milliseconds{300};
    defaults.retry.max_delay = seconds{3};
    auto handler = [&setting](Context& context, std::string_view input) {
        struct Watched {
            Watched(Setting& in, Context& of)
                : setting(in), task(of.id()), claim(static_cast<int>(of.fencing_number())) {
                setting.oracle.HandlerStarted(task, claim, of.stop());
            }
            ~Watched() { setting.oracle.HandlerEnded(task, claim); }
            Watched(const Watched&) = delete;
            Watched& operator=(const Watched&) = delete;
            Setting& setting;
            TaskId task;
            int claim;
        };
        Watched watched(setting, context);
        Attempt attempt(setting, context);
        Outcome<std::string> end = detail::PlayFlow(
            context, input, detail::EraseFlow<Json, Json>([&](Flow& flow, const Json&) {
                return attempt.Run(flow);
            })
        );
        if (end.index() == 0 && !context.stop().stop_requested()) {
            setting.oracle.HandlerSucceeds(
                context.id(), static_cast<int>(context.fencing_number())
            );
        }
        return end;
    };
    registry.Add({.type = std::string(kFlowType), .defaults = defaults, .handler = handler});
}

std::unique_ptr<Workload> FlowWorkload(Setting& setting) {
    return std::make_unique<FlowWork>(setting);
}

}  // namespace stint::sim
