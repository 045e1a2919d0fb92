// Tasks as people see them.
#pragma once

#include <string>

#include "cli/output.h"
#include "node/client.h"

namespace stint::cli {

Cell StateCell(model::State state);

// The one line that says most about a task now: its error, its reason, its progress, its output.
std::string DetailText(const model::TaskRecord& task, Time now);
std::string ResultText(const node::FinishedTask& task);

// "3m 20s ago", "in 5m 0s", "-".
std::string Ago(Time then, Time now);
std::string ProgressText(const model::Progress& progress);

}  // namespace stint::cli
