// Tasks that need resources, tasks that go one after the other, and a worker by hand that finds a
// dependency down and says so. Judges that no more is held than there is, that nobody passes
// anybody, that one tries what was down, and that nobody loses an attempt by it.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "sim/clock.h"
#include "sim/faulty_store.h"
#include "sim/workload.h"
#include "store/resources.h"

namespace stint::sim {

namespace {

using model::NewTask;
using model::State;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kLamps = 2;
constexpr int kLampTasks = 12;
constexpr int kDependentTasks = 16;
constexpr int kRatedTasks = 12;
constexpr store::Rate kTap{.count = 2, .period = seconds{1}, .burst = 2};
constexpr const char* kDependent = "sim.dependent";

class ResourceWorkload final : public Workload {
public:
    ResourceWorkload(Setting& setting, PlanBook& plans)
        : setting_(setting),
          plans_(plans),
          world_(setting.world),
          store_(world_, setting.faults, setting.oracle, setting.store) {}

    void Setup() override {
        store::ResourceChange lamp{.name = "lamp"};
        lamp.capacity = kLamps;
        (void)setting_.store.Resources().Change(lamp, "setup");
        store::ResourceChange flaky{.name = "flaky"};
        flaky.capacity = 8;
        flaky.breaker =
            store::Breaker{.failures = 1, .open_for = seconds{1}, .open_at_most = seconds{4}};
        (void)setting_.store.Resources().Change(flaky, "setup");
        store::ResourceChange tap{.name = "tap"};
        tap.rate = kTap;
        (void)setting_.store.Resources().Change(tap, "setup");
        Process& process = world_.NewProcess("lamps");
        world_.Spawn(process, "submits", [this] { SubmitAll(); });
        world_.Spawn(process, "watches", [this] { Watch(); });
        if (!setting_.exclusive) world_.Spawn(process, "depends", [this] { Depend(); });
    }
    void Finish() override { finishing_ = true; }
    // The worker goes on until its tasks are over: their queue may have to be opened first.
    bool Finished() const override { return submitted_; }
    void Check() override;

private:
    // Again and again until it is known to have happened.
    void Surely(const std::function<void()>& act);
    void SubmitAll();
    void Watch();
    void Depend();
    void Work(SessionId session);
    void ClaimAs(SessionId session, bool suspect);
    bool IsDown() { return !finishing_ && world_.now() / seconds{7} % 2 == 0; }
    bool AllOver(const std::vector<TaskId>& tasks);
    void CheckAttempts(TaskId task);
    void CheckOrder();
    void CheckRate();

