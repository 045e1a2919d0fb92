// How an attempt may end. A handler returns its output, or one of these, or throws.
#pragma once

#include <stint/ids.h>
#include <stint/time.h>
#include <stint/wait.h>

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace stint {

// The rest happens outside; somebody completes the task by id with the completion token. The slot
// is free meanwhile. After `timeout` (zero = never) the task is tried again while attempts remain.
struct Background {
    std::string reason;
    Duration timeout = Duration::zero();
};

// Waits for the subtasks that this attempt has made, and for what else is named. They and the wait
// are made in one transaction; the slot is free meanwhile, and the attempt does not count. Then the
// task runs again, at Stage::kResume or kError.
struct Blocked {
    std::vector<TaskId> on = {};
    OnFailure on_failure = OnFailure::kWaitForAll;
    bool any = false;       // one success is enough, and failures matter only if all fail
    std::string note = {};  // shown while it waits
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

// A resource that the task needs does not work: nobody's fault, so the attempt does not count. The
// resource is closed to all tasks of all workers: for `retry_after` where it said so itself (HTTP
// 429), else as its settings say (ResourceOptions). A task that had not asked for it needs one unit
// of it from then on. Thrown, or returned:
//
//     if (reply.status == 429) throw stint::ResourceUnavailable("mail-api", "429", reply.after);
class ResourceUnavailable : public std::runtime_error {
public:
    ResourceUnavailable(
        std::string resource, const std::string& message, Duration retry_after = Duration::zero()
    )
        : std::runtime_error(message), resource_(std::move(resource)), retry_after_(retry_after) {}
    const std::string& resource() const { return resource_; }
    Duration retry_after() const { return retry_after_; }

private:
    std::string resource_;
    Duration retry_after_;
};

template <class Out>
using Complete = std::conditional_t<std::is_void_v<Out>, std::monostate, Out>;

template <class Out>
using Outcome =
    std::variant<Complete<Out>, Background, Snooze, Failed, Blocked, ResourceUnavailable>;

}  // namespace stint
