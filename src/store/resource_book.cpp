#include "store/resource_book.h"

#include <algorithm>

#include "base/check.h"
#include "base/planted_bug.h"
#include "model/limits.h"
#include "model/needs.h"
#include "model/placement.h"

namespace stint::store {

std::string ResourceBook::PatternOf(const Entry& entry) const {
    const ResourceSettings& own = entry.resource.settings;
    // A pattern has no pattern.
    if (HasOwnSettings(own) || own.name.ends_with('*')) return {};
    return PatternFor(entries, own.name);
}

const ResourceSettings& ResourceBook::SettingsOf(const Entry& entry) const {
    std::string pattern = PatternOf(entry);
    return pattern.empty() ? entry.resource.settings : entries.at(pattern).resource.settings;
}

const ResourceBook::Entry* ResourceBook::Find(std::string_view name) const {
    if (entries.empty()) return nullptr;
    auto own = entries.find(std::string(name));
    if (own != entries.end()) return &own->second;
    std::string pattern = PatternFor(entries, name);
    return pattern.empty() ? nullptr : &entries.at(pattern);
}

ResourceBook::Entry* ResourceBook::Own(const std::string& name) {
    auto own = entries.find(name);
    if (own != entries.end()) return &own->second;
    std::string pattern = PatternFor(entries, name);
    if (pattern.empty()) return nullptr;
    Entry& made = entries[name];
    made.resource.settings.name = name;
    made.resource.pattern = pattern;
    dirty.insert(name);
    return &made;
}

Needs ResourceBook::NeedsOf(const Needs& own, std::string_view queue, std::string_view type) const {
    if (entries.empty()) return own;
    Needs needs = own;
    for (std::string name : {QueueResource(queue), TypeResource(type)}) {
        // A task that was accepted with such a need holds it once.
        if (Find(name) != nullptr && !Covers(own, name, 1)) needs.push_back({std::move(name), 1});
    }
    return needs;
}

void ResourceBook::Supplies(const Needs& needs, Time now, std::map<std::string, Supply>& supplies)
    const {
    for (const Need& need : needs) {
        if (supplies.contains(need.resource)) continue;
        const Entry* entry = Find(need.resource);
        if (entry == nullptr) continue;
        // What a pattern itself remembers is of no name.
        bool own = entry->resource.settings.name == need.resource;
        ResourceState state;
        if (own) state = entry->resource.state;
        // One that holds it no more tries nothing, however it came to that.
        if (!entry->holders.contains(state.trial)) state.trial = {};
        Supply supply = SupplyOf(SettingsOf(*entry), state, own ? entry->held : 0, now);
        if (!own && Crowded()) {
            supply.units = 0;
            supply.capacity.reset();
        }
        for (const auto& [task, units] : entry->holders) {
            if (!own || supply.holders.size() >= limits::kHoldersShown) break;
            supply.holders.push_back(task);
        }
        supplies.emplace(need.resource, std::move(supply));
    }
}

Needs ResourceBook::Take(TaskId task, const Needs& needs, Time now) {
    Needs taken;
    for (const Need& need : needs) {
        Entry* entry = Own(need.resource);
        if (entry == nullptr) continue;
        ResourceState before = entry->resource.state;
        // It was taken as far as the capacity goes: what was held beyond it is given back.
        entry->resource.state.over = 0;
        entry->holders[task] += need.units;
        entry->held += need.units;
        Start(SettingsOf(*entry), entry->resource.state, task, now);
        if (!(before == entry->resource.state)) dirty.insert(need.resource);
        taken.push_back(need);
    }
    if (!taken.empty()) held[task] = taken;
    return taken;
}

Needs ResourceBook::Adopt(TaskId task, const Needs& needs) {
    Needs added;
    auto group = group_of.find(task);
    if (group != group_of.end() && groups.at(group->second).behind.contains(task)) {
        // It is the holders of its group that count for it. What they held was removed with the
        // resource, and who they were is not known any more: then each counts for itself.
        if (!groups.at(group->second).holders.empty()) return added;
        LeaveGroup(task);
    }
    for (const Need& need : needs) {
        Entry* entry = Own(need.resource);
        if (entry == nullptr || entry->holders.contains(task)) continue;
        entry->holders[task] = need.units;
        entry->held += need.units;
        NoteOver(need.resource, *entry);
        held[task].push_back(need);
        added.push_back(need);
    }
    return added;
}

void ResourceBook::NoteOver(const std::string& name, Entry& entry) {
    std::optional<int> capacity = SettingsOf(entry).capacity;
    int over = capacity && entry.held > *capacity ? entry.held : 0;
    if (entry.resource.state.over != over) dirty.insert(name);
    entry.resource.state.over = over;
}

bool ResourceBook::Crowded() const {
    if (crowded) return true;
    if (entries.size() < limits::kPatternNames) return false;
    return std::ranges::count_if(entries, [](const auto& item) {
               return IsMade(item.first, item.second.resource.settings);
           }) >= limits::kPatternNames;
}

std::vector<std::string> ResourceBook::Idle(
    const std::set<std::string>& wanted, Time now, int limit
) const {
    std::vector<std::string> idle;
    for (const auto& [name, entry] : entries) {
        if (static_cast<int>(idle.size()) >= limit) break;
        bool goes = IsMade(name, entry.resource.settings) && entry.holders.empty() &&
                    entry.held == 0 && !wanted.contains(name) &&
                    IsIdle(SettingsOf(entry), entry.resource.state, now);
        if (goes) idle.push_back(name);
    }
    return idle;
}

void ResourceBook::Forget(const std::string& name) {
    if (entries.erase(name) > 0) dirty.insert(name);
}

void ResourceBook::Join(TaskId task, std::int64_t group) {
    Group& of = groups[group];
    (held.contains(task) ? of.holders : of.behind).insert(task);
    group_of[task] = group;
}

bool ResourceBook::IsBehind(TaskId task, const std::string& resource) const {
    auto group = group_of.find(task);
    if (group == group_of.end()) return false;
    const Group& of = groups.at(group->second);
    auto entry = entries.find(resource);
    if (!of.behind.contains(task) || entry == entries.end()) return false;
    return std::ranges::any_of(of.holders, [&](TaskId holder) {
        return entry->second.holders.contains(holder);
    });
}

// Answers who comes to what it held.
std::optional<TaskId> ResourceBook::LeaveGroup(TaskId task) {
    auto left = group_of.find(task);
    if (left == group_of.end()) return std::nullopt;
    auto group = groups.find(left->second);
    group_of.erase(left);
    Group& of = group->second;
    std::optional<TaskId> heir;
    if (of.behind.erase(task) == 0) {
        of.holders.erase(task);
        if (!of.behind.empty() && !base::Planted(base::Bug::kSeatGivenBackEarly)) {
            // The one that is likely to end last.
            heir = *of.behind.rbegin();
            of.behind.erase(*heir);
            of.holders.insert(*heir);
        }
    }
    if (of.holders.empty() && of.behind.empty()) groups.erase(group);
    return heir;
}

std::optional<TaskId> ResourceBook::Release(TaskId task, Outcome outcome) {
    const std::optional<TaskId> heir = LeaveGroup(task);
    auto holding = held.find(task);
    if (holding == held.end()) return std::nullopt;
    for (const Need& need : holding->second) {
        auto found = entries.find(need.resource);
        if (found == entries.end()) continue;
        Entry& entry = found->second;
        auto holder = entry.holders.find(task);
        if (holder == entry.holders.end()) continue;
        if (heir) {
            entry.holders[*heir] = holder->second;
        } else {
            entry.held -= holder->second;
        }
        entry.holders.erase(holder);
        ResourceState before = entry.resource.state;
        End(entry.resource.state, task, outcome == Outcome::kWorked);
        if (!(before == entry.resource.state)) dirty.insert(need.resource);
    }
    if (heir) held[*heir] = std::move(holding->second);
    held.erase(task);
    return heir;
}

void ResourceBook::Report(
    const std::string& name, const BreakerEvidence& evidence, Duration closed_for
) {
    // Whoever reports comes again after a while, as after a failure.
    if (!entries.contains(name) && Crowded()) return;
    Entry* entry = Own(name);
    if (entry == nullptr) {
        // Nobody has set it: from now on it is there, without a limit.
        entry = &entries[name];
        entry->resource.settings.name = name;
    }
    store::Report(SettingsOf(*entry), entry->resource.state, evidence, closed_for);
    dirty.insert(name);
}

void ResourceBook::Give(const std::string& queue, TenantId tenant, double had) {
    const QueueOrder* order = model::OrderOf(orders, queue);
    if (order == nullptr || !order->fair) return;
    model::Give(leads[queue], tenant, had);
    dirty_leads.insert(queue);
}

Result<ResourceSettings> ResourceBook::Change(
    const ResourceChange& change, std::string_view actor, Time now
) {
    std::string name = ResourceName(change.name);
    // What is not named stays as it is now, be it by a pattern.
    const bool pattern = name.ends_with('*');
    const Entry* known = pattern && !entries.contains(name) ? nullptr : Find(name);
    ResourceSettings before;
    if (known != nullptr) before = SettingsOf(*known);
    auto settings = Changed(before, change);
    if (!settings) return settings;
    settings->changed_by = actor;
    settings->changed_at = now;
    Entry& entry = entries[name];
    entry.resource.settings = *settings;
    entry.resource.pattern.clear();
    dirty.insert(name);
    NoteOver(name, entry);
    if (!name.ends_with('*')) return settings;
    for (auto& [other, of] : entries) {
        if (of.resource.pattern != name) continue;
        NoteOver(other, of);
        dirty.insert(other);
    }
    return settings;
}

bool ResourceBook::Remove(std::string_view name) {
    auto found = entries.find(ResourceName(name));
    if (found == entries.end()) return false;
    dirty.insert(found->first);
    entries.erase(found);
    return true;
}

bool ResourceBook::Reopen(std::string_view name) {
    auto found = entries.find(ResourceName(name));
    if (found == entries.end() || found->first.ends_with('*')) return false;
    store::Reopen(found->second.resource.state);
    dirty.insert(found->first);
    return true;
}

bool ResourceBook::Close(std::string_view name, Duration length, const BreakerEvidence& evidence) {
    std::string key = ResourceName(name);
    if (key.ends_with('*')) return false;
    Entry* entry = Own(key);
    if (entry == nullptr) return false;
    CloseFor(entry->resource.state, length, evidence);
    dirty.insert(key);
    return true;
}

ResourceRecord ResourceBook::Record(const std::string& name, const Entry& entry, Time now) const {
    ResourceRecord record;
    record.settings = SettingsOf(entry);
    record.settings.name = name;
    record.pattern = PatternOf(entry);
    record.held = entry.held;
    for (const auto& [task, units] : entry.holders) {
        if (record.holders.size() >= limits::kHoldersShown) break;
        record.holders.push_back(task);
    }
    record.breaker = BreakerOf(entry.resource.state, now);
    if (record.breaker == BreakerState::kOpen) {
        record.closed_until = entry.resource.state.closed_until;
    }
    record.evidence = entry.resource.state.evidence;
    record.tokens = TokensAt(record.settings, entry.resource.state, now);
    return record;
}

std::optional<ResourceRecord> ResourceBook::Record(std::string_view name, Time now) const {
    auto found = entries.find(ResourceName(name));
    if (found == entries.end()) return std::nullopt;
    return Record(found->first, found->second, now);
}

std::vector<ResourceRecord> ResourceBook::Records(Time now) const {
    std::vector<ResourceRecord> records;
    for (const auto& [name, entry] : entries) records.push_back(Record(name, entry, now));
    return records;
}

}  // namespace stint::store
