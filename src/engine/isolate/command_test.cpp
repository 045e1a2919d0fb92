#include "engine/isolate/command.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <system_error>
#include <thread>

#include "support/engine_rig.h"

namespace stint::engine::isolate {
namespace {

CommandResult Execute(std::vector<std::string> argv, std::string input = {}) {
    return RunCommand({.argv = std::move(argv), .input = std::move(input)}, {});
}

TEST(Command, InputGoesInOutputComesOut) {
    std::string large(3 << 20, 'x');
    auto result = RunCommand({.argv = {"cat"}, .input = large, .output_limit = 4 << 20}, {});
    EXPECT_TRUE(result.ok());
    EXPECT_EQ(result.output, large);
    EXPECT_FALSE(result.output_cut);
}

TEST(Command, NothingIsInterpretedByAShell) {
    EXPECT_EQ(Execute({"echo", "$HOME; `ls` && *"}).output, "$HOME; `ls` && *\n");
}

TEST(Command, ExitCodeAndSignalAreTold) {
    EXPECT_EQ(Execute({"sh", "-c", "exit 7"}).exit_code, 7);
    auto killed = Execute({"sh", "-c", "kill -9 $$"});
    EXPECT_EQ(killed.exit_signal, SIGKILL);
    EXPECT_FALSE(killed.ok());
}

TEST(Command, AnUnknownProgramCannotBeStarted) {
    EXPECT_THROW(Execute({"no-such-program-anywhere"}), std::system_error);
    EXPECT_THROW(Execute({"/etc/passwd"}), std::system_error);
}

TEST(Command, OutputIsCappedAndStderrKeepsItsTail) {
    CommandRequest request;
    request.argv = {
        "sh", "-c", "head -c 100000 /dev/zero; for i in $(seq 1000); do echo line $i >&2; done"};
    request.output_limit = 1000;
    request.stderr_tail = 100;
    auto result = RunCommand(request, {});
    EXPECT_EQ(result.output.size(), 1000u);
    EXPECT_TRUE(result.output_cut);
    EXPECT_EQ(result.stderr_tail.size(), 100u);
    EXPECT_TRUE(result.stderr_tail.ends_with("line 1000\n"));
}

TEST(Command, ACommandThatDoesNotReadItsInputDoesNoHarm) {
    auto result = Execute({"true"}, std::string(1 << 20, 'x'));
    EXPECT_TRUE(result.ok());
}

TEST(Command, HasOnlyTheEnvironmentItIsGiven) {
    CommandRequest request;
    request.argv = {"/usr/bin/env"};
    request.env = {"A=1"};
    EXPECT_EQ(RunCommand(request, {}).output, "A=1\n");
}

TEST(Command, HasNoDescriptorsOfOurs) {
    auto result = Execute({"ls", "/proc/self/fd"});
    EXPECT_EQ(result.output, "0\n1\n2\n3\n") << "3 is the listing itself";
}

TEST(Command, AStopEndsItAndItsChildren) {
    std::stop_source stop;
    TemporaryDirectory directory;
    std::string file = directory.path() + "/pid";
    CommandRequest request;
    request.argv = {"sh", "-c", "trap '' TERM; sleep 1000 & echo $! > " + file + "; wait; wait"};
    request.grace = 200ms;
    CommandResult result;
    std::jthread runner([&] { result = RunCommand(request, stop.get_token()); });
    pid_t sleeper = 0;
    ASSERT_TRUE(Eventually([&] { return static_cast<bool>(std::ifstream(file) >> sleeper); }));
    stop.request_stop();
    runner.join();
    EXPECT_TRUE(result.stopped);
    EXPECT_FALSE(result.ok());
    EXPECT_TRUE(Eventually([&] {
        std::ifstream stat("/proc/" + std::to_string(sleeper) + "/stat");
        std::string number, name, state;
        return !(stat >> number >> name >> state) || state == "Z";
    }));
}

TEST(Command, LeavesNoProcessOfOursBehind) {
    Execute({"true"});
    // Neither the command nor its guardian waits to be collected.
    int status = 0;
    EXPECT_EQ(waitpid(-1, &status, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
}

TEST(Command, MemoryIsLimited) {
    CommandRequest request;
    request.argv = {"sh", "-c", "x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#x}"};
    request.limits.memory_bytes = 64 << 20;
    EXPECT_FALSE(RunCommand(request, {}).ok());
}

}  // namespace
}  // namespace stint::engine::isolate
