// From the public interface's words to the model's, and back.
#pragma once

#include <stint/info.h>
#include <stint/options.h>
#include <stint/task.h>
#include <stint/to_come.h>

#include <string>
#include <string_view>

#include "engine/new_task.h"
#include "model/lease.h"
#include "model/retry.h"
#include "model/task.h"

namespace stint::node {

using engine::ToModel;
using engine::ToNewTask;
Result<model::NewTask> ToNewTask(const TaskToCome& task, TenantId tenant);
model::LeasePolicy ToModel(const LeaseOptions& lease);
model::TypeDefaults ToModel(std::string_view name, const TaskDefaults& defaults);

// And back: what the public interface shows of the store's records.
TaskInfo ToPublic(const model::TaskRecord& task);
NodeInfo ToPublic(const model::NodeRecord& node);
SessionInfo ToPublic(const model::SessionRecord& session);

}  // namespace stint::node
