// main() of this room's tests. Its children are the same program: see isolate_test.cpp.
#include <gmock/gmock.h>
#include <stint/isolate.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/isolate/command.h"
#include "engine/isolate/test_handlers.h"
#include "support/engine_rig.h"

namespace stint::engine::isolate {

std::string refusal_before_the_first_line;

namespace {

using detail::ErasedHandler;

void SayReady() {
    const char* file = std::getenv("STINT_TEST_READY");
    if (file == nullptr) return;
    std::string part = std::string(file) + ".part";
    std::ofstream(part) << getpid() << "\n";
    std::rename(part.c_str(), file);
}

std::atomic<bool> deeper{true};

__attribute__((noinline)) int Recurse(int depth) {
    volatile char room[4096] = {static_cast<char>(depth)};
    return deeper ? room[0] + Recurse(depth + 1) : 0;
}

Outcome<std::string> Stubborn(Context&, std::string_view) {
    std::signal(SIGTERM, SIG_IGN);
    pid_t grandchild = fork();
    if (grandchild == 0) {
        for (;;) pause();
    }
    if (const char* file = std::getenv("STINT_TEST_GRANDCHILD")) std::ofstream(file) << grandchild;
    SayReady();
    for (;;) pause();
}

Outcome<std::string> Obedient(Context& context, std::string_view) {
    context.Progress("waiting", 1);
    SayReady();
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait(lock, context.stop(), [] { return false; });
    std::cerr << "stopped because " << StopReasonName(context.why()) << std::endl;
    throw std::runtime_error("stopped");
}

Outcome<std::string> Devour(Context&, std::string_view) {
    std::vector<std::unique_ptr<char[]>> eaten;
    for (;;) {
        eaten.push_back(std::make_unique<char[]>(16 << 20));
        eaten.back()[0] = 1;
    }
}

void RegisterTestHandlers(HandlerRegistry& registry) {
    registry.Bind("child.echo", [](Context& context, std::string_view input) {
        context.Warn("look at this");
        return Done(std::string(input));
    });
    registry.Bind("child.throw", [](Context&, std::string_view) -> Outcome<std::string> {
        std::cerr << "words on stderr" << std::endl;
        throw Retryable("from the child");
    });
    registry.Bind("child.snooze", [](Context&, std::string_view) {
        return Outcome<std::string>(Snooze{std::chrono::hours{1}});
    });
    registry.Bind("child.parent", [](Context& context, std::string_view) -> Outcome<std::string> {
        constexpr Task<Json, Json> kEcho{"child.echo"};
        constexpr Task<Json, Json> kBad{"child.unregistered", {.retry = Retry::Times(1)}};
        if (context.stage() == Stage::kStart) {
            context.Subtask(kEcho, {"1"});
            context.Subtask(kEcho, {"2"}, {.priority = 200});
            context.Subtask(kBad, {"3"});
            return Blocked{};
        }
        std::string said = std::to_string(context.waited().size());
        for (const Json& output : context.OutputsOf(kEcho)) said += " " + output.text;
        auto failure = context.FailureOf(context.waited().at(2).id);
        if (failure) said += " " + failure->type;
        return Done("\"" + said + "\"");
    });
    registry.Bind("child.items", [](Context& context, std::string_view) -> Outcome<std::string> {
        if (auto place = context.checkpoint<int>()) {
            return Done("\"went on at " + std::to_string(*place) + "\"");
        }
        context.Item({.key = "a", .action = "add", .after = {"[1]"}});
        context.Checkpoint(7);
        context.Item({.key = "b", .action = "add", .error = "no"});
        throw Retryable("later");
    });
    registry.Bind("child.segfault", [](Context&, std::string_view) -> Outcome<std::string> {
        std::raise(SIGSEGV);
        return Done();
    });
    registry.Bind("child.abort", [](Context&, std::string_view) -> Outcome<std::string> {
        std::abort();
    });
    registry.Bind("child.overflow", [](Context&, std::string_view) {
        return Done(std::to_string(Recurse(0)));
    });
    registry.Bind("child.devour", Devour);
    registry.Bind("child.spin", [](Context&, std::string_view) -> Outcome<std::string> {
        while (deeper) {
        }
        return Done();
    });
    registry.Bind("child.killed", [](Context&, std::string_view) -> Outcome<std::string> {
        std::raise(SIGKILL);
        return Done();
    });
    registry.Bind("child.verbose", [](Context&, std::string_view) {
        return Done("\"" + std::string(20 << 20, 'x') + "\"");
    });
    registry.Bind("child.requires", [](Context& context, std::string_view) {
        context.Require("gpu", 2);
        return Done(R"("with a gpu")");
    });
    registry.Bind("child.unavailable", [](Context&, std::string_view) -> Outcome<std::string> {
        throw ResourceUnavailable("ollama", "429", std::chrono::seconds{90});
    });
    registry.Bind("child.obedient", Obedient);
    registry.Bind("child.stubborn", Stubborn);
}

// A process whose only purpose is to be killed or stopped while its child runs. Says in the end
// how the attempt ended, and how often the task crashed.
int RunAParent(const std::string& type) {
    ThreadedRig rig;
    rig.registry.Add({.type = type, .defaults = {}, .handler = {}, .isolation = {.enabled = true}});
    rig.Open();
    TaskId id = rig.Submit(type);
    rig.worker->ClaimOnce();
    rig.worker->RunOneAttempt();
    rig.worker->SettleOnce();
    if (const char* file = std::getenv("STINT_TEST_VERDICT")) {
        std::string part = std::string(file) + ".part";
        std::ofstream(part) << model::AttemptEndName(rig.memory.Attempts(id).front().end) << " "
                            << rig.Get(id).crash_count << "\n";
        std::rename(part.c_str(), file);
    }
    return 0;
}

// The same for a command, which knows nothing of its parent.
int RunACommandsParent(const std::string& script) {
    // Until who traces us has begun to.
    if (std::getenv("STINT_TEST_TRACED") != nullptr) raise(SIGSTOP);
    RunCommand({.argv = {"sh", "-c", script}}, {});
    return 0;
}

}  // namespace
}  // namespace stint::engine::isolate

int main(int argc, char** argv) {
    namespace isolate = stint::engine::isolate;
    try {
        stint::engine::Registry registry;
        registry.Add({.type = "x", .defaults = {}, .handler = {}, .isolation = {.enabled = true}});
    } catch (const std::exception& error) {
        isolate::refusal_before_the_first_line = error.what();
    }
    if (stint::IsIsolatedChild(argc, argv)) {
        return stint::RunIsolated(isolate::RegisterTestHandlers);
    }
    if (argc > 2 && std::string_view(argv[1]) == "--run-a-parent") {
        return isolate::RunAParent(argv[2]);
    }
    if (argc > 2 && std::string_view(argv[1]) == "--run-a-command") {
        return isolate::RunACommandsParent(argv[2]);
    }
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    testing::InitGoogleMock(&argc, argv);
    return RUN_ALL_TESTS();
}
