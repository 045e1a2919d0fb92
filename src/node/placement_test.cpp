// Needs, labels, limits and order keys as a program says them.
#include <gmock/gmock.h>
#include <stint/stint.h>
#include <stint/testing.h>

#include <atomic>

#include "support/engine_rig.h"

namespace stint {
namespace {

using namespace std::chrono_literals;
using engine::Eventually;
using engine::Gate;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::TestEngine;

constexpr Task<int, void> kRender{
    "render", {.retry = Retry::Times(1), .needs = {"GPU", {"license", 2}}, .labels = {"linux"}}};
constexpr Task<int, void> kPlain{"plain", {.retry = Retry::Times(1)}};
constexpr Task<int, void> kFew{"few", {.retry = Retry::Times(1), .at_once = 2}};
constexpr Task<int, void> kFewHere{"few.here", {.retry = Retry::Times(1), .at_once_per_worker = 1}};

Options Quick() {
    Options options;
    options.store = "memory:";
    options.slots = 8;
    options.poll = {.min = 1ms, .max = 10ms};
    options.labels = {"linux"};
    return options;
}

// How many run at once, and the most that ever did.
struct Meter {
    std::atomic<int> now{0}, most{0}, total{0};
    Gate* gate = nullptr;

    void Work() {
        int running = ++now;
        for (int seen = most; running > seen && !most.compare_exchange_weak(seen, running);) {
        }
        ++total;
        if (gate != nullptr) gate->Pass();
        --now;
    }
};

// S2.30: of a resource with two units A and B are given one each and C waits; A ends, C goes.
TEST(Resources, TheWorkedExampleHolds) {
    Engine engine(Quick());
    ASSERT_TRUE(engine.resources().Set("ollama", {.capacity = 2}));
    std::array<Gate, 3> gates;
    std::array<std::atomic<bool>, 3> started{};
    engine.Handle(kPlain, [&](Context&, const int& which) {
        started.at(static_cast<std::size_t>(which)) = true;
        gates.at(static_cast<std::size_t>(which)).Pass();
    });
    std::vector<stint::Run<void>> runs;
    for (int i = 0; i < 3; ++i) {
        runs.push_back(engine.Submit(kPlain, i, {.needs = {{{"Ollama"}}}}).value());
    }
    engine.Start();
    ASSERT_TRUE(Eventually([&] { return started[0] && started[1]; }));
    ResourceInfo full = engine.resources().Get("OLLAMA").value();
    EXPECT_EQ(full.held, 2);
    EXPECT_EQ(full.waiting, 1);
    EXPECT_THAT(full.holders, ElementsAre(runs[0].id(), runs[1].id()));
    EXPECT_FALSE(started[2]);
    auto why = engine.Explain(runs[2].id()).value();
    EXPECT_THAT(why, Contains(Field(&Reason::condition, "resource_full")));
    EXPECT_THAT(why.at(0).detail, HasSubstr("ollama"));

    gates[0].Open();
    ASSERT_TRUE(Eventually([&] { return started[2].load(); }));
    EXPECT_LE(engine.resources().Get("ollama").value().held, 2);
    gates[1].Open();
    gates[2].Open();
    for (auto& run : runs) EXPECT_TRUE(run.WaitFor(30s));
    EXPECT_EQ(engine.resources().Get("ollama").value().held, 0);
}

TEST(Resources, OfATypeAreNeededByItsTasksWhoeverSubmitsThem) {
    TestEngine engine;
    int ran = 0;
    engine.Handle(kRender, [&](Context& context, const int&) {
        context.Require("gpu");
        context.Require("LICENSE", 2);
        ++ran;
    });
    engine.RunUntilIdle();  // the type is published
    ASSERT_TRUE(engine.engine().resources().Set("license", {.capacity = 1}));
    auto run = engine.engine().SubmitJson("render", "1", {.labels = std::vector<std::string>{}});
    engine.RunUntilIdle();
    EXPECT_EQ(ran, 0) << "two licenses are needed and there is one";
    ASSERT_TRUE(engine.engine().resources().Set("license", {.capacity = 2}));
    engine.RunUntilIdle();
    EXPECT_EQ(ran, 1);
    TaskInfo task = engine.engine().Get(run.value().id()).value();
    EXPECT_EQ(task.attempt, 1) << "nothing was given back: both were held";
}

TEST(Resources, RequiredAtRunTimeCostNoAttempt) {
    TestEngine engine;
    ASSERT_TRUE(engine.engine().resources().Set("gpu", {.capacity = 1}));
    int begun = 0, done = 0;
    engine.Handle(kPlain, [&](Context& context, const int&) {
        ++begun;
        context.Require("gpu");
        ++done;
    });
    auto run = engine.Submit(kPlain, 1).value();
    engine.RunUntilIdle();
    EXPECT_EQ(begun, 2) << "it runs again from its start";
    EXPECT_EQ(done, 1);
    EXPECT_EQ(engine.engine().Get(run.id()).value().attempt, 1);
    EXPECT_EQ(engine.engine().Get(run.id()).value().state, "complete");
}

TEST(Resources, RequiredWhileFullWaitWithoutRunning) {
    TestEngine engine;
    ASSERT_TRUE(engine.engine().resources().Set("gpu", {.capacity = 0}));
    int begun = 0;
    engine.Handle(kPlain, [&](Context& context, const int&) {
        ++begun;
        context.Require("gpu");
    });
    auto run = engine.Submit(kPlain, 1).value();
    for (int i = 0; i < 5; ++i) engine.RunUntilIdle();
    EXPECT_EQ(begun, 1) << "it is not tried again and again";
    EXPECT_EQ(engine.engine().Get(run.id()).value().attempt, 0);
    ASSERT_TRUE(engine.engine().resources().Set("gpu", {.capacity = 1}));
    engine.RunUntilIdle();
    EXPECT_TRUE(run.Wait());
}

// What is down burns no attempts, and when it is back one goes first.
TEST(Resources, ThatDoNotWorkAreClosedAndBurnNoAttempts) {
    TestEngine engine;
    ASSERT_TRUE(engine.engine().resources().Set(
        "api", {.close_after = 1, .close_for = Duration(10s), .close_at_most = Duration(60s)}
    ));
    bool down = true;
    int tried = 0;
    engine.Handle(kPlain, [&](Context&, const int&) -> Outcome<void> {
        ++tried;
        if (down) return ResourceUnavailable("API", "connection refused");
        return {};
    });
    SubmitOptions options;
    options.needs = std::vector<ResourceNeed>{{"api"}};
    std::vector<stint::Run<void>> runs;
    for (int i = 0; i < 50; ++i) runs.push_back(engine.Submit(kPlain, i, options).value());
    engine.RunUntilIdle();
    EXPECT_EQ(tried, 1) << "the first report closed it for all";
    ResourceInfo api = engine.engine().resources().Get("api").value();
    EXPECT_EQ(api.state, "closed");
    EXPECT_THAT(api.evidence, SizeIs(1));
    EXPECT_THAT(api.evidence.at(0), HasSubstr("connection refused"));
    for (int minute = 0; minute < 10; ++minute) {
        engine.AdvanceTime(60s);
        engine.RunUntilIdle();
    }
    EXPECT_LE(tried, 12) << "one try each time, not fifty";
    down = false;
    engine.AdvanceTime(60s);
    engine.RunUntilIdle();
    for (auto& run : runs) EXPECT_EQ(engine.engine().Get(run.id()).value().attempt, 1);
    EXPECT_EQ(engine.engine().resources().Get("api").value().state, "open");
}

TEST(Resources, ThatSayWhenToComeBackAreClosedForThatLong) {
    TestEngine engine;
    ASSERT_TRUE(engine.engine().resources().Set("api", {.capacity = 10}));
    int tried = 0;
    engine.Handle(kPlain, [&](Context&, const int&) {
        if (++tried == 1) throw ResourceUnavailable("api", "429", 90s);
    });
    SubmitOptions options;
    options.needs = std::vector<ResourceNeed>{{"api"}};
    auto run = engine.Submit(kPlain, 1, options).value();
    engine.RunUntilIdle();
    engine.AdvanceTime(89s);
    engine.RunUntilIdle();
    EXPECT_EQ(tried, 1);
    engine.AdvanceTime(2s);
    engine.RunUntilIdle();
    EXPECT_EQ(tried, 2);
    EXPECT_EQ(engine.engine().Get(run.id()).value().attempt, 1);
}

TEST(Resources, ThatAreClosedForAWhileAreWaitedForInVirtualTime) {
    TestEngine engine;
    ASSERT_TRUE(engine.engine().resources().Set("api", {.capacity = 1}));
    engine.Handle(kPlain, [](Context&, const int&) {});
    EXPECT_TRUE(engine.engine().resources().Close("api", 12h).value());
    SubmitOptions options;
    options.needs = std::vector<ResourceNeed>{{"api"}};
    auto run = engine.Submit(kPlain, 1, options).value();
    Time before = engine.now();
    EXPECT_TRUE(run.Wait());
    EXPECT_GE(engine.now() - before, 12h);
    EXPECT_LE(engine.now() - before, 12h + 1min);
    // What never comes ends the wait.
    ASSERT_TRUE(engine.engine().resources().Set("api", {.capacity = 0}));
    auto never = engine.Submit(kPlain, 2, options).value();
    EXPECT_EQ(never.WaitFor(1h).error().code, Code::kTimeout);
}

TEST(Resources, AreOpenedAndClosedByHand) {
    TestEngine engine;
    engine.Handle(kPlain, [](Context&, const int&) {});
    auto resources = engine.engine().resources();
    ASSERT_TRUE(resources.Set("api", {.capacity = 1}));
    EXPECT_TRUE(resources.Close("api", 1h, "new model").value());
    SubmitOptions options;
    options.needs = std::vector<ResourceNeed>{{"api"}};
    auto run = engine.Submit(kPlain, 1, options).value();
    engine.RunUntilIdle();
    auto why = engine.engine().Explain(run.id()).value();
    EXPECT_THAT(why, Contains(Field(&Reason::condition, "resource_closed")));
    EXPECT_TRUE(resources.Open("api").value());
    engine.RunUntilIdle();
    EXPECT_TRUE(run.Wait());
    EXPECT_TRUE(resources.Remove("api").value());
    EXPECT_FALSE(resources.Remove("api").value());
    EXPECT_EQ(resources.Get("api").error().code, Code::kNotFound);
    EXPECT_FALSE(resources.Close("nothing", 1h).value());
}

TEST(Limits, OfATypeHoldOverAllAndAreTheOperatorsFromThenOn) {
    Engine engine(Quick());
    Gate gate;
    Meter meter{.gate = &gate};
    engine.Handle(kFew, [&](Context&, const int&) { meter.Work(); });
    std::vector<stint::Run<void>> runs;
    for (int i = 0; i < 5; ++i) runs.push_back(engine.Submit(kFew, i).value());
    engine.Start();
    ASSERT_TRUE(gate.WaitForVisitors(2));
    EXPECT_EQ(engine.resources().Get("type:few").value().capacity, 2);
    ASSERT_TRUE(engine.resources().Set("type:few", {.capacity = 3}));
    ASSERT_TRUE(gate.WaitForVisitors(3));
    gate.Open();
    for (auto& run : runs) EXPECT_TRUE(run.WaitFor(30s));
    EXPECT_EQ(meter.most, 3);
}

TEST(Limits, OfATypeAndAQueueHoldInOneWorker) {
    Options options = Quick();
    options.at_once_of_queue = {{"slow", 2}};
    Engine engine(options);
    Meter here, slow, other;
    engine.Handle(kFewHere, [&](Context&, const int&) { here.Work(); });
    engine.Handle(kPlain, [&](Context&, const int& which) { (which == 0 ? slow : other).Work(); });
    std::vector<stint::Run<void>> runs;
    for (int i = 0; i < 6; ++i) {
        runs.push_back(engine.Submit(kFewHere, i).value());
        runs.push_back(engine.Submit(kPlain, 0, {.queue = "slow"}).value());
        runs.push_back(engine.Submit(kPlain, 1).value());
    }
    engine.Start();
    for (auto& run : runs) EXPECT_TRUE(run.WaitFor(30s));
    EXPECT_EQ(here.most, 1);
    EXPECT_LE(slow.most, 2);
    EXPECT_EQ(here.total + slow.total + other.total, 18);
}

TEST(Limits, OfAResourceHoldInOneWorkerForEachName) {
    Options options = Quick();
    options.at_once_of_resource = {{"Host:*", 1}, {"gpu", 2}};
    Engine engine(options);
    Gate gate;
    std::array<Meter, 3> meters;
    for (Meter& meter : meters) meter.gate = &gate;
    engine.Handle(kPlain, [&](Context&, const int& which) {
        meters.at(static_cast<std::size_t>(which)).Work();
    });
    engine.Handle(kFewHere, [](Context&, const int&) {});
    const std::array<std::string, 3> names = {"host:a", "host:b", "GPU"};
    std::vector<stint::Run<void>> runs;
    for (int i = 0; i < 6; ++i) {
        for (int which = 0; which < 3; ++which) {
            SubmitOptions needs;
            needs.needs = std::vector<ResourceNeed>{{names.at(static_cast<std::size_t>(which))}};
            runs.push_back(engine.Submit(kPlain, which, needs).value());
        }
    }
    engine.Start();
    ASSERT_TRUE(gate.WaitForVisitors(4));
    // Half of the slots are free all the same, for what comes behind those that have to wait.
    EXPECT_TRUE(engine.Submit(kFewHere, 1).value().WaitFor(10s));
    gate.Open();
    for (auto& run : runs) EXPECT_TRUE(run.WaitFor(30s));
    EXPECT_EQ(meters[0].most, 1);
    EXPECT_EQ(meters[1].most, 1);
    EXPECT_EQ(meters[2].most, 2);
}

TEST(Labels, ATaskWaitsForAWorkerThatCarriesThem) {
    Options options = Quick();
    options.labels = {"linux", "eu"};
    Engine engine(options);
    std::atomic<int> ran{0};
    engine.Handle(kPlain, [&](Context&, const int&) { ++ran; });
    SubmitOptions there, elsewhere;
    there.labels = std::vector<std::string>{"eu"};
    elsewhere.labels = std::vector<std::string>{"eu", "gpu"};
    auto waits = engine.Submit(kPlain, 1, elsewhere).value();
    auto runs = engine.Submit(kPlain, 2, there).value();
    engine.Start();
    EXPECT_TRUE(runs.WaitFor(30s));
    EXPECT_FALSE(waits.done());
    auto why = engine.Explain(waits.id()).value();
    EXPECT_THAT(
        why,
        ElementsAre(AllOf(
            Field(&Reason::condition, "label_missing"),
            Field(&Reason::detail, "needs label \"gpu\": carried by no live worker"),
            Field(&Reason::cure, "stint worker start --labels eu,gpu"),
            Field(&Reason::workers, 1)
        ))
    );
    EXPECT_THAT(engine.Sessions().value().at(0).labels, ElementsAre("eu", "linux"));
}

TEST(OrderKeys, RunOneByOneInSubmitOrder) {
    Engine engine(Quick());
    std::mutex mutex;
    std::vector<int> order;
    Meter meter;
    engine.Handle(kPlain, [&](Context&, const int& number) {
        meter.Work();
        std::lock_guard guard(mutex);
        order.push_back(number);
    });
    SubmitOptions options;
    options.order_key = "account-17";
    std::vector<stint::Run<void>> runs;
    for (int i = 0; i < 10; ++i) runs.push_back(engine.Submit(kPlain, i, options).value());
    engine.Start();
    for (auto& run : runs) EXPECT_TRUE(run.WaitFor(30s));
    EXPECT_EQ(meter.most, 1);
    EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

// S2.25–2.27: what a node's probe finds broken its claims leave alone; another node may take it.
TEST(Probing, DecidesWhatTheWorkerClaims) {
    std::atomic<bool> works{false};
    Options options = Quick();
    options.probes = {
        {.resource = "Ollama",
         .check = [&]() -> Result<void> {
             if (works) return {};
             return Error{Code::kUnavailable, "no route"};
         },
         .every = 10ms}};
    Engine engine(options);
    std::atomic<int> ran{0};
    engine.Handle(kPlain, [&](Context&, const int&) { ++ran; });
    SubmitOptions needs;
    needs.needs = std::vector<ResourceNeed>{{"ollama"}};
    auto waits = engine.Submit(kPlain, 1, needs).value();
    auto free = engine.Submit(kPlain, 2).value();
    engine.Start();
    EXPECT_TRUE(free.WaitFor(30s));
    ASSERT_TRUE(Eventually([&] { return engine.Probes().at(0).failures > 3; }));
    EXPECT_EQ(ran, 1) << "the other one needs what does not work here";
    EXPECT_EQ(engine.Probes().at(0).message, "no route");
    works = true;
    EXPECT_TRUE(waits.WaitFor(30s));
    EXPECT_TRUE(engine.Probes().at(0).offered);
    engine.Stop();
}

TEST(Placement, WhatCannotBeIsRefusedWithTheCure) {
    Engine engine(Quick());
    auto refused = [&](const SubmitOptions& options) {
        auto run = engine.Submit(kPlain, 1, options);
        return run ? std::string("accepted") : run.error().message;
    };
    SubmitOptions none, name, label;
    none.needs = std::vector<ResourceNeed>{{"gpu", 0}};
    name.needs = std::vector<ResourceNeed>{{"two words"}};
    label.labels = std::vector<std::string>{""};
    EXPECT_THAT(refused(none), HasSubstr("gpu"));
    EXPECT_THAT(refused(name), HasSubstr("two words"));
    EXPECT_THAT(refused(label), HasSubstr("label"));
    Options options = Quick();
    options.at_once_of_queue = {{"slow", -1}};
    EXPECT_THROW(Engine{options}, std::invalid_argument);
    auto refused_room = [](std::map<std::string, int> room) {
        Options wrong = Quick();
        wrong.at_once_of_resource = std::move(room);
        try {
            Engine{wrong};
        } catch (const std::invalid_argument& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    EXPECT_THAT(refused_room({{"gpu", -1}}), HasSubstr("at_once_of_resource of \"gpu\" is -1"));
    EXPECT_THAT(refused_room({{"a b", 1}}), HasSubstr("at_once_of_resource is \"a b\""));
    EXPECT_THAT(refused_room({{"*", 1}}), HasSubstr("host:*"));
    EXPECT_THAT(refused_room({{"queue:slow", 1}}), HasSubstr("at_once_of_queue"));
    EXPECT_THAT(refused_room({{"GPU", 1}, {"gpu", 2}}), HasSubstr("twice"));
    options = Quick();
    options.probes = {{.resource = "x", .check = HttpProbe{"https://example.org"}}};
    EXPECT_THROW(Engine{options}, std::invalid_argument);
}

}  // namespace
}  // namespace stint
