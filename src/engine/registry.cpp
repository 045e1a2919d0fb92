#include "engine/registry.h"

#include <stdexcept>

#include "base/result.h"
#include "engine/isolate/isolate.h"

namespace stint::engine {

namespace {

// The store's own rules for what a worker publishes, applied where the programmer can see them.
void CheckEntry(const HandlerEntry& entry) {
    model::NewTask probe;
    probe.type = entry.type;
    probe.queue = entry.defaults.queue;
    probe.priority = entry.defaults.priority;
    probe.retry = entry.defaults.retry;
    probe.timeout = entry.defaults.timeout;
    probe.needs = entry.defaults.needs;
    probe.labels = entry.defaults.labels;
    if (auto valid = model::Validate(probe); !valid) {
        throw std::invalid_argument(
            fmt::format("task type \"{}\": {}", entry.type, valid.error().message)
        );
    }
    if (entry.batch && entry.isolation.enabled) {
        throw std::invalid_argument(fmt::format(
            "task type \"{}\" is isolated, which gives each attempt a process of its own: register "
            "it with Handle(), or leave isolation out of its constant",
            entry.type
        ));
    }
    for (int limit : {entry.at_once, entry.at_once_per_worker, entry.batch_most - 1}) {
        if (limit >= 0 && limit <= model::limits::kSlots) continue;
        throw std::invalid_argument(fmt::format(
            "task type \"{}\": limits are {} at once, {} per worker, batches of {}; the first two "
            "must be between 0 (none) and {}, a batch at least 1",
            entry.type,
            entry.at_once,
            entry.at_once_per_worker,
            entry.batch_most,
            model::limits::kSlots
        ));
    }
    if (!entry.handler && !entry.batch && !entry.isolation.enabled) {
        throw std::invalid_argument(fmt::format("task type \"{}\" has no handler", entry.type));
    }
    if (entry.isolation.enabled && !isolate::Prepared()) {
        throw std::invalid_argument(fmt::format(
            "task type \"{}\" is isolated, but main() does not begin with: "
            "if (stint::IsIsolatedChild(argc, argv)) return stint::RunIsolated(register_handlers);",
            entry.type
        ));
    }
}

}  // namespace

void Registry::Add(HandlerEntry entry) {
    entry.defaults.type = entry.type;
    entry.defaults.isolated = entry.isolation.enabled;
    CheckEntry(entry);
    if (entries_.size() >= static_cast<std::size_t>(model::limits::kTypesPerWorker)) {
        throw std::invalid_argument(fmt::format(
            "task type \"{}\" is one too many: a worker handles at most {}",
            entry.type,
            model::limits::kTypesPerWorker
        ));
    }
    std::string type = entry.type;
    auto shared = std::make_shared<const HandlerEntry>(std::move(entry));
    if (!entries_.emplace(type, std::move(shared)).second) {
        throw std::invalid_argument(fmt::format("task type \"{}\" has a handler already", type));
    }
}

const HandlerEntry* Registry::Find(std::string_view type) const {
    auto found = entries_.find(type);
    return found == entries_.end() ? nullptr : found->second.get();
}

std::shared_ptr<const HandlerEntry> Registry::Share(std::string_view type) const {
    auto found = entries_.find(type);
    return found == entries_.end() ? nullptr : found->second;
}

std::vector<model::TypeDefaults> Registry::Defaults() const {
    std::vector<model::TypeDefaults> all;
    all.reserve(entries_.size());
    for (const auto& [type, entry] : entries_) all.push_back(entry->defaults);
    return all;
}

std::map<std::string, int> Registry::LimitsHere() const {
    std::map<std::string, int> limits;
    for (const auto& [type, entry] : entries_) {
        if (entry->at_once_per_worker > 0) limits.emplace(type, entry->at_once_per_worker);
    }
    return limits;
}

std::map<std::string, int> Registry::LimitsOverAll() const {
    std::map<std::string, int> limits;
    for (const auto& [type, entry] : entries_) {
        if (entry->at_once > 0) limits.emplace(type, entry->at_once);
    }
    return limits;
}

int Registry::LargestBatch() const {
    int largest = 1;
    for (const auto& [type, entry] : entries_) {
        if (entry->batch) largest = std::max(largest, entry->batch_most);
    }
    return largest;
}

std::vector<std::string> Registry::Types() const {
    std::vector<std::string> all;
    all.reserve(entries_.size());
    for (const auto& [type, entry] : entries_) all.push_back(type);
    return all;
}

}  // namespace stint::engine
