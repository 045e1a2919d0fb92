// Schedules as tables.
#pragma once

#include <string>
#include <vector>

#include "cli/invocation.h"
#include "cli/output.h"
#include "node/schedule_view.h"

namespace stint::cli {

// "cron 30 2 * * * Europe/Berlin", "every 10m", …
std::string TimingText(const model::ScheduleSpec& spec);
std::string TimeText(const std::optional<Time>& at);

void PrintSchedules(const Invocation& invocation, const std::vector<model::Schedule>& schedules);
void PrintSchedule(const Invocation& invocation, const model::Schedule& schedule);
void PrintRuns(const Invocation& invocation, const std::vector<node::RunSeen>& runs);
void PrintPreview(const Invocation& invocation, const std::vector<model::PreviewEntry>& entries);
void PrintVisits(const Invocation& invocation, const std::vector<model::Visit>& visits);
// For people line by line, with what differs: "~ nightly", "    cron: "0 2 * * *" → …".
void PrintSteps(const Invocation& invocation, const std::vector<node::ApplyStep>& steps);

}  // namespace stint::cli
