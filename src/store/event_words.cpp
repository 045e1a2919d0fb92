#include "store/event_words.h"

#include <algorithm>
#include <set>

#include "base/result.h"
#include "base/text.h"

namespace stint::store {

std::string SaidBefore(const NewEvent& event, EventNo before) {
    return fmt::format(
        "id {} of source {} stands for event {}, which says something else: use a new id, or send "
        "the same event",
        base::Quoted(event.id),
        base::Quoted(event.source),
        before.value()
    );
}

std::vector<PublishReply> TooManyEvents(std::size_t count) {
    PublishReply refused{.kind = PublishReply::Kind::kInvalid, .no = {}, .message = {}};
    refused.message =
        fmt::format("the batch has {} events; the limit is {}", count, limits::kPublishBatch);
    return std::vector<PublishReply>(count, refused);
}

Error TooManyWorkflows() {
    return base::MakeError(
        Code::kLimit,
        "there are {} workflows, which is the limit: remove one, or put several into one",
        limits::kWorkflows
    );
}

NewEvent CompletionOf(TaskId task, TenantId tenant) {
    NewEvent event;
    event.tenant = tenant;
    event.source = "stint";
    event.type = kTaskComplete;
    event.data = fmt::format(R"({{"task":"{}"}})", task.value());
    event.cause = task;
    return event;
}

TaskId CompletedBy(const EventRecord& event) {
    base::Json data = base::ReadJson(event.data);
    auto task = TaskId::Parse(data.is_object() ? data.value("task", "") : "");
    return task.value_or(TaskId());
}

std::vector<std::string> MemberTypes(const WorkflowDefinition& definition) {
    std::set<std::string> types;
    for (const Join& join : definition.joins) types.insert(join.types.begin(), join.types.end());
    return {types.begin(), types.end()};
}

std::vector<std::string> OnceJoins(const std::vector<Join>& joins) {
    std::vector<std::string> names;
    for (const Join& join : joins) {
        if (join.policy == JoinPolicy::kOnce) names.push_back(join.name);
    }
    return names;
}

bool IsOver(const JoinInstance& round) {
    return round.state == JoinState::kFired || round.state == JoinState::kRefused;
}

JoinInstance FiredOnce(const JoinKey& key, int generation) {
    JoinInstance round;
    round.key = key;
    round.generation = generation;
    round.state = JoinState::kFired;
    round.once = true;
    return round;
}

JoinInstance ForgottenRound(const JoinKey& key, int generation) {
    JoinInstance round;
    round.key = key;
    round.generation = generation;
    round.state = JoinState::kExpired;
    return round;
}

FiringTables::Firing FollowedBy(EventNo event, int depth, TaskId task, TenantId tenant, Time now) {
    FiringTables::Firing firing;
    firing.record.event = event;
    firing.record.tenant = tenant;
    firing.record.trigger = task.ToString();
    firing.record.kind = FiringRecord::Kind::kFollowed;
    firing.record.task = task;
    firing.record.at = now;
    firing.depth = depth;
    return firing;
}

}  // namespace stint::store
