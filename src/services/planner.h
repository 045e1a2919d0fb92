// A schedule made ready for planning: its zone read, its calendars looked up.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/schedule_plan.h"
#include "services/zones.h"
#include "store/schedules.h"

namespace stint::services {

struct Prepared {
    model::Timing timing = model::OnceTiming{};  // of visits: nothing
    model::ExcludedDays excluded;
};

// For one round of planning: calendars are read once per tenant.
class Planner {
public:
    // Calendars that are about to be put count as if they were there.
    Planner(
        store::ScheduleStore& schedules, ZoneSource zones, std::vector<model::Calendar> coming = {}
    )
        : schedules_(schedules), zones_(std::move(zones)), coming_(std::move(coming)) {}

    // An unknown zone or calendar is an error that names it.
    Result<Prepared> Prepare(const model::ScheduleSpec& spec, Time created_at);

private:
    const std::vector<model::Calendar>& CalendarsOf(TenantId tenant);

    store::ScheduleStore& schedules_;
    const ZoneSource zones_;
    const std::vector<model::Calendar> coming_;
    std::map<TenantId, std::vector<model::Calendar>> calendars_;
};

}  // namespace stint::services