    Setting& setting_;
    PlanBook& plans_;
    World& world_;
    FaultyStore store_;
    std::vector<TaskId> lamps_, dependent_, rated_;
    std::map<std::string, std::vector<TaskId>> keyed_;  // in the order of their submits
    std::vector<store::Lease> held_;
    bool submitted_ = false;
    bool finishing_ = false;
};

void ResourceWorkload::Surely(const std::function<void()>& act) {
    for (;;) {
        try {
            return act();
        } catch (const store::Unavailable&) {
        } catch (const store::CommitUnknown&) {
        }
        world_.Sleep(world_.Between(milliseconds{20}, milliseconds{500}));
    }
}

void ResourceWorkload::SubmitAll() {
    auto submit = [this](NewTask task, std::vector<TaskId>& into) {
        Surely([&] {
            if (!task.id.valid()) task.id = store_.ReserveIds(1);
        });
        Surely([&] { store_.Submit({&task, 1}); });
        into.push_back(task.id);
        world_.Sleep(world_.Between(milliseconds{1}, milliseconds{400}));
    };
    for (int i = 0; i < std::max(kLampTasks, kDependentTasks); ++i) {
        if (i < kLampTasks) {
            Plan plan{.work = Duration{static_cast<std::int64_t>(world_.random().Below(800))}};
            bool keyed = world_.random().Below(2) == 0;
            // Those of a key fail now and then: whoever comes next must wait for the next try.
            if (keyed && world_.random().Below(2) == 0) plan.behaviour = Behaviour::kFailRetryable;
            NewTask task{.type = std::string(kWork), .input = PlanBook::Input(plans_.Add(plan))};
            task.needs = model::Needs{{"lamp", 1}};
            if (keyed) {
                task.order_key = world_.random().Below(2) == 0 ? "left" : "right";
                task.on_failed_head = model::OnFailedHead::kSkip;
                submit(task, keyed_[task.order_key]);
            } else {
                submit(task, lamps_);
            }
        }
        if (i < kRatedTasks) {
            NewTask task{.type = std::string(kWork), .input = PlanBook::Input(plans_.Add({}))};
            task.needs = model::Needs{{"tap", 1}};
            submit(task, rated_);
        }
        if (setting_.exclusive) continue;
        NewTask task{.type = kDependent, .input = "{}"};
        task.needs = model::Needs{{"flaky", 1}};
        if (world_.random().Below(3) == 0) task.labels = std::vector<std::string>{"big"};
        submit(task, dependent_);
    }
    submitted_ = true;
}

// What runs is looked at as it is, not as the store has counted it.
void ResourceWorkload::Watch() {
    for (;;) {
        world_.Sleep(world_.Between(milliseconds{1}, milliseconds{60}));
        int lit = setting_.oracle.UnitsOf("lamp");
        if (lit > kLamps) {
            return setting_.oracle.Violate("I6", {}, fmt::format("{} of {} lamps", lit, kLamps));
        }
    }
}

bool ResourceWorkload::AllOver(const std::vector<TaskId>& tasks) {
    return std::all_of(tasks.begin(), tasks.end(), [&](TaskId task) {
        auto record = setting_.store.Get(task);
        return !record || model::IsTerminal(record->state);
    });
}

// A worker by hand: now with the label, now without.
void ResourceWorkload::Depend() {
    while (!(finishing_ && submitted_ && AllOver(dependent_))) {
        SessionId session = world_.random().MakeId<SessionId>();
        try {
            store_.OpenSession(
                {.id = session,
                 .hostname = "hand",
                 .lease = kLease.lease,
                 .slots = 4,
                 .types = {kDependent}}
            );
            Work(session);
        } catch (const store::Unavailable&) {
        } catch (const store::CommitUnknown&) {
        }
        held_.clear();
        world_.Sleep(world_.Between(milliseconds{100}, seconds{2}));
    }
}

void ResourceWorkload::ClaimAs(SessionId session, bool suspect) {
    store::ClaimRequest request{
        .session = session, .limit = 4, .types = {kDependent}, .suspect = suspect};
    if (finishing_ || world_.random().Below(2) == 0) request.labels = {"big"};
    auto before = setting_.store.Resources().Find("flaky");
    bool half_open = before && before->breaker == store::BreakerState::kHalfOpen;
    store::ClaimReply reply = store_.Claim(request);
    auto after = setting_.store.Resources().Find("flaky");
    half_open = half_open && after && after->breaker == store::BreakerState::kHalfOpen;
    if (half_open && reply.leases.size() > 1) {
        setting_.oracle.Violate("I6", reply.leases[1].task, "several try what one is to try");
    }
    for (const store::Lease& lease : reply.leases) {
        held_.push_back(lease);
        for (const std::string& label : lease.placement.labels) {
            bool carried = std::find(request.labels.begin(), request.labels.end(), label) !=
                           request.labels.end();
            if (!carried) setting_.oracle.Violate("I6", lease.task, "it requires " + label);
        }
    }
    if (reply.suspects_waiting && !suspect && held_.empty()) ClaimAs(session, true);
}

void ResourceWorkload::Work(SessionId session) {
    for (int turn = 0; turn < 40; ++turn) {
        if (!store_.Renew({.session = session, .lease = kLease.lease}).live) return;
        ClaimAs(session, false);
        world_.Sleep(world_.Between(milliseconds{1}, milliseconds{300}));
        while (!held_.empty()) {
            store::Lease lease = held_.back();
            store::Settlement settlement{
                .task = lease.task, .token = lease.token, .session = session, .output = "{}"};
            if (IsDown()) {
                settlement.kind = store::Settlement::Kind::kRelease;
                settlement.end = model::AttemptEnd::kReleased;
                settlement.output.clear();
                settlement.unavailable = "flaky";
                settlement.error = model::TaskError{.message = "refused", .klass = "io"};
            }
            store_.Settle({&settlement, 1});
            held_.pop_back();
        }
        if (finishing_ && submitted_ && AllOver(dependent_)) break;
    }
    store_.CloseSession(session);
}

void ResourceWorkload::Check() {
    for (const char* name : {"lamp", "flaky"}) {
        auto record = setting_.store.Resources().Find(name);
        if (record && record->held != 0) {
            setting_.oracle.Violate(
                "I6", {}, fmt::format("{} of {} are held by nobody", record->held, name)
            );
        }
    }
    for (TaskId task : dependent_) CheckAttempts(task);
    CheckOrder();
    CheckRate();
}

// What was found down, or handed back, has cost nothing. The attempt is given back for the next
// try: a task that a cancel has ended meanwhile has none, and keeps the number of the attempt it
// ended in.
void ResourceWorkload::CheckAttempts(TaskId task) {
    auto record = setting_.store.Get(task);
    if (!record || record->generation != 1) return;
    int spent = 0;
    bool handed_back = false;
    for (const model::AttemptRecord& attempt : setting_.store.Attempts(task)) {
        handed_back = attempt.end == model::AttemptEnd::kReleased;
        spent += handed_back ? 0 : 1;
    }
    if (handed_back && record->state == State::kCancelled && record->attempt == spent + 1) return;
    if (record->attempt != spent) {
        setting_.oracle.Violate(
            "I6", task, fmt::format("{} attempts count, {} were spent", record->attempt, spent)
        );
    }
}

void ResourceWorkload::CheckOrder() {
    for (const auto& [key, tasks] : keyed_) {
        std::int64_t ended = 0;
        for (TaskId task : tasks) {
            auto record = setting_.store.Get(task);
            if (!record) continue;
            std::int64_t first_claim = 0;
            std::int64_t last = 0;
            for (const model::AuditEntry& entry :
                 setting_.store.Audit({.task = task, .limit = 1000})) {
                if (entry.event == model::Event::kClaim && first_claim == 0) {
                    first_claim = entry.seq;
                }
                if (model::IsTerminal(entry.to) && last == 0) last = entry.seq;
            }
            if (first_claim != 0 && first_claim < ended) {
                setting_.oracle.Violate("I6", task, "it passed others of the order key " + key);
            }
            // One that was tried again by hand has gone to the end.
            ended = std::max(ended, last);
        }
    }
}

// However they are spread: no stretch of time has more starts than the rate gives.
void ResourceWorkload::CheckRate() {
    // A clock that is set forward fills the tap, and one that is set back lets time pass twice.
    if (setting_.faults.on(Fault::kStoreClockStep)) return;
    std::vector<Time> starts;
    for (TaskId task : rated_) {
        for (const model::AuditEntry& entry : setting_.store.Audit({.task = task, .limit = 1000})) {
            if (entry.event == model::Event::kClaim) starts.push_back(entry.at);
        }
    }
    std::ranges::sort(starts);
    for (std::size_t first = 0; first < starts.size(); ++first) {
        for (std::size_t last = first; last < starts.size(); ++last) {
            std::chrono::duration<double> stretch = starts[last] - starts[first];
            double given = kTap.burst + stretch / kTap.period * kTap.count;
            double taken = static_cast<double>(last - first + 1);
            if (taken <= given + 0.01) continue;
            return setting_.oracle.Violate(
                "I6",
                rated_.front(),
                fmt::format("{} starts in {:.3f} s", last - first + 1, stretch.count())
            );
        }
    }
}

}  // namespace

std::unique_ptr<Workload> ResourceWork(Setting& setting, PlanBook& plans) {
    return std::make_unique<ResourceWorkload>(setting, plans);
}

}  // namespace stint::sim
