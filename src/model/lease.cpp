#include "model/lease.h"

#include "base/result.h"
#include "base/text.h"
#include "model/limits.h"

namespace stint::model {

using base::DurationText;
using base::MakeError;
using std::chrono::minutes;
using std::chrono::seconds;

LeasePolicy LeasePolicy::Default() {
    return {};
}

LeasePolicy LeasePolicy::Brisk() {
    return {.lease = seconds{8}, .heartbeat_every = seconds{2}, .self_stop = seconds{6}};
}

LeasePolicy LeasePolicy::Patient() {
    // Self-stop after three missed heartbeats, with a quarter of the lease as margin.
    return {.lease = minutes{2}, .heartbeat_every = seconds{30}, .self_stop = seconds{90}};
}

Result<void> Validate(const LeasePolicy& policy) {
    if (policy.lease < limits::kLeaseMin || policy.lease > limits::kLeaseMax) {
        return MakeError(
            Code::kInvalid,
            "lease is {}; it must be between {} and {}",
            DurationText(policy.lease),
            DurationText(limits::kLeaseMin),
            DurationText(limits::kLeaseMax)
        );
    }
    if (policy.heartbeat_every <= Duration::zero()) {
        return MakeError(
            Code::kInvalid,
            "heartbeat_every is {}; it must be above zero",
            DurationText(policy.heartbeat_every)
        );
    }
    if (policy.self_stop <= 2 * policy.heartbeat_every) {
        return MakeError(
            Code::kInvalid,
            "self_stop is {}; it must be more than twice heartbeat_every ({}), so that one lost "
            "heartbeat stops nothing",
            DurationText(policy.self_stop),
            DurationText(policy.heartbeat_every)
        );
    }
    if (policy.self_stop >= policy.lease) {
        return MakeError(
            Code::kInvalid,
            "self_stop is {}; it must be shorter than the lease ({}), so that a worker stops "
            "before "
            "its tasks can be taken",
            DurationText(policy.self_stop),
            DurationText(policy.lease)
        );
    }
    return {};
}

Result<LeasePolicy> LeaseNamed(std::string_view preset) {
    if (preset == "default") return LeasePolicy::Default();
    if (preset == "brisk") return LeasePolicy::Brisk();
    if (preset == "patient") return LeasePolicy::Patient();
    return MakeError(
        Code::kInvalid, "lease preset is {}; use default, brisk or patient", base::Quoted(preset)
    );
}

}  // namespace stint::model
