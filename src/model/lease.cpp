#include "model/lease.h"

#include "base/result.h"
#include "base/text.h"
#include "model/limits.h"

namespace stint::model {

using base::DurationText;
using base::MakeError;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {
constexpr int kMarginShare = 10;  // of a lease, for stopping
}

LeasePolicy LeasePolicy::Default() {
    return {};
}

LeasePolicy LeasePolicy::Brisk() {
    return {.lease = seconds{8}, .heartbeat_every = seconds{2}, .self_stop = seconds{6}};
}

LeasePolicy LeasePolicy::Patient() {
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
    Duration latest = policy.lease - policy.lease / kMarginShare;
    if (policy.self_stop > latest) {
        return MakeError(
            Code::kInvalid,
            "self_stop is {} and lease is {}; self_stop must be at most {}, so that a worker has "
            "the last tenth of its lease to stop its tasks before they can be taken",
            DurationText(policy.self_stop),
            DurationText(policy.lease),
            DurationText(latest)
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
