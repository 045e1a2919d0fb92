#include <gtest/gtest.h>
#include <stint/stint.h>
#include <stint/testing.h>

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <mutex>

#include "node/client.h"
#include "node/convert.h"
#include "node/open_engine.h"
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

TEST(Engine, StoresThatShareAStateDirectoryHaveAFolderEach) {
    namespace fs = std::filesystem;
    fs::path shared = fs::temp_directory_path() / ("stint-state-" + std::to_string(getpid()));
    auto folders = [&] {
        auto entries = fs::directory_iterator(shared);
        return std::count_if(begin(entries), end(entries), [](const fs::directory_entry& entry) {
            return entry.is_directory() && !fs::is_empty(entry.path());
        });
    };
    auto started = [&] {
        auto engine =
            std::make_unique<Engine>(Options{.store = "memory:", .state_dir = shared.string()});
        engine->Handle(kSquare, [](Context&, int n) { return n * n; });
        engine->Start();
        EXPECT_EQ(engine->Submit(kSquare, 3).value().Wait().value(), 9);
        return engine;
    };
    auto first = started();
    EXPECT_EQ(folders(), 1);
    auto second = started();
    EXPECT_EQ(folders(), 2);
    first.reset();
    second.reset();
    fs::remove_all(shared);
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

// Submits to a handler that goes to the background, and returns once the store knows that it did.
std::pair<Run<int>, std::string> StartInBackground(
    Engine& engine, std::mutex& mutex, std::string& token
) {
    engine.Handle(kSquare, [&](Context& context, int) -> Outcome<int> {
        std::lock_guard guard(mutex);
        token = context.completion_token();
        return Background{.reason = "the camera will answer"};
    });
    engine.Start();
    auto run = engine.Submit(kSquare, 3, {.retry = Retry::Never()}).value();
    while (engine.Get(run.id()).value().state != "background") {
        EXPECT_EQ(run.WaitFor(5ms).error().code, Code::kTimeout);
    }
    std::lock_guard guard(mutex);
    return {run, token};
}

TEST(Engine, BackgroundTaskIsFailedWithItsTokenOnly) {
    std::mutex mutex;
    std::string handed_out;
    Engine engine({.store = "memory:"});
    auto [run, token] = StartInBackground(engine, mutex, handed_out);
    Failed failure{.message = "the camera is broken", .retryable = false, .klass = "camera"};
    EXPECT_EQ(engine.Fail(run.id(), "not hex", failure).error().code, Code::kInvalid);
    EXPECT_FALSE(engine.Fail(run.id(), std::string(32, '1'), failure));
    EXPECT_EQ(engine.Get(run.id()).value().state, "background");
    ASSERT_TRUE(engine.Fail(run.id(), token, failure));
    auto result = run.Wait();
    EXPECT_EQ(result.error().code, Code::kFailed);
    EXPECT_EQ(result.error().message, "the camera is broken");
    TaskInfo task = engine.Get(run.id()).value();
    EXPECT_EQ(task.state, "dead");
    EXPECT_EQ(task.error_class, "camera");
    EXPECT_FALSE(engine.Fail(run.id(), token, failure)) << "it is over";
}

TEST(Engine, GetShowsWhatIsKnownOfATask) {
    TestEngine engine;
    engine.Handle(kSquare, [](Context&, int n) { return n * n; });
    auto run = engine.Submit(kSquare, 12, {.queue = "q", .tags = {"a"}, .unique_key = "u"}).value();
    TaskInfo task = engine.engine().Get(run.id()).value();
    EXPECT_EQ(task.id, run.id());
    EXPECT_EQ(task.type, "test.square");
    EXPECT_EQ(task.queue, "q");
    EXPECT_EQ(task.state, "open");
    EXPECT_EQ(task.input, "12");
    EXPECT_EQ(task.tags, std::vector<std::string>{"a"});
    EXPECT_EQ(task.unique_key, "u");
    EXPECT_FALSE(task.finished);
    EXPECT_FALSE(task.started_at);
    engine.RunUntilIdle();
    task = engine.engine().Get(run.id()).value();
    EXPECT_EQ(task.state, "complete");
    EXPECT_EQ(task.output, "144");
    EXPECT_EQ(task.attempt, 1);
    EXPECT_TRUE(task.finished && task.started_at && task.finished_at);
    auto none = engine.engine().Get(TaskId(999));
    EXPECT_EQ(none.error().code, Code::kNotFound);
    EXPECT_EQ(none.error().message, "there is no task 999");
}

TEST(Engine, ShowsItsNodeAndItsSession) {
    Engine engine({.store = "memory:", .slots = 3, .queues = {"q"}, .node_name = "mars"});
    engine.Handle(kSquare, [](Context&, int n) { return n; });
    EXPECT_TRUE(engine.Nodes().value().empty());
    engine.Start();
    ASSERT_TRUE(engine.Submit(kSquare, 1, {.queue = "q"}).value().Wait());
    auto nodes = engine.Nodes().value();
    ASSERT_EQ(nodes.size(), 1u);
    EXPECT_EQ(nodes[0].name, "mars");
    auto sessions = engine.Sessions().value();
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions[0].node, nodes[0].id);
    EXPECT_EQ(sessions[0].node_name, "mars");
    EXPECT_EQ(sessions[0].pid, getpid());
    EXPECT_EQ(sessions[0].slots, 3);
    EXPECT_EQ(sessions[0].state, "live");
    EXPECT_EQ(sessions[0].types, (std::vector<std::string>{"stint.steps", "test.square"}));
    engine.Stop();
    sessions = engine.Sessions().value();
    EXPECT_EQ(sessions.at(0).state, "closed");
    EXPECT_EQ(sessions.at(0).doing, "") << "what it did last says nothing of a worker that is over";
}

