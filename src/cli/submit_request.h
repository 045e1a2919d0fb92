// From words and JSON lines to requests.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/task.h"

namespace stint::cli {

// What the flags of `stint submit` say; for --jsonl the defaults of every line.
struct SubmitFlags {
    std::string type;
    std::string input;  // JSON, @FILE or -
    std::optional<std::string> queue;
    std::optional<int> priority;
    std::optional<std::string> delay, at, start_by, timeout;
    std::optional<int> max_attempts;
    std::string key;
    std::string unique;
    std::string on_duplicate = "return";
    std::optional<std::int64_t> tenant;
    std::vector<std::string> tags;
    std::vector<std::string> after;  // ids
    std::vector<std::string> needs, labels;
    std::string order_key;
    std::string on_failed_head = "block";
    std::optional<std::string> on_failure;  // of one that it waits for
    bool after_any = false;
    bool after_failure = false;  // runs even if what it waits for has failed
    std::optional<std::string> by;
};

struct RequestContext {
    Time now{};                        // for relative instants
    TenantId tenant = kDefaultTenant;  // unless the request names one
    std::string actor;
    const std::vector<model::TypeRecord>& types;  // registered ones
    TaskId cause = {};                            // the task that asks
};

// Throws CommandError that names the field, the value and the cure.
model::NewTask MakeRequest(
    const SubmitFlags& flags, std::string input, const RequestContext& context
);

// One line of --jsonl: {"type": …, "input": …, "queue": …, …}; what it does not say is taken from
// the flags.
model::NewTask MakeRequestFromLine(
    const SubmitFlags& flags, std::string_view line, const RequestContext& context
);

}  // namespace stint::cli
