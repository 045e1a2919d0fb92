// A task as something that others will submit: a step of a schedule, a deletion.
#pragma once

#include <stint/codec.h>
#include <stint/submit_options.h>
#include <stint/task.h>

#include <string>
#include <type_traits>

namespace stint {

// A task to be submitted later, by name.
struct TaskToCome {
    std::string type;
    Json input = {};
    SubmitOptions options = {};  // not: delay, run_at, start_by, idempotency_key, in
    TaskDefaults defaults = {};
};
template <class In, class Out>
TaskToCome Later(
    const Task<In, Out>& task,
    const std::type_identity_t<In>& input,
    const SubmitOptions& options = {}
) {
    return {std::string(task.name), Json{Codec<In>::Encode(input)}, options, task.defaults};
}
template <class Out>
TaskToCome Later(const Task<void, Out>& task, const SubmitOptions& options = {}) {
    return {std::string(task.name), {}, options, task.defaults};
}

}  // namespace stint
