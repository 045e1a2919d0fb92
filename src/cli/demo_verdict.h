// What the store and its audit log say about a set of tasks, afterwards.
#pragma once

#include <cstddef>
#include <vector>

#include "base/json.h"
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

// Reads each task, its audit entries and its attempts.
Tally ReadTally(node::Client& client, const std::vector<TaskId>& tasks);

}  // namespace stint::cli
