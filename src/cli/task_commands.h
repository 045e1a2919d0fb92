// The commands below `stint task`, one file each.
#pragma once

#include "cli/program.h"

namespace stint::cli {

void AddTaskList(Program& program, CLI::App& group);
void AddTaskGet(Program& program, CLI::App& group);
void AddTaskWait(Program& program, CLI::App& group);
void AddTaskChange(Program& program, CLI::App& group);  // cancel, retry, discard
void AddTaskEdit(Program& program, CLI::App& group);
void AddTaskExplain(Program& program, CLI::App& group);
void AddTaskWhy(Program& program, CLI::App& group);
void AddQueueWhy(Program& program, CLI::App& group);
void AddTaskTree(Program& program, CLI::App& group);
void AddTaskHistory(Program& program, CLI::App& group);  // attempts, audit
void AddTaskItems(Program& program, CLI::App& group);

}  // namespace stint::cli
