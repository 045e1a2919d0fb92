// What every store says about events in the same words.
#pragma once

#include <string>
#include <vector>

#include "model/limits.h"
#include "store/events.h"
#include "store/fire.h"

namespace stint::store {

// The same id has said something else before.
std::string SaidBefore(const NewEvent& event, EventNo before);
std::vector<PublishReply> TooManyEvents(std::size_t count);
Error TooManyWorkflows();
// The engine's own event about a complete task.
NewEvent CompletionOf(TaskId task, TenantId tenant);
// The task that such an event is about.
TaskId CompletedBy(const EventRecord& event);
// Task types that joins of the definition wait for; each once.
std::vector<std::string> MemberTypes(const WorkflowDefinition& definition);

// Names of the joins whose keys fire once.
std::vector<std::string> OnceJoins(const std::vector<Join>& joins);
// Whether its task was created, or can never be.
bool IsOver(const JoinInstance& round);
// What is left of a round whose key fired once.
JoinInstance FiredOnce(const JoinKey& key, int generation);
// For a key without a round, when rounds were forgotten, the highest of them of this generation:
// the next begins behind it, so that none comes twice.
JoinInstance ForgottenRound(const JoinKey& key, int generation);

// That this task was submitted by one that follows from the event.
FiringTables::Firing FollowedBy(EventNo event, int depth, TaskId task, TenantId tenant, Time now);

}  // namespace stint::store
