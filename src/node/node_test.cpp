#include <gtest/gtest.h>
#include <stint/stint.h>
#include <stint/testing.h>

#include <filesystem>

#include "node/convert.h"
#include "node/open_store.h"

namespace stint {
namespace {

using namespace std::chrono_literals;
using testing::ExpectationFailed;
using testing::TestEngine;

constexpr Task<int, int> kSquare{"test.square"};
constexpr Task<std::string> kMail{"test.mail", {.queue = "mail", .retry = Retry::Times(3)}};
constexpr Task<void, std::string> kPing{"test.ping"};

TEST(TestEngine, RunsWhatIsSubmittedAndReturnsTheOutput) {
    TestEngine engine;
    engine.Handle(kSquare, [](Context&, int n) { return n * n; });
    auto run = engine.Submit(kSquare, 12).value();
    EXPECT_FALSE(run.done());
    EXPECT_EQ(run.Wait().value(), 144);
    EXPECT_TRUE(run.done());
}

TEST(TestEngine, InlineModeRunsInsideSubmit) {
    TestEngine engine({.inline_mode = true});
    int calls = 0;
    engine.Handle(kPing, [&](Context&) -> std::string {
        ++calls;
        return "pong";
    });
    auto run = engine.Submit(kPing).value();
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(run.done());
}

TEST(TestEngine, DelayedTaskWaitsForVirtualTime) {
    TestEngine engine;
    int calls = 0;
    engine.Handle(kPing, [&](Context&) -> std::string {
        ++calls;
        return "pong";
    });
    ASSERT_TRUE(engine.Submit(kPing, {.delay = 1h}));
    EXPECT_EQ(engine.RunUntilIdle(), 0);
    engine.AdvanceTime(59min);
    EXPECT_EQ(engine.RunUntilIdle(), 0);
    engine.AdvanceTime(1min);
    EXPECT_EQ(engine.RunUntilIdle(), 1);
    EXPECT_EQ(calls, 1);
}

TEST(TestEngine, RetriesHappenInVirtualTimeUntilTheyAreExhausted) {
    TestEngine engine;
    int calls = 0;
    engine.Handle(kMail, [&](Context& context, const std::string&) {
        ++calls;
        EXPECT_EQ(context.attempt(), calls);
        throw Retryable("the mail server is away");
    });
    auto run = engine.Submit(kMail, "hello").value();
    auto result = run.Wait();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kFailed);
    EXPECT_NE(result.error().message.find("the mail server is away"), std::string::npos);
    EXPECT_EQ(calls, 3);
    EXPECT_EQ(engine.OfType("test.mail").at(0).state, "dead");
}

TEST(TestEngine, ExpectationsSayWhatWasSubmitted) {
    TestEngine engine;
    ASSERT_TRUE(engine.Submit(kMail, "a"));
    ASSERT_TRUE(engine.Submit(kMail, "b"));
    engine.ExpectSubmitted(kMail, 2);
    engine.ExpectSubmitted<std::string>(kMail, 1, [](const std::string& text) {
        return text == "b";
    });
    engine.ExpectNotSubmitted(kSquare);
    try {
        engine.ExpectSubmitted(kSquare);
        FAIL() << "nothing of that type was submitted";
    } catch (const ExpectationFailed& failure) {
        EXPECT_NE(std::string(failure.what()).find("test.mail open \"a\""), std::string::npos)
            << failure.what();
    }
}

TEST(TestEngine, WaitForATypeWithoutHandlerSaysSo) {
    TestEngine engine;
    auto run = engine.Submit(kSquare, 3).value();
    auto result = run.Wait();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kTimeout);
    EXPECT_NE(result.error().message.find("test.square"), std::string::npos);
}

TEST(TestEngine, CancelledTaskDoesNotRun) {
    TestEngine engine;
    engine.Handle(kSquare, [](Context&, int n) { return n; });
    auto run = engine.Submit(kSquare, 3).value();
    EXPECT_TRUE(run.Cancel("not needed").value());
    auto result = run.Wait();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kCancelled);
    EXPECT_EQ(result.error().message, "not needed");
    EXPECT_FALSE(run.Cancel("again").value());
}

TEST(TestEngine, TheSameSeedGivesTheSameDueTimes) {
    auto due = [](std::uint64_t seed) {
        TestEngine engine({.seed = seed});
        engine.Handle(kMail, [](Context&, const std::string&) { throw Retryable("no"); });
        auto run = engine.Submit(kMail, "x");
        engine.RunUntilIdle();
        return engine.OfType("test.mail").at(0).due_at;
    };
    EXPECT_EQ(due(7), due(7));
    EXPECT_NE(due(7), due(8));
}

