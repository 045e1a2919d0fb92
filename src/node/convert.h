// From the public interface's words to the model's, and back.
#pragma once

#include <stint/info.h>
#include <stint/options.h>
#include <stint/task.h>

#include <string>
#include <string_view>

#include "model/lease.h"
#include "model/retry.h"
#include "model/task.h"

namespace stint::node {

model::RetryPolicy ToModel(const Retry& retry);
model::LeasePolicy ToModel(const LeaseOptions& lease);
model::TypeDefaults ToModel(std::string_view name, const TaskDefaults& defaults);

// What the options say, and where they are silent what the submitter's token says. A token's
// setting that is the global default says nothing: the type's registered defaults decide.
Result<model::NewTask> ToNewTask(
    std::string_view type,
    const TaskDefaults* token,
    std::string input,
    const SubmitOptions& options,
    TenantId default_tenant
);

// And back: what the public interface shows of the store's records.
TaskInfo ToPublic(const model::TaskRecord& task);
NodeInfo ToPublic(const model::NodeRecord& node);
SessionInfo ToPublic(const model::SessionRecord& session);

}  // namespace stint::node
