#include "store/resource_rules.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/planted_bug.h"
#include "base/result.h"
#include "base/text.h"
#include "model/limits.h"
#include "model/placement.h"

namespace stint::store {

using base::MakeError;

namespace {

constexpr double kAlmost = 1e-9;
// A time that lies further in the future was written before the clock was set back.
constexpr Duration kClockSlack = std::chrono::seconds{1};

int BurstOf(const Rate& rate) {
    return rate.burst > 0 ? rate.burst : rate.count;
}

Result<void> CheckNumber(std::string_view field, std::int64_t value, int low, int high) {
    if (value >= low && value <= high) return {};
    return MakeError(
        Code::kInvalid, "{} is {}; it must be between {} and {}", field, value, low, high
    );
}

Result<void> CheckDuration(std::string_view field, Duration value, Duration high) {
    if (value >= Duration{1} && value <= high) return {};
    return MakeError(
        Code::kInvalid,
        "{} is {}; it must be between {} and {}",
        field,
        base::DurationText(value),
        base::DurationText(Duration{1}),
        base::DurationText(high)
    );
}

Result<void> CheckRate(const Rate& rate) {
    if (auto ok = CheckNumber("rate.count", rate.count, 1, limits::kRateCount); !ok) return ok;
    if (auto ok = CheckNumber("rate.burst", rate.burst, 0, limits::kRateCount); !ok) return ok;
    return CheckDuration("rate.period", rate.period, limits::kRatePeriodMax);
}

Result<void> CheckBreaker(const Breaker& breaker) {
    if (auto ok = CheckNumber("breaker.failures", breaker.failures, 1, limits::kBreakerFailures);
        !ok) {
        return ok;
    }
    if (auto ok = CheckDuration("breaker.open_for", breaker.open_for, limits::kOpenMax); !ok) {
        return ok;
    }
    if (auto ok = CheckDuration("breaker.open_at_most", breaker.open_at_most, limits::kOpenMax);
        !ok) {
        return ok;
    }
    if (breaker.open_at_most >= breaker.open_for) return {};
    return MakeError(
        Code::kInvalid,
        "breaker.open_at_most is {}; it must not be below open_for ({})",
        base::DurationText(breaker.open_at_most),
        base::DurationText(breaker.open_for)
    );
}

void Remember(ResourceState& state, BreakerEvidence evidence) {
    evidence.message = base::CleanText(evidence.message, limits::kReason);
    state.evidence.insert(state.evidence.begin(), std::move(evidence));
    if (state.evidence.size() > limits::kEvidence) state.evidence.resize(limits::kEvidence);
}

void CloseUntil(ResourceState& state, Time until) {
    state.opened = true;
    state.closed_until = std::max(state.closed_until.value_or(until), until);
    state.trial = {};
}

auto Key(const BreakerEvidence& e) {
    return std::tie(e.at, e.task, e.type, e.node, e.message);
}

std::int64_t Micros(Time time) {
    return time.time_since_epoch().count();
}
Time FromMicros(const base::Json& json) {
    return Time(std::chrono::microseconds(json.get<std::int64_t>()));
}

}  // namespace

bool operator==(const ResourceState& a, const ResourceState& b) {
    auto key = [](const ResourceState& s) {
        return std::tie(
            s.failures,
            s.opened,
            s.open_for,
            s.closed_until,
            s.trial,
            s.tokens,
            s.refilled_at,
            s.over
        );
    };
    return key(a) == key(b) &&
           std::ranges::equal(a.evidence, b.evidence, [](const auto& x, const auto& y) {
               return Key(x) == Key(y);
           });
}

// ---- settings ----

Result<ResourceSettings> Changed(ResourceSettings settings, const ResourceChange& change) {
    if (auto ok = ValidateResourceName("name", change.name, true); !ok) return ok.error();
    settings.name = ResourceName(change.name);
    if (change.capacity) {
        settings.capacity = *change.capacity;
        if (settings.capacity) {
            auto ok = CheckNumber("capacity", *settings.capacity, 0, limits::kCapacity);
            if (!ok) return ok.error();
        }
    }
    if (change.rate) {
        settings.rate = *change.rate;
        if (settings.rate) {
            if (auto ok = CheckRate(*settings.rate); !ok) return ok.error();
        }
    }
    if (change.breaker) {
        settings.breaker = *change.breaker;
        if (auto ok = CheckBreaker(settings.breaker); !ok) return ok.error();
    }
    return settings;
}

std::string QueueResource(std::string_view queue) {
    return ResourceName("queue:" + std::string(queue));
}
std::string TypeResource(std::string_view type) {
    return ResourceName("type:" + std::string(type));
}
bool IsImplicit(std::string_view resource) {
    return !ReservedPrefix(resource).empty();
}

// ---- what it gives ----

std::optional<double> TokensAt(
    const ResourceSettings& settings, const ResourceState& state, Time now
) {
    if (!settings.rate) return std::nullopt;
    const Rate& rate = *settings.rate;
    double most = BurstOf(rate);
    if (!state.tokens || !state.refilled_at) return most;
    // How long ago that was nobody knows: one may start, and counts from now on.
    if (*state.refilled_at > now + kClockSlack) return std::max(*state.tokens, 1.0);
    using Seconds = std::chrono::duration<double>;
    double elapsed = std::max(0.0, Seconds(now - *state.refilled_at).count());
    double added = elapsed * rate.count / Seconds(rate.period).count();
    return std::min(most, *state.tokens + added);
}

Supply SupplyOf(const ResourceSettings& settings, const ResourceState& state, int held, Time now) {
    Supply supply;
    supply.capacity = settings.capacity;
    if (settings.capacity) supply.units = std::max(0, *settings.capacity - held);
    // Where failures in a row are counted, so is each task that works.
    supply.plain = !settings.rate && settings.breaker.failures <= 1 &&
                   BreakerOf(state, now) == BreakerState::kClosed;
    if (auto tokens = TokensAt(settings, state, now)) {
        supply.starts = static_cast<int>(std::floor(*tokens + kAlmost));
        if (*supply.starts <= 0) {
            double missing = 1 - *tokens;
            using Micro = std::chrono::duration<double, std::micro>;
            Micro wait = Micro(settings.rate->period) * missing / settings.rate->count;
            supply.until = now + std::chrono::microseconds(std::llround(std::ceil(wait.count())));
        }
    }
    switch (BreakerOf(state, now)) {
        case BreakerState::kClosed:
            break;
        case BreakerState::kOpen:
            supply.closed = true;
            supply.until = state.closed_until;
            break;
        case BreakerState::kHalfOpen: {
            // However long it takes: what it finds out decides.
            bool tried = state.trial.valid();
            supply.starts = std::min(supply.starts.value_or(1), tried ? 0 : 1);
            supply.starts_limit = Condition::kResourceClosed;
            if (tried) supply.until.reset();
            if (tried && base::Planted(base::Bug::kHalfOpenLetsAllThrough)) supply.starts.reset();
            break;
        }
    }
    return supply;
}

BreakerState BreakerOf(const ResourceState& state, Time now) {
    if (state.closed_until && *state.closed_until > now) return BreakerState::kOpen;
    return state.opened ? BreakerState::kHalfOpen : BreakerState::kClosed;
}

// ---- what happens to it ----

void Start(const ResourceSettings& settings, ResourceState& state, TaskId task, Time now) {
    auto tokens = TokensAt(settings, state, now);
    if (tokens && !base::Planted(base::Bug::kRateNotCounted)) {
        state.tokens = std::max(0.0, *tokens - 1);
        // An instant that another has counted up to is not counted again.
        const bool counted = state.refilled_at && *state.refilled_at > now &&
                             *state.refilled_at <= now + kClockSlack;
        if (!counted) state.refilled_at = now;
    }
    if (BreakerOf(state, now) == BreakerState::kHalfOpen) state.trial = task;
}

void End(ResourceState& state, TaskId task, bool worked) {
    const bool trial = state.trial == task && task.valid();
    if (trial) {
        state.trial = {};
    }
    if (!worked) return;
    if (trial) Reopen(state);
    if (!state.opened) state.failures = 0;
}

void Report(
    const ResourceSettings& settings,
    ResourceState& state,
    BreakerEvidence evidence,
    Duration closed_for
) {
    const Time now = evidence.at;
    const bool trial = state.trial == evidence.task && evidence.task.valid();
    const bool open = BreakerOf(state, now) == BreakerState::kOpen;
    Remember(state, std::move(evidence));
    state.failures = std::min(state.failures + 1, limits::kBreakerFailures);
    if (closed_for > Duration::zero()) {
        Duration length = std::min(closed_for, limits::kClosedForMax);
        if (state.open_for == Duration::zero()) state.open_for = settings.breaker.open_for;
        CloseUntil(state, now + length);
        return;
    }
    // Those that had started before say it, too. While one tries it, that one decides.
    if (open || (state.trial.valid() && !trial)) return;
    if (!state.opened && state.failures < settings.breaker.failures) return;
    Duration length = std::max(settings.breaker.open_for, state.open_for);
    if (trial && state.open_for > Duration::zero()) length = state.open_for * 2;
    state.open_for = std::min(length, settings.breaker.open_at_most);
    CloseUntil(state, now + state.open_for);
}

void Reopen(ResourceState& state) {
    state.opened = false;
    state.failures = 0;
    state.open_for = Duration::zero();
    state.closed_until.reset();
    state.trial = {};
}

void CloseFor(ResourceState& state, Duration length, BreakerEvidence evidence) {
    Time now = evidence.at;
    Remember(state, std::move(evidence));
    if (state.open_for == Duration::zero()) state.open_for = length;
    state.closed_until.reset();
    CloseUntil(state, now + std::min(length, limits::kClosedForMax));
}

BreakerEvidence OperatorEvidence(std::string_view reason, std::string_view actor, Time now) {
    std::string message = "closed by " + std::string(actor);
    if (!reason.empty()) message += ": " + std::string(reason);
    return {.at = now, .task = {}, .type = {}, .node = {}, .message = message};
}

bool IsIdle(const ResourceSettings& settings, const ResourceState& state, Time now) {
    bool full = true;
    if (auto tokens = TokensAt(settings, state, now)) full = *tokens >= BurstOf(*settings.rate);
    if (!full || state.trial.valid() || BreakerOf(state, now) == BreakerState::kOpen) return false;
    if (state.evidence.empty()) return !state.opened && state.failures == 0;
    return now - state.evidence.front().at > limits::kEvidenceKept;
}

// ---- as text ----

std::string SettingsText(const ResourceSettings& settings) {
    base::OrderedJson json = base::OrderedJson::object();
    if (settings.capacity) json["capacity"] = *settings.capacity;
    if (settings.rate) {
        json["rate"] = {
            {"count", settings.rate->count},
            {"period_ms", std::int64_t{settings.rate->period.count()}},
            {"burst", settings.rate->burst}};
    }
    json["breaker"] = {
        {"failures", settings.breaker.failures},
        {"open_for_ms", std::int64_t{settings.breaker.open_for.count()}},
        {"open_at_most_ms", std::int64_t{settings.breaker.open_at_most.count()}}};
    if (!settings.changed_by.empty()) json["changed_by"] = settings.changed_by;
    if (settings.changed_at) json["changed_at"] = std::int64_t{Micros(*settings.changed_at)};
    return base::JsonText(json);
}

ResourceSettings SettingsOf(std::string_view name, std::string_view text) {
    ResourceSettings settings;
    settings.name = name;
    base::Json json = base::ReadJson(text);
    if (!json.is_object()) return settings;
    if (json.contains("capacity")) settings.capacity = json["capacity"].get<int>();
    if (json.contains("rate")) {
        const base::Json& rate = json["rate"];
        settings.rate = Rate{
            rate.at("count").get<int>(),
            Duration(rate.at("period_ms").get<std::int64_t>()),
            rate.value("burst", 0)};
    }
    if (json.contains("breaker")) {
        const base::Json& breaker = json["breaker"];
        settings.breaker = {
            breaker.at("failures").get<int>(),
            Duration(breaker.at("open_for_ms").get<std::int64_t>()),
            Duration(breaker.at("open_at_most_ms").get<std::int64_t>())};
    }
    settings.changed_by = json.value("changed_by", "");
    if (json.contains("changed_at")) settings.changed_at = FromMicros(json["changed_at"]);
    return settings;
}

std::string StateText(const ResourceState& state) {
    if (state == ResourceState()) return {};
    base::OrderedJson json = base::OrderedJson::object();
    if (state.failures != 0) json["failures"] = state.failures;
    if (state.opened) json["opened"] = true;
    if (state.open_for != Duration::zero()) {
        json["open_for_ms"] = std::int64_t{state.open_for.count()};
    }
    if (state.closed_until) json["closed_until"] = std::int64_t{Micros(*state.closed_until)};
    if (state.trial.valid()) json["trial"] = state.trial.value();
    if (state.tokens) json["tokens"] = *state.tokens;
    if (state.refilled_at) json["refilled_at"] = std::int64_t{Micros(*state.refilled_at)};
    if (state.over != 0) json["over"] = state.over;
    for (const BreakerEvidence& one : state.evidence) {
        json["evidence"].push_back(
            {{"at", std::int64_t{Micros(one.at)}},
             {"task", one.task.value()},
             {"type", one.type},
             {"node", one.node.value()},
             {"message", one.message}}
        );
    }
    return base::JsonText(json);
}

ResourceState StateOf(std::string_view text) {
    ResourceState state;
    if (text.empty()) return state;
    base::Json json = base::ReadJson(text);
    if (!json.is_object()) return state;
    state.failures = json.value("failures", 0);
    state.opened = json.value("opened", false);
    state.open_for = Duration(json.value("open_for_ms", std::int64_t{0}));
    if (json.contains("closed_until")) state.closed_until = FromMicros(json["closed_until"]);
    state.trial = TaskId(json.value("trial", std::int64_t{0}));
    if (json.contains("tokens")) state.tokens = json["tokens"].get<double>();
    state.over = json.value("over", 0);
    if (json.contains("refilled_at")) state.refilled_at = FromMicros(json["refilled_at"]);
    if (json.contains("evidence")) {
        for (const base::Json& one : json["evidence"]) {
            state.evidence.push_back(
                {FromMicros(one.at("at")),
                 TaskId(one.at("task").get<std::int64_t>()),
                 one.at("type").get<std::string>(),
                 NodeId(one.at("node").get<std::int64_t>()),
                 one.at("message").get<std::string>()}
            );
        }
    }
    return state;
}

std::string LeadsText(const Leads& leads) {
    base::OrderedJson json = base::OrderedJson::array();
    for (const auto& [tenant, lead] : leads) json.push_back({tenant.value(), lead});
    return base::JsonText(json);
}

Leads LeadsOf(std::string_view text) {
    Leads leads;
    base::Json json = base::ReadJson(text);
    if (!json.is_array()) return leads;
    for (const base::Json& one : json) {
        leads[TenantId(one.at(0).get<std::int64_t>())] = one.at(1).get<double>();
    }
    return leads;
}

std::string OrderText(const QueueOrder& order) {
    base::OrderedJson json = base::OrderedJson::object();
    json["fair"] = order.fair;
    json["aging_ms"] = std::int64_t{order.aging.count()};
    json["weights"] = base::OrderedJson::array();
    for (const auto& [tenant, weight] : order.weights) {
        json["weights"].push_back({tenant.value(), weight});
    }
    return base::JsonText(json);
}

QueueOrder OrderOf(std::string_view queue, std::string_view text) {
    QueueOrder order;
    order.queue = queue;
    base::Json json = base::ReadJson(text);
    if (!json.is_object()) return order;
    order.fair = json.value("fair", false);
    order.aging = Duration(json.value("aging_ms", std::int64_t{0}));
    for (const base::Json& one : json["weights"]) {
        order.weights[TenantId(one.at(0).get<std::int64_t>())] = one.at(1).get<int>();
    }
    return order;
}

}  // namespace stint::store
