// What becomes of a task when an attempt ends. Pure; the stores and the engine share it.
#pragma once

#include "model/error.h"
#include "model/retry.h"
#include "model/state.h"

namespace stint::model {

struct Disposition {
    Event event;
    State to;
    Duration delay{};    // until it is due again, where it is
    std::string reason;  // for DEAD
};

// A failed attempt: ERROR with a delay while the policy allows another, else DEAD with the reason.
// `attempt` counts the one that failed; `fraction` in [0, 1) is the jitter's random number.
Disposition DecideFailure(
    const RetryPolicy& policy, int attempt, const TaskError& error, double fraction
);

// A lease that ended without an outcome.
struct CrashFacts {
    int attempt = 0;        // the crashed one included
    int max_attempts = 0;   // 0 = no limit
    bool alone = false;     // it ran alone: the crash is its own
    int crashes_alone = 0;  // within the window, this one included when alone
    bool cancel_requested = false;
};
Disposition DecideCrash(const CrashFacts& facts);

// min(kCrashDelay · 2^(crashes-1), kCrashDelayMax); crashes counted from 1.
Duration CrashDelay(int crashes);

}  // namespace stint::model
