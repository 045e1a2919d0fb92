// Isolated attempts: whatever a handler does to its process costs only that attempt. The children
// are this very program, run again (see test_main_test.cpp).
#include "engine/isolate/isolate.h"

#include <gmock/gmock.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "engine/isolate/frame.h"
#include "engine/isolate/spawn.h"
#include "engine/isolate/test_handlers.h"
#include "store/resources.h"
#include "support/engine_rig.h"

namespace stint::engine::isolate {
namespace {

using model::AttemptEnd;
using model::State;
using testing::AnyOf;
using testing::HasSubstr;

// Time does not move by itself here, but children live in real time.
struct IsolateRig : ThreadedRig {
    explicit IsolateRig(Isolation isolation = {}) {
        isolation.enabled = true;
        options.stop_grace = 400ms;
        for (std::string type : kTestHandlers) {
            // The one that shows that the worker lives has no limits: under a sanitizer even a
            // healthy child is over any limit of memory.
            Isolation its = type == "child.echo" ? Isolation{.enabled = true} : isolation;
            registry.Add({.type = type, .defaults = {}, .handler = {}, .isolation = its});
        }
        Open();
    }
    model::TaskRecord Run(const std::string& type, model::NewTask task = {}) {
        id = Submit(type, std::move(task));
        Drive();
        return Get(id);
    }
    model::AttemptRecord Attempt() { return memory.Attempts(id).front(); }
    // The worker goes on after whatever happened.
    void ExpectAlive() { EXPECT_EQ(Run("child.echo").state, State::kComplete); }
    TaskId id;
};

bool Exists(pid_t pid) {
    return kill(pid, 0) == 0;
}

TEST(Isolate, OutputErrorSnoozeAndWarningComeThroughThePipe) {
    IsolateRig rig;
    auto record = rig.Run("child.echo", {.input = R"({"ü":1})"});
    EXPECT_EQ(record.state, State::kComplete);
    EXPECT_EQ(record.output, R"({"ü":1})");
    EXPECT_TRUE(record.warning);

    record = rig.Run("child.throw");
    EXPECT_EQ(record.state, State::kError);
    EXPECT_EQ(record.error->klass, "stint::Retryable");
    EXPECT_EQ(record.error->message, "from the child");
    EXPECT_THAT(rig.Attempt().stderr_tail, HasSubstr("words on stderr"));

    record = rig.Run("child.snooze");
    EXPECT_EQ(record.state, State::kOpen);
    EXPECT_EQ(record.attempt, 0);
}

TEST(Isolate, SubtasksAndTheirOutputsGoThroughThePipe) {
    IsolateRig rig;
    auto record = rig.Run("child.parent");
    EXPECT_EQ(record.state, State::kComplete) << record.error->message;
    EXPECT_EQ(record.output, R"("3 1 2 child.unregistered")");
}

TEST(Isolate, RequiredResourcesAreWaitedForWithoutLosingTheAttempt) {
    IsolateRig rig;
    ASSERT_TRUE(rig.memory.Resources().Change({.name = "gpu", .capacity = 2}, "test"));
    auto record = rig.Run("child.requires");
    EXPECT_EQ(record.state, State::kComplete);
    EXPECT_EQ(record.output, R"("with a gpu")");
    EXPECT_EQ(record.attempt, 1);
    EXPECT_EQ(record.claim_no, 2) << "once without it, once with it";
}

TEST(Isolate, AResourceThatDoesNotWorkIsClosedByTheParent) {
    IsolateRig rig;
    auto record = rig.Run("child.unavailable", {.needs = model::Needs{{"ollama", 1}}});
    EXPECT_EQ(record.state, State::kOpen);
    EXPECT_EQ(record.attempt, 0);
    auto ollama = rig.memory.Resources().Find("ollama");
    ASSERT_TRUE(ollama && ollama->closed_until);
    EXPECT_EQ(*ollama->closed_until, rig.memory.Now() + 90s);
    EXPECT_EQ(ollama->evidence.at(0).message, "429");
}

TEST(Isolate, AnUnregisteredHandlerIsAClearFailure) {
    IsolateRig rig;
    auto record = rig.Run("child.unregistered");
    EXPECT_EQ(record.state, State::kDead);
    EXPECT_THAT(record.error->message, HasSubstr("stint::RunIsolated"));
}

TEST(Isolate, SegfaultAbortAndStackOverflowCostOnlyTheAttempt) {
    for (auto [type, signals] : {
             std::pair{"child.segfault", std::vector{SIGSEGV, SIGABRT}},
             std::pair{"child.abort", std::vector{SIGABRT}},
             std::pair{"child.overflow", std::vector{SIGSEGV, SIGABRT}},
         }) {
        IsolateRig rig;
        auto record = rig.Run(type);
        EXPECT_EQ(record.state, State::kError) << type << ": tried again";
        EXPECT_EQ(record.error->klass, "crash") << type;
        EXPECT_EQ(record.crash_count, 1) << type;
        auto attempt = rig.Attempt();
        EXPECT_EQ(attempt.end, AttemptEnd::kCrashed) << type;
        // Sanitizers turn the signal into an exit code.
        if (attempt.exit_signal) {
            EXPECT_THAT(signals, testing::Contains(*attempt.exit_signal)) << type;
        } else {
            EXPECT_TRUE(attempt.exit_code && *attempt.exit_code != 0) << type;
        }
        rig.ExpectAlive();
    }
}

TEST(Isolate, ThreeCrashesAreQuarantinedWithTheEvidence) {
    IsolateRig rig;
    rig.Run("child.abort");
    for (int i = 0; i < 2; ++i) {
        rig.clock.Advance(5s);
        rig.Drive();
    }
    auto record = rig.Get(rig.id);
    EXPECT_EQ(record.state, State::kDead);
    EXPECT_THAT(record.reason, HasSubstr("quarantined"));
    EXPECT_EQ(rig.memory.Attempts(rig.id).size(), 3u);
}

TEST(Isolate, OutOfMemoryCostsOnlyTheAttempt) {
    IsolateRig rig({.memory_bytes = 512u << 20});
    auto record = rig.Run("child.devour");
    EXPECT_THAT(record.state, AnyOf(State::kDead, State::kError));
    EXPECT_THAT(record.error->klass, AnyOf("std::bad_alloc", "crash"));
    rig.ExpectAlive();
}

TEST(Isolate, AnEndlessLoopMeetsTheProcessorLimit) {
    IsolateRig rig({.cpu_time = 1s});
    auto record = rig.Run("child.spin");
    EXPECT_EQ(record.error->klass, "cpu_limit");
    EXPECT_EQ(rig.Attempt().exit_signal, SIGXCPU);
    rig.ExpectAlive();
}

TEST(Isolate, AKillBelowTheProcessorLimitIsACrash) {
    IsolateRig rig({.cpu_time = 1h});
    auto record = rig.Run("child.killed");
    EXPECT_EQ(record.error->klass, "crash");
    EXPECT_EQ(rig.Attempt().exit_signal, SIGKILL);
}

TEST(Isolate, AnOutputOverTheLimitIsAFailureThatSaysSo) {
    IsolateRig rig;
    auto record = rig.Run("child.verbose");
    EXPECT_EQ(record.state, State::kDead);
    EXPECT_EQ(record.error->klass, "output_too_large");
    EXPECT_THAT(record.error->message, HasSubstr("20971522 bytes, the limit is 1048576"));
    EXPECT_EQ(record.crash_count, 0);
}

// Stops the attempt as soon as its child has said where it is.
void StopWhenReady(
    IsolateRig& rig, const std::string& type, const std::function<void(TaskId)>& stop
) {
    TemporaryDirectory directory;
    std::string file = directory.path() + "/ready";
    setenv("STINT_TEST_READY", file.c_str(), 1);
    rig.id = rig.Submit(type, {.timeout = 10s});
    rig.worker->ClaimOnce();
    std::jthread runner([&] { rig.worker->RunOneAttempt(); });
    ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(file); }));
    stop(rig.id);
    runner.join();
    rig.worker->SettleOnce();
}

