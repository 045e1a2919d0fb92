// All resources of a store that has one writer: who holds what, and what is left. A value; the
// stores of one writer keep it in memory, and SQLite writes down what `dirty` names.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/resource_rules.h"

namespace stint::store {

class ResourceBook {
public:
    struct Entry {
        Resource resource;
        std::map<TaskId, int> holders;  // units
        int held = 0;
    };
    enum class Outcome : std::uint8_t {
        kWorked,   // the attempt came to an end of its own
        kUnknown,  // it was cut off, or handed back
    };

    // Known names and patterns. Loading fills them.
    std::map<std::string, Entry> entries;
    std::map<std::string, QueueOrder> orders;
    std::map<TaskId, Needs> held;
    // Tasks that share what some of them hold: as long as others are behind them, what a holder had
    // goes to one of those when it ends.
    struct Group {
        std::set<TaskId> holders, behind;
    };
    std::map<std::int64_t, Group> groups;
    std::map<TaskId, std::int64_t> group_of;
    std::set<std::string> dirty;         // settings or state have changed, or it is gone
    bool crowded = false;                // of a book that does not have all: see Crowded()
    std::map<std::string, Leads> leads;  // of the queues that tenants share
    std::set<std::string> dirty_leads;

    bool empty() const { return entries.empty() && orders.empty(); }
    // Its own, or those of the pattern that it is under now.
    const ResourceSettings& SettingsOf(const Entry& entry) const;
    std::string PatternOf(const Entry& entry) const;  // whose settings it has; empty = its own
    // Nullptr: neither it nor a pattern for it is set.
    const Entry* Find(std::string_view name) const;

    // What tasks of a line need: the needs of their placement, and the limits of queue and type.
    Needs NeedsOf(const Needs& own, std::string_view queue, std::string_view type) const;
    // Only what is limited is added.
    void Supplies(const Needs& needs, Time now, std::map<std::string, Supply>& supplies) const;

    // Answers what it holds from now on: of those that are known.
    Needs Take(TaskId task, const Needs& needs, Time now);
    // Answers who has it from now on, if not nobody.
    std::optional<TaskId> Release(TaskId task, Outcome outcome);
    // After Take(), if it holds something itself.
    void Join(TaskId task, std::int64_t group);
    // It runs when a holder of its group lets it: whether some of it hold this.
    bool IsBehind(TaskId task, const std::string& resource) const;
    // A task that runs already needs this of what has been set meanwhile. Answers what was not
    // counted so far.
    Needs Adopt(TaskId task, const Needs& needs);
    // There are as many names as there may be that nobody has set: of patterns, and of reports.
    bool Crowded() const;
    // Names that nobody has set, holds or waits for, and of which nothing is to be known.
    std::vector<std::string> Idle(const std::set<std::string>& wanted, Time now, int limit) const;
    void Forget(const std::string& name);
    void Report(const std::string& name, const BreakerEvidence& evidence, Duration closed_for);

    // A task of the tenant was taken from the queue: counts where tenants share it.
    void Give(const std::string& queue, TenantId tenant, double had);

    Result<ResourceSettings> Change(const ResourceChange& change, std::string_view actor, Time now);
    bool Remove(std::string_view name);
    bool Reopen(std::string_view name);
    bool Close(std::string_view name, Duration length, const BreakerEvidence& evidence);
    ResourceRecord Record(const std::string& name, const Entry& entry, Time now) const;
    std::optional<ResourceRecord> Record(std::string_view name, Time now) const;
    std::vector<ResourceRecord> Records(Time now) const;

private:
    std::optional<TaskId> LeaveGroup(TaskId task);
    void NoteOver(const std::string& name, Entry& entry);
    Entry* Own(const std::string& name);  // by its pattern if it is not there yet
};

}  // namespace stint::store