TEST(Convert, TokenDefaultsAreUsedWhereOptionsAreSilent) {
    TaskDefaults token{.queue = "images", .priority = 128, .timeout = 30s};
    auto task = node::ToNewTask("t", &token, "1", {.priority = 7}, kDefaultTenant).value();
    EXPECT_EQ(task.queue, "images");
    EXPECT_EQ(task.priority, 7);
    EXPECT_EQ(task.timeout, Duration(30s));
    EXPECT_EQ(task.retry, std::nullopt) << "a default retry is left to the registered type";
}

TEST(Convert, DebounceWithoutKeyIsRefused) {
    auto task = node::ToNewTask("t", nullptr, "1", {.debounce = 5s}, kDefaultTenant);
    ASSERT_FALSE(task);
    EXPECT_NE(task.error().message.find("debounce_key"), std::string::npos);
}

TEST(StoreUrl, KindsAreRecognised) {
    EXPECT_EQ(node::ParseStoreUrl("memory:").value().kind, node::StoreUrl::Kind::kMemory);
    EXPECT_EQ(node::ParseStoreUrl("sqlite:a/b.db").value().path, "a/b.db");
    auto postgres = node::ParseStoreUrl("postgres://u@h:5/db?stint_schema=jobs&sslmode=disable");
    EXPECT_EQ(postgres.value().schema, "jobs");
    EXPECT_EQ(postgres.value().connection, "postgres://u@h:5/db?sslmode=disable");
}

TEST(StoreUrl, NonsenseIsRefusedWithExamples) {
    for (std::string_view bad : {"", "sqlite:", "mysql://x", "stint.db"}) {
        auto url = node::ParseStoreUrl(bad);
        ASSERT_FALSE(url) << bad;
        EXPECT_NE(url.error().message.find("sqlite:PATH"), std::string::npos);
    }
}

TEST(StoreUrl, PasswordsAreNotShown) {
    EXPECT_EQ(
        node::WithoutSecrets("postgres://ann:geheim@h/db?password=x&sslmode=require"),
        "postgres://ann:***@h/db?password=***&sslmode=require"
    );
    EXPECT_EQ(node::WithoutSecrets("sqlite:a.db"), "sqlite:a.db");
}

TEST(Engine, RefusesBadOptionsByName) {
    try {
        Engine engine({.store = "memory:", .slots = 0});
        FAIL();
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(), "Options: slots is 0; it must be between 1 and 4096");
    }
    EXPECT_THROW(Engine({.store = "nowhere"}), std::invalid_argument);
    EXPECT_THROW(
        Engine({.store = "memory:", .lease = {.lease = 1s, .heartbeat_every = 10s}}),
        std::invalid_argument
    );
}

TEST(Engine, WorksWithThreadsInMemory) {
    Engine engine({.store = "memory:", .slots = 4});
    engine.Handle(kSquare, [](Context&, int n) { return n * n; });
    engine.Start();
    std::vector<int> inputs;
    for (int i = 0; i < 200; ++i) inputs.push_back(i);
    auto runs = engine.SubmitMany(kSquare, std::span<const int>(inputs));
    for (int i = 0; i < 200; ++i) EXPECT_EQ(runs.at(i).value().Wait().value(), i * i);
    engine.Stop();
    engine.Stop();
}

TEST(Engine, HandlerAfterStartIsRefused) {
    Engine engine({.store = "memory:"});
    engine.Start();
    EXPECT_THROW(engine.Handle(kSquare, [](Context&, int n) { return n; }), std::invalid_argument);
    EXPECT_THROW(engine.Start(), std::logic_error);
}

TEST(Engine, BackgroundTaskIsCompletedWithItsTokenOnly) {
    Engine engine({.store = "memory:"});
    std::mutex mutex;
    std::string token;
    engine.Handle(kSquare, [&](Context& context, int) -> Outcome<int> {
        std::lock_guard guard(mutex);
        token = context.completion_token();
        return Background{.reason = "the camera will answer"};
    });
    engine.Start();
    auto run = engine.Submit(kSquare, 3).value();
    while (run.WaitFor(5ms).error().code == Code::kTimeout) {
        std::lock_guard guard(mutex);
        if (!token.empty()) break;
    }
    EXPECT_EQ(engine.Complete(run.id(), "not hex", 9).error().code, Code::kInvalid);
    Result<void> done = engine.Complete(run.id(), std::string(32, '1'), 9);
    EXPECT_FALSE(done);
    // The settlement of Background may still be on its way.
    do done = engine.Complete(run.id(), token, 9);
    while (!done);
    EXPECT_EQ(run.Wait().value(), 9);
}

}  // namespace
}  // namespace stint