TEST(Isolate, ACancelReachesTheChildsStopToken) {
    IsolateRig rig;
    StopWhenReady(rig, "child.obedient", [&](TaskId id) {
        rig.memory.Cancel(std::span(&id, 1), "test", "enough");
        rig.worker->RenewOnce();
    });
    EXPECT_EQ(rig.StateOf(rig.id), State::kCancelled);
    EXPECT_THAT(rig.Attempt().stderr_tail, HasSubstr("stopped because cancelled"));
}

TEST(Isolate, AChildThatIgnoresACancelIsKilledWithItsOwnChildren) {
    IsolateRig rig;
    TemporaryDirectory directory;
    std::string file = directory.path() + "/grandchild";
    setenv("STINT_TEST_GRANDCHILD", file.c_str(), 1);
    StopWhenReady(rig, "child.stubborn", [&](TaskId id) {
        rig.memory.Cancel(std::span(&id, 1), "test", "enough");
        rig.worker->RenewOnce();
    });
    EXPECT_EQ(rig.StateOf(rig.id), State::kCancelled);
    EXPECT_EQ(rig.Attempt().exit_signal, SIGKILL);
    pid_t grandchild = 0;
    std::ifstream(file) >> grandchild;
    ASSERT_GT(grandchild, 0);
    // Somebody else's child now: it vanishes when init, or we, collect it.
    EXPECT_TRUE(Eventually([&] {
        std::ifstream stat("/proc/" + std::to_string(grandchild) + "/stat");
        std::string number, name, state;
        return !(stat >> number >> name >> state) || state == "Z";
    })) << Exists(grandchild);
    rig.ExpectAlive();
}

