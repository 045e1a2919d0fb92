#include "store/sqlite/direct_events.h"

#include "sqlite/transaction.h"
#include "store/event_words.h"
#include "store/sqlite/event_rows.h"
#include "store/sqlite/events.h"

namespace stint::store::lite {

template <class Member>
auto DirectEvents::Change(Member&& member) {
    std::optional<std::invoke_result_t<Member, EventOps&>> reply;
    writer_.Run([&](Ops& ops) {
        EventOps event_ops(ops);
        reply.emplace(member(event_ops));
    });
    return std::move(*reply);
}

template <class Question>
auto DirectEvents::Ask(Question&& question) {
    writer_.RequireSound();
    return readers_.With([&](Reads& reads) {
        sqlite::ReadTransaction view(reads.db());
        return question(EventReads(reads.db()));
    });
}

std::vector<PublishReply> DirectEvents::Publish(std::span<const NewEvent> events) {
    if (events.size() > limits::kPublishBatch) return TooManyEvents(events.size());
    return Change([&](EventOps& ops) {
        std::vector<PublishReply> replies;
        for (const NewEvent& event : events) replies.push_back(ops.Publish(event));
        return replies;
    });
}

Result<WorkflowRecord> DirectEvents::PutWorkflow(
    const WorkflowDefinition& definition, std::string_view actor
) {
    if (auto valid = Validate(definition); !valid) return valid.error();
    return Change([&](EventOps& ops) { return ops.PutWorkflow(definition, actor); });
}

bool DirectEvents::RemoveWorkflow(TenantId tenant, std::string_view name) {
    return Change([&](EventOps& ops) { return ops.RemoveWorkflow(tenant, name); });
}

std::vector<WorkflowRecord> DirectEvents::Workflows() {
    return Ask([](EventReads reads) { return reads.Workflows(); });
}

NextEventsReply DirectEvents::NextEvents(const NextEventsRequest& request) {
    // Most looks find nothing, and need not wait for the writer.
    std::optional<NextEventsReply> nothing =
        Ask([&](EventReads reads) { return reads.Nothing(clock_.WallTime()); });
    if (nothing) return *nothing;
    return Change([&](EventOps& ops) { return ops.NextEvents(request); });
}

std::vector<FireReply> DirectEvents::Fire(std::span<const EventOutcome> outcomes) {
    return Change([&](EventOps& ops) { return ops.Fire(outcomes); });
}

std::optional<EventRecord> DirectEvents::GetEvent(EventNo event) {
    return Ask([&](EventReads reads) { return reads.GetEvent(event); });
}

std::vector<EventRecord> DirectEvents::ListEvents(const EventFilter& filter) {
    return Ask([&](EventReads reads) { return reads.ListEvents(filter); });
}

std::map<EventCountKey, std::int64_t> DirectEvents::CountEvents() {
    return Ask([](EventReads reads) { return reads.CountEvents(); });
}

std::vector<FiringRecord> DirectEvents::Firings(const FiringFilter& filter) {
    return Ask([&](EventReads reads) { return reads.Firings(filter); });
}

std::vector<JoinInstance> DirectEvents::Joins(const JoinFilter& filter) {
    return Ask([&](EventReads reads) { return reads.Joins(filter); });
}

TidyReply DirectEvents::Tidy(const TidyRequest& request) {
    return Change([&](EventOps& ops) { return ops.Tidy(request); });
}

}  // namespace stint::store::lite
