// Commands of `stint queue` that have files of their own.
#pragma once

#include <string>

#include "base/json.h"
#include "cli/program.h"
#include "model/claim_plan.h"

namespace stint::cli {

void AddQueueOrder(Program& program, CLI::App& group);

// Null: by priority, then first come.
std::string OrderText(const model::QueueOrder* order);
base::OrderedJson OrderJson(const model::QueueOrder* order);

}  // namespace stint::cli
