#include "store/sqlite/serve.h"
#include "store/sqlite/wire_schedules.h"

namespace stint::store::lite {

bool ServeSchedules(Operation operation, ScheduleStore& s, Decoder& in, Encoder& out) {
    using Text = std::string;
    switch (operation) {
        case Operation::kSchedulePut:
            Reply<SchedulePut>(in, out, [&](auto& x) { return s.Put(x); });
            return true;
        case Operation::kScheduleGet:
            Reply<TenantId, Text>(in, out, [&](auto& t, auto& name) { return s.Get(t, name); });
            return true;
        case Operation::kScheduleList:
            Reply<ScheduleListRequest>(in, out, [&](auto& x) { return s.List(x); });
            return true;
        case Operation::kScheduleRemove:
            Reply<TenantId, Text>(in, out, [&](auto& t, auto& name) { return s.Remove(t, name); });
            return true;
        case Operation::kScheduleSetPaused:
            Reply<TenantId, Text, bool, Text>(
                in,
                out,
                [&](auto& t, auto& name, bool paused, auto& actor) {
                    return s.SetPaused(t, name, paused, actor);
                }
            );
            return true;
        case Operation::kScheduleDue:
            Reply<int, int>(in, out, [&](int schedules, int visits) {
                return s.Due(schedules, visits);
            });
            return true;
        case Operation::kScheduleFire:
            Reply<std::vector<Firing>>(in, out, [&](auto& x) { return s.Fire(x); });
            return true;
        case Operation::kScheduleFireVisits:
            Reply<std::vector<VisitFiring>>(in, out, [&](auto& x) { return s.FireVisits(x); });
            return true;
        case Operation::kScheduleRuns:
            Reply<RunsRequest>(in, out, [&](auto& x) { return s.Runs(x); });
            return true;
        case Operation::kScheduleForgetRuns:
            Reply<int>(in, out, [&](int limit) { return s.ForgetRuns(limit); });
            return true;
        case Operation::kCalendarPut:
            Reply<Calendar>(in, out, [&](auto& x) { s.PutCalendar(x); });
            return true;
        case Operation::kCalendars:
            Reply<TenantId>(in, out, [&](auto& x) { return s.Calendars(x); });
            return true;
        case Operation::kCalendarRemove:
            Reply<TenantId, Text>(in, out, [&](auto& t, auto& name) {
                return s.RemoveCalendar(t, name);
            });
            return true;
        case Operation::kVisitsPut:
            Reply<ScheduleId, std::vector<ScheduleStore::VisitPut>>(
                in, out, [&](auto& id, auto& visits) { return s.PutVisits(id, visits); }
            );
            return true;
        case Operation::kVisitsRemove:
            Reply<ScheduleId, std::vector<Text>>(in, out, [&](auto& id, auto& entities) {
                return s.RemoveVisits(id, entities);
            });
            return true;
        case Operation::kVisits:
            Reply<VisitsRequest>(in, out, [&](auto& x) { return s.Visits(x); });
            return true;
        default:
            return false;
    }
}

}  // namespace stint::store::lite
