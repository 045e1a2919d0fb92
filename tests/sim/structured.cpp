// Generator A.
#include <fmt/format.h>

#include <set>

#include "engine/submit.h"
#include "sim/clock.h"
#include "sim/faulty_store.h"
#include "sim/workload.h"

namespace stint::sim {

namespace {

using model::NewTask;
using std::chrono::milliseconds;
using std::chrono::seconds;
using store::SubmitReply;

// A program that submits: the engine's own way to do it, and its own way to the store.
struct Program {
    explicit Program(Setting& setting)
        : store(setting.world, setting.faults, setting.oracle, setting.store),
          wake(setting.post),
          clock(setting.world, 1.0),
          random(setting.world.random().Next()),
          submitter(store, wake, clock, random, {}) {}

    FaultyStore store;
    SimWake wake;
    SimClock clock;
    base::SeededRandom random;
    engine::Submitter submitter;
};

constexpr int kClients = 2;
constexpr std::size_t kMostTasks = 60;

class Structured final : public Workload {
public:
    Structured(Setting& setting, PlanBook& plans) : setting_(setting), plans_(plans) {}

    void Setup() override {
        for (int i = 0; i < kClients; ++i) {
            Process& process = setting_.world.NewProcess(fmt::format("client{}", i));
            setting_.world.Spawn(process, "asks", [this] {
                ++busy_;
                Client();
                --busy_;
            });
        }
    }
    void Finish() override { finishing_ = true; }
    bool Finished() const override { return busy_ == 0; }
    void Check() override {}

private:
    base::SeededRandom& random() { return setting_.world.random(); }
    bool OneIn(std::uint64_t n) { return random().Below(n) == 0; }

    void Client();
    void Act(Program& program);
    void Submit(Program& program);
    void SubmitKeyed(Program& program);
    void SubmitUnique(Program& program);
    void SubmitWithEffects(Program& program);
    void SubmitAfter(Program& program);
    void Steer(store::Store& store);
    void Edit(store::Store& store, TaskId task);
    void Queue(store::Store& store);
    void Look(store::Store& store);
    NewTask Request();
    Plan DrawPlan();
    std::optional<SubmitReply> Send(Program& program, const NewTask& task);
    std::optional<TaskId> Any();

