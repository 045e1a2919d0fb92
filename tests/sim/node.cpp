#include "sim/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "engine/worker.h"
#include "services/events.h"
#include "services/scheduler.h"
#include "sim/clock.h"
#include "sim/faulty_store.h"
#include "sim/schedules.h"

namespace stint::sim {

namespace {

constexpr int kSlots = 2;
constexpr Virtual kLongestNap = std::chrono::seconds{5};
constexpr Duration kDrainTime = std::chrono::seconds{3};
constexpr Duration kStopGrace = std::chrono::seconds{1};

double DrawRate(Setting& setting) {
    if (!setting.faults.Strikes(Fault::kClockDrift)) return 1.0;
    return 0.95 + 0.1 * setting.world.random().Fraction();
}

}  // namespace

// Everything that dies with one process.
struct Node::Life : std::enable_shared_from_this<Node::Life> {
    Life(
        Setting& setting_in,
        Process& process_in,
        const std::string& host,
        const std::string& state_dir,
        double rate_in,
        int boot
    )
        : setting(setting_in),
          world(setting_in.world),
          process(process_in),
          rate(rate_in),
          clock(world, rate_in),
          store(world, setting_in.faults, setting_in.oracle, setting_in.store),
          reserved(world, setting_in.faults, setting_in.oracle, setting_in.store),
          wake(setting_in.post),
          random(world.random().Next()),
          options(Options(host, state_dir, boot)) {}

    engine::WorkerOptions Options(const std::string& host, const std::string& state_dir, int boot)
        const;
    void Start();
    void Claim();
    void Settle();
    void Renew();
    void Watch();
    void Sweep();
    void FireSchedules();
    void Events();
    void DrainAndExit();

    Virtual At(base::Instant instant) const;
    void Nap(base::Instant until, Alarm& alarm);

