#include "sim/faulty_store.h"
#include "sim/workload.h"

namespace stint::sim {

namespace {

class Outside final : public Workload {
public:
    Outside(Setting& setting, PlanBook& plans)
        : setting_(setting),
          plans_(plans),
          store_(setting.world, setting.faults, setting.oracle, setting.store) {}

    void Setup() override {
        Process& process = setting_.world.NewProcess("outside");
        setting_.world.Spawn(process, "finisher", [this] { Run(); });
    }
    void Finish() override {}
    bool Finished() const override { return true; }  // goes on: somebody may still wait for it
    void Check() override {}

private:
    void Run() {
        World& world = setting_.world;
        for (;;) {
            world.Sleep(world.Between(std::chrono::milliseconds{100}, std::chrono::seconds{3}));
            if (plans_.handed.empty()) continue;
            Handed handed = plans_.handed.front();
            plans_.handed.pop_front();
            auto chance = world.random().Below(8);
            if (chance == 0) continue;                         // never
            if (chance == 1) plans_.handed.push_back(handed);  // again, later
            Tell(handed, world.random().Below(4) != 0);
        }
    }

    void Tell(const Handed& handed, bool success) {
        store::BackgroundFinish finish;
        finish.task = handed.task;
        finish.token = handed.token;
        finish.actor = "outside";
        finish.success = success;
        finish.output = "{\"outside\":true}";
        finish.error = {"failed outside", "outside", {}, true};
        try {
            (void)store_.FinishBackground(finish);
        } catch (const std::exception&) {
            plans_.handed.push_back(handed);  // says it again: the token makes that harmless
        }
    }

    Setting& setting_;
    PlanBook& plans_;
    FaultyStore store_;
};

}  // namespace

std::unique_ptr<Workload> OutsideWorld(Setting& setting, PlanBook& plans) {
    return std::make_unique<Outside>(setting, plans);
}

}  // namespace stint::sim
