#include "services/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/thread.h"
#include "model/schedule_plan.h"
#include "store/finished.h"
#include "store/quiet.h"

namespace stint::services {

namespace {

using model::RunCause;
using model::Schedule;
using store::Firing;
using store::FiringReply;
using store::PlannedRun;
using store::RunReply;
using store::VisitFiring;

constexpr int kForgottenAtOnce = 1'000;
constexpr std::size_t kFiredAtOnce = 100;
constexpr std::size_t kVisitsAtOnce = 500;

Firing ToFiring(const Schedule& schedule, const model::SchedulePlan& plan) {
    Duration keep = KeepOf(schedule.spec, RunCause::kTimed);
    Firing firing{.schedule = schedule.id, .runs = {}, .advance = {}};
    for (const auto& [at, why] : plan.skipped) {
        firing.runs.push_back(
            {.instant = at, .cause = RunCause::kTimed, .task = {}, .skipped = why, .keep = keep}
        );
    }
    for (Time at : plan.fire) {
        firing.runs.push_back(
            {.instant = at,
             .cause = RunCause::kTimed,
             .task = TaskOf(schedule, at, "", RunCause::kTimed),
             .skipped = {},
             .keep = keep}
        );
    }
    firing.advance = store::FiringAdvance{
        .revision = schedule.revision,
        .turn = schedule.turn,
        .considered_at = plan.considered_at,
        .next_at = plan.next_at,
        .queued_at = plan.queued_at,
        .running = plan.running};
    return firing;
}

std::size_t BytesOf(const Firing& firing) {
    std::size_t bytes = 0;
    for (const PlannedRun& run : firing.runs) bytes += run.task ? run.task->input.size() : 0;
    return bytes;
}
std::size_t BytesOf(const VisitFiring& firing) {
    return firing.run && firing.run->task ? firing.run->task->input.size() : 0;
}

// The first few that may share a transaction.
template <class OneFiring>
std::size_t TogetherOf(std::span<const OneFiring> firings) {
    constexpr std::size_t kMost = std::is_same_v<OneFiring, Firing> ? kFiredAtOnce : kVisitsAtOnce;
    std::size_t count = 0, bytes = 0;
    while (count < std::min(kMost, firings.size())) {
        bytes += BytesOf(firings[count]);
        if (count > 0 && bytes > model::limits::kGroupBytes) break;
        ++count;
    }
    return count;
}

}  // namespace

Scheduler::Scheduler(Parts parts, SchedulerOptions options)
    : parts_(std::move(parts)), options_(options), schedules_(parts_.store.Schedules()) {
}

Scheduler::~Scheduler() {
    Stop();
}

void Scheduler::Start() {
    std::lock_guard guard(life_);
    thread_ = base::StartThread([this](std::stop_token stop) {
        while (!stop.stop_requested()) pulse_.Wait(parts_.clock, stop, RunOnce());
    });
}

void Scheduler::Stop() {
    std::lock_guard guard(life_);
    if (!thread_.joinable()) return;
    thread_.request_stop();
    thread_.join();
}

base::Instant Scheduler::RunOnce() {
    try {
        return Round();
    } catch (const std::exception& error) {
        told_ = true;
        parts_.log.Warn("schedules wait for the store", {{"error", error.what()}});
        return parts_.clock.Now() + options_.error_wait;
    }
}

base::Instant Scheduler::Round() {
    base::Instant begun = parts_.clock.Now();
    if (!told_.exchange(false) && begun < forget_at_) {
        auto quiet = store::QuietFor(parts_.store, &store::Quiet::schedules, looked_);
        if (quiet) return std::min(begun + std::min(*quiet, options_.look_every), forget_at_);
    }
    looked_ = base::SystemClock().Now();
    // Those that cannot be planned here stay due: one looks past them.
    const int passed_over = std::exchange(unplanned_, 0);
    const int limit = model::limits::kSchedulesDue + passed_over;
    store::DueReply due = schedules_.Due(limit, model::limits::kVisitsDue);
    fired_ = 0;
    std::optional<Time> next = due.next_at;
    auto sooner = [&](const std::optional<Time>& at) {
        if (at) next = next ? std::min(*next, *at) : *at;
    };
    if (!due.schedules.empty()) {
        std::vector<Firing> firings = Plan(due);
        unplanned_ = static_cast<int>(due.schedules.size() - firings.size());
        for (const Firing& firing : firings) sooner(firing.advance->next_at);
        FireAll(firings, [this](auto some) { return schedules_.Fire(some); });
    }
    if (!due.visits.empty()) {
        std::vector<VisitFiring> firings = PlanVisits(due);
        for (const VisitFiring& firing : firings) sooner(firing.next_at);
        FireAll(firings, [this](auto some) { return schedules_.FireVisits(some); });
    }
    if (begun >= forget_at_) {
        bool more = schedules_.ForgetRuns(kForgottenAtOnce) == kForgottenAtOnce;
        if (!more) forget_at_ = begun + options_.forget_every;
    }
    bool all = due.schedules.size() < static_cast<std::size_t>(limit) &&
               due.visits.size() < model::limits::kVisitsDue;
    // Others do it, or nobody can: no reason to hurry.
    if (!all && (fired_ > 0 || unplanned_ > passed_over)) return begun;
    Duration wait = options_.look_every;
    if (next) {
        // Rounded up: a look before the time would find nothing.
        auto until = std::chrono::ceil<Duration>(*next - due.now);
        wait = std::clamp(until, Duration{fired_ > 0 ? 0 : 50}, wait);
    }
    return begun + wait;
}

// ---- planning ----------------------------------------------------------------------------------

void Scheduler::LookForFinished(const store::DueReply& due) {
    finished_.clear();
    asked_to_end_.clear();
    std::vector<TaskId> asked;
    for (const Schedule& schedule : due.schedules) {
        if (!RunsMatter(schedule.spec)) continue;
        asked.insert(asked.end(), schedule.running.begin(), schedule.running.end());
    }
    if (asked.empty()) return;
    store::EachFinished(
        asked,
        [&](auto some) { return parts_.store.Finished(some); },
        [&](const store::FinishedTask& task) { finished_.insert(task.id); }
    );
}

model::RunsNow Scheduler::LookAtRuns(const Schedule& schedule) {
    model::RunsNow runs;
    if (!RunsMatter(schedule.spec)) return runs;
    const model::TimingSpec::Kind kind = schedule.spec.timing.kind;
    const bool when =
        kind == model::TimingSpec::Kind::kAfterEnd || kind == model::TimingSpec::Kind::kAfterStart;
    auto later = [](std::optional<Time>& latest, const std::optional<Time>& at) {
        if (at) latest = std::max(latest.value_or(*at), *at);
    };
    for (TaskId task : schedule.running) {
        if (finished_.contains(task) && !when) continue;
        auto record = parts_.store.Get(task);
        if (record && !model::IsTerminal(record->state)) {
            runs.live.push_back(task);
            if (record->cancel_requested) asked_to_end_.insert(task);
        } else if (when && record) {
            later(runs.ended_at, record->finished_at);
            // An execution goes on after every step: it began when it was made.
            bool steps = record->type == model::kStepsType;
            later(runs.started_at, steps ? record->created_at : record->claimed_at);
        }
    }
    return runs;
}

void Scheduler::Complain(const Schedule& schedule, const Error& error) {
    base::Instant now = parts_.clock.Now();
    base::Instant& again = complained_[schedule.id];
    if (now < again) return;
    again = now + options_.complain_every;
    parts_.log.Error(
        "a schedule cannot be planned here, and waits for a node that can",
        {{"schedule", schedule.spec.name}, {"why", error.message}}
    );
}

std::optional<Firing> Scheduler::PlanOne(Planner& planner, const Schedule& schedule, Time now) {
    auto prepared = planner.Prepare(schedule.spec, schedule.created_at);
    if (!prepared) {
        Complain(schedule, prepared.error());
        return std::nullopt;
    }
    model::SchedulePlan plan =
        PlanSchedule(schedule, prepared->timing, prepared->excluded, LookAtRuns(schedule), now);
    std::erase_if(plan.cancel, [this](TaskId task) { return asked_to_end_.contains(task); });
    if (!plan.cancel.empty()) {
        parts_.store.Cancel(plan.cancel, "schedule:" + schedule.spec.name, "the next run is due");
    }
    return ToFiring(schedule, plan);
}

std::vector<Firing> Scheduler::Plan(const store::DueReply& due) {
    Planner planner(schedules_, parts_.zones);
    LookForFinished(due);
    std::vector<Firing> firings;
    for (const Schedule& schedule : due.schedules) {
        if (auto firing = PlanOne(planner, schedule, due.now)) {
            firings.push_back(std::move(*firing));
        }
    }
    return firings;
}

std::vector<VisitFiring> Scheduler::PlanVisits(const store::DueReply& due) {
    Planner planner(schedules_, parts_.zones);
    std::map<model::ScheduleId, std::pair<const Schedule*, model::ExcludedDays>> schedules;
    for (const Schedule& schedule : due.of_visits) {
        auto prepared = planner.Prepare(schedule.spec, schedule.created_at);
        if (prepared) {
            schedules[schedule.id] = {&schedule, std::move(prepared->excluded)};
            continue;
        }
        Complain(schedule, prepared.error());
    }
    std::vector<VisitFiring> firings;
    for (const model::Visit& visit : due.visits) {
        auto found = schedules.find(visit.schedule);
        if (found == schedules.end()) continue;
        const auto& [schedule, excluded] = found->second;
        model::VisitPlan plan = PlanVisit(schedule->spec, visit, excluded, due.now);
        VisitFiring& firing = firings.emplace_back();
        firing.schedule = visit.schedule;
        firing.revision = schedule->revision;
        firing.entity = visit.entity;
        firing.expected_next_at = visit.next_at;
        firing.next_at = plan.next_at;
        if (!plan.fire) continue;
        firing.run = PlannedRun{
            .instant = visit.next_at,
            .cause = RunCause::kTimed,
            .task = TaskOf(*schedule, visit.next_at, visit.entity, RunCause::kTimed, due.now),
            .skipped = {},
            .keep = KeepOf(schedule->spec, RunCause::kTimed)};
    }
    return firings;
}

// ---- firing ------------------------------------------------------------------------------------

template <class OneFiring, class Fire>
void Scheduler::FireAll(const std::vector<OneFiring>& firings, Fire fire) {
    std::span<const OneFiring> left(firings);
    while (!left.empty()) {
        auto some = left.first(TogetherOf(left));
        left = left.subspan(some.size());
        try {
            Tell(fire(some));
            continue;
        } catch (const std::exception& error) {
            if (some.size() == 1) throw;
        }
        // One of them may be to blame: each for itself, so that the others are not held up. What
        // was committed all the same is lost now, and harmless.
        for (const OneFiring& one : some) {
            try {
                Tell(fire(std::span<const OneFiring>(&one, 1)));
            } catch (const std::exception& error) {
                parts_.log.Warn(
                    "a schedule could not be fired and is tried again",
                    {{"schedule", one.schedule.ToString()}, {"error", error.what()}}
                );
            }
        }
    }
}

void Scheduler::Tell(std::span<const FiringReply> replies) {
    std::vector<wake::Hint> hints;
    for (const FiringReply& reply : replies) {
        fired_ += reply.kind == FiringReply::Kind::kFired ? 1 : 0;
        for (const RunReply& run : reply.runs) {
            if (run.kind == RunReply::Kind::kRefused) {
                parts_.log.Warn("a run of a schedule got no task", {{"why", run.message}});
            }
            if (run.kind != RunReply::Kind::kCreated || !run.due_now) continue;
            auto same = [&](const wake::Hint& hint) { return hint.queue == run.queue; };
            if (std::ranges::any_of(hints, same)) continue;
            hints.push_back({wake::Hint::Kind::kTaskAvailable, run.queue, {}});
        }
    }
    if (!hints.empty()) parts_.wake.Signal(hints);
}

}  // namespace stint::services
