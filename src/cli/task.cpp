// stint task: looking at tasks and changing them.
#include "cli/program.h"
#include "cli/task_commands.h"

namespace stint::cli {

void AddTask(Program& program) {
    CLI::App& group = program.Group(program.root(), "task", "Tasks: look at them, change them.");
    AddTaskList(program, group);
    AddTaskGet(program, group);
    AddTaskWait(program, group);
    AddTaskChange(program, group);
    AddTaskEdit(program, group);
    AddTaskExplain(program, group);
    AddTaskWhy(program, group);
    AddTaskTree(program, group);
    AddTaskHistory(program, group);
    AddTaskItems(program, group);
}

}  // namespace stint::cli
