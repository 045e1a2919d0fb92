// A request for a task as JSON, whole: for what has to survive outside a store.
#pragma once

#include <stint/result.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/task.h"

namespace stint::model {

base::Json ToJson(const NewTask& task);
base::Json ToJson(const WaitOn& wait);
base::Json ToJson(const Needs& needs);
// Throw base::Json::exception for what these have not written.
NewTask NewTaskFromJson(const base::Json& json);
WaitOn WaitOnFromJson(const base::Json& json);
Needs NeedsFromJson(const base::Json& json);

}  // namespace stint::model
