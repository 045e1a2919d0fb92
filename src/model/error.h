// How an attempt failed, as stored.
#pragma once

#include <string>

namespace stint::model {

struct TaskError {
    std::string message;  // ≤ limits::kErrorMessage
    std::string klass;  // the exception's type, or a class of ours: "timeout", "crash", "exit", …
    std::string stack;  // where known
    bool retryable = false;

    friend bool operator==(const TaskError&, const TaskError&) = default;
};

}  // namespace stint::model
