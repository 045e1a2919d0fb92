// The operations on events, at one instant. The caller holds the lock.
#pragma once

#include "store/memory/event_data.h"
#include "store/memory/ops.h"

namespace stint::store::memory {

class EventOps {
public:
    EventOps(Ops& ops, Data& data, Time now) : ops_(ops), data_(data.events), now_(now) {}

    PublishReply Publish(const NewEvent& event);
    // A task was submitted by the handler of another: it is as deep as that.
    void Follow(TaskId cause, TaskId task, TenantId tenant);
    // A task is complete: if a join waits for its type, that is an event.
    void TaskComplete(const TaskRecord& task);

    Result<WorkflowRecord> PutWorkflow(
        const WorkflowDefinition& definition, std::string_view actor
    );
    bool RemoveWorkflow(TenantId tenant, std::string_view name);
    std::vector<WorkflowRecord> Workflows() const;

    NextEventsReply NextEvents(const NextEventsRequest& request);
    std::vector<FireReply> Fire(std::span<const EventOutcome> outcomes);

    std::optional<EventRecord> GetEvent(EventNo event) const;
    std::vector<EventRecord> ListEvents(const EventFilter& filter) const;
    std::map<EventCountKey, std::int64_t> CountEvents() const;
    std::vector<FiringRecord> Firings(const FiringFilter& filter) const;
    std::vector<JoinInstance> Joins(const JoinFilter& filter) const;
    TidyReply Tidy(const TidyRequest& request);

private:
    struct Origin {
        EventNo event;  // the deepest that led to the task; none was
        int depth = 0;  // of an event that the task publishes
    };
    Origin OriginOf(TaskId cause) const;
    void ForgetOnce(TenantId tenant, std::string_view workflow, const std::vector<Join>& joins);
    PublishReply Add(const NewEvent& event);

    Ops& ops_;
    EventData& data_;
    const Time now_;
};

}  // namespace stint::store::memory
