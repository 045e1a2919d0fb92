// When a failed attempt is tried again. Pure: the random number is an argument.
#pragma once

#include <stint/result.h>
#include <stint/time.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stint::model {

struct RetryPolicy {
    enum class Kind : std::uint8_t {
        kExponential,  // first_delay · factor^(n-1), at most max_delay, jittered
        kFixed,        // first_delay each time, jittered
        kList,         // delays[n-1]; the last one repeats
    };
    enum class On : std::uint8_t {
        kRetryable,  // only errors that say so (I/O, timeouts, stint::Retryable)
        kAll,        // every failure
        kNone,       // no failure at all; crashes are still recovered
    };

    Kind kind = Kind::kExponential;
    On on = On::kRetryable;
    int max_attempts = 20;  // attempts in all, the first included; 0 = no limit
    Duration first_delay = std::chrono::seconds{1};
    Duration max_delay = std::chrono::hours{1};
    double factor = 2.0;
    double jitter = 0.2;  // each delay is varied by up to this share, both ways
    std::vector<Duration> delays = {};

    friend bool operator==(const RetryPolicy&, const RetryPolicy&) = default;

    // The presets of the three source systems.
    static RetryPolicy ErrorIsFinal();    // the first failure is the end; crashes are recovered
    static RetryPolicy CountedBackoff();  // retryable errors, counted, exponential: the default
    static RetryPolicy UncountedQuick();  // every failure, at once, no limit; crashes still count
};

// The wait before the next try after `failures` failed attempts (≥ 1). `fraction` in [0, 1).
Duration RetryDelay(const RetryPolicy& policy, int failures, double fraction);

// True when the policy allows another try after `attempt` attempts.
bool AttemptsLeft(const RetryPolicy& policy, int attempt);

// Compact JSON, as stored with the task and the type; Parse names the field that is wrong.
std::string RetryToJson(const RetryPolicy& policy);
Result<RetryPolicy> RetryFromJson(std::string_view json);
Result<void> Validate(const RetryPolicy& policy);

}  // namespace stint::model
