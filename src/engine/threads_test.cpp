// The worker with its threads: everything waits on conditions, time moves only when told.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "base/test_point.h"
#include "support/engine_rig.h"

namespace stint::engine {
namespace {

using model::State;
using model::WorkerState;

// Moves time along until something is so: loops sleep on the clock.
bool InTime(ThreadedRig& rig, const std::function<bool()>& condition) {
    return Eventually([&] {
        if (condition()) return true;
        rig.clock.Advance(20ms);
        return false;
    });
}

// Sees the loops go to sleep: only so can a test know that nothing more is done at a given time.
class WatchedClock final : public base::ManualClock {
public:
    void WaitUntil(
        std::unique_lock<std::mutex>& lock,
        std::condition_variable_any& wake,
        std::stop_token stop,
        base::Instant until
    ) override {
        {
            std::lock_guard guard(mutex_);
            ++sleeps_[std::this_thread::get_id()];
        }
        ManualClock::WaitUntil(lock, wake, stop, until);
    }
    std::map<std::thread::id, int> sleeps() {
        std::lock_guard guard(mutex_);
        return sleeps_;
    }

private:
    std::mutex mutex_;
    std::map<std::thread::id, int> sleeps_;  // guarded by mutex_
};

// The worker's time is watched; the store's stands still, so that no lease ends.
struct WatchedRig : ThreadedRig {
    WatchedClock time;

    WatchedRig() {
        Handle("t", [](Context&, std::string_view) { return Done(); });
    }
    ~WatchedRig() { worker.reset(); }

