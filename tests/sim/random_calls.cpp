// Generator B: no model of what is sensible. It calls what the store offers, with whatever comes
// up, and plays a worker by hand: it claims, forgets, lets leases run out and settles with any
// token it has ever seen.
#include <fmt/format.h>

#include "sim/clock.h"
#include "sim/faulty_store.h"
#include "sim/workload.h"

namespace stint::sim {

namespace {

constexpr std::size_t kMostTasksOfB = 40;

class Dice {
public:
    explicit Dice(base::SeededRandom& random) : random_(random) {}
    int Upto(int highest) {
        return static_cast<int>(random_.Below(static_cast<std::uint64_t>(highest) + 1));
    }
    bool Maybe() { return Upto(1) == 1; }
    Duration Time() { return Duration{Upto(Maybe() ? 50 : 6'000)}; }
    std::string Word(const char* stem, int kinds) { return stem + std::to_string(Upto(kinds - 1)); }
    template <class T>
    const T& Of(const std::vector<T>& things) {
        return things.at(random_.Below(things.size()));
    }
    template <class Id>
    Id Token() {
        return random_.MakeId<Id>();
    }

private:
    base::SeededRandom& random_;
};

class RandomCallsWorkload final : public Workload {
public:
    explicit RandomCallsWorkload(Setting& setting)
        : setting_(setting),
          dice_(setting.world.random()),
          store_(setting.world, setting.faults, setting.oracle, setting.store) {}

    void Setup() override {
        Process& process = setting_.world.NewProcess("dice");
        for (int i = 0; i < 2; ++i) {
            setting_.world.Spawn(process, "throws", [this] {
                ++playing_;
                while (!finishing_) Throw();
                --playing_;
            });
        }
    }
    void Finish() override { finishing_ = true; }
    bool Finished() const override { return playing_ == 0; }
    void Check() override {}

private:
    void Throw() {
        try {
            Call(dice_.Upto(24));
        } catch (const store::Unavailable&) {
        } catch (const store::CommitUnknown&) {
        }
        Virtual pause = dice_.Time();
        setting_.world.Sleep(setting_.focus == Focus::kCalls ? pause / 8 : pause);
    }

    void Call(int what) {
        switch (what) {
            case 0:
            case 1:
            case 2:
                return SubmitSome();
            case 3:
            case 4:
            case 5:
                return ClaimSome();
            case 6:
            case 7:
            case 8:
                return SettleSome();
            case 9:
                return RenewOne();
            case 10:
                return OpenOne();
            case 11:
                if (!sessions_.empty()) store_.CloseSession(dice_.Of(sessions_));
                return;
            case 12:
                store_.Reclaim({.limit = 1 + dice_.Upto(3), .timeout_grace = kTimeoutGrace});
                return;
            case 13:
                store_.Housekeep({.limit = 1 + dice_.Upto(5)});
                return;
            case 14:
            case 15:
                return WriteResults();
            default:
                return CallOnTask(what - 16);
        }
    }

    void CallOnTask(int what) {
        std::vector<TaskId> some;
        for (int i = dice_.Upto(2); i >= 0; --i) some.push_back(AnyTask());
        switch (what) {
            case 0:
                store_.Cancel(some, "dice", "");
                return;
            case 1:
                store_.Retry(some, "dice");
                return;
            case 2:
                store_.Discard(some, "dice");
                return;
            case 3:
                return EditOne(some[0]);
            case 4:
            case 5:
            case 6:
                return FinishOne(some[0]);
            case 7:
                if (!held_.empty()) {
                    const store::Held& held = dice_.Of(held_);
                    store_.SettledBy(held.task, held.token);
                }
                return;
            default:
                store_.Finished(some);
                store_.Get(some[0]);
        }
    }

    TaskId AnyTask() {
        auto tasks = setting_.oracle.Tasks();
        if (tasks.empty() || dice_.Upto(9) == 0) return TaskId{1 + dice_.Upto(1'000'000)};
        return dice_.Of(tasks);
    }

    void SubmitSome() {
        if (submitted_ >= kMostTasksOfB) return;
        std::vector<model::NewTask> tasks(static_cast<std::size_t>(1 + dice_.Upto(3)));
        for (model::NewTask& task : tasks) {
            task.type = dice_.Upto(5) == 0 ? "sim.work" : "sim.raw";
            if (dice_.Maybe()) task.priority = dice_.Upto(255);
            if (dice_.Maybe()) task.delay = dice_.Time();
            if (dice_.Upto(3) == 0) task.idempotency_key = dice_.Word("b", 8);
            if (dice_.Upto(3) == 0) task.unique_key = dice_.Word("once", 4);
            task.unique_policy = static_cast<model::UniquePolicy>(dice_.Upto(2));
            if (dice_.Upto(9) == 0)
                task.throttle = model::Throttle{dice_.Word("th", 2), dice_.Time()};
            if (dice_.Upto(9) == 0) task.input = "not json";
            if (dice_.Upto(9) == 0) task.type = "sim.unknown type";
            if (dice_.Upto(9) == 0) task.tenant = TenantId{2};
            if (dice_.Upto(12) == 0) {
                task.start_by = TrueTime(setting_.world) + dice_.Time() - Duration{500};
            }
            if (task.throttle && !task.unique_key.empty() && dice_.Maybe()) task.unique_key.clear();
        }
        submitted_ += tasks.size();
        store_.Submit(tasks);
    }

    void OpenOne() {
        store::NewSession session;
        session.id = dice_.Token<SessionId>();
        session.hostname = dice_.Word("dicehost", 2);
        session.lease = kLease.lease;
        session.slots = 3;
        session.types = {"sim.raw"};
        sessions_.push_back(session.id);  // also when the answer is lost: it may be there
        store_.OpenSession(session);
    }

    SessionId AnySession() {
        if (sessions_.empty() || dice_.Upto(15) == 0) return dice_.Token<SessionId>();
        return dice_.Maybe() ? sessions_.back() : dice_.Of(sessions_);
    }

    void ClaimSome() {
        if (sessions_.empty()) OpenOne();
        store::ClaimRequest request;
        request.session = AnySession();
        request.limit = 1 + dice_.Upto(3);
        request.types = {"sim.raw"};
        if (dice_.Upto(3) == 0) request.types.push_back("sim.work");
        if (dice_.Upto(4) == 0) request.queues = {"default"};
        request.suspect = dice_.Upto(4) == 0;
        for (const store::Lease& lease : store_.Claim(request).leases) {
            held_.push_back({lease.task, lease.token});
        }
    }

    void RenewOne() {
        store::RenewRequest request;
        request.session = AnySession();
        request.lease = kLease.lease;
        for (int i = dice_.Upto(3); i > 0 && !held_.empty(); --i) {
            request.held.push_back(dice_.Of(held_));
            request.progress.push_back({request.held.back().task, request.held.back().token, {}});
        }
        store_.Renew(request);
    }

    // Rather one whose task is in this state, whoever has it now: of the others there is little to
    // spoil.
    store::Held AnyHeld(model::State state) {
        std::vector<store::Held> fitting;
        for (const store::Held& held : held_) {
            const model::TaskRecord* task = setting_.oracle.Find(held.task);
            if (task != nullptr && task->state == state) fitting.push_back(held);
        }
        if (fitting.empty() || dice_.Upto(3) == 0) return dice_.Of(held_);
        return dice_.Maybe() ? fitting.back() : dice_.Of(fitting);
    }

    void SettleSome() {
        if (held_.empty()) return;
        std::vector<store::Settlement> settlements;
        for (int i = dice_.Upto(2); i >= 0; --i) {
            store::Held held = AnyHeld(model::State::kInProgress);
            if (dice_.Upto(11) == 0) held.token = dice_.Token<LeaseToken>();
            if (dice_.Upto(11) == 0) held.task = AnyTask();
            settlements.push_back(AnySettlement(held));
        }
        store_.Settle(settlements);
    }

    store::Settlement AnySettlement(const store::Held& held) {
        using Kind = store::Settlement::Kind;
        store::Settlement settlement;
        settlement.task = held.task;
        settlement.token = held.token;
        settlement.session = AnySession();
        // Often outside: only there a completion from there can be spoilt.
        settlement.kind = dice_.Upto(3) == 0 ? Kind::kBackground : static_cast<Kind>(dice_.Upto(7));
        settlement.output = "1";
        settlement.delay = dice_.Time();
        settlement.reason = "thrown";
        if (settlement.kind == Kind::kBackground)
            settlement.delay = Duration{1 + dice_.Upto(4'000)};
        if (settlement.kind == Kind::kRetry || settlement.kind == Kind::kDead) {
            settlement.error = model::TaskError{"thrown", "dice", {}, true};
        }
        if (settlement.kind == Kind::kBlocked) AddWait(settlement);
        constexpr std::array kEnds = {
            model::AttemptEnd::kComplete,
            model::AttemptEnd::kFailed,
            model::AttemptEnd::kFailed,
            model::AttemptEnd::kSnoozed,
            model::AttemptEnd::kReleased,
            model::AttemptEnd::kBackground,
            model::AttemptEnd::kCancelled,
            model::AttemptEnd::kBlocked};
        settlement.end = kEnds.at(static_cast<std::size_t>(settlement.kind));
        return settlement;
    }

    // For anything at all: what is there, what is not, itself, and tasks made for it.
    void AddWait(store::Settlement& settlement) {
        for (int i = dice_.Upto(2); i > 0; --i) settlement.wait.on.push_back(AnyTask());
        for (int i = dice_.Upto(2); i > 0 && submitted_ < kMostTasksOfB; --i, ++submitted_) {
            model::NewTask child{.id = store_.ReserveIds(1), .type = "sim.raw"};
            if (dice_.Upto(5) == 0) child.unique_key = dice_.Word("once", 4);
            if (dice_.Upto(9) == 0) child.input = "not json";
            settlement.children.push_back(std::move(child));
        }
        settlement.wait.on_failure = static_cast<OnFailure>(dice_.Upto(2));
        settlement.wait.any = dice_.Upto(3) == 0;
    }

    // Items and a checkpoint, by whoever has ever held the task.
    void WriteResults() {
        if (held_.empty()) return;
        store::ResultWrite write;
        write.by = AnyHeld(model::State::kInProgress);
        write.claim_no = 1 + dice_.Upto(3);
        if (dice_.Maybe()) write.items.push_back({.key = dice_.Word("i", 3), .action = "thrown"});
        if (write.items.empty() || dice_.Maybe()) write.checkpoint = "1";
        store_.Results().Write(write);
    }

    void EditOne(TaskId task) {
        model::TaskEdit edit;
        if (dice_.Maybe()) edit.priority = dice_.Upto(255);
        if (dice_.Maybe()) edit.delay = dice_.Time();
        if (dice_.Upto(5) == 0) edit.priority = 1'000;
        if (dice_.Upto(3) == 0) edit.tags = std::vector<std::string>{dice_.Word("x", 3)};
        (void)store_.Edit(task, edit, "dice");
    }

    void FinishOne(TaskId task) {
        store::BackgroundFinish finish;
        finish.task = task;
        finish.actor = "dice";
        finish.success = dice_.Maybe();
        finish.output = "2";
        finish.error = {"thrown", "dice", {}, dice_.Maybe()};
        finish.token = dice_.Token<LeaseToken>();
        if (!held_.empty() && dice_.Upto(3) != 0) {
            finish.task = AnyHeld(model::State::kBackground).task;
            finish.token = dice_.Of(held_).token;
        }
        if (dice_.Upto(5) == 0) finish.token.reset();
        (void)store_.FinishBackground(finish);
    }

    Setting& setting_;
    Dice dice_;
    FaultyStore store_;
    std::vector<SessionId> sessions_;
    std::vector<store::Held> held_;  // everything ever held
    std::size_t submitted_ = 0;
    int playing_ = 0;
    bool finishing_ = false;
};

}  // namespace

std::unique_ptr<Workload> RandomCalls(Setting& setting) {
    return std::make_unique<RandomCallsWorkload>(setting);
}

}  // namespace stint::sim
