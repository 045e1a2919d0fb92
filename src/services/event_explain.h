// Why events and joins do not go on: what has to wait, what this program cannot read, and tasks
// that nobody runs.
#pragma once

#include <stint/event.h>

#include <optional>
#include <vector>

#include "store/store.h"

namespace stint::services {

struct EventQuestion {
    EventNo event;  // only of this one; none: of all that are pending, and of joins
    std::optional<TenantId> tenant;               // only of this one
    int limit = model::limits::kListPageDefault;  // events, and rounds, that are looked at
};
// Throws what the store throws.
std::vector<EventObstacle> ExplainEvents(store::Store& store, const EventQuestion& question);

}  // namespace stint::services
