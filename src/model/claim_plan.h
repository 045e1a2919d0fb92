// Which of the waiting tasks a claim takes: pure, and the same for every store.
//
// Tasks wait in lines: those of one line differ only in their place. The plan takes from the heads
// of the lines, one task after the other: by priority, with age added to it where the queue asks
// for that; within a priority of a queue the tenant whose turn it is (model/share.h), where the
// queue shares; then by place. Where age counts, the head of a line is who has waited longest: one
// that comes back to its place has not waited yet. A line whose next task cannot have what it needs
// is left, and the others go on.
//
// So that a task that needs several units, or several resources, is not passed for ever by those
// that need less: the first in this order that has waited for limits::kKeepAfter and lacks nothing
// but units, of resources that have as many, keeps what is free of those; after
// limits::kKeepAllAfter also what it needs of the others. Those behind it go on with the rest. It
// waits no longer than that and than the tasks that hold units by then run.
//
// A claimer that takes more than it can run at once needs units only for those that run. Tasks of
// the very same needs become a group that holds `seats` times of that; the others of it are behind
// those seats: taken, and run when a seat of theirs is free. Nobody goes behind while another waits
// for the same units, nor where a resource counts starts or is being tried.
#pragma once

#include <stint/ids.h>
#include <stint/result.h>
#include <stint/time.h>

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/condition.h"
#include "model/resource.h"
#include "model/room.h"
#include "model/share.h"

namespace stint::model {

// How the tasks of a queue take turns. "*": of every queue that has none of its own.
struct QueueOrder {
    std::string queue;
    // Tenants share the queue by their weights (1 where not named). False: by place only.
    bool fair = false;
    std::map<TenantId, int> weights;
    // A task gains one step of priority for so long a wait; zero = none.
    Duration aging{};
    friend bool operator==(const QueueOrder&, const QueueOrder&) = default;
};
Result<void> Validate(const QueueOrder& order);

// What a resource has to give now.
struct Supply {
    std::optional<int> units;   // none = without limit
    std::optional<int> starts;  // so many tasks may start with it; none = without limit
    // Why no more may start than that: its rate, or that it is tried by one task only.
    Condition starts_limit = Condition::kRateLimited;
    bool closed = false;
    // It knows nothing but units: whoever holds them may start any number of tasks one after the
    // other.
    bool plain = false;
    // For explanations.
    std::optional<int> capacity;
    bool kept = false;          // some of it, for one that has waited long
    std::optional<Time> until;  // when it opens, or the next may start
    std::vector<TaskId> holders;
};

struct Waiter {
    std::int64_t position = 0;
    Time since{};  // it can be claimed
};

struct WaitingLine {
    TenantId tenant = kDefaultTenant;
    std::string queue;
    std::string type;
    int priority = 0;
    Needs needs;  // those of its queue and type included
    std::vector<std::string> labels;
    std::vector<Waiter> waiting;  // by place
    // It has its turn, but nothing is taken from it now: what it needs is not locked.
    bool look_only = false;
};

// What the claimer has, and what there is.
struct Offer {
    Time now{};
    std::set<std::string> labels;
    std::set<std::string> withheld;
    std::map<std::string, int> queue_room, type_room;
    Room resource_room;
    std::map<std::string, Supply> supplies;  // by name; what is missing is without limit
    std::map<std::string, QueueOrder> orders;
    std::map<std::string, Leads> leads;  // by queue, where it shares
    // So many the claimer runs at once of what it takes; 0: each has units of its own.
    int at_once = 0;
};

// One reason why the next task of a line is not taken, and what it speaks of.
struct Obstacle {
    Condition condition = Condition::kEligible;
    std::string about;  // a resource, a label, a queue or a type
    int units = 0;      // that it needs of a resource
    bool kept = false;  // what is free of it is kept for another
    friend bool operator==(const Obstacle& a, const Obstacle& b) {
        return a.condition == b.condition && a.about == b.about;
    }
};

// All that keep the next task of the line from being taken.
std::vector<Obstacle> Obstacles(const WaitingLine& line, const Offer& offer);
// For a person: which resource, its capacity, who holds it, until when.
std::string Detail(const Obstacle& obstacle, const Offer& offer);
// The earliest instant at which an obstacle may be gone by itself.
std::optional<Time> Until(const Obstacle& obstacle, const Offer& offer);

struct ClaimPlan {
    struct Pick {
        std::size_t line = 0;
        std::size_t waiter = 0;  // within it
        double had = 0;          // by its tenant then, where the queue is shared: for Give()
        int group = -1;          // in `seats`; -1: it has units of its own, or needs none
        friend bool operator==(const Pick& a, const Pick& b) {
            return a.line == b.line && a.waiter == b.waiter;
        }
    };
    std::vector<Pick> picks;
    // Per line: why it was left while something waited in it. Empty: it was not.
    std::vector<std::vector<Obstacle>> left;
    bool passed_over = false;  // a line that was only looked at could have gone
    std::vector<int> seats;    // of each group

    std::size_t Taken(std::size_t line) const;
};
ClaimPlan PlanClaim(std::span<const WaitingLine> lines, Offer offer, int limit);

// Which of those that were taken hold the units: `groups` are theirs, in the order of the plan. Of
// a group the last ones do, so that those before them end without a word to the resource.
std::vector<bool> Holders(std::span<const int> groups, std::span<const int> seats);

// How many of a line have to be looked at: where age counts, who has waited longest may stand
// behind others.
int LookAt(const std::map<std::string, QueueOrder>& orders, const std::string& queue, int wanted);

// The order that holds for a queue.
const QueueOrder* OrderOf(
    const std::map<std::string, QueueOrder>& orders, const std::string& queue
);
int WeightOf(const QueueOrder& order, TenantId tenant);
// With what its age adds.
int AgedPriority(int priority, Duration aging, Time since, Time now);

}  // namespace stint::model
