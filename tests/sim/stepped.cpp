// A schedule with steps, some of whose tasks fail, and somebody who changes it while executions are
// under way.
#include "model/steps.h"
#include "services/schedule_desk.h"
#include "sim/clock.h"
#include "sim/faulty_store.h"
#include "sim/schedules.h"
#include "sim/workload.h"

namespace stint::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kName = "stepped";

class Stepped final : public Workload {
public:
    Stepped(Setting& setting, PlanBook& plans)
        : world_(setting.world),
          plans_(plans),
          store_(world_, setting.faults, setting.oracle, setting.store),
          wake_(setting.post),
          desk_(store_, wake_, SimZones()) {}

    void Setup() override {
        Process& process = world_.NewProcess("stepper");
        world_.Spawn(process, "steps", [this] { Clerk(); });
    }
    void Finish() override { finishing_ = true; }
    bool Finished() const override { return done_; }
    void Check() override {}

private:
    model::NewTask Member() {
        Plan plan;
        auto draw = world_.random().Below(8);
        if (draw == 0) plan.behaviour = Behaviour::kFailFinally;
        if (draw == 1) plan.behaviour = Behaviour::kFailRetryable;
        plan.work = milliseconds{world_.random().Below(600)};
        model::NewTask task;
        task.type = kWork;
        task.input = PlanBook::Input(plans_.Add(plan));
        return task;
    }

    model::ScheduleSpec Spec() {
        model::ScheduleSpec spec;
        spec.name = kName;
        spec.timing.kind = model::TimingSpec::Kind::kEvery;
        spec.timing.every = seconds{11};
        spec.overlap = model::OverlapPolicy::kSkip;
        for (const char* name : {"one", "two", "three"}) {
            model::Step& step = spec.steps.emplace_back();
            step.name = name;
            step.go_on = world_.random().Below(2) == 0;
            for (auto left = 1 + world_.random().Below(3); left > 0; --left) {
                step.tasks.push_back(Member());
            }
        }
        return spec;
    }

    // Whether or not it happened: it is tried again until it is known.
    template <class Act>
    void Surely(Act act) {
        for (bool known = false; !known;) {
            try {
                known = act();
            } catch (const Crash&) {
                throw;
            } catch (const std::exception&) {
            }
            if (!known) world_.Sleep(world_.Between(milliseconds{50}, seconds{1}));
        }
    }

    void Clerk() {
        Surely([&] { return desk_.Put(Spec(), {}, "stepper").has_value(); });
        while (!finishing_) {
            world_.Sleep(world_.Between(seconds{2}, seconds{9}));
            try {
                if (world_.random().Below(2) == 0) {
                    (void)desk_.RunNow(kDefaultTenant, kName);
                } else {
                    (void)desk_.Put(Spec(), {}, "stepper");
                }
            } catch (const Crash&) {
                throw;
            } catch (const std::exception&) {
            }
        }
        Surely([&] { return desk_.SetPaused(kDefaultTenant, kName, true, "stepper").has_value(); });
        done_ = true;
    }

    World& world_;
    PlanBook& plans_;
    FaultyStore store_;
    SimWake wake_;
    services::ScheduleDesk desk_;
    bool finishing_ = false;
    bool done_ = false;
};

}  // namespace

std::unique_ptr<Workload> SteppedWork(Setting& setting, PlanBook& plans) {
    return std::make_unique<Stepped>(setting, plans);
}

}  // namespace stint::sim
