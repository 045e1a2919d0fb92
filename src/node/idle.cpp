#include "node/idle.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "model/limits.h"
#include "model/placement.h"
#include "store/events.h"
#include "store/resources.h"

namespace stint::node {

namespace {

using namespace stint::model;  // NOLINT(google-build-using-namespace): the doors speak its words

// An event that nobody has looked at yet may fire anything.
bool EventsPending(store::Store& store) {
    store::EventFilter pending;
    pending.states = {EventState::kPending};
    auto events = store.Events().ListEvents(pending);
    return std::ranges::any_of(events, [](const EventRecord& one) { return one.reason.empty(); });
}

class IdleSearch {
public:
    IdleSearch(store::Store& store, const store::ClaimRequest& worker)
        : store_(store), worker_(worker), now_(store.Now()) {
        filter_.queues = worker.queues;
        filter_.types = worker.types;
    }

    IdleLook Look() {
        if (EventsPending(store_) || Count(State::kInProgress) > 0) return {};
        if (!LookAtWaiting() || !LookAtHeads()) return {};
        Leave("blocked", "They wait for other tasks.", Count(State::kBlocked), {});
        Leave("background", "They go on outside.", Count(State::kBackground), {});
        IdleLook look{.idle = true, .left = {}};
        for (auto& [key, left] : left_) look.left.push_back(std::move(left));
        std::ranges::stable_sort(look.left, std::greater<>{}, &LeftOver::tasks);
        return look;
    }

private:
    std::int64_t Count(State state) {
        TaskFilter filter = filter_;
        filter.states = {state};
        std::int64_t tasks = 0;
        for (const auto& [key, count] : store_.Counts(filter)) tasks += count;
        return tasks;
    }

    void Leave(
        std::string_view condition,
        std::string_view text,
        std::int64_t tasks,
        TaskId example,
        const std::string& detail = {}
    ) {
        if (tasks == 0) return;
        LeftOver& left = left_[{std::string(condition), detail}];
        if (left.tasks == 0) {
            left = {std::string(condition), std::string(text), detail, 0, example};
        }
        left.tasks += tasks;
    }

    // False: it has something to do.
    bool LookAtWaiting() {
        if (Count(State::kOpen) + Count(State::kError) == 0) return true;
        store::ListRequest request{.filter = filter_, .before = {}, .limit = limits::kListPage};
        request.filter.states = {State::kOpen, State::kError};
        while (true) {
            TaskPage page = store_.List(request);
            for (const TaskRecord& task : page.tasks) {
                if (!LookAt(task)) return false;
            }
            if (!page.next) return true;
            request.before = page.next;
        }
    }

    // Tasks of one kind are kept by the same: one of them is asked.
    bool LookAt(const TaskRecord& task) {
        if (task.due_at > now_) {
            Leave(
                ConditionName(Condition::kNotDue),
                "They are due later, or wait before their next try.",
                1,
                task.id
            );
            return true;
        }
        if (!task.placement.order_key.empty()) {
            // The oldest of a key comes last, and is the one that may go.
            Head& head = heads_[{task.tenant, task.placement.order_key}];
            head.oldest = task;
            ++head.tasks;
            return true;
        }
        Kind kind{
            task.queue,
            task.type,
            PlacementText(task.placement),
            task.start_by && *task.start_by <= now_,
            task.suspect,
            task.cancel_requested};
        auto [known, is_new] = kept_.try_emplace(std::move(kind));
        if (is_new) known->second = WhatKeeps(task);
        return Keep(known->second, 1, task.id);
    }

    bool LookAtHeads() {
        return std::ranges::all_of(heads_, [this](const auto& one) {
            const Head& head = one.second;
            return Keep(WhatKeeps(head.oldest), head.tasks, head.oldest.id);
        });
    }

    bool Keep(const std::optional<store::Explanation>& why, std::int64_t tasks, TaskId example) {
        if (!why) return false;
        Leave(
            ConditionName(why->condition),
            ConditionText(why->condition),
            tasks,
            example,
            why->detail
        );
        return true;
    }

    // None: nothing, or only what passes by itself.
    std::optional<store::Explanation> WhatKeeps(const TaskRecord& task) {
        store::ClaimRequest claimer;
        claimer.queues = {task.queue};
        claimer.types = {task.type};
        claimer.labels = worker_.labels;
        claimer.queue_room = OnlyNone(worker_.queue_room);
        claimer.resource_room = OnlyNone(worker_.resource_room);
        for (store::Explanation& why : store_.Explain(task.id, claimer)) {
            if (!PassesByItself(task, why.condition)) return std::move(why);
        }
        return std::nullopt;
    }

    // Room comes back as tasks end, but not where the worker takes none at all.
    static std::map<std::string, int> OnlyNone(std::map<std::string, int> room) {
        for (auto& [name, left] : room) {
            if (left > 0) left = std::numeric_limits<int>::max();
        }
        return room;
    }

    bool PassesByItself(const TaskRecord& task, Condition condition) {
        switch (condition) {
            case Condition::kEligible:
            case Condition::kNotWaiting:  // it was taken since
            case Condition::kSuspectMustBeAlone:
            case Condition::kSessionNotLive:  // a worker that is meant here opens a new one
            case Condition::kResourceWithheld:
            case Condition::kRateLimited:
                return true;
            case Condition::kResourceFull:
                return !Exceeds(task);
            case Condition::kResourceClosed:
                return !IsClosed(task);
            case Condition::kNotDue:
            case Condition::kStartByPassed:
            case Condition::kQueuePaused:
            case Condition::kQueueNotServed:
            case Condition::kTypeNotHandled:
            case Condition::kCancelRequested:
            case Condition::kBehindInOrder:
            case Condition::kLabelMissing:
            case Condition::kNoRoom:  // at all: see OnlyNone
                return false;
        }
        return false;
    }

    template <class Is>
    bool AnyNeed(const TaskRecord& task, Is is) {
        Needs needs = task.placement.needs;
        needs.push_back({"queue:" + task.queue, 1});
        needs.push_back({"type:" + task.type, 1});
        return std::ranges::any_of(needs, [&](const Need& need) {
            auto resource = store_.Resources().Find(need.resource);
            return resource && is(*resource, need);
        });
    }

    // More than there is, whoever ends.
    bool Exceeds(const TaskRecord& task) {
        return AnyNeed(task, [](const store::ResourceRecord& resource, const Need& need) {
            return resource.settings.capacity && *resource.settings.capacity < need.units;
        });
    }

    bool IsClosed(const TaskRecord& task) {
        return AnyNeed(task, [this](const store::ResourceRecord& resource, const Need&) {
            return resource.closed_until && *resource.closed_until > now_;
        });
    }

    struct Head {
        TaskRecord oldest;
        std::int64_t tasks = 0;
    };
    using Kind = std::tuple<std::string, std::string, std::string, bool, bool, bool>;

    store::Store& store_;
    const store::ClaimRequest& worker_;
    const Time now_;
    TaskFilter filter_;
    std::map<Kind, std::optional<store::Explanation>> kept_;
    std::map<std::pair<TenantId, std::string>, Head> heads_;
    std::map<std::pair<std::string, std::string>, LeftOver> left_;
};

}  // namespace

IdleLook LookIdle(store::Store& store, const store::ClaimRequest& worker) {
    return IdleSearch(store, worker).Look();
}

}  // namespace stint::node
