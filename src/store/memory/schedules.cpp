#include "store/memory/schedules.h"

#include <algorithm>

#include "base/planted_bug.h"
#include "base/result.h"
#include "model/schedule_plan.h"
#include "store/schedule_rules.h"

namespace stint::store::memory {

Schedule* ScheduleOps::Find(TenantId tenant, std::string_view name) {
    for (auto& [id, schedule] : data_.schedules) {
        if (schedule.spec.tenant == tenant && schedule.spec.name == name) return &schedule;
    }
    return nullptr;
}

Result<Schedule> ScheduleOps::Put(const SchedulePut& put) {
    Schedule* found = Find(put.spec.tenant, put.spec.name);
    int revision = found != nullptr ? found->revision : 0;
    if (put.expected_revision && *put.expected_revision != revision) {
        return UnexpectedRevision(put, revision);
    }
    if (found == nullptr) {
        ScheduleId id(data_.next_schedule++);
        found = &data_.schedules[id];
        found->id = id;
    } else if (VisitsComeSooner(found->spec, put.spec)) {
        ShortenVisits(*found, put.spec.timing.every);
    }
    Replace(*found, put, now_);
    return *found;
}

void ScheduleOps::ShortenVisits(const Schedule& schedule, Duration every) {
    double share = std::chrono::duration<double>(every) / schedule.spec.timing.every;
    for (auto& [key, visit] : data_.visits) {
        if (key.first != schedule.id || visit.every || visit.next_at <= now_) continue;
        visit.next_at =
            now_ +
            std::chrono::duration_cast<std::chrono::microseconds>((visit.next_at - now_) * share);
    }
}

std::optional<Schedule> ScheduleOps::Get(TenantId tenant, std::string_view name) {
    const Schedule* found = Find(tenant, name);
    if (found == nullptr) return std::nullopt;
    return *found;
}

std::vector<Schedule> ScheduleOps::List(const ScheduleListRequest& request) {
    std::vector<Schedule> schedules;
    auto key = [](const Schedule& schedule) {
        return std::pair(schedule.spec.tenant, schedule.spec.name);
    };
    std::pair after(request.after_tenant, request.after_name);
    for (const auto& [id, schedule] : data_.schedules) {
        if (request.tenant && schedule.spec.tenant != *request.tenant) continue;
        if (key(schedule) > after) schedules.push_back(schedule);
    }
    std::ranges::sort(schedules, {}, key);
    if (schedules.size() > static_cast<std::size_t>(request.limit)) {
        schedules.resize(static_cast<std::size_t>(request.limit));
    }
    return schedules;
}

bool ScheduleOps::Remove(TenantId tenant, std::string_view name) {
    const Schedule* found = Find(tenant, name);
    if (found == nullptr) return false;
    ScheduleId id = found->id;
    std::erase_if(data_.runs, [id](const auto& run) { return std::get<0>(run.first) == id; });
    std::erase_if(data_.visits, [id](const auto& visit) { return visit.first.first == id; });
    data_.schedules.erase(id);
    return true;
}

std::optional<Schedule> ScheduleOps::SetPaused(
    TenantId tenant, std::string_view name, bool paused, std::string_view actor
) {
    Schedule* found = Find(tenant, name);
    if (found == nullptr) return std::nullopt;
    if (found->paused && !paused) MoveDueVisits(*found);
    store::SetPaused(*found, paused, actor, now_);
    return *found;
}

void ScheduleOps::MoveDueVisits(const Schedule& schedule) {
    for (auto& [key, visit] : data_.visits) {
        if (key.first != schedule.id) continue;
        Duration every = visit.every.value_or(schedule.spec.timing.every);
        visit.next_at = VisitAfter(now_, visit.next_at, every);
    }
}

DueReply ScheduleOps::Due(int schedules, int visits) {
    DueReply reply;
    reply.now = now_;
    auto sort_out = [&](auto& all, int limit, auto& due) {
        std::ranges::sort(all, {}, [](const auto& one) { return one.next_at; });
        for (const auto& one : all) {
            std::optional<Time> at = one.next_at;
            if (*at > now_) {
                reply.next_at = reply.next_at ? std::min(*reply.next_at, *at) : *at;
            } else if (static_cast<int>(due.size()) < limit) {
                due.push_back(one);
            }
        }
    };
    std::vector<Schedule> running;
    for (const auto& [id, schedule] : data_.schedules) {
        if (!schedule.paused && schedule.next_at) running.push_back(schedule);
    }
    std::vector<Visit> waiting;
    for (const auto& [key, visit] : data_.visits) {
        if (!data_.schedules.at(key.first).paused) waiting.push_back(visit);
    }
    sort_out(running, schedules, reply.schedules);
    sort_out(waiting, visits, reply.visits);
    std::set<ScheduleId> of;
    for (const Visit& visit : reply.visits) of.insert(visit.schedule);
    for (ScheduleId id : of) reply.of_visits.push_back(data_.schedules.at(id));
    return reply;
}

// The mark first: only who makes it makes the task.
RunReply ScheduleOps::Decide(Schedule& schedule, const std::string& entity, const PlannedRun& run) {
    bool unmarked = base::Planted(base::Bug::kFireWithoutMark);
    RunKey key{schedule.id, run.instant, entity};
    auto found = data_.runs.find(key);
    bool may_fill = found != data_.runs.end() && !found->second.run.task.valid() &&
                    run.cause == RunCause::kBackfill && run.task;
    if (found != data_.runs.end() && !may_fill && !unmarked) {
        return {.kind = RunReply::Kind::kDecided, .task = found->second.run.task};
    }
    RunReply reply{.kind = RunReply::Kind::kSkipped, .message = run.skipped};
    if (run.task) {
        SubmitReply made = ops_.Submit({&*run.task, 1}).at(0);
        reply = entity.empty() ? RunReplyOf(made) : VisitReplyOf(made);
    }
    Duration keep = base::Planted(base::Bug::kMarkDeletedEarly) ? Duration{1} : run.keep;
    data_.runs[key] = {
        .run =
            {.instant = run.instant,
             .entity = entity,
             .cause = run.cause,
             .task = reply.task,
             .skipped = reply.task.valid() ? std::string() : reply.message,
             .decided_at = now_},
        .expires_at = now_ + keep};
    return reply;
}

FiringReply ScheduleOps::Fire(const Firing& firing) {
    auto found = data_.schedules.find(firing.schedule);
    if (found == data_.schedules.end()) return {.kind = FiringReply::Kind::kGone};
    Schedule& schedule = found->second;
    bool blind = base::Planted(base::Bug::kFireWithoutMark);
    if (firing.advance && !blind) {
        bool same = schedule.revision == firing.advance->revision &&
                    schedule.turn == firing.advance->turn && !schedule.paused;
        if (!same) return {.kind = FiringReply::Kind::kLost};
    }
    FiringReply reply;
    if (auto refused = NoRoomFor(schedule, firing)) {
        reply.runs.assign(firing.runs.size(), *refused);
        return reply;
    }
    for (const PlannedRun& run : firing.runs) reply.runs.push_back(Decide(schedule, "", run));
    Advance(schedule, firing, reply.runs);
    return reply;
}

FiringReply ScheduleOps::FireVisit(const VisitFiring& firing) {
    auto found = data_.schedules.find(firing.schedule);
    auto visit = data_.visits.find({firing.schedule, firing.entity});
    if (found == data_.schedules.end() || visit == data_.visits.end()) {
        return {.kind = FiringReply::Kind::kGone};
    }
    Schedule& schedule = found->second;
    bool same = schedule.revision == firing.revision && !schedule.paused &&
                visit->second.next_at == firing.expected_next_at;
    if (!same) return {.kind = FiringReply::Kind::kLost};
    FiringReply reply;
    if (firing.run) {
        reply.runs.push_back(Decide(schedule, firing.entity, *firing.run));
        if (reply.runs[0].task.valid()) visit->second.last_at = firing.run->instant;
    }
    visit->second.next_at = firing.next_at;
    return reply;
}

std::vector<ScheduleRun> ScheduleOps::Runs(const RunsRequest& request) {
    std::vector<ScheduleRun> runs;
    for (auto at = data_.runs.rbegin(); at != data_.runs.rend(); ++at) {
        const auto& [schedule, instant, entity] = at->first;
        if (schedule != request.schedule) continue;
        if (request.from && instant < *request.from) continue;
        if (request.to && instant >= *request.to) continue;
        if (request.before &&
            std::tie(instant, entity) >= std::tie(*request.before, request.before_entity)) {
            continue;
        }
        if (runs.size() == static_cast<std::size_t>(request.limit)) break;
        runs.push_back(at->second.run);
    }
    return runs;
}

int ScheduleOps::ForgetRuns(int limit) {
    int forgotten = 0;
    for (auto at = data_.runs.begin(); at != data_.runs.end() && forgotten < limit;) {
        if (at->second.expires_at > now_) {
            ++at;
            continue;
        }
        at = data_.runs.erase(at);
        ++forgotten;
    }
    return forgotten;
}

void ScheduleOps::PutCalendar(const Calendar& calendar) {
    data_.calendars[{calendar.tenant, calendar.name}] = calendar;
    for (auto& [id, schedule] : data_.schedules) {
        if (!Excepts(schedule.spec, calendar)) continue;
        LookAtOnce(schedule, now_);
        ++schedule.turn;  // a plan made of the days before is worth nothing
    }
}

std::vector<Calendar> ScheduleOps::Calendars(TenantId tenant) {
    std::vector<Calendar> calendars;
    for (const auto& [key, calendar] : data_.calendars) {
        if (calendar.tenant == tenant) calendars.push_back(calendar);
    }
    return calendars;
}

bool ScheduleOps::RemoveCalendar(TenantId tenant, std::string_view name) {
    return data_.calendars.erase({tenant, std::string(name)}) > 0;
}

Result<void> ScheduleOps::PutVisits(
    ScheduleId schedule, std::span<const ScheduleStore::VisitPut> visits
) {
    auto of = data_.schedules.find(schedule);
    if (of == data_.schedules.end()) return NoSuchSchedule(schedule);
    const Duration usual = of->second.spec.timing.every;
    for (const ScheduleStore::VisitPut& put : visits) {
        auto [found, is_new] = data_.visits.try_emplace({schedule, put.visit.entity});
        Visit& visit = found->second;
        bool sooner = put.visit.every.value_or(usual) < visit.every.value_or(usual);
        visit.every = put.visit.every;
        if (!is_new && sooner) visit.next_at = std::min(visit.next_at, put.next_at);
        if (!is_new) continue;
        visit.schedule = schedule;
        visit.entity = put.visit.entity;
        visit.next_at = put.next_at;
    }
    return {};
}

int ScheduleOps::RemoveVisits(ScheduleId schedule, std::span<const std::string> entities) {
    int removed = 0;
    for (const std::string& entity : entities) {
        removed += static_cast<int>(data_.visits.erase({schedule, entity}));
    }
    return removed;
}

std::vector<Visit> ScheduleOps::Visits(const VisitsRequest& request) {
    std::vector<Visit> visits;
    for (auto at = data_.visits.upper_bound({request.schedule, request.after});
         at != data_.visits.end() && at->first.first == request.schedule &&
         visits.size() < static_cast<std::size_t>(request.limit);
         ++at) {
        visits.push_back(at->second);
    }
    return visits;
}

}  // namespace stint::store::memory
