#include "model/retry.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/json.h"
#include "base/result.h"
#include "base/text.h"
#include "model/limits.h"

namespace stint::model {

using base::DurationText;
using base::MakeError;

namespace {

constexpr std::array kKindNames = {"exponential", "fixed", "list"};
constexpr std::array kOnNames = {"retryable", "all", "none"};
constexpr std::size_t kDelaysMax = 1'000;
constexpr double kFactorMax = 1'000;

template <std::size_t N>
int IndexOf(const std::array<const char*, N>& names, std::string_view name) {
    for (std::size_t i = 0; i < N; ++i) {
        if (name == names[i]) return static_cast<int>(i);
    }
    return -1;
}

// Within [0, kDelayMax], whatever the arithmetic did.
Duration Bounded(double milliseconds) {
    double most = static_cast<double>(limits::kDelayMax.count());
    if (!(milliseconds > 0)) return Duration::zero();
    return Duration(static_cast<Duration::rep>(std::min(std::round(milliseconds), most)));
}

Duration Jittered(double milliseconds, double jitter, double fraction) {
    return Bounded(milliseconds * (1 + jitter * (2 * fraction - 1)));
}

Result<void> CheckDelay(std::string_view field, Duration delay) {
    if (delay >= Duration::zero() && delay <= limits::kDelayMax) return {};
    return MakeError(
        Code::kInvalid,
        "retry.{} is {}; it must be between 0 s and {}",
        field,
        DurationText(delay),
        DurationText(limits::kDelayMax)
    );
}

Result<void> CheckDelays(const RetryPolicy& policy) {
    if (auto ok = CheckDelay("first_delay", policy.first_delay); !ok) return ok;
    if (auto ok = CheckDelay("max_delay", policy.max_delay); !ok) return ok;
    for (Duration delay : policy.delays) {
        if (auto ok = CheckDelay("delays", delay); !ok) return ok;
    }
    if (policy.kind == RetryPolicy::Kind::kExponential && policy.max_delay < policy.first_delay) {
        return MakeError(
            Code::kInvalid,
            "retry.max_delay is {}; it must not be below first_delay ({})",
            DurationText(policy.max_delay),
            DurationText(policy.first_delay)
        );
    }
    if (policy.kind == RetryPolicy::Kind::kList && policy.delays.empty()) {
        return MakeError(
            Code::kInvalid, "retry.delays is empty; a list policy needs at least one delay"
        );
    }
    if (policy.delays.size() > kDelaysMax) {
        return MakeError(
            Code::kLimit,
            "retry.delays has {} entries; the limit is {}",
            policy.delays.size(),
            kDelaysMax
        );
    }
    return {};
}

// ---- from JSON ----

Error WrongField(std::string_view field, const base::Json& value, std::string_view cure) {
    return MakeError(
        Code::kInvalid, "retry.{} is {}; {}", field, base::Quoted(base::JsonText(value)), cure
    );
}

Result<void> ReadDuration(std::string_view field, const base::Json& value, Duration& to) {
    if (!value.is_number_integer()) return WrongField(field, value, "give whole milliseconds");
    to = Duration(value.get<std::int64_t>());
    return {};
}

Result<void> ReadNumber(std::string_view field, const base::Json& value, double& to) {
    if (!value.is_number()) return WrongField(field, value, "give a number");
    to = value.get<double>();
    return {};
}

Result<void> ReadField(const std::string& field, const base::Json& value, RetryPolicy& policy) {
    if (field == "kind") {
        int index = value.is_string() ? IndexOf(kKindNames, value.get<std::string>()) : -1;
        if (index < 0) return WrongField(field, value, "use exponential, fixed or list");
        policy.kind = static_cast<RetryPolicy::Kind>(index);
    } else if (field == "on") {
        int index = value.is_string() ? IndexOf(kOnNames, value.get<std::string>()) : -1;
        if (index < 0) return WrongField(field, value, "use retryable, all or none");
        policy.on = static_cast<RetryPolicy::On>(index);
    } else if (field == "max_attempts") {
        if (!value.is_number_integer() || value.get<std::int64_t>() != value.get<int>()) {
            return WrongField(field, value, "give a whole number, 0 for no limit");
        }
        policy.max_attempts = value.get<int>();
    } else if (field == "first_delay_ms") {
        return ReadDuration(field, value, policy.first_delay);
    } else if (field == "max_delay_ms") {
        return ReadDuration(field, value, policy.max_delay);
    } else if (field == "factor") {
        return ReadNumber(field, value, policy.factor);
    } else if (field == "jitter") {
        return ReadNumber(field, value, policy.jitter);
    } else if (field == "delays_ms") {
        if (!value.is_array()) return WrongField(field, value, "give an array of milliseconds");
        policy.delays.clear();
        for (const base::Json& item : value) {
            Duration delay{};
            if (auto ok = ReadDuration(field, item, delay); !ok) return ok;
            policy.delays.push_back(delay);
        }
    } else {
        return MakeError(
            Code::kInvalid,
            "retry.{} is unknown; the fields are kind, on, max_attempts, first_delay_ms, "
            "max_delay_ms, factor, jitter, delays_ms",
            base::CleanText(field, 64)
        );
    }
    return {};
}

}  // namespace

RetryPolicy RetryPolicy::ErrorIsFinal() {
    RetryPolicy policy;
    policy.on = On::kNone;
    return policy;
}

RetryPolicy RetryPolicy::CountedBackoff() {
    return {};
}

RetryPolicy RetryPolicy::UncountedQuick() {
    RetryPolicy policy;
    policy.kind = Kind::kFixed;
    policy.on = On::kAll;
    policy.max_attempts = 0;
    policy.first_delay = Duration::zero();
    policy.jitter = 0;
    return policy;
}

Duration RetryDelay(const RetryPolicy& policy, int failures, double fraction) {
    CHECK(failures >= 1);
    CHECK(fraction >= 0 && fraction < 1);
    double first = static_cast<double>(policy.first_delay.count());
    switch (policy.kind) {
        case RetryPolicy::Kind::kExponential: {
            double most = static_cast<double>(policy.max_delay.count());
            double grown = first * std::pow(policy.factor, failures - 1);  // may be infinite
            return Jittered(std::min(grown, most), policy.jitter, fraction);
        }
        case RetryPolicy::Kind::kFixed:
            return Jittered(first, policy.jitter, fraction);
        case RetryPolicy::Kind::kList: {
            if (policy.delays.empty()) return Duration::zero();
            auto index = std::min<std::size_t>(failures, policy.delays.size()) - 1;
            return policy.delays[index];
        }
    }
    base::CheckFailed(__FILE__, __LINE__, "RetryDelay", "not a kind");
}

bool AttemptsLeft(const RetryPolicy& policy, int attempt) {
    return policy.max_attempts == 0 || attempt < policy.max_attempts;
}

std::string RetryToJson(const RetryPolicy& policy) {
    base::OrderedJson json;
    json["kind"] = kKindNames.at(static_cast<std::size_t>(policy.kind));
    json["on"] = kOnNames.at(static_cast<std::size_t>(policy.on));
    json["max_attempts"] = policy.max_attempts;
    json["first_delay_ms"] = policy.first_delay.count();
    json["max_delay_ms"] = policy.max_delay.count();
    json["factor"] = policy.factor;
    json["jitter"] = policy.jitter;
    if (!policy.delays.empty()) {
        auto& delays = json["delays_ms"] = base::OrderedJson::array();
        for (Duration delay : policy.delays) delays.push_back(delay.count());
    }
    return base::JsonText(json);
}

Result<RetryPolicy> RetryFromJson(std::string_view text) {
    auto json = base::ParseJson(text, limits::kJsonDepth);
    if (!json) return Error{Code::kInvalid, "retry " + json.error().message};
    if (!json->is_object()) {
        return MakeError(Code::kInvalid, "retry is {}; give an object", base::Quoted(text));
    }
    RetryPolicy policy;
    for (const auto& [field, value] : json->items()) {
        if (auto ok = ReadField(field, value, policy); !ok) return ok.error();
    }
    if (auto ok = Validate(policy); !ok) return ok.error();
    return policy;
}

Result<void> Validate(const RetryPolicy& policy) {
    if (static_cast<std::size_t>(policy.kind) >= kKindNames.size()) {
        return MakeError(
            Code::kInvalid,
            "retry.kind is {}; use exponential, fixed or list",
            static_cast<int>(policy.kind)
        );
    }
    if (static_cast<std::size_t>(policy.on) >= kOnNames.size()) {
        return MakeError(
            Code::kInvalid,
            "retry.on is {}; use retryable, all or none",
            static_cast<int>(policy.on)
        );
    }
    if (policy.max_attempts < 0 || policy.max_attempts > limits::kMaxAttempts) {
        return MakeError(
            Code::kInvalid,
            "retry.max_attempts is {}; it must be between 0 (no limit) and {}",
            policy.max_attempts,
            limits::kMaxAttempts
        );
    }
    if (!(policy.factor >= 1 && policy.factor <= kFactorMax)) {
        return MakeError(
            Code::kInvalid,
            "retry.factor is {}; it must be between 1 and {}",
            policy.factor,
            kFactorMax
        );
    }
    if (!(policy.jitter >= 0 && policy.jitter <= 1)) {
        return MakeError(
            Code::kInvalid, "retry.jitter is {}; it must be between 0 and 1", policy.jitter
        );
    }
    return CheckDelays(policy);
}

}  // namespace stint::model