    Setting& setting;
    World& world;
    Process& process;
    const double rate;
    SimClock clock;
    FaultyStore store;
    FaultyStore reserved;
    SimWake wake;
    base::SeededRandom random;
    engine::Registry registry;
    const engine::WorkerOptions options;
    std::unique_ptr<engine::Worker> worker;
    std::unique_ptr<services::EventService> events;
    std::array<Alarm, kSlots> work_there;
    Alarm settle_there, watch_there, unused;
    bool draining = false;
    bool over = false;
};

engine::WorkerOptions Node::Life::Options(
    const std::string& host, const std::string& state_dir, int boot
) const {
    engine::WorkerOptions made;
    made.slots = kSlots;
    made.claim_ahead = static_cast<int>(setting.world.random().Below(4));
    if (boot % 3 == 2) made.claim_ahead = std::nullopt;  // as it pays
    made.lease = kLease;
    made.poll = {kPollMin, kPollMax};
    made.drain = kDrainTime;
    made.stop_grace = kStopGrace;
    made.timeout_grace = kTimeoutGrace;
    made.error_wait = kErrorWait;
    made.sweep_every = kSweepEvery;
    made.housekeep_every = kHousekeepEvery;
    made.hostname = host;
    made.pid = 1000 + boot;
    made.version = "sim";
    made.state_dir = state_dir;
    made.exclusive = setting.exclusive;
    return made;
}

Virtual Node::Life::At(base::Instant instant) const {
    double ns = static_cast<double>(instant.time_since_epoch().count()) / rate;
    Virtual latest = world.now() + kLongestNap;
    if (ns >= static_cast<double>(latest.count())) return latest;
    return std::max(world.now(), Virtual{static_cast<std::int64_t>(ns) + 1});
}

void Node::Life::Nap(base::Instant until, Alarm& alarm) {
    world.SleepUntil(At(until), alarm);
}

void Node::Life::Start() {
    worker = std::make_unique<engine::Worker>(
        engine::WorkerParts{
            .store = store,
            .wake = wake,
            .registry = registry,
            .clock = clock,
            .random = random,
            .reserved = &reserved},
        options
    );
    events = std::make_unique<services::EventService>(
        store,
        wake,
        clock,
        random,
        services::EventServiceOptions{
            .poll = {kPollMin, kPollMax},
            .error_wait = kErrorWait,
            .tidy_every = kHousekeepEvery,
            .taken = kEventTaken,
            .log = {}}
    );
    auto self = shared_from_this();
    world.Spawn(process, "claim", [self] { self->Claim(); });
    for (int slot = 0; slot < kSlots; ++slot) {
        world.Spawn(process, "run" + std::to_string(slot), [self, slot] {
            while (!self->over) {
                bool ran = self->worker->RunOneAttempt();
                if (ran) {
                    self->settle_there.Ring();
                    self->wake.Poke();  // there is room
                } else {
                    self->world.SleepUntil(
                        self->world.now() + kLongestNap, self->work_there.at(slot)
                    );
                }
            }
        });
    }
    world.Spawn(process, "settle", [self] { self->Settle(); });
    world.Spawn(process, "renew", [self] { self->Renew(); });
    world.Spawn(process, "watch", [self] { self->Watch(); });
    world.Spawn(process, "sweep", [self] { self->Sweep(); });
    if (setting.schedules) world.Spawn(process, "schedule", [self] { self->FireSchedules(); });
    world.Spawn(process, "events", [self] { self->Events(); });
}

void Node::Life::Claim() {
    worker->Open();
    // Half of its slots hang for good: the program stops, its supervisor starts it again.
    while (!draining && worker->healthy()) {
        wake.Deliver();
        base::Instant next = worker->ClaimOnce();
        for (Alarm& alarm : work_there) alarm.Ring();
        watch_there.Ring();
        wake.SleepUntil(At(next));
    }
    DrainAndExit();
}

void Node::Life::DrainAndExit() {
    worker->Drain();
    over = true;
    for (Alarm& alarm : work_there) alarm.Ring();
    settle_there.Ring();
    watch_there.Ring();
    world.Exit(process);
    world.Point("exit");
}

void Node::Life::Settle() {
    while (!over) {
        bool had_some = worker->unsettled() > 0;
        base::Instant next = worker->SettleOnce();
        if (had_some) wake.Poke();
        Nap(next, settle_there);
    }
}

void Node::Life::Renew() {
    while (!over) {
        bool had_session = worker->session().valid();
        base::Instant next = worker->RenewOnce();
        if (had_session && !worker->session().valid()) wake.Poke();
        Nap(next, unused);
    }
}

void Node::Life::Watch() {
    while (!over) {
        bool had_session = worker->session().valid();
        base::Instant next = worker->WatchOnce();
        if (had_session && !worker->session().valid()) wake.Poke();
        Nap(next, watch_there);
    }
}

void Node::Life::Sweep() {
    base::Instant sweep{}, housekeep{};
    Alarm nobody;
    while (!over) {
        if (At(sweep) <= world.now()) sweep = worker->SweepOnce();
        if (At(housekeep) <= world.now()) housekeep = worker->HousekeepOnce();
        Nap(std::min(sweep, housekeep), nobody);
    }
}

void Node::Life::FireSchedules() {
    services::Scheduler scheduler(
        {store, wake, clock, base::Logger(), SimZones()},
        {.look_every = kPollMax, .error_wait = kErrorWait, .forget_every = kHousekeepEvery}
    );
    Alarm nobody;
    while (!over) Nap(scheduler.RunOnce(), nobody);
}

void Node::Life::Events() {
    Alarm nobody;
    while (!over) Nap(events->RunOnce(), nobody);
}

Node::Node(Setting& setting, int number, std::function<void(engine::Registry&, store::Store&)> fill)
    : setting_(setting),
      name_(fmt::format("node{}", number)),
      fill_(std::move(fill)),
      rate_(DrawRate(setting)) {
}

Node::~Node() = default;

void Node::Boot() {
    CHECK(!up());
    ++boots_;
    process_ = &setting_.world.NewProcess(fmt::format("{}.{}", name_, boots_));
    if (!setting_.state_dir.empty()) {
        std::filesystem::create_directories(StateDir(boots_));
        process_->OnDeath([this] { KeepFiles(); });
    }
    auto life = std::make_shared<Life>(setting_, *process_, name_, StateDir(boots_), rate_, boots_);
    fill_(life->registry, life->store);
    life->Start();
    life_ = life;
}

std::string Node::StateDir(int boot) const {
    if (setting_.state_dir.empty()) return {};
    return fmt::format("{}/{}.{}", setting_.state_dir, name_, boot);
}

// The next process finds what this one left at its death. Copies, because the dead one still has
// its own open and locked, and unwinds through code that tidies up.
void Node::KeepFiles() {
    namespace fs = std::filesystem;
    fs::path next = StateDir(boots_ + 1);
    fs::create_directories(next);
    for (const auto& file : fs::directory_iterator(StateDir(boots_))) {
        fs::copy_file(file.path(), next / file.path().filename());
    }
}

bool Node::up() const {
    return process_ != nullptr && setting_.world.Alive(*process_) > 0;
}

void Node::Crash() {
    if (!up()) return;
    setting_.world.CrashIn(*process_, 1 + static_cast<int>(setting_.world.random().Below(60)));
}

void Node::Pause() {
    if (!up()) return;
    auto length = setting_.world.Between(std::chrono::milliseconds{200}, 3 * Virtual(kLease.lease));
    setting_.world.PauseIn(
        *process_, 1 + static_cast<int>(setting_.world.random().Below(60)), length
    );
}

void Node::Disarm() {
    if (process_ != nullptr) setting_.world.Disarm(*process_);
}

void Node::StepClock() {
    auto life = life_.lock();
    if (!life) return;
    bool forward = setting_.world.random().Below(2) == 0;
    life->clock.Step(std::chrono::hours{forward ? 1 : -1});
}

void Node::SpoilLink() {
    if (!up()) return;
    World& world = setting_.world;
    Virtual loses_from = world.now() + world.Between({}, 3 * Virtual(kLease.heartbeat_every));
    Virtual lasts = world.Between(Virtual(kLease.lease), 4 * Virtual(kLease.lease));
    setting_.faults.Spoil(*process_, {.loses_from = loses_from, .until = loses_from + lasts});
}

void Node::Drain() {
    if (auto life = life_.lock()) life->draining = true;
}

}  // namespace stint::sim
