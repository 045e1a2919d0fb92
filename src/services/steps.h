// The handler of executions of steps (model/steps.h).
//
// Before it makes the tasks of a step it saves which step that is, and the wait that was over then.
// So whoever goes on after a crash knows whether the step was begun: the wait is another one if it
// was, since tasks and wait are made together. Step k+1 begins once, after all of step k (I12).
#pragma once

#include "engine/registry.h"

namespace stint::services {

// For every node that may be asked to run one.
engine::HandlerEntry StepsHandler();

}  // namespace stint::services
