#include "engine/await.h"

#include <gmock/gmock.h>

#include <thread>

#include "support/engine_rig.h"

namespace stint::engine {
namespace {

struct AwaitRig : ThreadedRig {
    Await await{store, wake, clock, base::SystemRandom(), PollOptions{50ms, 2s}, {}};

    AwaitRig() {
        Handle("t", [](Context&, std::string_view) { return Done("42"); });
        Open();
    }
    // As another process would: no hint reaches us.
    void FinishElsewhere(TaskId id) {
        wake::LocalWake other_wake;
        Worker other({store, other_wake, registry, clock, base::SystemRandom()}, options);
        other.Open();
        other.ClaimOnce();
        other.RunOneAttempt();
        other.SettleOnce();
        other.Drain();
        EXPECT_EQ(StateOf(id), model::State::kComplete);
    }
};

// How often a condition is looked at before time passes again: few steps, or leases end.
constexpr int kLooksPerStep = 2'000;

TEST(AwaitTask, AFinishedTaskAnswersAtOnce) {
    AwaitRig rig;
    TaskId id = rig.Submit("t");
    EXPECT_FALSE(rig.await.Done(id));
    rig.Drive();
    EXPECT_TRUE(rig.await.Done(id));
    EXPECT_EQ(rig.await.Wait(id, {}, {}).value(), "42");
    EXPECT_EQ(rig.await.waiting(), 0);
}

TEST(AwaitTask, ResolvesWhenAnotherProcessFinishesIt) {
    AwaitRig rig;
    TaskId id = rig.Submit("t");
    std::string answer;
    std::jthread waiter([&](std::stop_token stop) {
        if (auto got = rig.await.Wait(id, {}, stop)) answer = *got;
    });
    ASSERT_TRUE(Eventually([&] { return rig.store.calls("finished") > 0; }));
    rig.FinishElsewhere(id);
    // More than one step: the question that is on its way may have been asked before the end.
    int looks = 0;
    EXPECT_TRUE(Eventually([&] {
        if (looks++ % kLooksPerStep == 0) rig.clock.Advance(3s);
        return rig.await.waiting() == 0;
    }));
    waiter.join();
    EXPECT_EQ(answer, "42");
}

TEST(AwaitTask, AHintResolvesWithoutTimePassing) {
    AwaitRig rig;
    TaskId id = rig.Submit("t");
    std::string answer;
    std::jthread waiter([&](std::stop_token stop) {
        if (auto got = rig.await.Wait(id, {}, stop)) answer = *got;
    });
    ASSERT_TRUE(Eventually([&] { return rig.store.calls("finished") > 0; }));
    rig.Drive();
    waiter.join();
    EXPECT_EQ(answer, "42");
}

// Counts how often the time is looked at: a waiting thread does so before it decides to ask.
class LookedAtClock final : public base::ManualClock {
public:
    base::Instant Now() override {
        ++looks;
        return ManualClock::Now();
    }
    std::atomic<int> looks{0};
};

TEST(AwaitTask, AHintAboutATaskNobodyWaitsForAsksNothing) {
    AwaitRig rig;
    LookedAtClock clock;
    Await await{rig.store, rig.wake, clock, base::SystemRandom(), PollOptions{50ms, 2s}, {}};
    TaskId waited = rig.Submit("t");
    TaskId other = rig.Submit("t");
    std::jthread waiter([&](std::stop_token stop) { (void)await.Wait(waited, {}, stop); });
    // More than it looks on the way from one decision to the end of the next.
    auto decided_again = [&] {
        int before = clock.looks;
        return Eventually([&] { return clock.looks >= before + 6; });
    };
    ASSERT_TRUE(Eventually([&] { return rig.store.calls("get") == 1; }));
    ASSERT_TRUE(decided_again());
    EXPECT_EQ(rig.store.calls("finished"), 1) << "at rest, with the clock";
    wake::Hint about_other{wake::Hint::Kind::kTaskFinished, {}, other};
    rig.wake.Signal(std::span(&about_other, 1));
    ASSERT_TRUE(decided_again());
    EXPECT_EQ(rig.store.calls("finished"), 1);
    wake::Hint about_waited{wake::Hint::Kind::kTaskFinished, {}, waited};
    rig.wake.Signal(std::span(&about_waited, 1));
    ASSERT_TRUE(decided_again());
    EXPECT_EQ(rig.store.calls("finished"), 2);
}

TEST(AwaitTask, AllWaitersShareOneQuestion) {
    AwaitRig rig;
    std::vector<TaskId> ids;
    for (int i = 0; i < 8; ++i) ids.push_back(rig.Submit("t"));
    std::atomic<int> right{0};
    std::vector<std::jthread> waiters;  // stopped and joined if an assertion leaves early
    for (TaskId id : ids) {
        waiters.emplace_back([&rig, &right, id](std::stop_token stop) {
            auto got = rig.await.Wait(id, {}, stop);
            if (got && *got == "42") ++right;
        });
    }
    ASSERT_TRUE(Eventually([&] { return rig.await.waiting() == 8; }));
    ASSERT_TRUE(Eventually([&] { return rig.store.calls("get") == 8; })) << "each exists";
    // However many questions it took until all were in: from now on it is one per interval for all.
    int intervals = 0;
    for (int round = 0; round < 3; ++round) {
        int before = rig.store.calls("finished");
        // A question that is on its way when time passes starts the interval anew.
        int looks = 0;
        ASSERT_TRUE(Eventually([&] {
            if (looks++ % kLooksPerStep == 0) {
                rig.clock.Advance(3s);
                ++intervals;
            }
            return rig.store.calls("finished") > before;
        }));
    }
    EXPECT_LE(rig.store.calls("finished"), 8 + 3 + intervals);
    EXPECT_EQ(rig.store.calls("get"), 8);
    rig.Drive();
    EXPECT_TRUE(Eventually([&] { return right == 8; }))
        << right << " of 8; waiting " << rig.await.waiting() << "; completed "
        << rig.metrics.completed << "; asked " << rig.store.calls("finished");
}

TEST(AwaitTask, ALimitEndsTheWaitNotTheTask) {
    AwaitRig rig;
    TaskId id = rig.Submit("t");
    EXPECT_EQ(rig.await.Wait(id, 0ms, {}).error().code, Code::kTimeout);
    rig.Drive();
    EXPECT_TRUE(rig.await.Done(id));
}

TEST(AwaitTask, AStopRequestEndsTheWait) {
    AwaitRig rig;
    TaskId id = rig.Submit("t");
    std::stop_source stop;
    Code code{};
    std::jthread waiter([&] { code = rig.await.Wait(id, {}, stop.get_token()).error().code; });
    ASSERT_TRUE(Eventually([&] { return rig.store.calls("finished") > 0; }));
    stop.request_stop();
    waiter.join();
    EXPECT_EQ(code, Code::kCancelled);
}

TEST(AwaitTask, TellsFailedCancelledAndMissing) {
    AwaitRig rig;
    rig.worker.reset();
    rig.Handle("bad", [](Context&, std::string_view) -> Outcome<std::string> {
        throw Permanent("broken beyond repair");
    });
    rig.Open();
    TaskId bad = rig.Submit("bad");
    rig.Drive();
    auto failed = rig.await.Wait(bad, {}, {});
    EXPECT_EQ(failed.error().code, Code::kFailed);
    EXPECT_EQ(failed.error().message, "broken beyond repair");

    TaskId cancelled = rig.Submit("t", {.delay = 1h});
    EXPECT_TRUE(rig.await.Cancel(cancelled, "enough").value());
    EXPECT_EQ(rig.await.Wait(cancelled, {}, {}).error().code, Code::kCancelled);
    EXPECT_FALSE(rig.await.Cancel(cancelled, "again").value());

    EXPECT_EQ(rig.await.Wait(TaskId(999'999), {}, {}).error().code, Code::kNotFound);
    EXPECT_EQ(rig.await.Cancel(TaskId(999'999), {}).error().code, Code::kNotFound);
}

TEST(AwaitTask, OutlastsAnUnreachableStore) {
    AwaitRig rig;
    TaskId id = rig.Submit("t");
    std::string answer;
    rig.store.SetDown(true);
    EXPECT_EQ(rig.await.Wait(id, 0ms, {}).error().code, Code::kTimeout);
    int before = rig.store.calls("finished");
    std::jthread waiter([&](std::stop_token stop) {
        if (auto got = rig.await.Wait(id, {}, stop)) answer = *got;
    });
    ASSERT_TRUE(Eventually([&] { return rig.store.calls("finished") > before; }));
    rig.store.SetDown(false);
    rig.FinishElsewhere(id);
    rig.clock.Advance(3s);
    waiter.join();
    EXPECT_EQ(answer, "42");
}

TEST(AwaitTask, CloseEndsAllWaits) {
    AwaitRig rig;
    TaskId id = rig.Submit("t");
    Code code{};
    std::jthread waiter([&](std::stop_token stopped) {
        code = rig.await.Wait(id, {}, stopped).error().code;
    });
    ASSERT_TRUE(Eventually([&] { return rig.store.calls("finished") > 0; }));
    rig.await.Close();
    waiter.join();
    EXPECT_EQ(code, Code::kUnavailable);
    EXPECT_EQ(rig.await.Wait(id, {}, {}).error().code, Code::kUnavailable);
}

TEST(AwaitTask, WhateverTheStoreThrowsOnACancelIsAnAnswer) {
    AwaitRig rig;
    TaskId id = rig.Submit("t");
    rig.store.Next("cancel", Trouble::kUnavailable);
    EXPECT_EQ(rig.await.Cancel(id, "").error().code, Code::kUnavailable);
    rig.store.Next("cancel", Trouble::kUnknownAfter);
    EXPECT_EQ(rig.await.Cancel(id, "").error().code, Code::kUnknown);
    rig.store.Next("cancel", Trouble::kBug);
    EXPECT_EQ(rig.await.Cancel(id, "").error().code, Code::kUnknown);
}

}  // namespace
}  // namespace stint::engine
