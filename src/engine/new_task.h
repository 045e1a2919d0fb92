// From the public words of a submit to the model's.
#pragma once

#include <stint/submit_options.h>
#include <stint/task.h>

#include <string>
#include <string_view>

#include "model/retry.h"
#include "model/task.h"

namespace stint::engine {

model::RetryPolicy ToModel(const Retry& retry);
// What the constant of a type says of needs and labels.
model::Placement PlacementOf(const TaskDefaults& defaults);
// The resource that limits a type over all workers.
std::string LimitOfType(std::string_view type);

// What the options say, and where they are silent what the submitter's token says. A token's
// setting that is the global default says nothing: the type's registered defaults decide.
Result<model::NewTask> ToNewTask(
    std::string_view type,
    const TaskDefaults* token,
    std::string input,
    const SubmitOptions& options,
    TenantId default_tenant
);

}  // namespace stint::engine
