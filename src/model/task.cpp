#include "model/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/hash.h"
#include "base/json.h"
#include "model/placement.h"

namespace stint::model {

namespace {

constexpr std::array kAttemptEnds = {
    std::string_view{"running"},
    std::string_view{"complete"},
    std::string_view{"failed"},
    std::string_view{"timed_out"},
    std::string_view{"crashed"},
    std::string_view{"released"},
    std::string_view{"snoozed"},
    std::string_view{"cancelled"},
    std::string_view{"blocked"},
    std::string_view{"background"},
    std::string_view{"lost"},
};
static_assert(kAttemptEnds.size() == static_cast<std::size_t>(AttemptEnd::kLost) + 1);

// One line per field, "name:length:value": the length keeps a value from looking like another
// field. Fields that were not given leave no line, so that a new field does not change old digests.
class Digest {
public:
    void Add(std::string_view name, std::string_view value) {
        text_ += fmt::format("{}:{}:{}\n", name, value.size(), value);
    }
    void Add(std::string_view name, std::int64_t value) { Add(name, std::to_string(value)); }
    void Add(std::string_view name, Duration value) { Add(name, std::int64_t{value.count()}); }
    void Add(std::string_view name, Time value) {
        Add(name, std::int64_t{value.time_since_epoch().count()});
    }
    void Add(std::string_view name, const RetryPolicy& value) { Add(name, RetryToJson(value)); }
    template <class T>
    void AddIf(std::string_view name, const std::optional<T>& value) {
        if (value) Add(name, *value);
    }
    std::string Finish() const { return base::Sha256Hex(text_); }

private:
    std::string text_;
};

// A number is what it is worth: 1e3, 1000.0 and 1000 are the same.
void MakeWhole(base::Json& json) {
    if (json.is_structured()) {
        for (base::Json& element : json) MakeWhole(element);
    }
    if (!json.is_number_float()) return;
    auto value = json.get<double>();
    if (value != std::trunc(value)) return;
    if (value >= 0 && value < 0x1p64) {
        json = static_cast<std::uint64_t>(value);
    } else if (value < 0 && value >= -0x1p63) {
        json = static_cast<std::int64_t>(value);
    }
}

// Spaces, the order of members and how a number is written mean nothing; some doors do not even see
// them.
std::string CanonicalInput(const std::string& input) {
    auto json = base::ParseJson(input, limits::kJsonDepth);
    if (!json) return input;
    MakeWhole(*json);
    return base::JsonText(*json);
}

}  // namespace

std::string RequestHash(const NewTask& task) {
    Digest digest;
    digest.Add("tenant", task.tenant.value());
    digest.Add("type", task.type);
    digest.Add("input", CanonicalInput(task.input));
    digest.AddIf("queue", task.queue);
    if (task.priority) digest.Add("priority", std::int64_t{*task.priority});
    digest.AddIf("retry", task.retry);
    digest.AddIf("timeout", task.timeout);
    digest.AddIf("delay", task.delay);
    digest.AddIf("run_at", task.run_at);
    digest.AddIf("start_by", task.start_by);
    std::vector<std::string> tags = task.tags;  // a set: their order means nothing
    std::sort(tags.begin(), tags.end());
    for (const std::string& tag : tags) digest.Add("tag", tag);
    if (task.debounce) {
        digest.Add("debounce.wait", task.debounce->wait);
        digest.Add("debounce.max_wait", task.debounce->max_wait);
    }
    if (task.throttle) digest.Add("throttle.period", task.throttle->period);
    if (task.parent.valid()) digest.Add("parent", task.parent.value());
    if (task.after) {
        for (TaskId other : task.after->on) digest.Add("after", other.value());
        digest.Add("after.on_failure", static_cast<std::int64_t>(task.after->on_failure));
        digest.Add("after.any", std::int64_t{task.after->any});
        digest.Add("after.need_success", std::int64_t{task.after->need_success});
    }
    if (task.needs) digest.Add("needs", PlacementText({.needs = *task.needs}));
    if (task.labels) digest.Add("labels", PlacementText({.labels = *task.labels}));
    if (!task.order_key.empty()) {
        digest.Add("order_key", task.order_key);
        digest.Add("on_failed_head", static_cast<std::int64_t>(task.on_failed_head));
    }
    return digest.Finish();
}

Resolved Resolve(const NewTask& task, const TypeDefaults* registered) {
    const TypeDefaults global;
    const TypeDefaults& defaults = registered ? *registered : global;
    return {
        .queue = task.queue.value_or(defaults.queue),
        .priority = task.priority.value_or(defaults.priority),
        .retry = task.retry.value_or(defaults.retry),
        .timeout = task.timeout.value_or(defaults.timeout),
        .type_known = registered != nullptr,
        .placement =
            {.needs = Canonical(task.needs.value_or(defaults.needs)),
             .labels = CanonicalLabels(task.labels.value_or(defaults.labels)),
             .order_key = task.order_key,
             .on_failed_head = task.on_failed_head},
    };
}

int ExplicitMask(const NewTask& task) {
    return (task.queue ? kExplicitQueue : 0) | (task.priority ? kExplicitPriority : 0) |
           (task.retry ? kExplicitRetry : 0) | (task.timeout ? kExplicitTimeout : 0);
}

std::string_view AttemptEndName(AttemptEnd end) {
    return kAttemptEnds.at(static_cast<std::size_t>(end));
}

std::optional<AttemptEnd> AttemptEndNamed(std::string_view name) {
    for (std::size_t i = 0; i < kAttemptEnds.size(); ++i) {
        if (kAttemptEnds[i] == name) return static_cast<AttemptEnd>(i);
    }
    return std::nullopt;
}

std::string_view SessionStateName(SessionState state) {
    static constexpr std::array kNames = {
        std::string_view{"live"},
        std::string_view{"draining"},
        std::string_view{"closed"},
        std::string_view{"expired"},
    };
    return kNames.at(static_cast<std::size_t>(state));
}

void Apply(const QueueChange& change, QueueSettings& settings) {
    if (change.paused) settings.paused = *change.paused;
    if (change.cap) settings.cap = *change.cap;
    if (change.keep_complete) settings.keep_complete = *change.keep_complete;
    if (change.keep_dead) settings.keep_dead = *change.keep_dead;
    if (change.keep_cancelled) settings.keep_cancelled = *change.keep_cancelled;
}

QueueChange ChangeTo(const QueueSettings& settings) {
    return {
        .name = settings.name,
        .paused = settings.paused,
        .cap = settings.cap,
        .keep_complete = settings.keep_complete,
        .keep_dead = settings.keep_dead,
        .keep_cancelled = settings.keep_cancelled,
    };
}

}  // namespace stint::model
