// Every message names the field, its value and the cure.
#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/result.h"
#include "base/text.h"
#include "model/instant_range.h"
#include "model/placement.h"
#include "model/task.h"

namespace stint::model {

using base::DurationText;
using base::Quoted;

namespace {

// The first check that fails is the answer; the ones after it are not made.
class Checks {
public:
    // Types, queues: what fits a path, a metric label and a command line without quoting.
    void Name(std::string_view field, std::string_view value, std::size_t limit) {
        if (value.empty()) return Wrong("{} is empty; give it a name", field);
        Size(field, value, limit);
        static constexpr std::string_view kMarks = "._-:/@+";
        bool good = std::all_of(value.begin(), value.end(), [](unsigned char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                   kMarks.find(static_cast<char>(c)) != std::string_view::npos;
        });
        if (!good) Wrong("{} is {}; use letters, digits and . _ - : / @ +", field, Quoted(value));
    }

    // Keys, tags, actors: any text on one line.
    void Text(std::string_view field, std::string_view value, std::size_t limit) {
        Size(field, value, limit);
        if (!base::IsUtf8(value)) Wrong("{} is {}; it must be valid UTF-8", field, Quoted(value));
        if (base::HasControl(value)) {
            Wrong("{} is {}; it must not have control characters", field, Quoted(value));
        }
    }

    void Size(std::string_view field, std::string_view value, std::size_t limit) {
        if (value.size() <= limit) return;
        Fail(
            Code::kLimit,
            fmt::format("{} is {} bytes; the limit is {} bytes", field, value.size(), limit)
        );
    }

    void Input(std::string_view value) {
        if (value.size() > limits::kInput) {
            return Fail(
                Code::kLimit,
                fmt::format(
                    "input is {} bytes; the limit is {} bytes: store large data elsewhere and pass "
                    "a reference",
                    value.size(),
                    limits::kInput
                )
            );
        }
        if (auto ok = base::CheckJson(value, limits::kJsonDepth); !ok) {
            Fail(ok.error().code, "input " + ok.error().message);
        }
    }

    void Between(std::string_view field, std::int64_t value, std::int64_t low, std::int64_t high) {
        if (value >= low && value <= high) return;
        Wrong("{} is {}; it must be between {} and {}", field, value, low, high);
    }

    void Between(std::string_view field, Duration value, Duration low, Duration high) {
        if (value >= low && value <= high) return;
        Wrong(
            "{} is {}; it must be between {} and {}",
            field,
            DurationText(value),
            DurationText(low),
            DurationText(high)
        );
    }

    void Instant(std::string_view field, const std::optional<Time>& value) {
        if (!value) return;
        if (auto ok = CheckInstant(field, *value); !ok) Fail(ok.error().code, ok.error().message);
    }

    void Tags(const std::vector<std::string>& tags) {
        if (tags.size() > limits::kTagsPerTask) {
            return Fail(
                Code::kLimit,
                fmt::format("tags has {} tags; the limit is {}", tags.size(), limits::kTagsPerTask)
            );
        }
        for (std::size_t i = 0; i < tags.size(); ++i) {
            if (tags[i].empty()) return Wrong("tags has an empty tag; leave it out");
            Text("tags", tags[i], limits::kTag);
            if (std::find(tags.begin(), tags.begin() + static_cast<std::ptrdiff_t>(i), tags[i]) !=
                tags.begin() + static_cast<std::ptrdiff_t>(i)) {
                return Wrong("tags has {} twice; give each tag once", Quoted(tags[i]));
            }
        }
    }

    void Retry(const std::optional<RetryPolicy>& retry) {
        if (!retry) return;
        if (auto ok = Validate(*retry); !ok) Fail(ok.error().code, ok.error().message);
    }

    void Passes(const Result<void>& checked) {
        if (!checked) Fail(checked.error().code, checked.error().message);
    }

    template <class... Args>
    void Wrong(fmt::format_string<Args...> format, Args&&... args) {
        Fail(Code::kInvalid, fmt::format(format, std::forward<Args>(args)...));
    }