TEST(Engine, TheLogIsThereBeforeTheStore) {
    std::vector<std::string> records;
    Options options;
    options.store = "sqlite:/no/such/directory/stint.db";
    options.log = [&](const LogRecord& record) { records.emplace_back(record.message); };
    EXPECT_ANY_THROW(Engine(std::move(options)));
    ASSERT_FALSE(records.empty());
    EXPECT_EQ(records.front(), "opening the store");
}

TEST(Engine, PrefetchedTasksAreClaimedTogether) {
    EXPECT_THROW(Engine({.store = "memory:", .prefetch = -1}), std::invalid_argument);
    EXPECT_THROW(Engine({.store = "memory:", .prefetch = 5000}), std::invalid_argument);
    Engine engine({.store = "memory:", .slots = 1, .prefetch = 2});
    std::mutex mutex;
    std::condition_variable changed;
    bool go = false;
    engine.Handle(kSquare, [&](Context&, int n) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return go; });
        return n;
    });
    std::vector<int> inputs(5, 1);
    auto runs = engine.SubmitMany(kSquare, std::span<const int>(inputs));
    engine.Start();
    auto held = [&] {
        int count = 0;
        for (auto& run : runs) {
            count += engine.Get(run.value().id()).value().state == "in_progress" ? 1 : 0;
        }
        return count;
    };
    while (held() < 3) EXPECT_EQ(runs[0].value().WaitFor(5ms).error().code, Code::kTimeout);
    EXPECT_EQ(held(), 3) << "one runs, two wait for its slot";
    {
        std::lock_guard guard(mutex);
        go = true;
    }
    changed.notify_all();
    for (auto& run : runs) EXPECT_TRUE(run.value().Wait());
}

TEST(Engine, WhatTheWorkOfAWriteThrowsIsTheCallers) {
    Engine engine({.store = "memory:"});
    auto throwing = [&](Transaction& transaction) -> Result<void> {
        EXPECT_TRUE(engine.Submit(kSquare, 1, {.in = &transaction}));
        throw std::domain_error("mine");
    };
    EXPECT_THROW((void)engine.Write(throwing), std::domain_error);
    EXPECT_EQ(engine.Get(TaskId(1)).error().code, Code::kNotFound) << "rolled back";
}

TEST(TestEngine, AHandlerThatComesLaterIsUsedAllTheSame) {
    TestEngine engine;
    engine.Handle(kPing, [](Context&) -> std::string { return "pong"; });
    EXPECT_EQ(engine.Submit(kPing).value().Wait().value(), "pong");
    auto run = engine.Submit(kSquare, 12).value();
    engine.Handle(kSquare, [](Context&, int n) { return n * n; });
    EXPECT_EQ(run.Wait().value(), 144);
    EXPECT_EQ(engine.Submit(kPing).value().Wait().value(), "pong");
}

TEST(OpenEngine, WaitsForAServerAndSaysSoOnce) {
    std::vector<std::string> warnings;
    std::vector<Duration> pauses;
    Options options;
    options.store = "postgres://nobody:hush@127.0.0.1:1/x";
    options.log = [&](const LogRecord& record) {
        if (record.level == LogLevel::kWarn) warnings.emplace_back(record.message);
    };
    auto engine = node::OpenEngine(options, [&](Duration pause) {
        pauses.push_back(pause);
        return pauses.size() < 8;
    });
    EXPECT_FALSE(engine);
    EXPECT_EQ(pauses.size(), 8u);
    EXPECT_LT(pauses.front(), 1s);
    EXPECT_GT(pauses.back(), 3s);
    EXPECT_LE(pauses.back(), 6s);
    EXPECT_EQ(warnings.size(), 1u);
}

TEST(OpenEngine, DoesNotWaitForAFileThatCannotBe) {
    auto never = [](Duration) -> bool {
        ADD_FAILURE() << "it waits";
        return false;
    };
    Options options;
    options.store = "sqlite:/no/such/directory/stint.db";
    EXPECT_THROW(node::OpenEngine(options, never), node::StoreError);
    options.store = "nowhere";
    EXPECT_THROW(node::OpenEngine(options, never), std::invalid_argument);
}

}  // namespace
}  // namespace stint
