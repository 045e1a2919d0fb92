// What the store and its audit log say about a set of tasks, afterwards.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "model/schedule.h"
#include "node/client.h"

namespace stint::cli {

struct Tally {
    std::size_t asked = 0;       // submits sent
    std::size_t accepted = 0;    // with a submit entry in the audit log
    std::size_t completed = 0;   // state complete, and an audit entry that says so
    std::size_t recovered = 0;   // completed although a lease ended without an outcome
    std::size_t lost = 0;        // accepted and neither finished nor waiting anywhere
    std::size_t unfinished = 0;  // accepted and not terminal
    std::size_t doubled = 0;     // terminal transitions or complete attempts beyond the first

    void Add(
        const std::optional<model::TaskRecord>& task,
        const std::vector<model::AuditEntry>& audit,
        const std::vector<model::AttemptRecord>& attempts
    );
    bool good() const;
    base::OrderedJson ToJson() const;
};

// How many tasks were in progress at once, by their audit entries: those that need a unit of one
// resource hold it exactly then.
class Holders {
public:
    void Add(const std::vector<model::AuditEntry>& audit);  // of one task, in order
    std::size_t Most() const;

private:
    // Instant and change; at one instant those that end come first: a unit is freed before it is
    // taken.
    std::vector<std::pair<Time, int>> changes_;
};

// How long each of these tasks has to take, so many at once, for a worker to be killed meanwhile.
Duration LengthOfEach(std::size_t tasks, std::size_t at_once, Duration least);

// ---- whether what was promised held ----

struct ThrottleVerdict {
    Tally tally;
    std::size_t most = 0;   // holders at once, ever
    std::size_t could = 0;  // hold it at once: units, slots and tasks allow no more
    bool killed = false;    // a worker, as announced
    std::string broken;     // what the store's own check found
    // Fewer holders than could be would be no throttle but an obstacle.
    bool good() const {
        return tally.good() && killed && tally.recovered > 0 && most == could && broken.empty();
    }
};
std::size_t CouldHold(int capacity, int workers, int slots, int tasks);

struct FanoutVerdict {
    Tally children, parent;
    std::size_t wanted = 0;   // children
    std::size_t resumed = 0;  // how often the parent went on
    bool sum = false;         // of the children's outputs is right
    bool killed = false;
    bool good() const {
        return children.good() && parent.good() && killed && children.recovered > 0 &&
               children.asked == wanted && resumed == 1 && sum;
    }
};

struct ScheduleVerdict {
    Tally tally;  // of the tasks that the runs name
    std::size_t wanted = 0;
    std::size_t instants = 0, tasks = 0, doubled = 0, skipped = 0, missing = 0;
    std::size_t submitted = 0;  // tasks in the queue, by whomever
    bool killed = false;

    void Add(const std::vector<model::ScheduleRun>& runs, Duration every);
    bool good() const {
        return tally.good() && killed && doubled == 0 && missing == 0 && skipped == 0 &&
               submitted == tasks && instants >= wanted;
    }
};

// Reads each task, its audit entries and its attempts.
Tally ReadTally(node::Client& client, const std::vector<TaskId>& tasks);

}  // namespace stint::cli