    void Start() {
        worker = std::make_unique<Worker>(
            WorkerParts{store, wake, registry, time, *worker_random, nullptr, &metrics}, options
        );
        worker->Start();
    }
    // Lets time pass and all loops do what is due then. False: one of them never sleeps.
    bool Passes(Duration by) {
        constexpr int kLoops = 5;
        time.Advance(by);
        auto before = time.sleeps();
        return Eventually([&] {
            auto now = time.sleeps();
            // Who lay down once may have looked at the time before it passed.
            return kLoops == std::count_if(now.begin(), now.end(), [&](const auto& loop) {
                       return loop.second >= before[loop.first] + 2;
                   });
        });
    }
};

TEST(Threads, RunManyTasksAtOnceAndStopClean) {
    ThreadedRig rig;
    rig.options.slots = 4;
    std::atomic<int> runs{0};
    rig.Handle("t", [&](Context&, std::string_view) { return ++runs, Done(); });
    rig.Make().Start();
    std::vector<TaskId> ids;
    for (int i = 0; i < 200; ++i) ids.push_back(rig.Submit("t"));
    EXPECT_TRUE(InTime(rig, [&] { return rig.metrics.completed == 200; }));
    rig.worker->Stop();
    rig.worker->Stop();  // twice is fine
    EXPECT_EQ(runs, 200);
    for (TaskId id : ids) EXPECT_EQ(rig.StateOf(id), State::kComplete);
    EXPECT_EQ(rig.worker->state(), WorkerState::kStopped);
    EXPECT_EQ(rig.memory.Sessions().front().state, model::SessionState::kClosed);
}

TEST(Threads, AttemptsRunAtTheSameTimeUpToTheSlots) {
    ThreadedRig rig;
    rig.options.slots = 3;
    Gate gate;
    rig.Handle("t", [&](Context&, std::string_view) { return gate.Pass(), Done(); });
    rig.Make().Start();
    for (int i = 0; i < 5; ++i) rig.Submit("t");
    EXPECT_TRUE(gate.WaitForVisitors(3));
    EXPECT_EQ(rig.worker->running(), 3);
    gate.Open();
    EXPECT_TRUE(InTime(rig, [&] { return rig.metrics.completed == 5; }));
    rig.worker->Stop();
}

TEST(Threads, StopLetsRunningAttemptsFinish) {
    ThreadedRig rig;
    Gate gate;
    rig.Handle("t", [&](Context& context, std::string_view) {
        gate.Pass();
        EXPECT_FALSE(context.stop().stop_requested());
        return Done();
    });
    rig.Make().Start();
    TaskId id = rig.Submit("t");
    ASSERT_TRUE(gate.WaitForVisitors(1));
    std::jthread stopper([&] { rig.worker->Stop(); });
    ASSERT_TRUE(Eventually([&] {
        return rig.memory.Sessions().front().state == model::SessionState::kDraining;
    }));
    TaskId late = rig.Submit("t");
    gate.Open();
    stopper.join();
    EXPECT_EQ(rig.StateOf(id), State::kComplete);
    EXPECT_EQ(rig.StateOf(late), State::kOpen);
}

TEST(Threads, AfterTheDrainAttemptsAreToldToStopAndHandedBack) {
    ThreadedRig rig;
    Gate started;
    rig.Handle("t", [&](Context& context, std::string_view) -> Outcome<std::string> {
        started.Open();
        EXPECT_TRUE(Eventually([&] { return context.stop().stop_requested(); }));
        EXPECT_EQ(context.why(), StopReason::kShutdown);
        throw std::runtime_error("interrupted");
    });
    rig.Make().Start();
    TaskId id = rig.Submit("t");
    started.Pass();
    rig.worker->Stop(0ms);
    EXPECT_EQ(rig.StateOf(id), State::kOpen);
    EXPECT_EQ(rig.Get(id).attempt, 0) << "refunded";
    EXPECT_EQ(rig.metrics.released, 1u);
}

TEST(Threads, AHandlerThatIgnoresEverythingCannotHoldUpStop) {
    auto gate = std::make_shared<Gate>();
    auto left = std::make_shared<std::atomic<bool>>(false);
    {
        ThreadedRig rig;
        rig.Handle("stuck", [gate, left](Context& context, std::string_view) {
            gate->Pass();
            context.Progress("still here", 1);  // its context outlives the worker
            *left = true;
            return Done();
        });
        rig.Make().Start();
        TaskId id = rig.Submit("stuck");
        ASSERT_TRUE(gate->WaitForVisitors(1));
        rig.worker->StopNow();
        EXPECT_EQ(rig.StateOf(id), State::kOpen) << "handed back";
        EXPECT_EQ(rig.Get(id).attempt, 0);
        EXPECT_TRUE(rig.Logged("left behind"));
    }  // worker, store and registry are gone
    gate->Open();
    EXPECT_TRUE(Eventually([&] { return left->load(); }));
}

TEST(Threads, InAHurryAHandlerThatObeysIsNotLeftBehind) {
    ThreadedRig rig;
    Gate started;
    rig.Handle("t", [&](Context& context, std::string_view) -> Outcome<std::string> {
        std::mutex mutex;
        std::condition_variable_any never;
        std::unique_lock lock(mutex);
        started.Open();
        never.wait(lock, context.stop(), [] { return false; });
        throw std::runtime_error("interrupted");
    });
    rig.Make().Start();
    TaskId id = rig.Submit("t");
    started.Pass();
    rig.worker->StopNow();
    EXPECT_FALSE(rig.Logged("left behind"));
    EXPECT_EQ(rig.StateOf(id), State::kOpen);
    EXPECT_EQ(rig.memory.Attempts(id).back().end, model::AttemptEnd::kReleased);
}

TEST(Threads, AHookThatHangsBeforeAnAttemptCannotHoldUpStop) {
    auto gate = std::make_shared<Gate>();
    ThreadedRig rig;
    rig.options.hooks.before_attempt = [gate](const AttemptInfo&) { gate->Pass(); };
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Make().Start();
    TaskId id = rig.Submit("t");
    ASSERT_TRUE(gate->WaitForVisitors(1));
    rig.worker->StopNow();
    EXPECT_EQ(rig.StateOf(id), State::kOpen) << "handed back";
    EXPECT_TRUE(rig.Logged("left behind"));
    rig.worker.reset();
    gate->Open();
}

// A stop callback is the handler's own code: one that blocks must cost nobody but its own task.
struct BlockingCallbackRig : ThreadedRig {
    std::shared_ptr<Gate> gate = std::make_shared<Gate>();
    std::atomic<int> stopped{0};
    BlockingCallbackRig() {
        options.slots = 3;
        Handle("blocks", [this](Context& context, std::string_view) -> Outcome<std::string> {
            std::stop_callback callback(context.stop(), [this] {
                ++stopped;
                gate->Pass();
            });
            EXPECT_TRUE(Eventually([&] { return context.stop().stop_requested(); }));
            throw std::runtime_error("stopped");
        });
        Handle("obeys", [this](Context& context, std::string_view) -> Outcome<std::string> {
            if (context.fencing_number() > 1) return Done();
            EXPECT_TRUE(Eventually([&] { return context.stop().stop_requested(); }));
            ++stopped;
            throw std::runtime_error("stopped");
        });
    }
    void End() {
        gate->Open();
        worker->StopNow();
    }
};

TEST(Threads, AStopCallbackThatBlocksHoldsUpNoHeartbeat) {
    BlockingCallbackRig rig;
    rig.Make().Start();
    TaskId id = rig.Submit("blocks");
    ASSERT_TRUE(InTime(rig, [&] { return rig.worker->running() == 1; }));
    rig.memory.Cancel(std::span(&id, 1), "test", "enough");
    ASSERT_TRUE(InTime(rig, [&] { return rig.stopped == 1; })) << "it blocks";
    auto heartbeats = rig.metrics.heartbeats.load();
    EXPECT_TRUE(InTime(rig, [&] { return rig.metrics.heartbeats >= heartbeats + 3; }));
    rig.End();
}

TEST(Threads, AStopCallbackThatBlocksHoldsUpNoOtherSelfStop) {
    BlockingCallbackRig rig;
    rig.Make().Start();
    rig.Submit("blocks");
    rig.Submit("obeys");
    rig.Submit("obeys");
    ASSERT_TRUE(InTime(rig, [&] { return rig.worker->running() == 3; }));
    rig.store.SetDown(true);  // all of them must stop, by the watch alone
    EXPECT_TRUE(InTime(rig, [&] { return rig.stopped == 3; }));
    rig.store.SetDown(false);
    rig.End();
}

TEST(Threads, AHookAboutAGivenUpAttemptHoldsUpNoWatch) {
    ThreadedRig rig;
    auto gate = std::make_shared<Gate>();
    auto hook = std::make_shared<Gate>();
    rig.options.slots = 4;
    rig.options.lease = model::LeasePolicy::Patient();
    auto told = std::make_shared<std::atomic<int>>(0);
    rig.options.hooks.after_attempt = [hook, told](const AttemptInfo&) {
        ++*told;
        hook->Pass();
    };
    rig.Handle("stuck", [gate](Context&, std::string_view) { return gate->Pass(), Done(); });
    rig.Handle("t", [](Context& context, std::string_view) -> Outcome<std::string> {
        EXPECT_TRUE(Eventually([&] { return context.stop().stop_requested(); }));
        EXPECT_EQ(context.why(), StopReason::kTimeout) << "by the watch, not by the store";
        throw Retryable("timed out");
    });
    rig.Make().Start();
    rig.Submit("stuck", {.timeout = 1s});
    ASSERT_TRUE(gate->WaitForVisitors(1));
    ASSERT_TRUE(InTime(rig, [&] { return *told == 1; })) << "given up";
    rig.Submit("t", {.timeout = 200ms});
    EXPECT_TRUE(InTime(rig, [&] { return *told == 2; })) << "its timeout is watched";
    hook->Open();
    rig.worker->StopNow();
    gate->Open();
}

TEST(Threads, AnIdleWorkerAsksAgainOnlyWhenItsIntervalIsOver) {
    WatchedRig rig;
    rig.options.poll = {1s, 1s};  // ± 20 %
    rig.Start();
    ASSERT_TRUE(rig.Passes(0s));
    EXPECT_EQ(rig.worker->state(), WorkerState::kIdle);
    EXPECT_EQ(rig.store.calls("claim"), 1);
    ASSERT_TRUE(rig.Passes(799ms));
    EXPECT_EQ(rig.store.calls("claim"), 1) << "too early";
    ASSERT_TRUE(rig.Passes(402ms));
    EXPECT_EQ(rig.store.calls("claim"), 2);
    ASSERT_TRUE(rig.Passes(799ms));
    EXPECT_EQ(rig.store.calls("claim"), 2) << "it waits each time";
    rig.worker->Stop();
}

TEST(Threads, APatientWorkerRenewsItsTwoMinutesEveryThirtySeconds) {
    WatchedRig rig;
    rig.options.lease = model::LeasePolicy::Patient();
    rig.Start();
    auto left = [&] { return rig.memory.Sessions().front().lease_until - rig.memory.Now(); };
    ASSERT_TRUE(rig.Passes(0s));
    EXPECT_EQ(left(), 2min);
    rig.clock.Advance(30s);
    ASSERT_TRUE(rig.Passes(30s - 1ms));
    EXPECT_EQ(rig.store.calls("renew"), 0);
    EXPECT_EQ(left(), 90s);
    ASSERT_TRUE(rig.Passes(1ms));
    EXPECT_EQ(rig.store.calls("renew"), 1);
    EXPECT_EQ(left(), 2min);
    ASSERT_TRUE(rig.Passes(27s - 1ms));  // ± 10 % from now on
    EXPECT_EQ(rig.store.calls("renew"), 1);
    ASSERT_TRUE(rig.Passes(6s + 1ms));
    EXPECT_EQ(rig.store.calls("renew"), 2);
    rig.worker->Stop();
}

TEST(Threads, SweepsAndHousekeepingComeOncePerIntervalIdleOrBusy) {
    for (int busy : {0, 2}) {
        SCOPED_TRACE(busy);
        WatchedRig rig;
        rig.options.slots = 2;
        rig.options.lease = {.lease = 10h, .heartbeat_every = 1h, .self_stop = 5h};
        auto gate = std::make_shared<Gate>();
        rig.Handle("long", [gate](Context&, std::string_view) { return gate->Pass(), Done(); });
        rig.Start();
        for (int i = 0; i < busy; ++i) rig.Submit("long");
        EXPECT_TRUE(gate->WaitForVisitors(busy));
        for (Duration passed{}; passed < 300s; passed += 2s) ASSERT_TRUE(rig.Passes(2s));
        EXPECT_EQ(rig.worker->running(), busy);
        // Every 5 s and every minute, ± 20 %, seen every 2 s, and the first ones at the start.
        EXPECT_GE(rig.store.calls("reclaim"), 300 / 6);
        EXPECT_LE(rig.store.calls("reclaim"), 300 / 4 + 2);
        EXPECT_GE(rig.store.calls("housekeep"), 300 / 74);
        EXPECT_LE(rig.store.calls("housekeep"), 300 / 48 + 1);
        gate->Open();
        rig.worker->Stop();
    }
}

TEST(Threads, TwoWorkersOnOneStoreRunTwiceAsMuchAtOnce) {
    ThreadedRig rig;
    Gate gate;
    rig.options.slots = 2;
    rig.Handle("t", [&](Context&, std::string_view) { return gate.Pass(), Done(); });
    rig.Make().Start();
    Worker second(
        WorkerParts{
            rig.store,
            rig.wake,
            rig.registry,
            rig.clock,
            *rig.worker_random,
            nullptr,
            &rig.metrics},
        rig.options
    );
    second.Start();
    for (int i = 0; i < 5; ++i) rig.Submit("t");
    EXPECT_TRUE(gate.WaitForVisitors(4));
    EXPECT_EQ(rig.worker->running(), 2);
    EXPECT_EQ(second.running(), 2);
    gate.Open();
    EXPECT_TRUE(InTime(rig, [&] { return rig.metrics.completed == 5; }));
    second.Stop();
    rig.worker->Stop();
}

TEST(Threads, StopNowCutsAPatientStopShort) {
    ThreadedRig rig;
    auto gate = std::make_shared<Gate>();
    rig.Handle("t", [gate](Context&, std::string_view) { return gate->Pass(), Done(); });
    rig.Make().Start();
    rig.Submit("t");
    ASSERT_TRUE(gate->WaitForVisitors(1));
    std::jthread patient([&] { rig.worker->Stop(1h); });
    ASSERT_TRUE(Eventually([&] { return rig.worker->state() == WorkerState::kDraining; }));
    rig.worker->StopNow();  // no time passes here: only the hurry ends it
    patient.join();
    EXPECT_EQ(rig.worker->state(), WorkerState::kStopped);
    gate->Open();
}

TEST(Threads, ATimeoutStopsAHandlerWithoutAnyStoreCall) {
    ThreadedRig rig;
    rig.Handle("t", [&](Context& context, std::string_view) -> Outcome<std::string> {
        EXPECT_TRUE(InTime(rig, [&] { return context.stop().stop_requested(); }));
        EXPECT_EQ(context.why(), StopReason::kTimeout);
        throw Retryable("timed out");
    });
    rig.Make().Start();
    TaskId id = rig.Submit("t", {.timeout = 200ms});
    EXPECT_TRUE(InTime(rig, [&] { return rig.metrics.timed_out >= 1; }));
    rig.worker->Stop(0ms);
    EXPECT_EQ(rig.memory.Attempts(id).front().end, model::AttemptEnd::kTimedOut);
}

TEST(Threads, HalfThePoolHungTellsTheHostWhichMayStopItFromThere) {
    ThreadedRig rig;
    auto gate = std::make_shared<Gate>();
    std::atomic<bool> told{false};
    rig.options.slots = 2;
    rig.options.lease = model::LeasePolicy::Patient();
    rig.options.on_unhealthy = [&](std::string_view) {
        rig.worker->StopNow();
        told = true;
    };
    rig.Handle("t", [gate](Context&, std::string_view) { return gate->Pass(), Done(); });
    rig.Make().Start();
    TaskId id = rig.Submit("t", {.timeout = 1s});
    ASSERT_TRUE(gate->WaitForVisitors(1));
    EXPECT_TRUE(InTime(rig, [&] { return told.load(); }));
    EXPECT_FALSE(rig.worker->healthy());
    EXPECT_EQ(rig.memory.Attempts(id).front().end, model::AttemptEnd::kTimedOut);
    rig.worker.reset();
    gate->Open();
}

TEST(Threads, ASelfStopHappensWhileTheRenewalHangs) {
    ThreadedRig rig;
    auto gate = std::make_shared<Gate>();
    std::atomic<bool> stopped{false};
    std::atomic<bool> hang{false};
    rig.Handle("t", [&](Context& context, std::string_view) -> Outcome<std::string> {
        if (context.fencing_number() > 1) return Done();  // tried again, under another session
        hang = true;
        EXPECT_TRUE(InTime(rig, [&] { return context.stop().stop_requested(); }));
        EXPECT_EQ(context.why(), StopReason::kLeaseLost);
        stopped = true;
        throw std::runtime_error("stopped");
    });
    rig.store.OnCall([&](std::string_view op) {
        if (op == "renew" && hang) gate->Pass();
    });
    rig.Make().Start();
    rig.Submit("t");
    EXPECT_TRUE(InTime(rig, [&] { return stopped.load(); }));
    EXPECT_GE(rig.metrics.self_stops, 1u);
    hang = false;
    gate->Open();
    rig.worker->StopNow();
}

TEST(Threads, AStoreThatIsAwayAtTheStartIsWaitedFor) {
    ThreadedRig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    TaskId id = rig.Submit("t");
    rig.store.SetDown(true);
    rig.Make().Start();
    EXPECT_TRUE(InTime(rig, [&] { return rig.metrics.breaker_opened == 1; }));
    rig.store.SetDown(false);
    EXPECT_TRUE(InTime(rig, [&] { return rig.StateOf(id) == State::kComplete; }));
    rig.worker->Stop();
}

TEST(Threads, AHintStartsATaskWithoutTimePassing) {
    ThreadedRig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Make().Start();
    ASSERT_TRUE(Eventually([&] { return rig.worker->state() == WorkerState::kIdle; }));
    TaskId id = rig.Submit("t");
    EXPECT_TRUE(Eventually([&] { return rig.StateOf(id) == State::kComplete; }));
    rig.worker->Stop();
}

TEST(Threads, TestPointsNameTheMomentsOfATask) {
    ThreadedRig rig;
    std::mutex mutex;
    std::vector<std::string> moments;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    base::SetTestPointListener([&](std::string_view name) {
        std::lock_guard guard(mutex);
        moments.emplace_back(name);
    });
    rig.Make().Start();
    TaskId id = rig.Submit("t");
    EXPECT_TRUE(Eventually([&] { return rig.StateOf(id) == State::kComplete; }));
    rig.worker->Stop();
    base::SetTestPointListener({});
    for (const char* name :
         {"sweep.before",
          "sweep.after",
          "submit.before",
          "submit.after",
          "claim.before",
          "claim.after",
          "execute.before",
          "execute.after",
          "settle.before",
          "settle.after",
          "renew.sent",
          "renew.done"}) {
        EXPECT_THAT(moments, testing::Contains(name));
    }
}

}  // namespace
}  // namespace stint::engine
