#include "sim/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <list>
#include <utility>

#include "base/test_point.h"
#include "sim/clock.h"
#include "sim/flows.h"
#include "sim/hints.h"
#include "sim/node.h"
#include "sim/plans.h"
#include "sim/setting.h"
#include "sim/workload.h"
#include "store/memory/memory_store.h"

namespace stint::sim {

namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Runs with a single process that knows that it is alone on the store, as on a file of its own.
constexpr double kExclusiveShare = 0.1;

// Of the store's clock, by an operator or a failover.
constexpr Virtual kLargestStep = seconds{20};

constexpr Virtual kBetweenStatements = milliseconds{20};

// L1: when nothing goes wrong any more, a due task moves within this: a dead session's lease, the
// grace of a hung attempt, the longest crash delay, a sweep, a poll, a loop's pause after an error,
// the longest attempt of the workloads, doubled because a suspect waits for an idle worker.
constexpr Virtual kMovesWithin =
    2 * (kLargestStep + Virtual(kLease.lease) + Virtual(kTimeoutGrace) + Virtual(kSweepEvery) +
         Virtual(kPollMax) + Virtual(kErrorWait) + Virtual(seconds{10}) +
         Virtual(model::limits::kCrashDelayMax));
// And all of it ends within this, however many attempts the tasks have left.
constexpr Virtual kEndsWithin = std::chrono::hours{1};

// A folder for spools and flight records, in memory where the system has such a place.
class StateDir {
public:
    explicit StateDir(bool wanted) {
        if (!wanted) return;
        static std::atomic<int> number{0};
        fs::path base = fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
        path_ = base / fmt::format("stint-sim-{}-{}", getpid(), ++number);
        fs::create_directories(path_);
    }
    ~StateDir() {
        std::error_code ignored;
        if (!path_.empty()) fs::remove_all(path_, ignored);
    }
    StateDir(const StateDir&) = delete;
    StateDir& operator=(const StateDir&) = delete;

    std::string path() const { return path_.string(); }

private:
    fs::path path_;
};

// Test points of the code under test pass the baton; on threads outside any world they do nothing.
class TestPoints {
public:
    TestPoints() {
        base::SetTestPointListener([](std::string_view name) {
            World* world = World::Current();
            if (world == nullptr) return;
            world->Point(name);
            // A store that opens its transaction in the middle: the second half is sent later.
            if (name.starts_with("memory.")) world->Idle(world->Between({}, kBetweenStatements));
        });
    }
    ~TestPoints() { base::SetTestPointListener({}); }
    TestPoints(const TestPoints&) = delete;
    TestPoints& operator=(const TestPoints&) = delete;
};

class Run {
public:
    explicit Run(const RunOptions& options);
    ~Run() { world_.KillAll(); }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    RunReport Execute();

private:
    void AddWorkloads(const Mix& mix);
    void Nemesis();
    void Strike();
    void BootTheFallen();
    void Heal();
    void AwaitTheEnd();

