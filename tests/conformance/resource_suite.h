// What the suites about resources share: limits that are set, tasks that need something of them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/conformance.h"
#include "store/resources.h"

namespace stint::conformance {

class ResourceSuite : public Conformance {
protected:
    ResourceStore& resources = store.Resources();

    void Limit(const std::string& name, std::optional<int> capacity) {
        ResourceChange change{.name = name};
        change.capacity = capacity;
        auto changed = resources.Change(change, "ann");
        ASSERT_TRUE(changed.has_value()) << changed.error().message;
    }
    static NewTask Needing(Needs needs, std::string type = "t") {
        NewTask task{.type = std::move(type)};
        task.needs = std::move(needs);
        return task;
    }
    int Held(const std::string& name) {
        auto record = resources.Find(name);
        return record ? record->held : 0;
    }
    static std::vector<TaskId> TasksOf(const std::vector<Lease>& leases) {
        std::vector<TaskId> tasks;
        for (const Lease& lease : leases) tasks.push_back(lease.task);
        return tasks;
    }
    Settlement Unavailable(const Lease& lease, const std::string& name, Duration closed_for = {}) {
        Settlement settlement = Outcome(lease, Settlement::Kind::kRelease);
        settlement.end = AttemptEnd::kReleased;
        settlement.unavailable = name;
        settlement.closed_for = closed_for;
        settlement.error = Failure();
        return settlement;
    }
};

}  // namespace stint::conformance
