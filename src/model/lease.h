// How long a worker may hold its tasks without a sign of life.
#pragma once

#include <stint/result.h>
#include <stint/time.h>

#include <string_view>

namespace stint::model {

struct LeasePolicy {
    Duration lease = std::chrono::seconds{30};  // a session lives this long after a renewal
    Duration heartbeat_every = std::chrono::seconds{10};
    Duration self_stop = std::chrono::seconds{22};  // the worker gives up this long after the
                                                    // last successful renewal was sent

    friend bool operator==(const LeasePolicy&, const LeasePolicy&) = default;

    static LeasePolicy Default();
    // D3. Both stop themselves after three heartbeats that failed and keep a fourth as the margin.
    static LeasePolicy Brisk();    // heartbeat 2 s: one busy loop, quick recovery
    static LeasePolicy Patient();  // heartbeat 30 s, lease 2 min: many machines, slow links
};

// heartbeat_every · 2 < self_stop ≤ 90 % of lease, all within limits; the message says which is
// wrong.
Result<void> Validate(const LeasePolicy& policy);
Result<LeasePolicy> LeaseNamed(std::string_view preset);  // "default", "brisk", "patient"

}  // namespace stint::model
