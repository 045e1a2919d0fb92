// A retry policy that is stored and cannot be read: written by a newer program, or by hand.
#pragma once

#include "model/retry.h"

namespace stint::store {

// What stands in for it while its task runs. Whether the task may be tried again is exactly what
// nobody knows, so nobody does: a failure is final, and an operator may retry it.
inline model::RetryPolicy StandIn() {
    return {.on = model::RetryPolicy::On::kNone, .max_attempts = 1};
}

}  // namespace stint::store