    void Fail(Code code, std::string message) {
        if (result_) result_ = Error{code, std::move(message)};
    }

    Result<void> Finish() const { return result_; }

private:
    Result<void> result_;
};

// What a request and an edit have in common.
template <class Request>
void CheckSettings(Checks& checks, const Request& request) {
    if (request.queue) checks.Name("queue", *request.queue, limits::kQueueName);
    if (request.priority) {
        checks.Between(
            "priority", std::int64_t{*request.priority}, limits::kPriorityMin, limits::kPriorityMax
        );
    }
    checks.Retry(request.retry);
    if (request.timeout)
        checks.Between("timeout", *request.timeout, Duration::zero(), limits::kTimeoutMax);
    if (request.delay) checks.Between("delay", *request.delay, Duration::zero(), limits::kDelayMax);
    checks.Instant("run_at", request.run_at);
    checks.Instant("start_by", request.start_by);
    if (request.delay && request.run_at) {
        checks.Wrong("delay and run_at are both given; give one of them");
    }
    if (request.run_at && request.start_by && *request.start_by <= *request.run_at) {
        checks.Wrong(
            "start_by is {}, not after run_at ({}); it could never start",
            base::Iso8601(*request.start_by),
            base::Iso8601(*request.run_at)
        );
    }
}

void CheckDebounce(Checks& checks, const NewTask& task) {
    const Debounce& debounce = *task.debounce;
    if (debounce.key.empty()) checks.Wrong("debounce.key is empty; name what the burst is about");
    checks.Text("debounce.key", debounce.key, limits::kKey);
    checks.Between("debounce.wait", debounce.wait, Duration{1}, limits::kDelayMax);
    checks.Between("debounce.max_wait", debounce.max_wait, Duration::zero(), limits::kDelayMax);
    if (debounce.max_wait > Duration::zero() && debounce.max_wait < debounce.wait) {
        checks.Wrong(
            "debounce.max_wait is {}; it must not be below wait ({}), or be zero for no bound",
            DurationText(debounce.max_wait),
            DurationText(debounce.wait)
        );
    }
    if (!task.unique_key.empty()) {
        checks.Wrong("debounce and unique_key are both given; give one of them");
    }
    if (task.delay || task.run_at) {
        checks.Wrong(
            "debounce is given together with {}; debounce sets the due time itself",
            task.delay ? "delay" : "run_at"
        );
    }
}

void CheckThrottle(Checks& checks, const Throttle& throttle) {
    if (throttle.key.empty()) checks.Wrong("throttle.key is empty; name what is throttled");
    checks.Text("throttle.key", throttle.key, limits::kKey);
    checks.Between("throttle.period", throttle.period, Duration{1}, limits::kDelayMax);
}

void CheckWait(Checks& checks, std::string_view field, const WaitOn& wait) {
    if (wait.on.size() > limits::kWaitMembers) {
        checks.Wrong(
            "{} names {} tasks; the limit is {}: wait for tasks that wait for some each",
            field,
            wait.on.size(),
            limits::kWaitMembers
        );
    }
    std::set<TaskId> seen;
    for (TaskId other : wait.on) {
        if (other.value() < 1) {
            checks.Wrong("{} has the id {}; ids are 1 and more", field, other.value());
        } else if (!seen.insert(other).second) {
            checks.Wrong("{} names task {} twice", field, other.value());
        }
    }
    if (wait.on_failure > OnFailure::kCancelRest) {
        checks.Wrong(
            "{}.on_failure is {}; use wait_for_all, fail_fast or cancel_rest",
            field,
            static_cast<int>(wait.on_failure)
        );
    } else if (wait.any && wait.on_failure != OnFailure::kWaitForAll) {
        checks.Wrong(
            "{}.on_failure is given together with any, where one failure does not matter; leave it "
            "out",
            field
        );
    }
}

}  // namespace

Result<void> Validate(const WaitOn& wait) {
    Checks checks;
    CheckWait(checks, "wait", wait);
    return checks.Finish();
}

Result<void> Validate(const NewTask& task) {
    Checks checks;
    if (task.id.value() < 0) checks.Wrong("id is {}; reserve ids from the store", task.id.value());
    if (!task.tenant.valid())
        checks.Wrong("tenant is {}; it must be 1 or more", task.tenant.value());
    if (task.parent.value() < 0)
        checks.Wrong("parent is {}; it must be the id of a task", task.parent.value());
    checks.Name("type", task.type, limits::kTypeName);
    CheckSettings(checks, task);
    checks.Tags(task.tags);
    checks.Text("idempotency_key", task.idempotency_key, limits::kKey);
    checks.Text("unique_key", task.unique_key, limits::kKey);
    checks.Text("actor", task.actor, limits::kActor);
    if (task.unique_policy > UniquePolicy::kError) {
        checks.Wrong(
            "unique_policy is {}; use return_existing, replace_if_not_started or error",
            static_cast<int>(task.unique_policy)
        );
    }
    if (task.debounce) CheckDebounce(checks, task);
    if (task.throttle) CheckThrottle(checks, *task.throttle);
    if (task.needs) checks.Passes(ValidateNeeds("needs", *task.needs));
    if (task.labels) checks.Passes(ValidateLabels("labels", *task.labels));
    checks.Text("order_key", task.order_key, limits::kKey);
    if (task.on_failed_head > OnFailedHead::kDeadLetter) {
        checks.Wrong(
            "on_failed_head is {}; use block, skip or dead_letter",
            static_cast<int>(task.on_failed_head)
        );
    }
    if (task.after) {
        CheckWait(checks, "after", *task.after);
        if (task.debounce) checks.Wrong("after and debounce cannot be given together");
        if (!task.unique_key.empty() && task.unique_policy == UniquePolicy::kReplaceIfNotStarted) {
            checks.Wrong(
                "after and the unique policy replace_if_not_started cannot be given "
                "together: cancel the other task instead"
            );
        }
        bool own = std::ranges::find(task.after->on, task.id) != task.after->on.end();
        if (task.id.valid() && own) checks.Wrong("after names the task itself");
    }
    checks.Input(task.input);
    return checks.Finish();
}

Result<void> Validate(const TaskEdit& edit) {
    Checks checks;
    bool empty = !edit.queue && !edit.priority && !edit.input && !edit.delay && !edit.run_at &&
                 !edit.start_by && !edit.retry && !edit.timeout && !edit.tags;
    if (empty) checks.Wrong("the edit is empty; give at least one field to change");
    CheckSettings(checks, edit);
    if (edit.tags) checks.Tags(*edit.tags);
    if (edit.input) checks.Input(*edit.input);
    return checks.Finish();
}

Result<void> Validate(const TypeDefaults& defaults) {
    Checks checks;
    checks.Name("type", defaults.type, limits::kTypeName);
    checks.Name("queue", defaults.queue, limits::kQueueName);
    checks.Between(
        "priority", std::int64_t{defaults.priority}, limits::kPriorityMin, limits::kPriorityMax
    );
    checks.Retry(defaults.retry);
    checks.Between("timeout", defaults.timeout, Duration::zero(), limits::kTimeoutMax);
    checks.Passes(ValidateNeeds("needs", defaults.needs));
    checks.Passes(ValidateLabels("labels", defaults.labels));
    return checks.Finish();
}

Result<void> Validate(const QueueSettings& settings) {
    Checks checks;
    checks.Name("queue", settings.name, limits::kQueueName);
    if (settings.cap && *settings.cap < 0) {
        checks.Wrong("cap is {}; it must be 0 or more, or absent for no cap", *settings.cap);
    }
    auto keep = [&](std::string_view field, const std::optional<Duration>& value) {
        if (value) checks.Between(field, *value, std::chrono::hours{1}, limits::kRetentionMax);
    };
    keep("keep_complete", settings.keep_complete);
    keep("keep_dead", settings.keep_dead);
    keep("keep_cancelled", settings.keep_cancelled);
    return checks.Finish();
}

Result<void> Validate(const QueueChange& change) {
    QueueSettings settings{.name = change.name};
    Apply(change, settings);
    return Validate(settings);
}

}  // namespace stint::model
