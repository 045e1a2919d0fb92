// The host's hooks, wrapped: whatever they throw is logged and counted, never passed on.
#pragma once

#include <stint/options.h>

#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/log.h"
#include "engine/metrics.h"
#include "model/state.h"

namespace stint::engine {

// Hooks run on the worker's own threads, which a stop waits for: one that waits for a stop would
// wait for itself.
class InHook {
public:
    InHook() : before_(std::exchange(inside_, true)) {}
    ~InHook() { inside_ = before_; }
    InHook(const InHook&) = delete;
    InHook& operator=(const InHook&) = delete;

    static void Refuse(const char* what) {
        if (!inside_) return;
        throw std::logic_error(
            std::string(what) +
            " was called by a hook, which it would have to wait for: tell another thread to do it"
        );
    }

private:
    static inline thread_local bool inside_ = false;
    const bool before_;
};

class SafeHooks {
public:
    SafeHooks(Hooks hooks, const base::Logger& log, Metrics& metrics)
        : hooks_(std::move(hooks)), log_(log.For("hooks")), metrics_(metrics) {}

    // Holds nothing of the worker: for threads that may outlive it. False: the hook threw, which is
    // logged but not yet counted.
    using Detached = std::function<bool(const AttemptInfo&)>;
    Detached Before() const { return Detach(hooks_.before_attempt); }
    Detached AfterDetached() const { return Detach(hooks_.after_attempt); }
    void Count(bool well) const {
        if (!well) ++metrics_.hook_errors;
    }

    void After(const AttemptInfo& info) const { Count(Call(hooks_.after_attempt, info, log_)); }
    void Transition(TaskId task, model::State from, model::State to, model::Event event) const {
        TransitionInfo info{
            task, model::StateName(from), model::StateName(to), model::EventName(event)};
        Count(Call(hooks_.on_transition, info, log_));
    }

private:
    template <class Hook>
    Detached Detach(const Hook& hook) const {
        if (!hook) return [](const AttemptInfo&) { return true; };
        return [hook, log = log_](const AttemptInfo& info) { return Call(hook, info, log); };
    }

    template <class Hook, class Info>
    static bool Call(const Hook& hook, const Info& info, const base::Logger& log) {
        if (!hook) return true;
        InHook inside;
        try {
            hook(info);
            return true;
        } catch (const std::exception& error) {
            log.Warn("a hook threw; ignored", {{"error", error.what()}});
        } catch (...) {
            log.Warn(
                "a hook threw; ignored", {{"error", "something that is not a std::exception"}}
            );
        }
        return false;
    }

    Hooks hooks_;
    base::Logger log_;
    Metrics& metrics_;
};

}  // namespace stint::engine
