// What the memory store remembers of events.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "store/fire.h"

namespace stint::store::memory {

struct Happening {
    EventRecord record;
    Time due_at{};  // while pending: when it is handed out (again)
};

struct EventData {
    std::map<EventNo, Happening> events;
    std::map<std::tuple<TenantId, std::string, std::string>, EventNo> by_id;  // tenant, source, id
    std::map<std::tuple<EventNo, std::string, std::string>, FiringTables::Firing>
        firings;  // event, workflow, trigger
    std::map<std::pair<TenantId, std::string>, WorkflowRecord> workflows;
    std::map<std::pair<JoinKey, int>, JoinInstance> rounds;
    std::map<JoinKey, int> once;   // keys that have fired once, and the generation that did
    int forgotten_generation = 0;  // the highest of rounds that are no longer there
    std::int64_t revision = 1;
    std::int64_t next_round = 1;
    std::int64_t next_event = 1;
};

}  // namespace stint::store::memory
