#include "cli/cli.h"

#include <csignal>

#include "cli/program.h"

namespace stint::cli {

int Run(int argc, char** argv) {
    // The other end of a socket or pipe that goes away is an error to be told, not a death.
    std::signal(SIGPIPE, SIG_IGN);
    Program program;
    AddDemo(program);
    AddSubmit(program);
    AddTask(program);
    AddQueue(program);
    AddResource(program);
    AddSchedule(program);
    AddDeletion(program);
    AddEvent(program);
    AddWorkflow(program);
    AddFlow(program);
    AddWorker(program);
    AddStore(program);
    AddDoctor(program);
    AddBench(program);
    AddConfig(program);
    AddVersion(program);
    AddHelp(program);
    return program.Run(argc, argv);
}

}  // namespace stint::cli
