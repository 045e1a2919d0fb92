// Claiming, and explaining why a claim would skip a task: the same list of conditions.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/text.h"
#include "store/claimer_offer.h"
#include "store/memory/ops.h"
#include "store/place.h"

namespace stint::store::memory {

namespace {

constexpr std::array kConditions = {
    Condition::kNotWaiting,
    Condition::kNotDue,
    Condition::kStartByPassed,
    Condition::kQueuePaused,
    Condition::kQueueNotServed,
    Condition::kTypeNotHandled,
    Condition::kCancelRequested,
    Condition::kSuspectMustBeAlone,
    Condition::kSessionNotLive,
    Condition::kBehindInOrder,
};
// And eligible, and those that the plan decides.
static_assert(kConditions.size() + 1 == static_cast<std::size_t>(Condition::kLabelMissing));

bool Contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool Ops::Applies(Condition condition, const Task& task, const ClaimRequest& claimer) const {
    const TaskRecord& record = task.record;
    switch (condition) {
        case Condition::kEligible:
            return false;
        case Condition::kNotWaiting:
            return !IsWaiting(record.state);
        case Condition::kNotDue:
            return record.due_at > now_ && !base::Planted(base::Bug::kClaimIgnoresDue);
        case Condition::kStartByPassed:
            return record.start_by && *record.start_by <= now_;
        case Condition::kQueuePaused: {
            auto queue = data_.queues.find(record.queue);
            return queue != data_.queues.end() && queue->second.paused;
        }
        case Condition::kQueueNotServed:
            return !claimer.queues.empty() && !Contains(claimer.queues, record.queue);
        case Condition::kTypeNotHandled:
            // Without a session it is the general question; then no types means any type.
            if (!claimer.session.valid() && claimer.types.empty()) return false;
            return !Contains(claimer.types, record.type);
        case Condition::kCancelRequested:
            return record.cancel_requested;
        case Condition::kSuspectMustBeAlone:
            return record.suspect && !claimer.suspect;
        case Condition::kSessionNotLive:
            return claimer.session.valid() && !IsLive(claimer.session) &&
                   !base::Planted(base::Bug::kClaimIgnoresSession);
        case Condition::kBehindInOrder:
            return IsBehind(task);
        default:
            break;
    }
    base::CheckFailed(__FILE__, __LINE__, "Applies", "not a condition");
}

bool Ops::Skips(const Task& task, const ClaimRequest& claimer) const {
    return std::any_of(kConditions.begin(), kConditions.end(), [&](Condition condition) {
        return Applies(condition, task, claimer);
    });
}

bool Ops::OnlyNotDue(const Task& task, const ClaimRequest& claimer) const {
    return std::all_of(kConditions.begin(), kConditions.end(), [&](Condition condition) {
        return Applies(condition, task, claimer) == (condition == Condition::kNotDue);
    });
}

ClaimReply Ops::Claim(const ClaimRequest& request) {
    ClaimReply reply;
    bool live = IsLive(request.session);
    if (base::Planted(base::Bug::kClaimIgnoresSession))
        live = data_.sessions.contains(request.session);
    if (!live) {
        reply.session_live = false;
        return reply;
    }
    ClaimRequest as_suspect = request;
    as_suspect.suspect = true;
    std::vector<Task*> ready;
    for (auto& [id, task] : data_.live) {
        if (task.lost) continue;
        if (OnlyNotDue(task, request)) {
            auto left = std::chrono::ceil<Duration>(task.record.due_at - now_);
            reply.next_due = std::min(reply.next_due.value_or(left), left);
        }
        if (task.record.suspect && !Skips(task, as_suspect)) reply.suspects_waiting = true;
        if (request.suspect && !task.record.suspect) continue;
        if (!Skips(task, request)) ready.push_back(&task);
    }
    int limit = std::clamp(request.limit, 0, request.suspect ? 1 : limits::kClaimBatch);
    Lines lines = LinesOf(ready);
    Offer offer = OfferOf(request, lines.lines);
    ClaimPlan plan = PlanClaim(lines.lines, offer, limit);
    ready.clear();
    for (const ClaimPlan::Pick& pick : plan.picks) {
        ready.push_back(lines.tasks[pick.line][pick.waiter]);
        const TaskRecord& record = ready.back()->record;
        data_.resources.Give(record.queue, record.tenant, pick.had);
    }
    const std::vector<Task*> picked = ready;
    std::stable_sort(ready.begin(), ready.end(), [](const Task* a, const Task* b) {
        return std::pair(-a->record.priority, a->position) <
               std::pair(-b->record.priority, b->position);
    });
    for (Task* task : ready) reply.leases.push_back(Take(*task, request));
    TakeUnits(plan, picked, reply);
    // What will be open by itself is worth another look then.
    for (const std::vector<Obstacle>& left : plan.left) {
        for (const Obstacle& obstacle : left) {
            auto until = Until(obstacle, offer);
            if (!until) continue;
            auto wait = std::max(Duration{1}, std::chrono::ceil<Duration>(*until - now_));
            reply.next_due = std::min(reply.next_due.value_or(wait), wait);
        }
    }
    return reply;
}

Lease Ops::Take(Task& task, const ClaimRequest& request) {
    TaskRecord& record = task.record;
    const SessionRecord& session = data_.sessions.at(request.session).record;
    Why why{.actor = "worker", .reason = {}, .session = session.id};
    if (record.state == State::kError) Move(task, Event::kRetryDue, why);
    ++record.attempt;
    ++record.claim_no;
    task.token = random_.MakeId<LeaseToken>();
    task.alone = request.suspect;
    Move(task, Event::kClaim, why);
    record.session = session.id;
    record.node = session.node;
    record.claimed_at = now_;
    record.progress.reset();
    record.reason.clear();
    task.deadline.reset();
    if (record.timeout > Duration::zero()) task.deadline = now_ + record.timeout;
    task.attempts.push_back(
        {.task = record.id,
         .claim_no = record.claim_no,
         .attempt = record.attempt,
         .generation = record.generation,
         .session = session.id,
         .node = session.node,
         .started_at = now_,
         .alone = task.alone}
    );
    return {
        .task = record.id,
        .token = task.token,
        .tenant = record.tenant,
        .parent = record.parent,
        .type = record.type,
        .queue = record.queue,
        .priority = record.priority,
        .input = record.input,
        .attempt = record.attempt,
        .claim_no = record.claim_no,
        .generation = record.generation,
        .crash_count = record.crash_count,
        .alone = task.alone,
        .stage = record.stage,
        .placement = record.placement,
        .retry = record.retry,
        .timeout = record.timeout,
        .idempotency_key = "task-" + record.id.ToString(),
        .claimed_at = now_,
    };
}

// Those that the plan put behind others hold nothing themselves.
void Ops::TakeUnits(const ClaimPlan& plan, const std::vector<Task*>& picked, ClaimReply& reply) {
    std::vector<int> groups;
    for (const ClaimPlan::Pick& pick : plan.picks) groups.push_back(pick.group);
    const std::vector<bool> holds = Holders(groups, plan.seats);
    std::vector<std::int64_t> names(plan.seats.size());
    for (std::int64_t& name : names) name = static_cast<std::int64_t>(random_.Next() >> 1 | 1);
    std::map<TaskId, int> group_of;
    for (std::size_t i = 0; i < picked.size(); ++i) {
        const TaskRecord& record = picked[i]->record;
        ResourceBook& book = data_.resources;
        if (holds[i]) {
            book.Take(
                record.id, book.NeedsOf(record.placement.needs, record.queue, record.type), now_
            );
        }
        if (groups[i] < 0) continue;
        book.Join(record.id, names[static_cast<std::size_t>(groups[i])]);
        group_of[record.id] = groups[i];
    }
    for (Lease& lease : reply.leases) {
        auto group = group_of.find(lease.task);
        if (group == group_of.end()) continue;
        lease.group = names[static_cast<std::size_t>(group->second)];
        lease.seats = plan.seats[static_cast<std::size_t>(group->second)];
    }
}

WaitingLine Ops::LineOf(const TaskRecord& record) const {
    WaitingLine line;
    line.tenant = record.tenant;
    line.queue = record.queue;
    line.type = record.type;
    line.priority = record.priority;
    line.needs = data_.resources.NeedsOf(record.placement.needs, record.queue, record.type);
    line.labels = record.placement.labels;
    return line;
}

Ops::Lines Ops::LinesOf(const std::vector<Task*>& ready) const {
    using LineKey =
        std::tuple<TenantId, std::string, std::string, int, Needs, std::vector<std::string>>;
    Lines lines;
    std::map<LineKey, std::size_t> known;
    for (Task* task : ready) {
        const TaskRecord& record = task->record;
        LineKey key{
            record.tenant,
            record.queue,
            record.type,
            record.priority,
            record.placement.needs,
            record.placement.labels};
        auto [at, is_new] = known.try_emplace(std::move(key), lines.lines.size());
        if (is_new) {
            lines.lines.push_back(LineOf(record));
            lines.tasks.emplace_back();
        }
        lines.tasks[at->second].push_back(task);
    }
    for (std::size_t i = 0; i < lines.lines.size(); ++i) {
        std::sort(lines.tasks[i].begin(), lines.tasks[i].end(), [](const Task* a, const Task* b) {
            return a->position < b->position;
        });
        for (const Task* task : lines.tasks[i]) {
            Time since = std::max(task->record.created_at, task->record.due_at);
            lines.lines[i].waiting.push_back({task->position, since});
        }
    }
    return lines;
}

Offer Ops::OfferOf(const ClaimRequest& request, const std::vector<WaitingLine>& lines) const {
    Offer offer = store::OfferOf(request, now_);
    offer.orders = data_.resources.orders;
    for (const WaitingLine& line : lines) {
        data_.resources.Supplies(line.needs, now_, offer.supplies);
    }
    offer.leads = data_.resources.leads;
    return offer;
}

// What keeps a waiting task from a claim that takes all it can: what its line lacks, and what those
// before it take.
std::vector<Explanation> Ops::PlanReasons(Task& task, const ClaimRequest& claimer) {
    std::vector<Explanation> reasons;
    auto add = [&](const std::vector<Obstacle>& obstacles, const Offer& offer) {
        for (const Obstacle& obstacle : obstacles) {
            reasons.push_back({obstacle.condition, model::Detail(obstacle, offer)});
        }
    };
    std::vector<WaitingLine> own = {LineOf(task.record)};
    Offer alone = OfferOf(claimer, own);
    add(Obstacles(own.front(), alone), alone);
    if (!reasons.empty() || Skips(task, claimer)) return reasons;
    std::vector<Task*> ready;
    for (auto& [id, other] : data_.live) {
        if (claimer.suspect && !other.record.suspect) continue;
        if (!Skips(other, claimer)) ready.push_back(&other);
    }
    Lines lines = LinesOf(ready);
    Offer offer = OfferOf(claimer, lines.lines);
    ClaimPlan plan = PlanClaim(lines.lines, offer, static_cast<int>(ready.size()));
    for (std::size_t i = 0; i < lines.tasks.size(); ++i) {
        bool here =
            std::find(lines.tasks[i].begin(), lines.tasks[i].end(), &task) != lines.tasks[i].end();
        if (!here) continue;
        bool taken = std::ranges::any_of(plan.picks, [&](const ClaimPlan::Pick& pick) {
            return lines.tasks[pick.line][pick.waiter] == &task;
        });
        if (!taken) add(plan.left[i], offer);
        if (!reasons.empty()) continue;
        auto none = [](auto...) { return std::optional<std::int64_t>(); };
        PlaceAsked asked{.line = i, .position = task.position};
        reasons.push_back(StandsAt(lines.lines, plan, asked, none));
    }
    return reasons;
}

std::vector<Crowd> Ops::Crowds(const std::string& queue) {
    using Alike = std::tuple<std::string, std::string, bool, bool, bool, bool, bool>;
    std::map<Alike, Crowd> crowds;
    for (const auto& [id, task] : data_.live) {
        const TaskRecord& record = task.record;
        if (record.queue != queue || !IsWaiting(record.state)) continue;
        Crowd& crowd = crowds[{
            record.type,
            PlacementText(record.placement),
            record.due_at <= now_,
            record.start_by && *record.start_by <= now_,
            record.suspect,
            record.cancel_requested,
            IsBehind(task)}];
        ++crowd.tasks;
        crowd.last = std::max(crowd.last, id);
    }
    std::vector<Crowd> all;
    for (const auto& [key, crowd] : crowds) all.push_back(crowd);
    return all;
}

std::vector<Explanation> Ops::Explain(TaskId id, const ClaimRequest& claimer) {
    Task* task = Find(id);
    if (task == nullptr) return {};
    std::vector<Explanation> reasons;
    for (Condition condition : kConditions) {
        if (Applies(condition, *task, claimer))
            reasons.push_back({condition, Detail(condition, *task)});
        // Of a task that does not wait there is nothing more to say.
        if (condition == Condition::kNotWaiting && !reasons.empty()) return reasons;
    }
    for (Explanation& reason : PlanReasons(*task, claimer)) reasons.push_back(std::move(reason));
    if (reasons.empty())
        reasons.push_back({Condition::kEligible, Detail(Condition::kEligible, *task)});
    return reasons;
}

std::string Ops::Detail(Condition condition, const Task& task) const {
    const TaskRecord& record = task.record;
    switch (condition) {
        case Condition::kNotWaiting:
            return "it is " + std::string(StateName(record.state));
        case Condition::kNotDue:
            return "due at " + base::Iso8601(record.due_at);
        case Condition::kStartByPassed:
            return "start-by was " + base::Iso8601(*record.start_by);
        case Condition::kQueuePaused:
        case Condition::kQueueNotServed:
            return "queue " + base::Quoted(record.queue);
        case Condition::kTypeNotHandled:
            return "type " + base::Quoted(record.type);
        case Condition::kBehindInOrder:
            return BehindInOrder(
                record.placement.order_key,
                data_.ordered.at({record.tenant, record.placement.order_key}).begin()->second
            );
        default:
            return {};
    }
}

}  // namespace stint::store::memory
