// What the stores have in common when a task waits for others: names made tasks, and refusals.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "store/store.h"

namespace stint::store {

// What became of the tasks of one batch, by the ids that were reserved for them.
using Beside = std::map<TaskId, SubmitReply>;

// How an id of a wait is said to be unusable, behind "after names " or "the wait names ".
inline std::string NamedAsRefused(TaskId asked, const SubmitReply& reply) {
    return fmt::format("task {}, which was refused: {}", asked.value(), reply.message);
}
inline std::string NamedAsMissing(TaskId asked) {
    return fmt::format(
        "task {}, which is not there: it never was, or its retention is over", asked.value()
    );
}

// The replies of a batch of which one was refused, so that none is stored. False: all are accepted.
inline bool RefuseAll(std::span<SubmitReply> replies) {
    auto refused =
        std::ranges::find_if(replies, [](const SubmitReply& reply) { return !reply.accepted(); });
    if (refused == replies.end()) return false;
    const auto which = refused - replies.begin() + 1;
    for (SubmitReply& reply : replies) {
        if (!reply.accepted()) continue;
        reply = {};
        reply.kind = SubmitReply::Kind::kInvalid;
        reply.message = fmt::format(
            "nothing was stored, since task {} of the batch was refused: {}",
            which,
            refused->message
        );
    }
    return true;
}

// The subtasks of a settlement as they are submitted: of their parent, in its tenant.
inline Result<std::vector<NewTask>> ChildrenOf(const Settlement& settlement, TenantId tenant) {
    if (auto valid = Validate(settlement.wait); !valid) return valid.error();
    const std::size_t members = settlement.children.size() + settlement.wait.on.size();
    if (members > limits::kWaitMembers) {
        return base::MakeError(
            Code::kLimit,
            "the task waits for {} others; the limit is {}: let subtasks make some of them",
            members,
            limits::kWaitMembers
        );
    }
    std::set<TaskId> ids;
    std::vector<NewTask> children = settlement.children;
    for (NewTask& child : children) {
        if (!child.id.valid() || !ids.insert(child.id).second) {
            return base::MakeError(
                Code::kInvalid,
                "subtask {} has the id {}; give each one that was reserved for it",
                base::Quoted(child.type),
                child.id.value()
            );
        }
        child.parent = settlement.task;
        child.tenant = tenant;
    }
    return children;
}

// Error: which one was refused, and why.
inline Result<Beside> AllAccepted(
    std::span<const NewTask> children, std::span<const SubmitReply> replies
) {
    Beside beside;
    for (std::size_t i = 0; i < children.size(); ++i) {
        if (!replies[i].accepted()) {
            return base::MakeError(
                Code::kConflict, "subtask {} ({}): {}", i + 1, children[i].type, replies[i].message
            );
        }
        beside.emplace(children[i].id, replies[i]);
    }
    return beside;
}

// All that it waits for: its subtasks, then what it names.
inline std::vector<TaskId> Awaited(const Settlement& settlement) {
    std::vector<TaskId> asked;
    for (const NewTask& child : settlement.children) asked.push_back(child.id);
    asked.insert(asked.end(), settlement.wait.on.begin(), settlement.wait.on.end());
    return asked;
}

// Why a task cannot go on before another is over: it waits for it, or comes after it in the order
// of a key. A task that waits keeps its turn there.
struct WaitLink {
    TaskId to;
    std::string order_key = {};  // empty: it waits for it
};
struct WaitStep {
    TaskId from;
    WaitLink link;
};

// Of what a task is to wait for, that which may wait for something itself: all but new tasks with
// neither an order key nor anything that they start after.
inline std::vector<TaskId> MayWait(
    std::span<const NewTask> children, const Beside& beside, std::span<const WaitMember> members
) {
    std::set<TaskId> free;
    for (const NewTask& child : children) {
        const SubmitReply& reply = beside.at(child.id);
        bool made = reply.kind == SubmitReply::Kind::kCreated;
        if (made && child.order_key.empty() && !child.after) free.insert(reply.id);
    }
    std::vector<TaskId> tasks;
    for (const WaitMember& member : members) {
        if (!member.ended && !free.contains(member.task)) tasks.push_back(member.task);
    }
    return tasks;
}

// The way from `task`, which is to wait for these, back to itself; empty: there is none.
// `links_of` answers the links of one task; of those of its order key the one before it is enough.
template <class LinksOf>
std::vector<WaitStep> ChainOfWaits(
    TaskId task, std::span<const TaskId> members, const LinksOf& links_of
) {
    std::map<TaskId, WaitStep> came;
    std::vector<TaskId> open;
    auto follow = [&](TaskId from, const WaitLink& link) {
        if (came.emplace(link.to, WaitStep{from, link}).second) open.push_back(link.to);
    };
    for (TaskId member : members) follow(task, {member});
    for (std::size_t i = 0; i < open.size() && !came.contains(task); ++i) {
        TaskId from = open[i];
        for (const WaitLink& link : links_of(from)) follow(from, link);
    }
    std::vector<WaitStep> chain;
    for (auto step = came.find(task); step != came.end();) {
        const WaitStep& one = step->second;
        bool same_line = !chain.empty() && !one.link.order_key.empty() &&
                         chain.back().link.order_key == one.link.order_key;
        if (same_line) {
            chain.back().from = one.from;
        } else {
            chain.push_back(one);
        }
        if (one.from == task) break;
        step = came.find(one.from);
    }
    std::ranges::reverse(chain);
    return chain;
}

// An empty chain: it is too long to tell.
inline Error WaitsForItself(TaskId task, std::span<const WaitStep> chain) {
    constexpr std::size_t kShown = 8;
    std::string way;
    for (std::size_t i = 0; i < chain.size(); ++i) {
        const auto& [from, link] = chain[i];
        if (chain.size() > kShown && i == kShown / 2) {
            way += fmt::format(", and so on through {} more", chain.size() - kShown);
            i += chain.size() - kShown - 1;
            continue;
        }
        way += fmt::format("{} task {} ", i == 0 ? ":" : ",", from.value());
        if (link.order_key.empty()) {
            way += fmt::format("waits for task {}", link.to.value());
        } else {
            way += fmt::format(
                "comes after task {} in the order of key {}",
                link.to.value(),
                base::Quoted(link.order_key)
            );
        }
    }
    return base::MakeError(
        Code::kConflict,
        "task {} would wait for itself, and none of them could ever go on{}. Let it wait for "
        "something else; or give what it waits for another order key, or none",
        task.value(),
        way
    );
}

// What explains a task that waits for its turn: the first of the line is in front of all others.
inline std::string BehindInOrder(std::string_view key, TaskId first) {
    return fmt::format("order key {}, behind task {}", base::Quoted(key), first.value());
}

// Why a task that was to start after others is cancelled instead.
inline std::string WhyCancelled(const WaitMember& failed) {
    return fmt::format(
        "task {}, which it waited for, is {}", failed.task.value(), StateName(*failed.ended)
    );
}
inline std::string WhyRestCancelled(TaskId waiter) {
    return fmt::format("another task that task {} waited for has failed", waiter.value());
}
inline std::string WhyBelowCancelled(TaskId above) {
    return fmt::format("task {} above it was cancelled", above.value());
}

}  // namespace stint::store
