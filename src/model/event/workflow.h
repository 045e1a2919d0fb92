// Workflow definitions: what events start. A definition is data: it is stored, every node knows it,
// and any node can act on it.
//
//   {"name": "content-analysis",
//    "triggers": [
//      {"name": "id3", "on": "file.ingested", "match": "mimeType = 'audio/mpeg'",
//       "submit": {"type": "id3.extract", "input": {"file": "${path}"}, "priority": 150}},
//      {"name": "printed", "on": "printer.done",
//       "complete": {"task": "${job.task}", "token": "${job.token}", "output": "${pages}"}}],
//    "joins": [
//      {"name": "index", "types": ["id3.extract", "ocr"], "key": "input.file", "policy": "each",
//       "ttl": "24h", "submit": {"type": "index.build"}}]}
#pragma once

#include <stint/ids.h>
#include <stint/result.h>
#include <stint/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "model/limits.h"
#include "model/task.h"

namespace stint::model {

// The task to submit. Texts marked (t) are templates over the event's fields.
struct TaskTemplate {
    std::string type = {};
    std::optional<std::string> input = {};  // (t) JSON; none = see MakeTask
    std::optional<std::string> queue = {};
    std::optional<int> priority = {};
    std::optional<Duration> timeout = {};
    std::optional<Duration> delay = {};
    std::optional<RetryPolicy> retry = {};
    std::vector<std::string> tags = {};
    std::string unique_key = {};  // (t)
    friend bool operator==(const TaskTemplate&, const TaskTemplate&) = default;
};

// The background task to finish.
struct FinishTemplate {
    bool success = true;
    std::string task = {};   // (t) its id
    std::string token = {};  // (t) its completion token; empty = audited as an override
    std::optional<std::string> output = {};  // (t) JSON, of a success; none = the event's data
    std::string message = {};                // (t) of a failure
    bool retryable = true;
    friend bool operator==(const FinishTemplate&, const FinishTemplate&) = default;
};

struct Trigger {
    std::string name = {};
    std::string on = {};     // the event's type
    std::string match = {};  // an expression over the event's fields; empty = every one
    std::variant<TaskTemplate, FinishTemplate> action = {};
    friend bool operator==(const Trigger&, const Trigger&) = default;
};

enum class JoinPolicy : std::uint8_t {
    kOnce,    // a key fires once while the join exists; what comes afterwards is absorbed
    kEach,    // every complete round fires; the first completion of a type counts in its round
    kLatest,  // the same, but the last completion of a type counts
};
std::string_view JoinPolicyName(JoinPolicy policy);
std::optional<JoinPolicy> JoinPolicyNamed(std::string_view name);

// One task when tasks of all these types are complete for the same key.
struct Join {
    std::string name = {};
    std::vector<std::string> types = {};
    std::string key = {};  // a field of the member: input.…, output.…, type, id
    JoinPolicy policy = JoinPolicy::kEach;
    Duration ttl = limits::kJoinTtl;  // from the first member; then it expires, visibly
    TaskTemplate submit = {};         // (t) over key, generation, outputs.<type>, tasks.<type>
    friend bool operator==(const Join&, const Join&) = default;
};

struct WorkflowDefinition {
    TenantId tenant = kDefaultTenant;
    std::string name = {};
    std::vector<Trigger> triggers = {};
    std::vector<Join> joins = {};
    friend bool operator==(const WorkflowDefinition&, const WorkflowDefinition&) = default;
};
Result<void> Validate(const WorkflowDefinition& definition);

// The messages name the place: "triggers[2].submit.priority is …". The tenant is not part of it.
Result<WorkflowDefinition> WorkflowFromJson(std::string_view text);
std::string WorkflowToJson(const WorkflowDefinition& definition, int indent = -1);

struct WorkflowRecord {
    WorkflowDefinition definition;
    int version = 0;  // grows with every change
    Time updated_at{};
    std::string updated_by;
    // Not empty: this program cannot read the stored text, and this is why; the definition has only
    // its tenant and name. Nobody knows here what it wants, so its tenant's events have to wait for
    // a program that does.
    std::string unreadable;
};
// Of a definition's stored text, which a newer program may have written.
WorkflowRecord ReadWorkflowText(TenantId tenant, std::string_view name, std::string_view text);

// ---- from definition and fields to what is done
// --------------------------------------------------

// `whole`: the input when the template has none. An error when the texts grow beyond the limits of
// a task; what else cannot be a task is found by Validate(NewTask).
Result<NewTask> MakeTask(
    const TaskTemplate& from, const base::Json& fields, const base::Json& whole
);

struct Finishing {
    TaskId task;
    std::optional<LeaseToken> token;
    bool success = true;
    std::string output;
    std::string message;
    bool retryable = true;
};
// The event names no task, or no token where one is expected, or the texts grow too large.
Result<Finishing> MakeFinishing(const FinishTemplate& from, const base::Json& fields);

// The default input of a trigger's task: the data without what was added to it.
base::Json DataOf(const base::Json& fields);

}  // namespace stint::model
