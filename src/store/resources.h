// Resources as the store keeps them: settings, slots, rates and breakers. They are global: of no
// tenant.
//
// A resource exists from its first setting on, or by a pattern ("host:*") from the first task that
// needs one of its names. A need for a name that neither sets is without limit.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/claim_plan.h"
#include "store/store.h"

namespace stint::store {

// At most `count` starts per `period`, at most `burst` of them at once.
struct Rate {
    int count = 0;
    Duration period{};
    int burst = 0;  // zero = count
    friend bool operator==(const Rate&, const Rate&) = default;
};

// Opened after `failures` reports that the resource does not work, in a row; closed again when a
// task that was let through to try it did not report so. `open_for` doubles up to `open_at_most`
// with each try that failed.
struct Breaker {
    int failures = 1;
    Duration open_for = std::chrono::seconds{10};
    Duration open_at_most = std::chrono::minutes{5};
    friend bool operator==(const Breaker&, const Breaker&) = default;
};

struct ResourceSettings {
    std::string name;             // a trailing * makes it the default of all names that begin so
    std::optional<int> capacity;  // units; none = without limit
    std::optional<Rate> rate;
    Breaker breaker;
    std::string changed_by;  // kept by the store
    std::optional<Time> changed_at;
};

// Some settings of one resource; what is not named stays. The inner value absent: no limit.
struct ResourceChange {
    std::string name;
    std::optional<std::optional<int>> capacity;
    std::optional<std::optional<Rate>> rate;
    std::optional<Breaker> breaker;
};

enum class BreakerState : std::uint8_t { kClosed, kOpen, kHalfOpen };

// Why it was closed to tasks.
struct BreakerEvidence {
    Time at{};
    TaskId task;
    std::string type;
    NodeId node;
    std::string message;
};

struct ResourceRecord {
    ResourceSettings settings;
    std::string pattern;          // the settings are of this pattern; empty = its own
    int held = 0;                 // units
    std::vector<TaskId> holders;  // the first hundred
    BreakerState breaker = BreakerState::kClosed;
    std::optional<Time> closed_until;       // nothing starts before
    std::vector<BreakerEvidence> evidence;  // the last ones, newest first
    std::optional<double> tokens;           // left of the rate
    std::int64_t waiting = 0;               // OPEN and ERROR tasks that need it
};

class ResourceStore {
public:
    virtual ~ResourceStore() = default;

    // The settings after the change. An Error names the field, the value and the cure.
    virtual Result<ResourceSettings> Change(
        const ResourceChange& change, std::string_view actor
    ) = 0;
    // False: there is none. Tasks that need it find it without limit, or under its pattern.
    virtual bool Remove(std::string_view name, std::string_view actor) = 0;
    virtual std::vector<ResourceRecord> List() = 0;
    virtual std::optional<ResourceRecord> Find(std::string_view name) = 0;
    // An operator's word: open the way now, or close it for so long.
    virtual bool Reopen(std::string_view name, std::string_view actor) = 0;
    virtual bool Close(
        std::string_view name, Duration length, std::string_view reason, std::string_view actor
    ) = 0;

    // How the tasks of a queue take turns, tenants and ages considered. A queue without an order,
    // where "*" has none either: by priority and place.
    virtual Result<void> SetOrder(const QueueOrder& order, std::string_view actor) = 0;
    virtual bool RemoveOrder(std::string_view queue, std::string_view actor) = 0;
    virtual std::vector<QueueOrder> Orders() = 0;
};

}  // namespace stint::store
