#include "services/planner.h"

#include <algorithm>

#include "base/result.h"
#include "base/text.h"

namespace stint::services {

const std::vector<model::Calendar>& Planner::CalendarsOf(TenantId tenant) {
    auto found = calendars_.find(tenant);
    if (found == calendars_.end()) {
        found = calendars_.emplace(tenant, schedules_.Calendars(tenant)).first;
        for (const model::Calendar& calendar : coming_) {
            if (calendar.tenant != tenant) continue;
            std::erase_if(found->second, [&](const model::Calendar& other) {
                return other.name == calendar.name;
            });
            found->second.push_back(calendar);
        }
    }
    return found->second;
}

Result<Prepared> Planner::Prepare(const model::ScheduleSpec& spec, Time created_at) {
    auto zone = zones_(spec.zone);
    if (!zone) return zone.error();
    std::vector<const model::Calendar*> calendars;
    for (const std::string& name : spec.except) {
        const auto& all = CalendarsOf(spec.tenant);
        auto found = std::ranges::find(all, name, &model::Calendar::name);
        if (found == all.end()) {
            return base::MakeError(
                Code::kInvalid,
                "except names calendar {}, which is not there: put it first",
                base::Quoted(name)
            );
        }
        calendars.push_back(&*found);
    }
    Prepared prepared;
    prepared.excluded = model::DaysOf(calendars, *zone);
    if (spec.timing.kind != model::TimingSpec::Kind::kVisits) {
        prepared.timing = model::TimingOf(spec, *zone, created_at);
    }
    return prepared;
}

}  // namespace stint::services
