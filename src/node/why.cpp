#include "node/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "model/limits.h"
#include "model/placement.h"
#include "model/worker_note.h"
#include "store/flows.h"
#include "store/resources.h"

namespace stint::node {

namespace {

using namespace stint::model;  // NOLINT(google-build-using-namespace): the doors speak its words

constexpr std::size_t kAsked = 150;   // crowds of a queue, each by itself
constexpr std::size_t kSampled = 50;  // and of the others so many
constexpr Duration kPaceOver = std::chrono::minutes{10};
constexpr std::size_t kShown = 5;  // ids in a sentence

struct Worker {
    SessionRecord session;
    store::ClaimRequest claimer;
};

// As its last heartbeat told.
store::ClaimRequest ClaimerOf(const SessionRecord& session) {
    WorkerNote note = NoteOf(session.worker_state);
    store::ClaimRequest claimer;
    claimer.session = session.id;
    claimer.queues = session.queues;
    claimer.types = session.types;
    claimer.labels = session.labels;
    claimer.withheld = std::move(note.withheld);
    claimer.queue_room = std::move(note.queue_room);
    claimer.type_room = std::move(note.type_room);
    claimer.resource_room = std::move(note.resource_room);
    return claimer;
}

std::vector<Worker> LiveWorkers(store::Store& store, const OwnWorker& own) {
    std::vector<Worker> workers;
    for (SessionRecord& session : store.Sessions()) {
        if (session.state != SessionState::kLive) continue;
        Worker worker{.session = std::move(session), .claimer = {}};
        if (own && worker.session.id == own->claimer.session) {
            worker.claimer = own->claimer;
            worker.session.running = own->running;
        } else {
            worker.claimer = ClaimerOf(worker.session);
        }
        workers.push_back(std::move(worker));
    }
    return workers;
}

// Workers that take the same are asked as one.
struct Alike {
    store::ClaimRequest claimer;
    int workers = 0;
};

std::vector<Alike> AsOne(const std::vector<Worker>& workers, const TaskRecord& task) {
    std::vector<Alike> all;
    auto tie = [](const store::ClaimRequest& one) {
        return std::tie(
            one.queues,
            one.types,
            one.labels,
            one.withheld,
            one.queue_room,
            one.type_room,
            one.resource_room,
            one.suspect
        );
    };
    for (const Worker& worker : workers) {
        store::ClaimRequest claimer = worker.claimer;
        // Of a suspect it is told by its first claim, and while it runs nothing it takes it next.
        claimer.suspect = task.suspect && worker.session.running == 0;
        auto there = std::ranges::find_if(all, [&](const Alike& one) {
            return tie(one.claimer) == tie(claimer);
        });
        if (there == all.end()) there = all.insert(all.end(), {std::move(claimer), 0});
        ++there->workers;
    }
    return all;
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

// What all workers say of a task.
struct Said {
    std::vector<WhyReason> reasons;
    // Of the worker that gets to it first, if one may take it: what it is, and what it takes
    // before.
    std::optional<store::ClaimRequest> taker;
    store::Explanation place;
};

void Add(Said& said, const store::Explanation& one, const Alike& alike, const TaskRecord& task) {
    if (one.condition == Condition::kEligible) {
        if (said.taker && said.place.ahead <= one.ahead) return;
        said.taker = alike.claimer;
        said.place = one;
    } else if (one.condition != Condition::kLabelMissing) {
        WhyReason reason = ToReason(one, task);
        reason.workers = alike.workers;
        Merge(said.reasons, std::move(reason));
    }
}

Said Ask(store::Store& store, const TaskRecord& task, const std::vector<Worker>& workers) {
    Said said;
    for (const Alike& alike : AsOne(workers, task)) {
        for (const store::Explanation& one : store.Explain(task.id, alike.claimer)) {
            Add(said, one, alike, task);
        }
    }
    if (workers.empty()) said.reasons.push_back(NoWorker());
    for (WhyReason& one : LabelsMissing(task, workers)) said.reasons.push_back(std::move(one));
    if (!workers.empty()) return said;
    for (const store::Explanation& one : store.Explain(task.id, MadeFor(task))) {
        bool own =
            one.condition != Condition::kSessionNotLive && one.condition != Condition::kEligible;
        if (own) Merge(said.reasons, ToReason(one, task));
    }
    for (WhyReason& reason : said.reasons) reason.workers = 0;
    return said;
}

// What a flow that left its function waits for: to make its task due changes nothing.
std::optional<WhyReason> FlowReason(store::Store& store, const TaskRecord& task) {
    auto history = store.Flows().Get(task.id);
    if (!history) return std::nullopt;
    WhyReason reason{.condition = Condition::kNotDue};
    const std::string& signal = history->flow.awaits;
    for (const FlowStep& step : history->steps) {
        if (step.state != StepState::kOpen) continue;
        std::string until;
        if (step.due_at) until = "until " + base::Iso8601(*step.due_at);
        if (step.kind == StepKind::kSignal && step.about == signal && !history->flow.came) {
            reason.name = "awaits_signal";
            reason.text = fmt::format("The flow waits for signal {}.", base::Quoted(signal));
            reason.detail = until.empty() ? "without end" : until;
            bool plain = signal.find_first_of(" \t\"'\\$`;&|<>()*?#~!") == std::string::npos;
            reason.cure = fmt::format(
                "stint flow signal {} {}", task.id.ToString(), plain ? signal : base::Quoted(signal)
            );
            return reason;
        }
        if (step.kind == StepKind::kSleep && step.due_at > history->now) {
            reason.name = "flow_sleeps";
            reason.text = "The flow sleeps.";
            reason.detail = fmt::format("step {}, {}", base::Quoted(step.name), until);
            reason.cure = "only time";
            return reason;
        }
    }
    return std::nullopt;
}

void NameWhatTheFlowAwaits(store::Store& store, Why& why) {
    auto not_due = std::ranges::find(why.reasons, Condition::kNotDue, &WhyReason::condition);
    if (not_due == why.reasons.end()) return;
    auto reason = FlowReason(store, why.task);
    if (!reason) return;
    reason->workers = not_due->workers;
    *not_due = std::move(*reason);
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

// Tasks that this worker might have taken and that finished lately, per millisecond.
double Pace(store::Store& store, const store::ClaimRequest& taker, Time now) {
    store::ListRequest request;
    request.filter.queues = taker.queues;
    request.filter.types = taker.types;
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

// Why those before it may not be all that go before it.
std::string WhyEstimate(store::Store& store, const std::string& queue) {
    std::map<std::string, QueueOrder> orders;
    for (QueueOrder& order : store.Resources().Orders()) orders[order.queue] = order;
    const QueueOrder* order = OrderOf(orders, queue);
    if (order == nullptr) return {};
    if (order->fair) return "tenants share its queue: what is submitted later may go first";
    if (order->aging > Duration::zero()) return "age counts in its queue: the order changes";
    return {};
}

Ahead LookAhead(store::Store& store, const TaskRecord& task, const Said& said) {
    Ahead ahead{.tasks = said.place.ahead, .more = said.place.more_ahead};
    ahead.estimate = WhyEstimate(store, task.queue);
    double pace = Pace(store, *said.taker, store.Now());
    if (pace > 0) {
        ahead.takes =
            Duration(static_cast<std::int64_t>(static_cast<double>(ahead.tasks + 1) / pace));
    }
    return ahead;
}

}  // namespace

std::optional<Why> ExplainTask(store::Store& store, TaskId id, const OwnWorker& own) {
    auto task = store.Get(id);
    if (!task) return std::nullopt;
    Why why{.task = std::move(*task)};
    std::vector<Worker> workers = LiveWorkers(store, own);
    why.workers = static_cast<int>(workers.size());
    Said said;
    switch (why.task.state) {
        case State::kOpen:
        case State::kError:
            said = Ask(store, why.task, workers);
            why.eligible = said.taker.has_value();
            why.reasons = std::move(said.reasons);
            NameWhatTheFlowAwaits(store, why);
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
    if (why.eligible) why.ahead = LookAhead(store, why.task, said);
    return why;
}

// ---- a whole queue ----

namespace {

// Crowds of which one is asked for all.
struct Asked {
    TaskId example;
    std::int64_t tasks = 0;
    std::int64_t own = 0;  // of the example's crowd
};

// The largest by themselves; of the many small ones those that stand at even distances among them,
// for their neighbours, too.
std::vector<Asked> Choose(std::vector<store::Crowd> crowds) {
    std::ranges::sort(crowds, [](const store::Crowd& a, const store::Crowd& b) {
        return std::pair(-a.tasks, a.last) < std::pair(-b.tasks, b.last);
    });
    std::vector<Asked> chosen;
    const std::size_t alone = crowds.size() <= kAsked + kSampled ? crowds.size() : kAsked;
    for (std::size_t i = 0; i < alone; ++i) {
        chosen.push_back({crowds[i].last, crowds[i].tasks, crowds[i].tasks});
    }
    const std::size_t others = crowds.size() - alone;
    for (std::size_t k = 0; k < kSampled && others > 0; ++k) {
        std::size_t from = alone + k * others / kSampled;
        std::size_t to = alone + (k + 1) * others / kSampled;
        const store::Crowd& middle = crowds[(from + to) / 2];
        Asked asked{middle.last, 0, middle.tasks};
        for (std::size_t i = from; i < to; ++i) asked.tasks += crowds[i].tasks;
        chosen.push_back(asked);
    }
    return chosen;
}

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

QueueWhy ExplainQueue(store::Store& store, const std::string& queue, const OwnWorker& own) {
    QueueWhy why{.queue = queue};
    std::vector<Worker> workers = LiveWorkers(store, own);
    why.workers = static_cast<int>(workers.size());
    std::map<std::pair<std::string, std::string>, QueueShare> shares;
    for (const Asked& asked : Choose(store.Crowds(queue))) {
        auto task = store.Get(asked.example);
        if (!task || (task->state != State::kOpen && task->state != State::kError)) {
            continue;  // it was taken since
        }
        why.waiting += asked.tasks;
        why.looked_at += asked.own;
        Said said = Ask(store, *task, workers);
        WhyReason reason;
        if (said.taker || said.reasons.empty()) {
            reason.name = ConditionName(Condition::kEligible);
            reason.text = ConditionText(Condition::kEligible);
            reason.cure = "free slots: more of them, or more workers";
        } else {
            reason = workers.empty() ? said.reasons.front() : MainReason(said.reasons, why.workers);
        }
        // Each waits for another instant, or behind another task: together they just do.
        bool later = reason.condition == Condition::kNotDue;
        if (later || reason.condition == Condition::kBehindInOrder) reason.detail.clear();
        if (later) reason.cure = "time";
        QueueShare& share = shares[{reason.name, reason.detail}];
        if (share.tasks == 0) {
            share = {reason.name, reason.text, reason.detail, reason.cure, 0, task->id};
        }
        share.tasks += asked.tasks;
    }
    for (auto& [key, share] : shares) why.shares.push_back(std::move(share));
    std::ranges::stable_sort(why.shares, std::greater<>{}, &QueueShare::tasks);
    return why;
}

}  // namespace stint::node
