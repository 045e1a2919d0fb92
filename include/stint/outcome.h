// How an attempt may end. A handler returns its output, or one of these, or throws.
#pragma once

#include <stint/time.h>

#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>

namespace stint {

// The rest happens outside; somebody completes the task by id with the completion token. The slot
// is free meanwhile. After `timeout` (zero = never) the task is tried again while attempts remain.
struct Background {
    std::string reason;
    Duration timeout = Duration::zero();
};

// Run it again later. The attempt does not count.
struct Snooze {
    Duration delay;
};

// Failed. Tried again if retryable and the task's policy allows.
struct Failed {
    std::string message;
    bool retryable = true;
    std::string klass = "failed";  // groups errors of one kind
};

// A handler that throws these says itself whether another try makes sense. Other exceptions: I/O
// errors and timeouts (std::system_error, std::ios_base::failure) are tried again, the rest are
// not, unless the task says Retry::On::kAll.
class Retryable : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};
class Permanent : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

template <class Out>
using Complete = std::conditional_t<std::is_void_v<Out>, std::monostate, Out>;

template <class Out>
using Outcome = std::variant<Complete<Out>, Background, Snooze, Failed>;

}  // namespace stint