    Setting& setting_;
    PlanBook& plans_;
    std::map<std::string, NewTask> keyed_;  // what was asked under each idempotency key
    int busy_ = 0;
    bool finishing_ = false;
};

void Structured::Client() {
    Program program(setting_);
    while (!finishing_) {
        try {
            Act(program);
        } catch (const store::Unavailable&) {
        } catch (const store::CommitUnknown&) {
        }
        setting_.world.Sleep(setting_.world.Between(milliseconds{1}, milliseconds{900}));
    }
}

void Structured::Act(Program& program) {
    store::Store& store = program.store;
    auto draw = random().Below(100);
    if (draw < 50 && setting_.oracle.task_count() < kMostTasks) {
        if (draw < 25) return Submit(program);
        if (draw < 33) return SubmitKeyed(program);
        if (draw < 40) return SubmitUnique(program);
        if (draw < 45) return SubmitAfter(program);
        return SubmitWithEffects(program);
    }
    if (draw < 80) return Steer(store);
    if (draw < 86) return Queue(store);
    Look(store);
}

Plan Structured::DrawPlan() {
    Plan plan;
    if (OneIn(2)) plan.behaviour = static_cast<Behaviour>(random().Below(kBehaviourCount));
    if (setting_.focus == Focus::kFamilies && OneIn(2)) plan.behaviour = Behaviour::kBlock;
    plan.until = 2 + static_cast<int>(random().Below(4));
    switch (setting_.focus == Focus::kLinks ? 0 : random().Below(4)) {
        case 0:
            plan.work = milliseconds{random().Below(9'000)};
            break;
        case 1:
            break;
        default:
            plan.work = milliseconds{random().Below(400)};
    }
    plan.ignores_stop = OneIn(6);
    return plan;
}

NewTask Structured::Request() {
    NewTask task;
    auto draw = random().Below(10);
    task.type = draw < 6 ? kWork : draw < 8 ? kBrisk : kTx;
    task.input = PlanBook::Input(plans_.Add(DrawPlan()));
    task.actor = "client";
    if (OneIn(3)) task.priority = static_cast<int>(random().Below(256));
    if (OneIn(4)) task.delay = milliseconds{random().Below(4'000)};
    if (OneIn(12)) {
        task.delay.reset();
        // Rounded to milliseconds, as people name instants.
        auto at = TrueTime(setting_.world) + milliseconds{random().Below(8'000)};
        task.run_at = std::chrono::time_point_cast<Time::duration>(at);
    }
    if (OneIn(40)) task.delay = std::chrono::hours{2};
    if (task.delay > seconds{10}) task.run_at.reset();
    if (OneIn(15)) task.start_by = TrueTime(setting_.world) + milliseconds{random().Below(9'000)};
    if (OneIn(5)) task.tags = {"t" + std::to_string(random().Below(3))};
    return task;
}

std::optional<SubmitReply> Structured::Send(Program& program, const NewTask& task) {
    auto replies = program.submitter.SubmitForReplies({task});
    if (!replies.at(0)) return std::nullopt;  // refused, or nobody knows
    return *replies[0];
}

void Structured::Submit(Program& program) {
    NewTask task = Request();
    if (OneIn(8)) {
        task.debounce = model::Debounce{
            "d" + std::to_string(random().Below(2)), milliseconds{600}, milliseconds{2'000}};
        task.delay.reset();
        task.run_at.reset();
    } else if (OneIn(8)) {
        task.throttle = model::Throttle{"t" + std::to_string(random().Below(2)), seconds{3}};
    }
    auto reply = Send(program, task);
    if (reply && reply->kind == SubmitReply::Kind::kCreated) {
        setting_.oracle.Acknowledged(reply->id, PlanBook::Marker(task.input));
    }
}

// The same key again: mostly with the same request, sometimes with another, which must be refused.
void Structured::SubmitKeyed(Program& program) {
    std::string key = "key" + std::to_string(random().Below(6));
    auto [known, fresh] = keyed_.try_emplace(key, Request());
    NewTask task = known->second;
    if (!fresh && OneIn(3)) task.input = PlanBook::Input(plans_.Add(DrawPlan()));
    task.idempotency_key = key;
    auto reply = Send(program, task);
    if (reply && reply->accepted()) {
        setting_.oracle.Acknowledged(reply->id, PlanBook::Marker(task.input));
    }
}

void Structured::SubmitUnique(Program& program) {
    NewTask task = Request();
    task.unique_key = "only" + std::to_string(random().Below(3));
    task.unique_policy = static_cast<model::UniquePolicy>(random().Below(3));
    Send(program, task);
}

// A submit inside the host's own transaction, which sometimes gives up: then there is no task.
void Structured::SubmitWithEffects(Program& program) {
    NewTask task = Request();
    bool commits = !OneIn(4);
    (void)program.store.Write([&](store::Transaction& transaction) -> Result<void> {
        auto replies = program.submitter.SubmitIn(transaction, {task});
        if (!replies.at(0)) return replies[0].error();
        if (!commits) return Error{Code::kConflict, "the host changed its mind"};
        return {};
    });
}

// One that starts after others, wherever these are.
void Structured::SubmitAfter(Program& program) {
    NewTask task = Request();
    task.after.emplace();
    std::set<TaskId> others;
    for (auto left = 1 + random().Below(3); left > 0; --left) {
        if (auto other = Any()) others.insert(*other);
    }
    task.after->on.assign(others.begin(), others.end());
    task.after->on_failure = static_cast<OnFailure>(random().Below(3));
    task.after->any = OneIn(4);
    task.after->need_success = OneIn(2);
    Send(program, task);
}

std::optional<TaskId> Structured::Any() {
    auto tasks = setting_.oracle.Tasks();
    if (tasks.empty()) return std::nullopt;
    return tasks[random().Below(tasks.size())];
}

void Structured::Steer(store::Store& store) {
    auto task = Any();
    if (!task) return;
    switch (random().Below(6)) {
        case 0:
        case 1:
            store.Cancel({&*task, 1}, "operator:ann", "no longer needed");
            break;
        case 2:
        case 3:
            store.Retry({&*task, 1}, "operator:bob");
            break;
        case 4:
            store.Discard({&*task, 1}, "operator:bob");
            break;
        default:
            Edit(store, *task);
    }
}

void Structured::Edit(store::Store& store, TaskId task) {
    model::TaskEdit edit;
    switch (random().Below(4)) {
        case 0:
            edit.priority = static_cast<int>(random().Below(256));
            break;
        case 1:
            edit.delay = milliseconds{random().Below(5'000)};
            break;
        case 2:
            edit.queue = OneIn(2) ? "brisk" : "default";
            break;
        default:
            edit.tags = std::vector<std::string>{"edited"};
    }
    (void)store.Edit(task, edit, "operator:ann");
}

void Structured::Queue(store::Store& store) {
    model::QueueSettings settings;
    settings.name = OneIn(2) ? "brisk" : "default";
    settings.paused = OneIn(3);
    store.SetQueue(settings, "operator:ann");
}

void Structured::Look(store::Store& store) {
    auto task = Any();
    if (!task) return;
    switch (random().Below(5)) {
        case 0: {
            auto record = store.Get(*task);
            if (!record) setting_.oracle.Violate("I1", *task, "a stored task cannot be read");
            break;
        }
        case 1:
            store.List({});
            break;
        case 2:
            store.Counts({});
            break;
        case 3:
            store.Finished({&*task, 1});
            break;
        default:
            store.Explain(*task, {.types = {std::string(kWork)}});
    }
}

}  // namespace

std::unique_ptr<Workload> StructuredWorkload(Setting& setting, PlanBook& plans) {
    return std::make_unique<Structured>(setting, plans);
}

}  // namespace stint::sim