    const RunOptions options_;
    TestPoints test_points_;
    World world_;
    Faults faults_;
    StoreClock store_clock_;
    base::SeededRandom store_random_;
    store::MemoryStore store_;
    Oracle oracle_;
    Post post_;
    StateDir state_dir_;
    Setting setting_;
    PlanBook plans_;
    std::list<Node> nodes_;
    std::vector<std::unique_ptr<Workload>> workloads_;
};

Run::Run(const RunOptions& options)
    : options_(options),
      world_(options.seed, options.trace),
      faults_(world_),
      store_clock_(world_),
      store_random_(world_.random().Next()),
      store_(store_clock_, store_random_),
      oracle_(world_, store_, kLease.lease),
      post_(world_, faults_),
      state_dir_(world_.Chance(0.5)),
      setting_{world_, faults_, oracle_, store_, post_, state_dir_.path()} {
    oracle_.Ignore(options.ignore);
    setting_.focus = options.focus == Focus::kDrawn ? DrawFocus(world_) : options.focus;
    const bool mixed = setting_.focus == Focus::kDrawn;
    if (!mixed) faults_.Favour(FaultsOf(setting_.focus));
    setting_.exclusive = mixed && options.nodes == kDefaultNodes && world_.Chance(kExclusiveShare);
    // Its store is in the process: nothing of a dead one is still on its way.
    if (setting_.exclusive) faults_.Forbid(Fault::kLateArrival);
    for (int i = 0; i < (setting_.exclusive ? 1 : options.nodes); ++i) {
        nodes_.emplace_back(setting_, i, [this](engine::Registry& registry, store::Store& store) {
            FillRegistry(registry, setting_, plans_, store);
            RegisterFlow(registry, setting_);
        });
    }
    AddWorkloads(mixed ? DrawMix(world_, setting_.exclusive) : MixOf(setting_.focus));
}

void Run::AddWorkloads(const Mix& mix) {
    auto add = [&](bool wanted, auto make) {
        if (wanted) workloads_.push_back(make());
    };
    setting_.schedules = mix.schedules || mix.steps;
    add(mix.structured, [&] { return StructuredWorkload(setting_, plans_); });
    add(mix.random_calls, [&] { return RandomCalls(setting_); });
    add(mix.events, [&] { return EventWorkload(setting_, plans_); });
    add(mix.flows, [&] { return FlowWorkload(setting_); });
    add(mix.schedules, [&] { return ScheduledWork(setting_); });
    add(mix.steps, [&] { return SteppedWork(setting_, plans_); });
    add(mix.resources, [&] { return ResourceWork(setting_, plans_); });
    add(true, [&] { return OutsideWorld(setting_, plans_); });
}

RunReport Run::Execute() {
    for (Node& node : nodes_) node.Boot();
    for (auto& workload : workloads_) workload->Setup();
    Process& nemesis = world_.NewProcess("nemesis");
    world_.Spawn(nemesis, "strikes", [this] { Nemesis(); });
    world_.Direct(std::chrono::hours{1}, options_.steps);
    if (!oracle_.violated()) {
        Heal();
        AwaitTheEnd();
    }
    if (!oracle_.violated()) {
        for (auto& workload : workloads_) workload->Check();
        oracle_.CheckEnd();
    }
    RunReport report;
    report.options = options_;
    report.steps = world_.steps();
    report.time = world_.now();
    report.trace_hash = world_.trace_hash();
    report.tasks = oracle_.task_count();
    report.commits = oracle_.commits();
    report.crashes = world_.crashes();
    report.faults = faults_.counts();
    if (oracle_.violated()) report.violation = oracle_.violation();
    return report;
}

void Run::Nemesis() {
    for (;;) {
        world_.Sleep(world_.Between(milliseconds{100}, seconds{2}));
        if (!faults_.healed()) Strike();
        BootTheFallen();
    }
}

void Run::Strike() {
    auto victim = std::next(
        nodes_.begin(), static_cast<std::ptrdiff_t>(world_.random().Below(nodes_.size()))
    );
    if (faults_.Strikes(Fault::kCrash)) victim->Crash();
    if (faults_.Strikes(Fault::kPause)) victim->Pause();
    if (faults_.Strikes(Fault::kClockStep)) victim->StepClock();
    if (faults_.Strikes(Fault::kStoreClockStep)) {
        Virtual by = world_.Between(milliseconds{1}, kLargestStep);
        world_.StepStoreClock(world_.random().Below(2) == 0 ? by : -by);
    }
    if (faults_.Strikes(Fault::kDrain)) victim->Drain();
    if (faults_.Strikes(Fault::kBadLink)) victim->SpoilLink();
    if (faults_.Strikes(Fault::kStoreDown)) {
        faults_.StoreDownUntil(world_.now() + world_.Between(milliseconds{200}, seconds{8}));
    }
}

// A supervisor starts what fell, sooner or later.
void Run::BootTheFallen() {
    for (Node& node : nodes_) {
        if (!node.up() && (faults_.healed() || world_.random().Below(3) == 0)) node.Boot();
    }
}

void Run::Heal() {
    world_.Say("healed");
    faults_.Heal();
    for (Node& node : nodes_) node.Disarm();
    for (auto& workload : workloads_) workload->Finish();
}

void Run::AwaitTheEnd() {
    const Virtual healed = world_.now();
    std::uint64_t seen = 0;
    Virtual moved = healed;
    for (;;) {
        world_.Direct(world_.now() + milliseconds{500}, UINT64_MAX);
        if (oracle_.violated()) return;
        bool finished = std::all_of(workloads_.begin(), workloads_.end(), [](const auto& workload) {
            return workload->Finished();
        });
        if (!finished) continue;
        // Queues that somebody left paused are opened: what waits behind a person is not stuck.
        for (const model::QueueRecord& queue : store_.Queues()) {
            if (!queue.settings.paused) continue;
            model::QueueSettings settings = queue.settings;
            settings.paused = false;
            store_.SetQueue(settings, "operator:end");
        }
        if (oracle_.Quiet()) return;
        if (std::exchange(seen, oracle_.transitions()) != oracle_.transitions()) {
            moved = world_.now();
        }
        Virtual idle_from = std::max(moved, oracle_.LastDue());
        if (world_.now() > idle_from + kMovesWithin || world_.now() > healed + kEndsWithin) {
            return oracle_.Violate(
                "L1", oracle_.FirstUnfinished(), "due and not finished:" + oracle_.Unfinished()
            );
        }
    }
}

}  // namespace

RunReport Simulate(const RunOptions& options) {
    return Run(options).Execute();
}

std::string Describe(const RunReport& report, std::string_view bug) {
    if (!report.violation) return {};
    const Violation& violation = *report.violation;
    std::string text = fmt::format(
        "violation of {} by task {} in seed {}: {}\n",
        violation.invariant,
        violation.task.value(),
        report.options.seed,
        violation.what
    );
    text += "the task's history:\n";
    for (const std::string& line : violation.history) text += "  " + line + "\n";
    text += "what happened last:\n";
    for (const std::string& line : violation.trace) text += "  " + line + "\n";
    text += fmt::format(
        "to see it again: stint_sim --seed {} --steps {}", report.options.seed, report.options.steps
    );
    if (report.options.nodes != kDefaultNodes) {
        text += fmt::format(" --nodes {}", report.options.nodes);
    }
    if (report.options.focus != Focus::kDrawn) {
        text += fmt::format(" --focus {}", FocusName(report.options.focus));
    }
    if (!bug.empty()) text += fmt::format(" --bug {}", bug);
    return text + "\n";
}

}  // namespace stint::sim
