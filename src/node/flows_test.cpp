// Flows as a program sees them, on a clock that moves only when told.
#include <gmock/gmock.h>
#include <stint/replay.h>
#include <stint/stint.h>
#include <stint/testing.h>

#include <system_error>

#include "node/engine_impl.h"
#include "store/flows.h"

namespace stint {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::FlowReplayed;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ReplayFlow;
using ::testing::SizeIs;
using testing::TestEngine;

constexpr Task<int, int> kSquare{"square", {.retry = Retry::Times(1)}};
constexpr Task<int, int> kFlow{"flow"};

int Square(Context&, int in) {
    if (in < 0) throw Permanent("negative");
    return in * in;
}

std::string StateOf(TestEngine& engine, TaskId task) {
    return engine.engine().Get(task).value().state;
}
std::string ErrorOf(TestEngine& engine, TaskId task) {
    return engine.engine().Get(task).value().error;
}
std::vector<std::string> Steps(TestEngine& engine, TaskId task) {
    std::vector<std::string> names;
    for (const FlowStepInfo& step : engine.engine().flows().Get(task).value().steps) {
        names.push_back(step.kind + " " + step.name + " " + step.state);
    }
    return names;
}

TEST(Flows, CallsATaskAndGoesOnWithItsOutput) {
    TestEngine engine;
    int calls = 0;
    engine.Handle(kSquare, Square);
    engine.Handle(kFlow, [&](Flow& flow, int in) {
        ++calls;
        int once = flow.Call("first", kSquare, in);
        return flow.Call("second", kSquare, once);
    });
    auto run = engine.Submit(kFlow, 3).value();
    engine.RunUntilIdle();
    EXPECT_EQ(run.Wait().value(), 81);
    EXPECT_EQ(calls, 3) << "from its first line, each time it goes on";
    EXPECT_THAT(engine.OfType("square"), SizeIs(2));
    EXPECT_THAT(Steps(engine, run.id()), ElementsAre("call first done", "call second done"));
    EXPECT_EQ(engine.engine().Get(run.id()).value().attempt, 1) << "waiting costs no attempt";
}

TEST(Flows, AFailedCallIsAnExceptionEachTime) {
    TestEngine engine;
    engine.Handle(kSquare, Square);
    engine.Handle(kFlow, [&](Flow& flow, int in) {
        try {
            return flow.Call("first", kSquare, in);
        } catch (const StepFailed& failed) {
            EXPECT_EQ(failed.reason(), "negative");
            EXPECT_EQ(failed.step(), "first");
            EXPECT_TRUE(failed.task().valid());
            return flow.Call("instead", kSquare, 10);
        }
    });
    auto run = engine.Submit(kFlow, -1).value();
    engine.RunUntilIdle();
    EXPECT_EQ(run.Wait().value(), 100);
}

TEST(Flows, AFailureThatIsNotCaughtIsTheFlows) {
    TestEngine engine;
    engine.Handle(kSquare, Square);
    engine.Handle(kFlow, [](Flow& flow, int in) { return flow.Call("first", kSquare, in); });
    auto run = engine.Submit(kFlow, -1).value();
    engine.RunUntilIdle();
    EXPECT_EQ(StateOf(engine, run.id()), "dead");
    EXPECT_THAT(ErrorOf(engine, run.id()), HasSubstr("step first: negative"));
}

TEST(Flows, StartsSeveralAndWaitsForAllOrAny) {
    TestEngine engine;
    engine.Handle(kSquare, Square);
    engine.Handle(kFlow, [](Flow& flow, int in) {
        std::vector<Started<int>> started;
        for (int i = 0; i < 3; ++i) started.push_back(flow.Start("one", kSquare, in + i));
        int sum = 0;
        for (int one : flow.AwaitAll(started)) sum += one;
        auto late = flow.Start("late", kSquare, 9, {.delay = 1h});
        auto bad = flow.Start("bad", kSquare, -1);
        auto soon = flow.Start("soon", kSquare, 7);
        std::vector<Started<int>> race{late, bad, soon};
        std::size_t won = flow.AwaitAny("race", race);
        EXPECT_EQ(won, 2u);
        return sum * 1000 + flow.Await(race[won]);
    });
    auto run = engine.Submit(kFlow, 1).value();
    engine.RunUntilIdle();
    EXPECT_EQ(run.Wait().value(), 14'049);
    EXPECT_EQ(Steps(engine, run.id()).size(), 7u) << "four names; \"one\" occurs three times";
}

TEST(Flows, WaitingForAllThrowsTheFirstFailure) {
    TestEngine engine;
    constexpr Task<int, void> kCheck{"check", {.retry = Retry::Times(1)}};
    engine.Handle(kSquare, Square);
    engine.Handle(kCheck, [](Context&, int in) {
        if (in < 0) throw Permanent("unsound");
    });
    engine.Handle(kFlow, [&](Flow& flow, int in) {
        auto good = flow.Start("good", kSquare, 1);
        auto bad = flow.Start("bad", kSquare, in);
        auto checked = flow.Start("checked", kCheck, 1);
        int failures = 0;
        try {
            flow.AwaitAll(good, bad, checked);
        } catch (const StepFailed& failed) {
            EXPECT_EQ(failed.step(), "bad");
            ++failures;
        }
        std::vector<Started<void>> checks{flow.Start("check", kCheck, in), checked};
        try {
            flow.AwaitAll(checks);
        } catch (const StepFailed& failed) {
            EXPECT_EQ(failed.reason(), "unsound");
            ++failures;
        }
        return failures;
    });
    auto bad = engine.Submit(kFlow, -1).value();
    auto good = engine.Submit(kFlow, 1).value();
    engine.RunUntilIdle();
    EXPECT_EQ(bad.Wait().value(), 2);
    EXPECT_EQ(good.Wait().value(), 0);
}

TEST(Flows, StepsMayStandForOneTask) {
    TestEngine engine;
    engine.Handle(kSquare, Square);
    engine.Handle(kFlow, [](Flow& flow, int in) {
        auto one = flow.Start("one", kSquare, in, {.unique_key = "k"});
        auto same = flow.Start("same", kSquare, in, {.unique_key = "k"});
        EXPECT_EQ(one.task, same.task);
        flow.AwaitAll(one, same, one);
        return flow.Await(one) + flow.Await(same);
    });
    auto run = engine.Submit(kFlow, 3).value();
    engine.RunUntilIdle();
    EXPECT_EQ(StateOf(engine, run.id()), "complete") << ErrorOf(engine, run.id());
    EXPECT_EQ(run.Wait().value(), 18);
    EXPECT_THAT(engine.OfType("square"), SizeIs(1));
}

TEST(Flows, SleepsForDaysWithoutASlot) {
    TestEngine engine;
    engine.Handle(kFlow, [](Flow& flow, int in) {
        Time before = flow.Now("before");
        flow.Sleep("night", 24h * 3);
        return static_cast<int>((flow.Now("after") - before) / 1h) + in;
    });
    auto run = engine.Submit(kFlow, 0).value();
    engine.RunUntilIdle();
    EXPECT_EQ(StateOf(engine, run.id()), "open");
    EXPECT_THAT(engine.engine().flows().Get(run.id()).value().flow.waits_for, HasSubstr("sleep"));
    engine.AdvanceTime(24h * 3 - 1s);
    EXPECT_EQ(engine.RunUntilIdle(), 0);
    engine.AdvanceTime(2s);
    engine.RunUntilIdle();
    EXPECT_EQ(run.Wait().value(), 72);
}

TEST(Flows, ASignalIsAwaitedOrItsTimeIsOver) {
    TestEngine engine;
    engine.Handle(kFlow, [](Flow& flow, int) {
        std::optional<int> answer = flow.AwaitSignal<int>("answer", 48h);
        return answer.value_or(-1);
    });
    auto told = engine.Submit(kFlow, 0).value();
    auto silent = engine.Submit(kFlow, 0).value();
    auto early = engine.Submit(kFlow, 0).value();
    ASSERT_TRUE(engine.engine().flows().Signal(early.id(), "answer", 6));
    engine.RunUntilIdle();
    EXPECT_EQ(early.Wait().value(), 6) << "it came before the flow asked";
    auto list = engine.engine().flows().List().value();
    ASSERT_THAT(list, SizeIs(3));
    EXPECT_EQ(list[1].waits_for, "signal \"answer\"");
    engine.AdvanceTime(24h);
    ASSERT_TRUE(engine.engine().flows().Signal(told.id(), "answer", 5, {.id = "x"}));
    ASSERT_TRUE(engine.engine().flows().Signal(told.id(), "answer", 5, {.id = "x"})) << "again";
    engine.RunUntilIdle();
    EXPECT_EQ(told.Wait().value(), 5);
    engine.AdvanceTime(25h);
    engine.RunUntilIdle();
    EXPECT_EQ(silent.Wait().value(), -1);
    auto refused = engine.engine().flows().Signal(silent.id(), "answer", 7);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kConflict);
    EXPECT_THAT(refused.error().message, HasSubstr("complete"));
    EXPECT_EQ(engine.engine().flows().SignalJson(TaskId(12345), "x").error().code, Code::kNotFound);
}

TEST(Flows, ALocalStepIsDoneOnceWhateverComesAfter) {
    TestEngine engine;
    std::vector<std::string> keys;
    engine.Handle(kFlow, [&](Flow& flow, int in) {
        int made = flow.Run("effect", [&](const LocalStep& step) {
            keys.push_back(step.idempotency_key);
            return in + 1;
        });
        flow.Run("nothing", [] {});
        flow.Sleep("nap", 1h);
        return made;
    });
    auto run = engine.Submit(kFlow, 1).value();
    engine.RunUntilDone();
    EXPECT_EQ(run.Wait().value(), 2);
    EXPECT_THAT(keys, ElementsAre("task-" + run.id().ToString() + "/effect/1"));
}

TEST(Flows, ALocalStepThatFailsIsTriedAgainAndInTheEndRecorded) {
    TestEngine engine;
    int tries = 0;
    constexpr Task<int, int> kStubborn{"stubborn", {.retry = Retry::Times(3)}};
    engine.Handle(kStubborn, [&](Flow& flow, int) -> int {
        try {
            flow.Run("effect", [&]() -> int {
                ++tries;
                throw std::system_error(std::make_error_code(std::errc::io_error));
            });
        } catch (const StepFailed& failed) {
            flow.Sleep("after it", 1h);
            return static_cast<int>(failed.reason().size());
        }
        return 0;
    });
    auto run = engine.Submit(kStubborn, 0).value();
    engine.RunUntilDone();
    EXPECT_EQ(tries, 3) << "as often as the task's policy says, and never after it was recorded";
    EXPECT_GT(run.Wait().value(), 0);
    EXPECT_THAT(Steps(engine, run.id()), ElementsAre("run effect failed", "sleep after it done"));
}

TEST(Flows, AnUnavailableResourceIsNoFailureOfTheStep) {
    TestEngine engine;
    ASSERT_TRUE(engine.engine().resources().Set("mail", {.capacity = 1}));
    constexpr Task<int, int> kMail{"mailing", {.retry = Retry::Times(1), .needs = {"mail"}}};
    int tries = 0;
    engine.Handle(kMail, [&](Flow& flow, int) {
        return flow.Run("send", [&]() -> int {
            if (++tries == 1) throw ResourceUnavailable("mail", "429", 10min);
            return tries;
        });
    });
    auto run = engine.Submit(kMail, 0).value();
    engine.RunUntilIdle();
    EXPECT_EQ(tries, 1);
    EXPECT_EQ(StateOf(engine, run.id()), "open") << "it waits for the resource";
    EXPECT_EQ(engine.engine().Get(run.id()).value().attempt, 0) << "no attempt is burnt";
    EXPECT_THAT(Steps(engine, run.id()), IsEmpty());
    engine.AdvanceTime(9min);
    EXPECT_EQ(engine.RunUntilIdle(), 0) << "not before it said";
    engine.AdvanceTime(2min);
    engine.RunUntilIdle();
    EXPECT_EQ(run.Wait().value(), 2);
}

// Cancels the task while it runs, and lets its worker hear of it.
void CancelNow(TestEngine& engine, TaskId task) {
    ASSERT_TRUE(engine.engine().flows().Cancel(task));
    engine.engine().impl().worker->RenewOnce();
}

TEST(Flows, WhatIsInterruptedHasNotFailed) {
    TestEngine engine;
    TaskId id;
    int begun = 0;
    engine.Handle(kFlow, [&](Flow& flow, int) {
        flow.Run("done", [] {});
        flow.Run("interrupted", [&](const LocalStep& step) {
            ++begun;
            CancelNow(engine, id);
            EXPECT_TRUE(step.stop.stop_requested());
            throw std::runtime_error("stopped in the middle");
        });
        return 0;
    });
    id = engine.Submit(kFlow, 0).value().id();
    engine.RunUntilIdle();
    EXPECT_EQ(begun, 1);
    EXPECT_EQ(StateOf(engine, id), "cancelled");
    EXPECT_THAT(Steps(engine, id), ElementsAre("run done done"));
}

TEST(Flows, OneThatIsToStopBeginsNoStep) {
    TestEngine engine;
    TaskId id;
    int later = 0;
    engine.Handle(kSquare, Square);
    engine.Handle(kFlow, [&](Flow& flow, int in) {
        flow.Run("last", [&] { CancelNow(engine, id); });
        flow.Run("later", [&] { ++later; });
        return flow.Call("call", kSquare, in);
    });
    id = engine.Submit(kFlow, 0).value().id();
    engine.RunUntilIdle();
    EXPECT_EQ(later, 0);
    EXPECT_EQ(StateOf(engine, id), "cancelled");
    EXPECT_THAT(Steps(engine, id), ElementsAre("run last done")) << "what was done is told";
    EXPECT_THAT(engine.OfType("square"), IsEmpty());
}

TEST(Flows, AFullQueueIsWaitedFor) {
    TestEngine engine;
    store::Store& store = *engine.engine().impl().store;
    store.ChangeQueue({.name = "small", .cap = std::optional<std::int64_t>(1)}, "test");
    constexpr Task<int, int> kElsewhere{"elsewhere", {.queue = "small"}};
    constexpr Task<int, int> kOnce{"once", {.retry = Retry::Times(1)}};
    engine.Handle(kOnce, [&](Flow& flow, int in) { return flow.Call("call", kElsewhere, in); });
    TaskId blocker = engine.Submit(kElsewhere, 0).value().id();
    auto run = engine.Submit(kOnce, 1).value();
    engine.RunUntilIdle();
    EXPECT_EQ(StateOf(engine, run.id()), "open");
    EXPECT_THAT(Steps(engine, run.id()), IsEmpty());
    ASSERT_TRUE(engine.engine().flows().Cancel(blocker));
    engine.AdvanceTime(10s);
    engine.RunUntilIdle();
    EXPECT_THAT(Steps(engine, run.id()), ElementsAre("call call open"));
    EXPECT_EQ(StateOf(engine, run.id()), "blocked");
}

TEST(Flows, ALengthThatNoClockCanHoldIsRefusedByName) {
    TestEngine engine;
    engine.Handle(kFlow, [](Flow& flow, int in) {
        if (in == 0) flow.Sleep("for ever", Duration::max());
        flow.AwaitSignal("never", Duration::max());
        return 0;
    });
    auto sleep = engine.Submit(kFlow, 0).value();
    auto signal = engine.Submit(kFlow, 1).value();
    engine.RunUntilIdle();
    EXPECT_THAT(ErrorOf(engine, sleep.id()), HasSubstr("the sleep \"for ever\" is"));
    EXPECT_THAT(ErrorOf(engine, signal.id()), HasSubstr("leave the timeout out"));
}

TEST(Flows, TimeRandomnessAndIdsAreRecorded) {
    TestEngine engine;
    std::vector<std::string> seen;
    engine.Handle(kFlow, [&](Flow& flow, int) {
        std::string one = flow.NewId() + "/" + std::to_string(flow.Random()) + "/" +
                          std::to_string(flow.Now().time_since_epoch().count());
        std::string two = flow.NewId();
        seen.push_back(one + two);
        EXPECT_NE(one.substr(0, 32), two);
        flow.Sleep("nap", 1h);
        return 0;
    });
    engine.Submit(kFlow, 0).value();
    engine.RunUntilDone();
    ASSERT_THAT(seen, SizeIs(2));
    EXPECT_EQ(seen[0], seen[1]);
}

// ---- changing the code -------------------------------------------------------------------------

// Runs `before` until it sleeps, then `after` in its place.
struct Changed {
    template <class Before, class After>
    Changed(Before before, After after) {
        engine.Handle(kSquare, Square);
        engine.Handle(kFlow, [=, this](Flow& flow, int in) -> int {
            return deployed ? after(flow, in) : before(flow, in);
        });
        id = engine.Submit(kFlow, 2).value().id();
        engine.RunUntilIdle();
        history = engine.engine().flows().History(id).value();
        deployed = true;
        engine.AdvanceTime(2h);
        engine.RunUntilIdle();
        replayed = ReplayFlow(history, kFlow, after);
    }
    TestEngine engine;
    TaskId id;
    bool deployed = false;
    std::string history;
    FlowReplayed replayed;
};

int Original(Flow& flow, int in) {
    int square = flow.Call("square", kSquare, in);
    flow.Sleep("nap", 1h);
    return square;
}

TEST(Flows, AddingAStepDoesNotBreakRunningInstances) {
    Changed changed(Original, [](Flow& flow, int in) {
        flow.Run("new", [] {});
        int square = flow.Call("square", kSquare, in);
        flow.Run("newer", [] {});
        flow.Sleep("nap", 1h);
        flow.Sleep("another nap", 1h);
        return square + 1;
    });
    changed.engine.RunUntilDone();
    EXPECT_EQ(StateOf(changed.engine, changed.id), "complete")
        << ErrorOf(changed.engine, changed.id);
    EXPECT_THAT(changed.engine.OfType("square"), SizeIs(1));
    EXPECT_THAT(changed.replayed.divergence, HasSubstr("step \"new\"")) << "a test is told";
    EXPECT_THAT(changed.replayed.divergence, HasSubstr("\"square\""));
}

TEST(Flows, VersionsLetOldInstancesGoTheOldWay) {
    Changed changed(Original, [](Flow& flow, int in) {
        int version = flow.Version("audited", 0, 1);
        if (version >= 1) flow.Run("audit", [] { ADD_FAILURE() << "of new instances only"; });
        int square = flow.Call("square", kSquare, in);
        flow.Sleep("nap", 1h);
        return square + version;
    });
    EXPECT_EQ(StateOf(changed.engine, changed.id), "complete")
        << ErrorOf(changed.engine, changed.id);
    EXPECT_EQ(changed.replayed.divergence, "");
    EXPECT_TRUE(changed.replayed.finished || changed.replayed.stopped_at.empty());
}

TEST(Flows, ANewInstanceGetsTheNewestVersionAndKeepsIt) {
    TestEngine engine;
    engine.Handle(kFlow, [](Flow& flow, int) {
        int version = flow.Version("v", 0, 3);
        flow.Sleep("nap", 1h);
        return version * 10 + flow.Version("v2", 0, 4);
    });
    auto run = engine.Submit(kFlow, 0).value();
    engine.RunUntilDone();
    EXPECT_EQ(run.Wait().value(), 34);
}

void ExpectDiverged(Changed& changed, const std::string& about) {
    EXPECT_EQ(StateOf(changed.engine, changed.id), "dead");
    EXPECT_THAT(ErrorOf(changed.engine, changed.id), HasSubstr(about));
    EXPECT_THAT(changed.replayed.divergence, HasSubstr(about));
    EXPECT_THAT(changed.engine.OfType("square"), SizeIs(1)) << "nothing was executed";
    // The right code goes on from the record.
    changed.deployed = false;
    store::Store& store = *changed.engine.engine().impl().store;
    store.Retry({&changed.id, 1}, "test");
    changed.engine.RunUntilDone();
    EXPECT_EQ(StateOf(changed.engine, changed.id), "complete");
    EXPECT_THAT(changed.engine.OfType("square"), SizeIs(1));
}

TEST(Flows, AnotherKindOfStepIsADivergence) {
    Changed changed(Original, [](Flow& flow, int) {
        flow.Run("square", [] { ADD_FAILURE() << "executed"; });
        return 0;
    });
    ExpectDiverged(changed, "recorded as a call of square, and the code asks for a run");
}

TEST(Flows, AnotherInputIsADivergence) {
    Changed changed(Original, [](Flow& flow, int in) {
        return flow.Call("square", kSquare, in + 1);
    });
    ExpectDiverged(changed, "another input");
}

TEST(Flows, ARenamedCallIsADivergence) {
    Changed changed(Original, [](Flow& flow, int in) {
        int square = flow.Call("squared", kSquare, in);
        flow.Sleep("nap", 1h);
        return square;
    });
    ExpectDiverged(changed, "a renamed step would be executed twice");
}

TEST(Flows, AnotherOrderIsADivergence) {
    Changed changed(Original, [](Flow& flow, int in) {
        flow.Sleep("nap", 1h);
        return flow.Call("square", kSquare, in);
    });
    ExpectDiverged(changed, "came to \"nap\" without step \"square\"");
}

TEST(Flows, ARemovedStepIsADivergenceUnlessItIsMeant) {
    Changed removed(Original, [](Flow& flow, int) {
        flow.Sleep("nap", 1h);
        return 0;
    });
    ExpectDiverged(removed, "without step \"square\"");
    Changed meant(Original, [](Flow& flow, int) {
        flow.Retired("square");
        flow.Sleep("nap", 1h);
        return 0;
    });
    EXPECT_EQ(StateOf(meant.engine, meant.id), "complete") << ErrorOf(meant.engine, meant.id);
    EXPECT_EQ(meant.replayed.divergence, "");
}

// What is executed of a Run that got another name: the new one, once, and nothing after it.
TEST(Flows, ARenamedRunIsANewStepAndTheOldOneIsMissedBeforeAnythingElse) {
    int old_name = 0, new_name = 0, after = 0, added = 0;
    auto before = [&](Flow& flow, int) {
        flow.Run("reserve", [&] { ++old_name; });
        flow.Sleep("nap", 1h);
        flow.Run("after", [&] { ++after; });
        return 0;
    };
    Changed renamed(before, [&](Flow& flow, int) {
        flow.Run("reserve it", [&] { ++new_name; });
        flow.Sleep("nap", 1h);
        flow.Run("after", [&] { ++after; });
        return 0;
    });
    EXPECT_EQ(StateOf(renamed.engine, renamed.id), "dead");
    EXPECT_THAT(
        ErrorOf(renamed.engine, renamed.id), HasSubstr("came to \"nap\" without step \"reserve\"")
    );
    EXPECT_EQ(old_name, 1);
    EXPECT_EQ(new_name, 1) << "it cannot be told from a step that was added";
    EXPECT_EQ(after, 0);
    EXPECT_THAT(renamed.replayed.divergence, HasSubstr("\"reserve it\"")) << "a test is told";

    Changed grown(before, [&](Flow& flow, int) {
        flow.Run("added", [&] { ++added; });
        flow.Run("reserve", [&] { ++old_name; });
        flow.Sleep("nap", 1h);
        flow.Run("after", [&] { ++after; });
        return 0;
    });
    EXPECT_EQ(StateOf(grown.engine, grown.id), "complete") << ErrorOf(grown.engine, grown.id);
    EXPECT_EQ(added, 1);
    EXPECT_EQ(old_name, 2) << "once per instance";
    EXPECT_EQ(after, 1);
}

TEST(Flows, WhatEveryTryWouldComeToIsNotTriedAgain) {
    TestEngine engine;
    constexpr Retry kAll{.max_attempts = 5, .on = Retry::On::kAll};
    constexpr Task<int, int> kStubborn{"stubborn", {.retry = kAll}};
    int calls = 0;
    engine.Handle(kSquare, Square);
    engine.Handle(kStubborn, [&](Flow& flow, int in) {
        ++calls;
        return flow.Call("square", kSquare, in);
    });
    auto run = engine.Submit(kStubborn, -1).value();
    engine.RunUntilDone();
    EXPECT_EQ(StateOf(engine, run.id()), "dead");
    EXPECT_EQ(calls, 2) << "until it called, and when that had failed";
}

TEST(Flows, HistoriesKeepTheVeryTextOfInputs) {
    TestEngine engine;
    constexpr Task<Json, Json> kRaw{"raw"};
    constexpr Task<Json, Json> kEcho{"echo"};
    auto flow = [&](Flow& flow, const Json& in) {
        Json echo = flow.Call("echo", kEcho, in);
        return flow.Call("again", kEcho, echo);
    };
    engine.Handle(kEcho, [](Context&, const Json& in) { return in; });
    engine.Handle(kRaw, flow);
    auto run = engine.Submit(kRaw, Json{R"({"b": 2, "a":1.50})"}).value();
    engine.RunUntilIdle();
    std::string history = engine.engine().flows().History(run.id()).value();
    FlowReplayed replayed = ReplayFlow(history, kRaw, flow);
    EXPECT_EQ(replayed.divergence, "");
    EXPECT_TRUE(replayed.finished);
}

TEST(Flows, AReplaySaysAtWhichOpenCallTheHistoryEnds) {
    TestEngine engine;
    constexpr Task<int, int> kElsewhere{"elsewhere"};
    auto flow = [&](Flow& flow, int in) { return flow.Call("far", kElsewhere, in); };
    engine.Handle(kFlow, flow);
    auto run = engine.Submit(kFlow, 1).value();
    engine.RunUntilIdle();
    FlowReplayed replayed =
        ReplayFlow(engine.engine().flows().History(run.id()).value(), kFlow, flow);
    EXPECT_EQ(replayed.divergence, "");
    EXPECT_EQ(replayed.stopped_at, "far");
}

TEST(Flows, ACompleteHistoryReplaysWithoutExecutingAnything) {
    TestEngine engine;
    int effects = 0;
    auto flow = [&](Flow& flow, int in) {
        int made = flow.Run("effect", [&] { return ++effects; });
        flow.Sleep("nap", 1h);
        return flow.Call("square", kSquare, in) + made;
    };
    engine.Handle(kSquare, Square);
    engine.Handle(kFlow, flow);
    auto run = engine.Submit(kFlow, 3).value();
    engine.RunUntilDone();
    std::string history = engine.engine().flows().History(run.id()).value();
    FlowReplayed replayed = ReplayFlow(history, kFlow, flow);
    EXPECT_EQ(replayed.divergence, "");
    EXPECT_TRUE(replayed.finished);
    EXPECT_EQ(replayed.output, "10");
    EXPECT_EQ(effects, 1);
    EXPECT_THROW(ReplayFlow("{}", kFlow, flow), std::invalid_argument);
}

TEST(Flows, KeepingWhatLeavesTheFunctionFailsTheTask) {
    TestEngine engine;
    engine.Handle(kFlow, [](Flow& flow, int) {
        try {
            flow.Sleep("nap", 1h);
        } catch (...) {  // NOLINT(bugprone-empty-catch): the mistake itself
        }
        return 1;
    });
    auto run = engine.Submit(kFlow, 0).value();
    engine.RunUntilIdle();
    EXPECT_EQ(StateOf(engine, run.id()), "dead");
    EXPECT_THAT(ErrorOf(engine, run.id()), HasSubstr("catch (...)"));
}

TEST(Flows, StepsInsideLocalStepsAreRefused) {
    TestEngine engine;
    engine.Handle(kFlow, [](Flow& flow, int) {
        return flow.Run("outer", [&] { return static_cast<int>(flow.Random() % 2); });
    });
    auto run = engine.Submit(kFlow, 0).value();
    engine.RunUntilDone();
    EXPECT_EQ(StateOf(engine, run.id()), "dead");
    EXPECT_THAT(ErrorOf(engine, run.id()), HasSubstr("inside the local step \"outer\""));
}

TEST(Flows, AFlowCannotBeIsolated) {
    constexpr Task<int, int> kIsolated{"isolated", {.isolation = {.enabled = true}}};
    TestEngine engine;
    EXPECT_THROW(engine.Handle(kIsolated, [](Flow&, int in) { return in; }), std::invalid_argument);
}

// ---- instances ---------------------------------------------------------------------------------

TEST(Flows, CancelTakesWhatWasCalledAlong) {
    TestEngine engine;
    constexpr Task<int, int> kElsewhere{"elsewhere"};
    engine.Handle(kFlow, [&](Flow& flow, int in) { return flow.Call("far", kElsewhere, in); });
    auto run = engine.Submit(kFlow, 1).value();
    engine.RunUntilIdle();
    ASSERT_THAT(engine.OfType("elsewhere"), SizeIs(1));
    EXPECT_TRUE(engine.engine().flows().Cancel(run.id()).value());
    EXPECT_EQ(StateOf(engine, run.id()), "cancelled");
    EXPECT_EQ(engine.OfType("elsewhere")[0].state, "cancelled");
}

TEST(Flows, AForkGoesOnFromAStepWithTheCodeOfToday) {
    TestEngine engine;
    int effects = 0;
    int factor = 1;
    engine.Handle(kFlow, [&](Flow& flow, int in) {
        int made = flow.Run("effect", [&] { return ++effects, in; });
        return flow.Run("price", [&] { return made * factor; });
    });
    auto run = engine.Submit(kFlow, 5).value();
    engine.RunUntilIdle();
    EXPECT_EQ(run.Wait().value(), 5);
    factor = 3;
    TaskId forked = engine.engine().flows().Fork(run.id(), "price").value();
    engine.RunUntilIdle();
    EXPECT_EQ(engine.engine().Find(kFlow, forked).Wait().value(), 15);
    EXPECT_EQ(effects, 1) << "what was before the step has happened already";
    auto missing = engine.engine().flows().Fork(run.id(), "nosuch");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, Code::kNotFound);
}

