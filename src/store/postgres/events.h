// Events, definitions and joins.
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "store/events.h"
#include "store/postgres/db.h"

namespace stint::store::pg {

class PostgresStore;

class EventTables final : public EventStore {
public:
    explicit EventTables(PostgresStore& store) : store_(store) {}

    std::vector<PublishReply> Publish(std::span<const NewEvent> events) override;
    Result<WorkflowRecord> PutWorkflow(const WorkflowDefinition& definition, std::string_view actor)
        override;
    bool RemoveWorkflow(TenantId tenant, std::string_view name) override;
    std::vector<WorkflowRecord> Workflows() override;
    NextEventsReply NextEvents(const NextEventsRequest& request) override;
    std::vector<FireReply> Fire(std::span<const EventOutcome> outcomes) override;
    std::optional<EventRecord> GetEvent(EventNo event) override;
    std::vector<EventRecord> ListEvents(const EventFilter& filter) override;
    std::map<EventCountKey, std::int64_t> CountEvents() override;
    std::vector<FiringRecord> Firings(const FiringFilter& filter) override;
    std::vector<JoinInstance> Joins(const JoinFilter& filter) override;
    TidyReply Tidy(const TidyRequest& request) override;

    // Within a transaction of the caller.
    std::vector<PublishReply> PublishIn(
        Transaction& transaction, std::span<const NewEvent> events, std::vector<std::size_t> which
    );
    std::vector<FireReply> FireIn(Transaction& transaction, std::span<const EventOutcome> outcomes);

    // Keys of rounds whose time is over; and their end, as far as that is still so.
    std::set<JoinKey> LapsedJoins(int limit);
    std::vector<JoinInstance> ExpireIn(Transaction& transaction, const std::set<JoinKey>& keys);

private:
    PostgresStore& store_;
};

// A row of events_take, event_of or list_events.
EventRecord ReadEvent(const Rows& rows, int row);
// Rows of rounds_newest or list_joins, without their parts; ids[i] is the number of the i-th.
std::vector<JoinInstance> ReadRounds(const Rows& rows, std::vector<std::int64_t>& ids);
void AddParts(
    const Rows& parts, std::span<const std::int64_t> ids, std::vector<JoinInstance>& rounds
);

// Rounds under lock, and how they are written.
class Rounds {
public:
    Rounds(PostgresStore& store, Transaction& transaction)
        : store_(store), transaction_(transaction) {}
    std::map<JoinKey, JoinInstance> LockNewest(const std::set<JoinKey>& keys);
    void Save(std::span<const JoinInstance> rounds);

private:
    PostgresStore& store_;
    Transaction& transaction_;
};

}  // namespace stint::store::pg
