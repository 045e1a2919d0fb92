#include "node/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "model/limits.h"
#include "model/placement.h"
#include "node/why_order.h"

namespace stint::node {

namespace {

using namespace stint::model;  // NOLINT(google-build-using-namespace): the doors speak its words

constexpr std::int64_t kLookedAt = 20'000;  // waiting tasks of one queue
constexpr int kAskedEach = 200;             // tasks of order keys, which differ one by one
constexpr Duration kPaceOver = std::chrono::minutes{10};
constexpr std::size_t kShown = 5;  // ids in a sentence

struct Worker {
    SessionRecord session;
    store::ClaimRequest claimer;
};

std::vector<Worker> LiveWorkers(store::Store& store) {
    std::vector<Worker> workers;
    for (SessionRecord& session : store.Sessions()) {
        if (session.state != SessionState::kLive) continue;
        Worker worker;
        worker.claimer.session = session.id;
        worker.claimer.queues = session.queues;
        worker.claimer.types = session.types;
        worker.claimer.labels = session.labels;
        worker.session = std::move(session);
        workers.push_back(std::move(worker));
    }
    return workers;
}

std::string Cure(Condition condition, const TaskRecord& task) {
    std::string_view name = ConditionName(condition);
    auto is = [&](std::string_view other) { return name == other; };
    std::string id = task.id.ToString();
    if (is("not_due")) return fmt::format("time; or: stint task edit {} --at now", id);
    if (is("start_by_passed")) return "nothing; submit it again with a later --start-by";
    if (is("queue_paused")) return fmt::format("stint queue resume {}", task.queue);
    if (is("queue_not_served")) return fmt::format("a worker with --queues {}", task.queue);
    if (is("type_not_handled")) return fmt::format("a worker that handles {}", task.type);
    if (is("cancel_requested")) return fmt::format("stint task retry {}, when it is over", id);
    if (is("suspect_must_be_alone")) return "a worker that runs nothing else for a moment";
    if (is("session_not_live")) return "the worker opens a new session by itself, or is started";
    if (is("behind_in_order")) {
        return "the end of the task in front; where that has failed: stint task retry or cancel";
    }
    if (is("label_missing")) {
        return fmt::format("stint worker start --labels {}", fmt::join(task.placement.labels, ","));
    }
    if (is("no_room")) return "the end of a task there; a higher limit; more workers";
    if (is("resource_withheld")) return "the probe of that worker succeeds; another worker";
    if (is("resource_closed")) return "time; or: stint resource open NAME";
    if (is("rate_limited")) return "time; or a higher rate: stint resource set NAME --rate";
    if (is("resource_full")) {
        return "the end of a holder; or more: stint resource set NAME --capacity N";
    }
    return {};
}

WhyReason ToReason(const store::Explanation& explanation, const TaskRecord& task) {
    bool never = explanation.detail.find("never, until") != std::string::npos;
    return {
        .condition = explanation.condition,
        .name = std::string(ConditionName(explanation.condition)),
        .text = std::string(ConditionText(explanation.condition)),
        .detail = explanation.detail,
        .cure = never ? "more of it: stint resource set NAME --capacity N"
                      : Cure(explanation.condition, task),
        .workers = 1};
}

WhyReason NoWorker() {
    return {
        .condition = Condition::kSessionNotLive,
        .name = "no_worker",
        .text = "No worker is running on this store.",
        .detail = {},
        .cure = "stint worker start"};
}

// What a worker made for this task would say: only the task's own reasons are left.
store::ClaimRequest MadeFor(const TaskRecord& task) {
    store::ClaimRequest claimer;
    claimer.queues = {task.queue};
    claimer.types = {task.type};
    claimer.labels = task.placement.labels;
    return claimer;
}

// The same reason of several workers is said once, with their number.
void Merge(std::vector<WhyReason>& reasons, WhyReason reason) {
    for (WhyReason& there : reasons) {
        if (there.name != reason.name || there.detail != reason.detail) continue;
        there.workers += reason.workers;
        return;
    }
    reasons.push_back(std::move(reason));
}

bool Carries(const Worker& worker, const std::string& label) {
    const auto& labels = worker.session.labels;
    return std::ranges::find(labels, label) != labels.end();
}

bool Serves(const Worker& worker, const TaskRecord& task) {
    auto among = [](const std::vector<std::string>& names, const std::string& name) {
        return std::ranges::find(names, name) != names.end();
    };
    const SessionRecord& session = worker.session;
    return (session.queues.empty() || among(session.queues, task.queue)) &&
           among(session.types, task.type);
}

// Who carries the label, and what that worker does now.
std::string CarriedBy(
    const std::string& label, const TaskRecord& task, const std::vector<Worker>& workers
) {
    std::vector<std::string> carriers;
    std::size_t count = 0;
    for (const Worker& worker : workers) {
        if (!Carries(worker, label) || ++count > kShown) continue;
        const SessionRecord& session = worker.session;
        std::string does = session.running >= session.slots ? "which is busy" : "which has room";
        if (!Serves(worker, task)) does = "which does not serve its queue or type";
        carriers.push_back(fmt::format(
            "worker {} on {} (pid {}), {}",
            session.id.ToString().substr(0, 8),
            session.hostname,
            session.pid,
            does
        ));
    }
    std::string more = count > kShown ? fmt::format("; and {} more", count - kShown) : "";
    return carriers.empty() ? "by no live worker"
                            : fmt::format("by {}{}", fmt::join(carriers, "; by "), more);
}

// One reason for each required label that some live worker is without.
std::vector<WhyReason> LabelsMissing(const TaskRecord& task, const std::vector<Worker>& workers) {
    std::vector<WhyReason> reasons;
    for (const std::string& label : task.placement.labels) {
        auto without = std::ranges::count_if(workers, [&](const Worker& worker) {
            return !Carries(worker, label);
        });
        if (without == 0 && !workers.empty()) continue;
        WhyReason reason = ToReason({.condition = Condition::kLabelMissing, .detail = {}}, task);
        reason.detail = fmt::format(
            "needs label {}: carried {}", base::Quoted(label), CarriedBy(label, task, workers)
        );
        reason.workers = static_cast<int>(without);
        reasons.push_back(std::move(reason));
    }
    return reasons;
}

// The reasons of all workers. `eligible`: one of them has none.
std::vector<WhyReason> Reasons(
    store::Store& store, const TaskRecord& task, const std::vector<Worker>& workers, bool& eligible
) {
    std::vector<WhyReason> reasons;
    eligible = false;
    for (const Worker& worker : workers) {
        for (const store::Explanation& one : store.Explain(task.id, worker.claimer)) {
            if (one.condition == Condition::kEligible) {
                eligible = true;
            } else if (one.condition != Condition::kLabelMissing) {
                Merge(reasons, ToReason(one, task));
            }
        }
    }
    if (workers.empty()) reasons.push_back(NoWorker());
    for (WhyReason& one : LabelsMissing(task, workers)) reasons.push_back(std::move(one));
    if (!workers.empty()) return reasons;
    for (const store::Explanation& one : store.Explain(task.id, MadeFor(task))) {
        bool own =
            one.condition != Condition::kSessionNotLive && one.condition != Condition::kEligible;
        if (own) Merge(reasons, ToReason(one, task));
    }
    for (WhyReason& reason : reasons) reason.workers = 0;
    return reasons;
}

WhyReason BlockedReason(store::Store& store, const TaskRecord& task) {
    std::vector<std::string> open;
    for (const WaitMember& member : store.Waited(task.id)) {
        if (!member.ended) open.push_back(member.task.ToString());
    }
    std::size_t count = open.size();
    if (open.size() > kShown) open.resize(kShown);
    return {
        .condition = Condition::kNotWaiting,
        .name = "blocked",
        .text = fmt::format("It waits for {} other tasks.", count),
        .detail = fmt::format("{}{}", fmt::join(open, ", "), count > kShown ? ", …" : ""),
        .cure = fmt::format("their end; see stint task tree {}", task.id.ToString())};
}

WhyReason BackgroundReason(const TaskRecord& task) {
    std::string detail = task.reason;
    if (task.expires_at) {
        detail +=
            fmt::format("{}until {}", detail.empty() ? "" : ", ", base::Iso8601(*task.expires_at));
    }
    return {
        .condition = Condition::kNotWaiting,
        .name = "background",
        .text = "It goes on outside; somebody completes it with its token.",
        .detail = detail,
        .cure = "its completion, or its timeout"};
}

store::ListRequest WaitingOf(const std::string& queue) {
    store::ListRequest request;
    request.filter.queues = {queue};
    request.filter.states = {State::kOpen, State::kError};
    request.limit = limits::kListPage;
    return request;
}

// Calls `look` for the newest waiting tasks of the queue; false: there are more than those.
template <class Look>
bool ForWaiting(store::Store& store, const std::string& queue, Look look) {
    store::ListRequest request = WaitingOf(queue);
    for (std::int64_t seen = 0; seen < kLookedAt;) {
        TaskPage page = store.List(request);
        for (const TaskRecord& task : page.tasks) look(task);
        seen += static_cast<std::int64_t>(page.tasks.size());
        if (!page.next) return true;
        request.before = page.next;
    }
    return false;
}

// Tasks of the queue that finished per millisecond, lately.
double Pace(store::Store& store, const std::string& queue, Time now) {
    store::ListRequest request;
    request.filter.queues = {queue};
    request.filter.states = {State::kComplete, State::kDead};
    request.filter.finished_from = now - kPaceOver;
    request.limit = limits::kListPage;
    TaskPage page = store.List(request);
    if (page.tasks.empty()) return 0;
    Time first = now;
    for (const TaskRecord& task : page.tasks) {
        if (task.finished_at) first = std::min(first, *task.finished_at);
    }
    auto over = std::chrono::duration_cast<Duration>(now - first);
    return static_cast<double>(page.tasks.size()) /
           static_cast<double>(std::max<std::int64_t>(1, over.count()));
}

Ahead LookAhead(store::Store& store, const TaskRecord& task, Time now) {
    Ahead ahead;
    bool all = ForWaiting(store, task.queue, [&](const TaskRecord& other) {
        if (other.id == task.id || other.due_at > now) return;
        bool before = other.priority > task.priority ||
                      (other.priority == task.priority && other.id < task.id);
        if (before) ++ahead.tasks;
    });
    ahead.more = !all;
    double pace = Pace(store, task.queue, now);
    if (pace > 0) {
        ahead.takes =
            Duration(static_cast<std::int64_t>(static_cast<double>(ahead.tasks + 1) / pace));
    }
    return ahead;
}

}  // namespace

std::optional<Why> ExplainTask(store::Store& store, TaskId id) {
    auto task = store.Get(id);
    if (!task) return std::nullopt;
    Why why{.task = std::move(*task)};
    std::vector<Worker> workers = LiveWorkers(store);
    why.workers = static_cast<int>(workers.size());
    switch (why.task.state) {
        case State::kOpen:
        case State::kError:
            why.reasons = Reasons(store, why.task, workers, why.eligible);
            break;
        case State::kBlocked:
            why.reasons = {BlockedReason(store, why.task)};
            break;
        case State::kBackground:
            why.reasons = {BackgroundReason(why.task)};
            break;
        case State::kInProgress:
        case State::kComplete:
        case State::kCancelled:
        case State::kDead:
            break;
    }
    if (auto deadlock = OrderDeadlock(store, why.task)) {
        why.reasons.insert(why.reasons.begin(), std::move(*deadlock));
    }
    if (why.eligible) why.ahead = LookAhead(store, why.task, store.Now());
    return why;
}

// ---- a whole queue ----

namespace {

// Tasks of one kind are kept by the same: the claim looks at nothing else of them.
struct Kind {
    std::string type;
    std::string placement;
    bool due = false, late = false, suspect = false, cancelled = false;
    TaskId single;  // of order keys: each by itself, as long as there are few
    auto Tie() const { return std::tie(type, placement, due, late, suspect, cancelled, single); }
    friend bool operator<(const Kind& a, const Kind& b) { return a.Tie() < b.Tie(); }
};

struct Crowd {
    std::int64_t tasks = 0;
    TaskRecord example;
};

// What keeps it, in one word: the first reason that every worker has, else that of the worker with
// the fewest. Reasons that only name another worker's business come last.
WhyReason MainReason(const std::vector<WhyReason>& reasons, int workers) {
    for (const WhyReason& reason : reasons) {
        if (reason.workers == workers) return reason;
    }
    auto most = std::ranges::max_element(reasons, {}, &WhyReason::workers);
    return most == reasons.end() ? WhyReason{} : *most;
}

}  // namespace

QueueWhy ExplainQueue(store::Store& store, const std::string& queue) {
    QueueWhy why{.queue = queue};
    std::vector<Worker> workers = LiveWorkers(store);
    why.workers = static_cast<int>(workers.size());
    Time now = store.Now();
    std::map<Kind, Crowd> crowds;
    int singles = 0;
    ForWaiting(store, queue, [&](const TaskRecord& task) {
        ++why.looked_at;
        Kind kind{
            .type = task.type,
            .placement = PlacementText(task.placement),
            .due = task.due_at <= now,
            .late = task.start_by && *task.start_by <= now,
            .suspect = task.suspect,
            .cancelled = task.cancel_requested,
            .single = {}};
        if (!task.placement.order_key.empty() && singles < kAskedEach) {
            ++singles;
            kind.single = task.id;
        }
        Crowd& crowd = crowds[kind];
        if (crowd.tasks++ == 0) crowd.example = task;
    });
    TaskFilter filter;
    filter.queues = {queue};
    filter.states = {State::kOpen, State::kError};
    for (const auto& [key, count] : store.Counts(filter)) why.waiting += count;
    why.waiting = std::max(why.waiting, why.looked_at);

    std::map<std::pair<std::string, std::string>, QueueShare> shares;
    for (const auto& [kind, crowd] : crowds) {
        bool eligible = false;
        std::vector<WhyReason> reasons = Reasons(store, crowd.example, workers, eligible);
        WhyReason reason;
        if (eligible || reasons.empty()) {
            reason.name = ConditionName(Condition::kEligible);
            reason.text = ConditionText(Condition::kEligible);
            reason.cure = "free slots: more of them, or more workers";
        } else {
            reason = workers.empty() ? reasons.front() : MainReason(reasons, why.workers);
        }
        // Each waits for another instant: together they are just not due.
        std::string detail = kind.due ? reason.detail : std::string();
        QueueShare& share = shares[{reason.name, detail}];
        if (share.tasks == 0) {
            share = {reason.name, reason.text, detail, reason.cure, 0, crowd.example.id};
        }
        share.tasks += crowd.tasks;
    }
    for (auto& [key, share] : shares) why.shares.push_back(std::move(share));
    std::ranges::stable_sort(why.shares, std::greater<>{}, &QueueShare::tasks);
    return why;
}

}  // namespace stint::node