TEST(Flows, AForkIsPlacedAsTheOriginal) {
    TestEngine engine;
    ASSERT_TRUE(engine.engine().resources().Set("press", {.capacity = 2}));
    engine.Handle(kFlow, [](Flow& flow, int in) { return flow.Run("effect", [&] { return in; }); });
    auto run = engine
                   .Submit(
                       kFlow,
                       5,
                       {.needs = std::vector<ResourceNeed>{{"press"}},
                        .order_key = "customer-1",
                        .on_failed_head = FailedHead::kSkip}
                   )
                   .value();
    engine.RunUntilIdle();
    TaskId forked = engine.engine().flows().Fork(run.id(), "effect").value();
    store::Store& store = *engine.engine().impl().store;
    model::Placement placement = store.Get(forked)->placement;
    EXPECT_EQ(placement, store.Get(run.id())->placement);
    EXPECT_THAT(placement.needs, SizeIs(1));
    EXPECT_EQ(placement.order_key, "customer-1");
    EXPECT_EQ(placement.on_failed_head, model::OnFailedHead::kSkip);
}

TEST(Flows, AForkOfOneThatWaitsForACallWaitsForItToo) {
    TestEngine engine;
    constexpr Task<int, int> kElsewhere{"elsewhere"};
    int effects = 0;
    engine.Handle(kFlow, [&](Flow& flow, int in) {
        auto far = flow.Start("far", kElsewhere, in);
        flow.Run("effect", [&] { ++effects; });
        return flow.Await(far);
    });
    auto run = engine.Submit(kFlow, 4).value();
    engine.RunUntilIdle();
    ASSERT_EQ(StateOf(engine, run.id()), "blocked");
    TaskId forked = engine.engine().flows().Fork(run.id(), "effect").value();
    engine.RunUntilIdle();
    EXPECT_EQ(StateOf(engine, forked), "blocked");
    EXPECT_EQ(effects, 2) << "of each instance once";
    ASSERT_THAT(engine.OfType("elsewhere"), SizeIs(1)) << "one call";
    engine.Handle(kElsewhere, [](Context&, int in) { return in * 10; });
    engine.RunUntilIdle();
    EXPECT_EQ(run.Wait().value(), 40);
    EXPECT_EQ(engine.engine().Find(kFlow, forked).Wait().value(), 40);
}

TEST(Flows, AListGoesOnBehindFlowsWhoseTasksAreGone) {
    TestEngine engine;
    store::Store& store = *engine.engine().impl().store;
    store.ChangeQueue({.name = "brief", .keep_complete = std::optional<Duration>(1h)}, "test");
    engine.Handle(kFlow, [](Flow& flow, int in) {
        if (in == 0) flow.Sleep("for long", 24h * 300);
        return flow.Run("effect", [] { return 1; });
    });
    auto first = engine.Submit(kFlow, 0).value();
    for (int i = 0; i < 6; ++i) ASSERT_TRUE(engine.Submit(kFlow, 1, {.queue = "brief"}));
    engine.RunUntilIdle();
    engine.AdvanceTime(24h * 3);
    store.Housekeep({.limit = 1, .history = true});
    ASSERT_GT(store.Flows().List({}).size(), 1u) << "the test is about those";
    auto page = engine.engine().flows().List(std::nullopt, 2).value();
    ASSERT_THAT(page, SizeIs(1));
    EXPECT_EQ(page[0].task, first.id());
}

}  // namespace
}  // namespace stint
