// Run<Out>: a submitted task, seen from outside.
#pragma once

#include <stint/codec.h>
#include <stint/ids.h>
#include <stint/result.h>
#include <stint/time.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace stint {

// What a cancel has done. True in a condition if it has stopped the task.
struct Cancelled {
    bool stopped = false;  // cancelled, or its worker is told to stop; false: it was over already
    int descendants = 0;   // tasks below it that were stopped with it
    explicit operator bool() const { return stopped; }
    friend bool operator==(const Cancelled&, const Cancelled&) = default;
};

namespace detail {
// Implemented by the engine; resolves when any process finishes the task.
class Waiter {
public:
    virtual ~Waiter() = default;
    virtual bool Done(TaskId task) = 0;
    // The output's JSON, or kFailed / kCancelled with the task's error, or kTimeout, or
    // kUnavailable.
    virtual Result<std::string> Wait(
        TaskId task, std::optional<Duration> limit, std::stop_token stop
    ) = 0;
    virtual Result<Cancelled> Cancel(TaskId task, std::string_view reason) = 0;
};
}  // namespace detail

// Cheap to copy. Outlives the process through its id: engine.Find(task, id) makes it again.
template <class Out = Json>
class Run {
public:
    Run(TaskId id, std::shared_ptr<detail::Waiter> waiter) : id_(id), waiter_(std::move(waiter)) {}

    TaskId id() const { return id_; }
    bool done() const { return waiter_->Done(id_); }

    // Blocks until the task is terminal, whichever process finishes it.
    Result<Out> Wait(std::stop_token stop = {}) const {
        return Decode(waiter_->Wait(id_, {}, stop));
    }
    // kTimeout when it takes longer; the task goes on.
    Result<Out> WaitFor(Duration limit, std::stop_token stop = {}) const {
        return Decode(waiter_->Wait(id_, limit, stop));
    }

    // Cancels it, or has its worker told to stop it, with all tasks below it.
    //     auto cancelled = run.Cancel("no longer needed");
    //     if (cancelled && *cancelled) log("stopped, and {} below it", cancelled->descendants);
    Result<Cancelled> Cancel(std::string_view reason = {}) const {
        return waiter_->Cancel(id_, reason);
    }

private:
    static Result<Out> Decode(Result<std::string> answer) {
        if (!answer) return answer.error();
        if constexpr (std::is_void_v<Out>) {
            return {};
        } else {
            try {
                return Codec<Out>::Decode(*answer);
            } catch (const std::exception& error) {
                return Error{Code::kInvalid, error.what()};
            }
        }
    }

    TaskId id_;
    std::shared_ptr<detail::Waiter> waiter_;
};

}  // namespace stint
