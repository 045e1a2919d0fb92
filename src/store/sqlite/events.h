// Changes of events, definitions and joins, on the writer's connection.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "store/events.h"
#include "store/sqlite/ops.h"

namespace stint::store::lite {

class EventOps {
public:
    explicit EventOps(Ops& ops) : ops_(ops), db_(ops.db()), now_(ops.now()) {}

    PublishReply Publish(const NewEvent& event);
    PublishReply Add(const NewEvent& event);
    // A task was submitted by the handler of another: it is as deep as that.
    void Follow(TaskId cause, TaskId task, TenantId tenant);
    Result<WorkflowRecord> PutWorkflow(
        const WorkflowDefinition& definition, std::string_view actor
    );
    bool RemoveWorkflow(TenantId tenant, std::string_view name);
    NextEventsReply NextEvents(const NextEventsRequest& request);
    std::vector<FireReply> Fire(std::span<const EventOutcome> outcomes);
    TidyReply Tidy(const TidyRequest& request);

private:
    sqlite::Statement& Sql(std::string_view name) { return lite::Sql(db_, name); }
    void Changed();
    struct Origin {
        EventNo event;  // the deepest that led to the task; none was
        int depth = 0;  // of an event that the task publishes
    };
    Origin OriginOf(TaskId cause);
    TaskId ParentOf(TaskId task);

    Ops& ops_;
    sqlite::Connection& db_;
    const Time now_;
};

}  // namespace stint::store::lite
