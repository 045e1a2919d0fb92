// Rows of the event tables, and the questions about them.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "sqlite/connection.h"
#include "store/events.h"

namespace stint::store::lite {

EventRecord ReadEvent(const sqlite::Rows& rows);
WorkflowRecord ReadWorkflow(const sqlite::Rows& rows);

struct Round {
    std::int64_t id = 0;
    JoinInstance instance;
};
// All of a query's rounds, with their parts.
std::vector<Round> ReadRounds(sqlite::Connection& db, sqlite::Rows rows);

// On a reading connection, or on the writer's.
class EventReads {
public:
    explicit EventReads(sqlite::Connection& db) : db_(db) {}

    // The answer to NextEvents when none is due; nullopt: some are.
    std::optional<NextEventsReply> Nothing(Time now);
    std::vector<WorkflowRecord> Workflows();
    std::optional<EventRecord> GetEvent(EventNo event);
    std::vector<EventRecord> ListEvents(const EventFilter& filter);
    std::map<EventCountKey, std::int64_t> CountEvents();
    std::vector<FiringRecord> Firings(const FiringFilter& filter);
    std::vector<JoinInstance> Joins(const JoinFilter& filter);

private:
    sqlite::Connection& db_;
};

}  // namespace stint::store::lite
