// What the system knows of a process, from /proc. For measurements.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace stint::base {

// CPU time that the process has used, all of its threads; zero when there is none of that number.
std::chrono::nanoseconds CpuOf(pid_t process);
// CPU time of its children that have ended and been waited for.
std::chrono::nanoseconds CpuOfEndedChildren(pid_t process);

std::int64_t PeakMemory(pid_t process);  // bytes that were resident at the most; 0 = not known

std::string ProgramOf(pid_t process);  // the name of what it runs; empty when there is none
pid_t ParentOf(pid_t process);         // 0 = not known
std::vector<pid_t> ChildrenOf(pid_t process);

}  // namespace stint::base