TEST(Isolate, ATimeoutKillsTheChild) {
    IsolateRig rig;
    StopWhenReady(rig, "child.stubborn", [&](TaskId) {
        rig.clock.Advance(10s);
        rig.worker->WatchOnce();
    });
    EXPECT_EQ(rig.Attempt().end, AttemptEnd::kTimedOut);
    EXPECT_EQ(rig.worker->metrics().hung, 0u) << "its thread is not lost";
}

TEST(Isolate, ALostLeaseKillsTheChild) {
    IsolateRig rig;
    StopWhenReady(rig, "child.stubborn", [&](TaskId) {
        rig.clock.Advance(22s);
        rig.worker->WatchOnce();
    });
    EXPECT_EQ(rig.worker->metrics().self_stops, 1u);
    EXPECT_EQ(rig.Attempt().end, AttemptEnd::kReleased);
}

TEST(Isolate, ProgressReachesTheHeartbeat) {
    IsolateRig rig;
    StopWhenReady(rig, "child.obedient", [&](TaskId id) {
        EXPECT_TRUE(Eventually([&] {
            rig.worker->RenewOnce();
            return rig.Get(id).progress.has_value();
        }));
        EXPECT_EQ(rig.Get(id).progress->step, "waiting");
        rig.memory.Cancel(std::span(&id, 1), "test", "enough");
        rig.worker->RenewOnce();
    });
}

bool Gone(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state;
    return !(stat >> number >> name >> state) || state == "Z";
}

// A worker process of its own, which can be killed or stopped without warning.
struct Elsewhere {
    TemporaryDirectory directory;
    std::string ready = directory.path() + "/ready";
    std::string grandchild = directory.path() + "/grandchild";
    std::string verdict = directory.path() + "/verdict";
    std::optional<Child> parent;

    void Start(const std::string& mode, const std::string& what) {
        setenv("STINT_TEST_READY", ready.c_str(), 1);
        setenv("STINT_TEST_GRANDCHILD", grandchild.c_str(), 1);
        setenv("STINT_TEST_VERDICT", verdict.c_str(), 1);
        SpawnRequest request;
        request.file = "/proc/self/exe";
        request.argv = {"engine_test", mode, what};
        parent.emplace(Child::Spawn(request));
        unsetenv("STINT_TEST_VERDICT");
    }
    static pid_t Read(const std::string& file) {
        pid_t pid = 0;
        EXPECT_TRUE(Eventually([&] {
            return static_cast<bool>(std::ifstream(file) >> pid) && pid > 0;
        })) << file;
        return pid;
    }
    void Kill() const { kill(parent->pid(), SIGKILL); }
};

TEST(Isolate, TheChildAndAllItStartedDieWithItsParent) {
    Elsewhere there;
    there.Start("--run-a-parent", "child.stubborn");
    pid_t child = there.Read(there.ready);
    pid_t grandchild = there.Read(there.grandchild);
    EXPECT_FALSE(Gone(grandchild));
    there.Kill();
    EXPECT_TRUE(Eventually([&] { return Gone(child); }));
    EXPECT_TRUE(Eventually([&] { return Gone(grandchild); }));
}

TEST(Isolate, ACommandAndAllItStartedDieWithTheirParent) {
    Elsewhere there;
    there.Start(
        "--run-a-command",
        "echo $$ > " + there.ready + "; sleep 1000 & echo $! > " + there.grandchild + "; wait"
    );
    pid_t child = there.Read(there.ready);
    pid_t grandchild = there.Read(there.grandchild);
    EXPECT_FALSE(Gone(grandchild));
    there.Kill();
    EXPECT_TRUE(Eventually([&] { return Gone(child); }));
    EXPECT_TRUE(Eventually([&] { return Gone(grandchild); }));
}

