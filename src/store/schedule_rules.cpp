#include "store/schedule_rules.h"

#include <algorithm>

#include "base/check.h"
#include "base/result.h"
#include "base/text.h"
#include "model/schedule_plan.h"

namespace stint::store {

void Replace(Schedule& schedule, const SchedulePut& put, Time now) {
    bool is_new = schedule.created_at == Time{};
    if (is_new) {
        schedule.created_at = now;
    } else {
        ++schedule.revision;
    }
    if (is_new || !SameTiming(schedule.spec, put.spec)) {
        schedule.considered_at = now;
        // What waits for a run goes on waiting.
        schedule.next_at = schedule.queued_at ? now : put.next_at.value_or(now);
    } else if (schedule.spec.except != put.spec.except) {
        LookAtOnce(schedule, now);
    }
    if (put.spec.timing.kind == TimingSpec::Kind::kVisits) {
        schedule.next_at.reset();
        schedule.queued_at.reset();
    }
    schedule.spec = put.spec;
    schedule.changed_by = put.actor;
    schedule.changed_at = now;
}

void LookAtOnce(Schedule& schedule, Time now) {
    bool decided = !schedule.next_at || *schedule.next_at > now;
    if (decided) schedule.considered_at = std::max(schedule.considered_at, now);
    schedule.next_at = std::min(schedule.next_at.value_or(now), now);
}

bool Excepts(const ScheduleSpec& spec, const Calendar& calendar) {
    return spec.tenant == calendar.tenant && spec.timing.kind != TimingSpec::Kind::kVisits &&
           std::ranges::find(spec.except, calendar.name) != spec.except.end();
}

bool VisitsComeSooner(const ScheduleSpec& before, const ScheduleSpec& after) {
    return after.timing.kind == TimingSpec::Kind::kVisits &&
           after.timing.every < before.timing.every;
}

Error UnexpectedRevision(const SchedulePut& put, int found) {
    std::string name = base::Quoted(put.spec.name);
    if (found == 0) {
        return base::MakeError(
            Code::kConflict,
            "there is no schedule {}, and revision {} of it was expected: somebody removed it",
            name,
            *put.expected_revision
        );
    }
    if (*put.expected_revision == 0) {
        return base::MakeError(
            Code::kConflict, "there is a schedule {} already: change it, or use another name", name
        );
    }
    return base::MakeError(
        Code::kConflict,
        "schedule {} has revision {}, and {} was expected: somebody changed it meanwhile; look at "
        "it again",
        name,
        found,
        *put.expected_revision
    );
}

Error NoSuchSchedule(ScheduleId schedule) {
    return base::MakeError(Code::kNotFound, "there is no schedule {}", schedule.value());
}

void SetPaused(Schedule& schedule, bool paused, std::string_view actor, Time now) {
    if (schedule.paused == paused) return;
    schedule.paused = paused;
    ++schedule.revision;
    schedule.changed_by = actor;
    schedule.changed_at = now;
    // What passed meanwhile is left out; when the next one is, the node that looks finds out.
    if (paused) return;
    schedule.considered_at = std::max(schedule.considered_at, now);
    if (schedule.next_at) schedule.next_at = std::min(*schedule.next_at, now);
}

RunReply RunReplyOf(const SubmitReply& reply) {
    RunReply run;
    run.kind = !reply.accepted()                           ? RunReply::Kind::kRefused
               : reply.kind == SubmitReply::Kind::kCreated ? RunReply::Kind::kCreated
                                                           : RunReply::Kind::kExisting;
    if (reply.accepted()) run.task = reply.id;
    run.message = reply.message;
    run.queue = reply.queue;
    run.due_now = reply.due_now;
    return run;
}

RunReply VisitReplyOf(const SubmitReply& reply) {
    RunReply run = RunReplyOf(reply);
    if (run.kind != RunReply::Kind::kExisting) return run;
    run.kind = RunReply::Kind::kSkipped;
    run.message = fmt::format("the visit before is not over (task {})", run.task.value());
    run.task = {};
    return run;
}

std::string RunningText(const std::vector<TaskId>& running) {
    std::string text;
    for (TaskId task : running) {
        if (!text.empty()) text += ',';
        text += task.ToString();
    }
    return text;
}

std::vector<TaskId> ReadRunning(std::string_view text) {
    std::vector<TaskId> running;
    while (!text.empty()) {
        std::size_t end = std::min(text.find(','), text.size());
        if (auto task = TaskId::Parse(text.substr(0, end))) running.push_back(*task);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return running;
}

ScheduleSpec ReadSpec(std::string_view json, std::string_view name) {
    auto spec = ScheduleFromJson(json);
    if (spec) return std::move(*spec);
    throw WrongSchema(fmt::format(
        "schedule {} cannot be read by this program ({}): use the version that wrote it",
        base::Quoted(name),
        spec.error().message
    ));
}

namespace {

void RememberRun(Schedule& schedule, const PlannedRun& run, const RunReply& reply) {
    if (!run.task || reply.kind == RunReply::Kind::kDecided) return;
    // Backfilled instants lie behind: they are not where the schedule is, and may be so many that
    // the run that is not over would be forgotten for them.
    if (run.cause == RunCause::kBackfill) return;
    schedule.last_instant = run.instant;
    if (!reply.task.valid()) return;
    schedule.last_task = reply.task;
    std::erase(schedule.running, reply.task);
    schedule.running.push_back(reply.task);
}

bool Ended(const Firing& firing, TaskId task) {
    return std::ranges::find(firing.ended, task) != firing.ended.end();
}

// Those that have ended go first, then the oldest.
void ForgetTooMany(std::vector<TaskId>& running, const Firing& firing) {
    constexpr std::size_t kLimit = limits::kRunsRemembered;
    for (auto one = running.begin(); one != running.end() && running.size() > kLimit;) {
        one = Ended(firing, *one) ? running.erase(one) : std::next(one);
    }
    if (running.size() > kLimit) running.erase(running.begin(), running.end() - kLimit);
}

}  // namespace

std::optional<RunReply> NoRoomFor(const Schedule& schedule, const Firing& firing) {
    if (firing.advance || !RunsMatter(schedule.spec)) return std::nullopt;
    auto remembered = std::ranges::count_if(firing.runs, [](const PlannedRun& run) {
        return run.task && run.cause != RunCause::kBackfill;
    });
    auto live =
        std::ranges::count_if(schedule.running, [&](TaskId task) { return !Ended(firing, task); });
    if (remembered == 0 || live + remembered <= limits::kRunsRemembered) return std::nullopt;
    RunReply reply{.kind = RunReply::Kind::kRefused};
    reply.message = fmt::format(
        "schedule {} has {} runs that are not over, and the limit is {}: wait for some to end, or "
        "cancel them",
        base::Quoted(schedule.spec.name),
        live,
        limits::kRunsRemembered
    );
    return reply;
}

void Advance(Schedule& schedule, const Firing& firing, std::span<const RunReply> replies) {
    CHECK(firing.runs.size() == replies.size());
    const std::vector<TaskId> running_before = schedule.running;
    if (firing.advance) {
        ++schedule.turn;
        schedule.considered_at = firing.advance->considered_at;
        schedule.next_at = firing.advance->next_at;
        schedule.queued_at = firing.advance->queued_at;
        schedule.running = firing.advance->running;
    }
    for (std::size_t i = 0; i < replies.size(); ++i) {
        RememberRun(schedule, firing.runs[i], replies[i]);
    }
    ForgetTooMany(schedule.running, firing);
    // A plan made from a look before this one does not know of its runs.
    bool unknown = !firing.advance && schedule.running != running_before;
    if (unknown && RunsMatter(schedule.spec)) ++schedule.turn;
}

}  // namespace stint::store
