// stint demo workflow.
#pragma once

#include <stint/engine.h>

#include "cli/program.h"

namespace stint::cli {

void HandleDemoOrders(Engine& engine);  // of the workers
void AddWorkflowDemo(Program& program, CLI::App& group);

}  // namespace stint::cli
