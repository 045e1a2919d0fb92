// Why tasks are not running: the conditions of the claim itself, asked for the workers that are
// there, and said with what would change each.
//
// What a worker's probes withhold and how much room it has is as its last heartbeat told; of the
// worker of this process as it is now.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/store.h"

namespace stint::node {

struct WhyReason {
    model::Condition condition = model::Condition::kEligible;
    std::string name;    // of the condition; "no_worker" when none is live
    std::string text;    // a sentence
    std::string detail;  // which resource, which time, …
    std::string cure;    // what would change it
    int workers = 0;     // live ones that are kept by it
};

// What is in front of it, and how long that may take.
struct Ahead {
    std::int64_t tasks = 0;              // that the worker which gets to it first takes before it
    bool more = false;                   // than that: not all were looked at
    std::string estimate = {};           // why it may be otherwise; empty = nothing of that kind
    std::optional<Duration> takes = {};  // at the pace of the last minutes; none: nothing finished
};

struct Why {
    model::TaskRecord task;
    int workers = 0;        // live
    bool eligible = false;  // the next claim of some worker may take it
    std::vector<WhyReason> reasons;
    std::optional<Ahead> ahead;  // of tasks that wait for nothing but their turn
};

// The worker of this process, which knows more of itself than the store does.
struct Claiming {
    store::ClaimRequest claimer;
    int running = 0;
};
using OwnWorker = std::optional<Claiming>;

// nullopt: there is no such task. Throws what the store throws.
std::optional<Why> ExplainTask(store::Store& store, TaskId task, const OwnWorker& own = {});

// Of so many waiting tasks of a queue, this is what keeps them.
struct QueueShare {
    std::string condition, text, detail, cure;
    std::int64_t tasks = 0;
    TaskId example;
};
struct QueueWhy {
    std::string queue;
    std::int64_t waiting = 0;  // OPEN and ERROR, all of them
    // Fewer than waiting: of many small groups that are alike some were asked for all of them.
    std::int64_t looked_at = 0;
    int workers = 0;
    std::vector<QueueShare> shares;  // largest first
};
QueueWhy ExplainQueue(store::Store& store, const std::string& queue, const OwnWorker& own = {});

}  // namespace stint::node
