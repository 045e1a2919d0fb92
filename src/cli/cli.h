// The command line of the binary `stint`.
#pragma once

#include <stint/isolate.h>

namespace stint::cli {

// Runs the command that the words name; returns the exit code.
int Run(int argc, char** argv);

// Handlers that run in a child process of a worker.
void RegisterIsolatedHandlers(HandlerRegistry& registry);

}  // namespace stint::cli
