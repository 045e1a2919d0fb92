#include "model/decide.h"

#include <algorithm>

#include "base/check.h"
#include "base/result.h"
#include "model/limits.h"

namespace stint::model {

namespace {

Disposition Dead(std::string reason) {
    return {Event::kFailFinal, State::kDead, Duration::zero(), std::move(reason)};
}

}  // namespace

Disposition DecideFailure(
    const RetryPolicy& policy, int attempt, const TaskError& error, double fraction
) {
    CHECK(attempt >= 1);
    if (policy.on == RetryPolicy::On::kNone)
        return Dead("failed; its retry policy allows no retry");
    if (policy.on == RetryPolicy::On::kRetryable && !error.retryable) {
        return Dead("failed with an error that is not retryable");
    }
    if (!AttemptsLeft(policy, attempt)) {
        return Dead(fmt::format("attempts exhausted: {} of {}", attempt, policy.max_attempts));
    }
    return {Event::kFailRetryable, State::kError, RetryDelay(policy, attempt, fraction), {}};
}

Disposition DecideCrash(const CrashFacts& facts) {
    CHECK(facts.attempt >= 1);
    if (facts.cancel_requested) {
        return {
            Event::kCancel,
            State::kCancelled,
            Duration::zero(),
            "cancel requested; its process crashed"};
    }
    if (facts.alone && facts.crashes_alone >= limits::kMaxCrashes) {
        return {
            Event::kQuarantine,
            State::kDead,
            Duration::zero(),
            fmt::format(
                "quarantined: crashed its process {} times within {} h while running alone",
                facts.crashes_alone,
                std::chrono::duration_cast<std::chrono::hours>(limits::kCrashWindow).count()
            )};
    }
    if (facts.max_attempts > 0 && facts.attempt >= facts.max_attempts) {
        return Dead(fmt::format(
            "attempts exhausted: {} of {}, the last one crashed", facts.attempt, facts.max_attempts
        ));
    }
    return {Event::kReclaim, State::kOpen, CrashDelay(std::max(1, facts.crashes_alone)), {}};
}

Duration CrashDelay(int crashes) {
    CHECK(crashes >= 1);
    Duration delay = limits::kCrashDelay;
    for (int i = 1; i < crashes && delay < limits::kCrashDelayMax; ++i) delay *= 2;
    return std::min(delay, limits::kCrashDelayMax);
}

}  // namespace stint::model
