// Schedules as the JSON bodies that every door shows; see json_view.h for the rules.
#pragma once

#include "base/json.h"
#include "model/schedule_plan.h"
#include "node/client.h"

namespace stint::node {

base::OrderedJson ToJson(const model::Schedule& schedule);
base::OrderedJson ToJson(const model::ScheduleRun& run);
base::OrderedJson ToJson(const RunSeen& seen);
base::OrderedJson ToJson(const model::PreviewEntry& entry);
base::OrderedJson ToJson(const model::Visit& visit);
base::OrderedJson ToJson(const model::Calendar& calendar);
base::OrderedJson ToJson(const ApplyStep& step);
base::OrderedJson ToJson(const BackfillReport& report);

}  // namespace stint::node
