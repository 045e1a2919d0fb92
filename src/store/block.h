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

inline Error WaitsForItself(TaskId task) {
    return base::MakeError(
        Code::kConflict,
        "what task {} is to wait for waits for task {} itself, directly or through others: none of "
        "them could ever go on",
        task.value(),
        task.value()
    );
}

// A task that waits keeps its turn among those of its order key.
inline Error WaitsForItsOwnKey(TaskId task, TaskId member, std::string_view key) {
    return base::MakeError(
        Code::kConflict,
        "task {} has the order key {} and is to wait for task {}, which comes after it in the "
        "order of that key: neither could ever go on. Give the one that is waited for another "
        "key, or none",
        task.value(),
        base::Quoted(key),
        member.value()
    );
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