// Stopped at its next fork, which is the command's; the forked process itself runs on. -1: it may
// not be traced here.
pid_t StopAtFork(pid_t parent) {
    int status = 0;
    EXPECT_EQ(waitpid(parent, &status, WUNTRACED), parent);
    if (ptrace(PTRACE_SEIZE, parent, 0, PTRACE_O_TRACEFORK) != 0) return errno == EPERM ? -1 : 0;
    kill(parent, SIGCONT);
    pid_t forked = 0;
    for (;;) {
        if (waitpid(parent, &status, 0) != parent || !WIFSTOPPED(status)) return 0;
        if (status >> 8 == (SIGTRAP | (PTRACE_EVENT_FORK << 8))) break;
        ptrace(PTRACE_CONT, parent, 0, 0);
    }
    unsigned long message = 0;
    ptrace(PTRACE_GETEVENTMSG, parent, 0, &message);
    forked = static_cast<pid_t>(message);
    EXPECT_EQ(waitpid(forked, &status, __WALL), forked);
    EXPECT_EQ(ptrace(PTRACE_DETACH, forked, 0, 0), 0);
    return forked;
}

TEST(Isolate, ACommandWhoseParentDiesBeforeItIsGuardedNeverStarts) {
    Elsewhere there;
    setenv("STINT_TEST_TRACED", "1", 1);
    there.Start("--run-a-command", "echo $$ > " + there.ready + "; sleep 1000");
    unsetenv("STINT_TEST_TRACED");
    pid_t child = StopAtFork(there.parent->pid());
    if (child == -1) GTEST_SKIP() << "processes may not be traced here";
    ASSERT_GT(child, 0);
    there.Kill();
    EXPECT_TRUE(Eventually([&] { return Gone(child); }));
    EXPECT_FALSE(std::filesystem::exists(there.ready));
    if (!Gone(child)) kill(-child, SIGKILL);
}

TEST(Isolate, AChildThatDoesNotHearItsParentIsReleasedNotCountedAsACrash) {
    Elsewhere there;
    there.Start("--run-a-parent", "child.obedient");
    pid_t child = there.Read(there.ready);
    kill(there.parent->pid(), SIGSTOP);
    EXPECT_TRUE(Eventually([&] { return Gone(child); })) << "nobody speaks to it";
    kill(there.parent->pid(), SIGCONT);
    ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(there.verdict); }));
    std::string end;
    int crashes = -1;
    std::ifstream(there.verdict) >> end >> crashes;
    EXPECT_EQ(end, "released");
    EXPECT_EQ(crashes, 0);
}

TEST(Isolate, AChildThatWasFrozenItselfGivesItsParentTimeToSpeak) {
    base::Instant start{};
    auto silent_after = [&](const std::vector<Duration>& gaps) {
        Silence silence(start);
        base::Instant now = start;
        bool too_long = false;
        for (Duration gap : gaps) too_long = silence.TooLong(now += gap);
        return too_long;
    };
    std::vector<Duration> beats(11, kBeatEvery);
    EXPECT_TRUE(silent_after(beats)) << "5.5 s without a word";
    beats.pop_back();
    EXPECT_FALSE(silent_after(beats));
    EXPECT_FALSE(silent_after({kBeatEvery, 1h})) << "an hour that it did not see itself";
    std::vector<Duration> after_a_freeze(11, kBeatEvery);
    after_a_freeze.insert(after_a_freeze.begin(), 1h);
    EXPECT_TRUE(silent_after(after_a_freeze)) << "and then nobody spoke";
}

TEST(Isolate, WithoutTheFirstLineRegisteringAnIsolatedTypeFails) {
    EXPECT_THAT(refusal_before_the_first_line, HasSubstr("stint::IsIsolatedChild(argc, argv)"));
}

TEST(Isolate, ItemsAndCheckpointsReachTheStoreAndComeBack) {
    IsolateRig rig;
    model::NewTask task;
    task.retry = model::RetryPolicy{.first_delay = Duration{0}, .max_delay = Duration{0}};
    auto record = rig.Run("child.items", task);
    while (record.state == State::kError) {
        rig.Drive();
        record = rig.Get(rig.id);
    }
    EXPECT_EQ(record.state, State::kComplete);
    EXPECT_EQ(record.output, "\"went on at 7\"");
    EXPECT_TRUE(record.warning) << "one of two items is in error";
    auto items = rig.memory.Results().Items({.task = rig.id});
    ASSERT_EQ(items.size(), 2u);
    EXPECT_EQ(items[0].item.after.text, "[1]");
    EXPECT_EQ(items[1].item.error, "no") << "written although the attempt failed";
}

}  // namespace
}  // namespace stint::engine::isolate
