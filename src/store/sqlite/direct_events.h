// Events as the file's owner sees them.
#pragma once

#include "store/events.h"
#include "store/sqlite/reader_pool.h"
#include "store/sqlite/writer.h"

namespace stint::store::lite {

class DirectEvents final : public EventStore {
public:
    DirectEvents(Writer& writer, ReaderPool& readers, base::Clock& clock)
        : writer_(writer), readers_(readers), clock_(clock) {}

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

private:
    template <class Member>
    auto Change(Member&& member);
    template <class Question>
    auto Ask(Question&& question);

    Writer& writer_;
    ReaderPool& readers_;
    base::Clock& clock_;
};

}  // namespace stint::store::lite
