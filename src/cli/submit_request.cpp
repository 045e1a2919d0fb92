#include "cli/submit_request.h"

#include <fmt/format.h>

#include <array>

#include "base/nearest.h"
#include "base/text.h"
#include "cli/exit_code.h"
#include "model/needs.h"
#include "model/time_text.h"

namespace stint::cli {

namespace {

Duration DurationOf(std::string_view field, const std::string& text) {
    auto duration = model::ParseDuration(text);
    if (!duration) {
        throw CommandError(kUsage, fmt::format("{}: {}", field, duration.error().message));
    }
    return *duration;
}

Time InstantOf(std::string_view field, const std::string& text, Time now) {
    auto time = model::ParseTime(text, now);
    if (!time) throw CommandError(kUsage, fmt::format("{}: {}", field, time.error().message));
    return *time;
}

TaskId IdOf(std::string_view field, const std::string& text) {
    auto id = TaskId::Parse(text);
    if (!id) {
        throw CommandError(
            kUsage, fmt::format("{}: {} is not a task's id", field, base::Quoted(text))
        );
    }
    return *id;
}

model::UniquePolicy PolicyNamed(const std::string& name) {
    if (name == "return") return model::UniquePolicy::kReturnExisting;
    if (name == "replace") return model::UniquePolicy::kReplaceIfNotStarted;
    if (name == "error") return model::UniquePolicy::kError;
    throw CommandError(
        kUsage,
        fmt::format("on duplicate: {} is not one of return, replace, error", base::Quoted(name))
    );
}

model::OnFailedHead HeadPolicyNamed(const std::string& name) {
    if (name == "block") return model::OnFailedHead::kBlock;
    if (name == "skip") return model::OnFailedHead::kSkip;
    if (name == "dead") return model::OnFailedHead::kDeadLetter;
    throw CommandError(
        kUsage,
        fmt::format("on failed head: {} is not one of block, skip, dead", base::Quoted(name))
    );
}

stint::OnFailure FailurePolicyNamed(const std::string& name) {
    if (name == "wait") return stint::OnFailure::kWaitForAll;
    if (name == "fail-fast") return stint::OnFailure::kFailFast;
    if (name == "cancel-rest") return stint::OnFailure::kCancelRest;
    throw CommandError(
        kUsage,
        fmt::format("on failure: {} is not one of wait, fail-fast, cancel-rest", base::Quoted(name))
    );
}

void TakeAfter(const SubmitFlags& flags, model::NewTask& task) {
    if (flags.after.empty()) {
        if (!flags.after_any && !flags.after_failure && !flags.on_failure) return;
        throw CommandError(
            kUsage, "--after-any, --on-failure and --even-if-failed need --after ID"
        );
    }
    task.after.emplace();
    for (const std::string& word : flags.after) task.after->on.push_back(IdOf("after", word));
    task.after->any = flags.after_any;
    task.after->need_success = !flags.after_failure;
    if (flags.on_failure) task.after->on_failure = FailurePolicyNamed(*flags.on_failure);
}

void TakePlacement(const SubmitFlags& flags, model::NewTask& task) {
    if (!flags.needs.empty()) {
        task.needs.emplace();
        for (const std::string& text : flags.needs) {
            task.needs->push_back(Need(model::ParseNeed(text)));
        }
        task.needs = model::Canonical(std::move(*task.needs));
    }
    if (!flags.labels.empty()) task.labels = model::CanonicalLabels(flags.labels);
    task.order_key = flags.order_key;
    task.on_failed_head = HeadPolicyNamed(flags.on_failed_head);
}

// Only the number of attempts is asked for: the rest of the policy stays what the type has.
model::RetryPolicy WithAttempts(
    const std::string& type, int attempts, const std::vector<model::TypeRecord>& types
) {
    model::RetryPolicy retry;
    for (const model::TypeRecord& known : types) {
        if (known.defaults.type == type) retry = known.defaults.retry;
    }
    retry.max_attempts = attempts;
    return retry;
}

template <class T>
T Member(const base::Json& value, std::string_view name, std::string_view expected) {
    try {
        return value.get<T>();
    } catch (const base::Json::exception&) {
        throw CommandError(
            kUsage,
            fmt::format(
                "\"{}\" must be {}, not {}", name, expected, base::Quoted(base::JsonText(value))
            )
        );
    }
}

// Applies one member of a line to the flags.
void TakeMember(const std::string& name, const base::Json& value, SubmitFlags& flags) {
    auto text = [&] { return Member<std::string>(value, name, "a string"); };
    auto number = [&] { return Member<int>(value, name, "a whole number"); };
    if (name == "type") {
        flags.type = text();
    } else if (name == "input") {
        flags.input = base::JsonText(value);
    } else if (name == "queue") {
        flags.queue = text();
    } else if (name == "priority") {
        flags.priority = number();
    } else if (name == "delay") {
        flags.delay = text();
    } else if (name == "at") {
        flags.at = text();
    } else if (name == "start_by") {
        flags.start_by = text();
    } else if (name == "timeout") {
        flags.timeout = text();
    } else if (name == "max_attempts") {
        flags.max_attempts = number();
    } else if (name == "key") {
        flags.key = text();
    } else if (name == "unique") {
        flags.unique = text();
    } else if (name == "on_duplicate") {
        flags.on_duplicate = text();
    } else if (name == "tenant") {
        flags.tenant = Member<std::int64_t>(value, name, "a whole number");
    } else if (name == "after") {
        flags.after = Member<std::vector<std::string>>(value, name, "an array of ids as strings");
    } else if (name == "on_failure") {
        flags.on_failure = text();
    } else if (name == "needs") {
        flags.needs = Member<std::vector<std::string>>(value, name, "an array of NAME[=UNITS]");
    } else if (name == "labels") {
        flags.labels = Member<std::vector<std::string>>(value, name, "an array of strings");
    } else if (name == "order_key") {
        flags.order_key = text();
    } else if (name == "on_failed_head") {
        flags.on_failed_head = text();
    } else if (name == "tags") {
        flags.tags = Member<std::vector<std::string>>(value, name, "an array of strings");
    } else {
        constexpr std::array<std::string_view, 20> kNames = {
            "type",       "input",        "queue",   "priority",     "delay",
            "at",         "start_by",     "timeout", "max_attempts", "key",
            "unique",     "on_duplicate", "tenant",  "tags",         "after",
            "on_failure", "needs",        "labels",  "order_key",    "on_failed_head"};
        auto near = base::Nearest(name, kNames);
        throw CommandError(
            kUsage,
            fmt::format(
                "unknown member {}{}",
                base::Quoted(name),
                near.empty() ? fmt::format("; the members are {}", fmt::join(kNames, ", "))
                             : fmt::format("; did you mean \"{}\"?", near)
            )
        );
    }
}

}  // namespace

model::NewTask MakeRequest(
    const SubmitFlags& flags, std::string input, const RequestContext& context
) {
    model::NewTask task;
    task.type = flags.type;
    task.input = std::move(input);
    task.tenant = flags.tenant ? TenantId(*flags.tenant) : context.tenant;
    task.queue = flags.queue;
    task.priority = flags.priority;
    task.tags = flags.tags;
    task.idempotency_key = flags.key;
    task.unique_key = flags.unique;
    task.unique_policy = PolicyNamed(flags.on_duplicate);
    task.actor = context.actor;
    task.cause = context.cause;
    TakePlacement(flags, task);
    if (flags.delay) task.delay = DurationOf("delay", *flags.delay);
    if (flags.timeout) task.timeout = DurationOf("timeout", *flags.timeout);
    if (flags.at) task.run_at = InstantOf("at", *flags.at, context.now);
    if (flags.start_by) task.start_by = InstantOf("start-by", *flags.start_by, context.now);
    TakeAfter(flags, task);
    if (flags.max_attempts) {
        task.retry = WithAttempts(flags.type, *flags.max_attempts, context.types);
    }
    // Too large is a mistake in the request, like any other.
    if (auto valid = model::Validate(task); !valid) {
        throw CommandError(kUsage, valid.error().message);
    }
    return task;
}

model::NewTask MakeRequestFromLine(
    const SubmitFlags& flags, std::string_view line, const RequestContext& context
) {
    auto parsed = base::ParseJson(line, model::limits::kJsonDepth + 1);
    if (!parsed) throw CommandError(kUsage, "the line " + parsed.error().message);
    if (!parsed->is_object()) {
        throw CommandError(
            kUsage, R"(the line is not an object; write {"type": "echo", "input": 1})"
        );
    }
    SubmitFlags merged = flags;
    merged.input = "null";
    for (const auto& [name, value] : parsed->items()) TakeMember(name, value, merged);
    if (merged.type.empty()) throw CommandError(kUsage, "\"type\" is missing");
    std::string input = std::move(merged.input);
    return MakeRequest(merged, std::move(input), context);
}

}  // namespace stint::cli
