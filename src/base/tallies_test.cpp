#include "base/tallies.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>

#include "base/process.h"

namespace stint::base {
namespace {

TEST(Tallies, OfTwoProcessesAreOneSum) {
    std::string path = testing::TempDir() + "/tallies-" + std::to_string(getpid());
    ShareTallies(path);
    Count(ProcessTallies().statements, 2);
    pid_t child = fork();
    if (child == 0) {
        // As another program does that knows only the file.
        ShareTallies(path);
        Count(ProcessTallies().statements, 3);
        _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(ProcessTallies().statements, 5U);
    EXPECT_EQ(ProcessTallies().handled, 0U);
    unlink(path.c_str());
}

TEST(Tallies, AFileThatCannotBeMadeIsTold) {
    EXPECT_THROW(ShareTallies("/proc/none/tallies"), std::system_error);
}

TEST(Process, KnowsItselfAndItsChildren) {
    EXPECT_GT(CpuOf(getpid()).count(), 0);
    EXPECT_GT(PeakMemory(getpid()), 100'000);
    EXPECT_FALSE(ProgramOf(getpid()).empty());
    EXPECT_EQ(ParentOf(getpid()), getppid());
    auto before = CpuOfEndedChildren(getpid());
    pid_t child = fork();
    if (child == 0) {
        while (CpuOf(getpid()) < std::chrono::milliseconds{50}) {
        }
        pause();
        _exit(0);
    }
    while (CpuOf(child) < std::chrono::milliseconds{50}) {
    }
    auto children = ChildrenOf(getpid());
    EXPECT_EQ(std::count(children.begin(), children.end(), child), 1);
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_GE(CpuOfEndedChildren(getpid()) - before, std::chrono::milliseconds{30});
    EXPECT_EQ(CpuOf(child).count(), 0) << "it is no more";
}

}  // namespace
}  // namespace stint::base
