// Records as the JSON bodies that every door shows: ids are strings, times RFC 3339 in UTC,
// durations text ("1m30s"), payloads themselves and not strings of them. Members are added over
// time, never renamed.
#pragma once

#include "base/json.h"
#include "node/client.h"

namespace stint::node {

base::OrderedJson ToJson(const model::TaskRecord& task);
base::OrderedJson ToJson(const model::AttemptRecord& attempt);
base::OrderedJson ToJson(const model::AuditEntry& entry);
base::OrderedJson ToJson(const model::QueueSettings& settings);
base::OrderedJson ToJson(const model::QueueRecord& queue);
base::OrderedJson ToJson(const model::SessionRecord& session);
base::OrderedJson ToJson(const StoreInfo& info);
base::OrderedJson ToJson(const CheckFinding& finding);
base::OrderedJson ToJson(const FinishedTask& task);

}  // namespace stint::node
