// The host's hooks, wrapped: whatever they throw is logged and counted, never passed on.
#pragma once

#include <stint/options.h>

#include <exception>

#include "base/log.h"
#include "engine/metrics.h"
#include "model/state.h"

namespace stint::engine {

class SafeHooks {
public:
    SafeHooks(Hooks hooks, const base::Logger& log, Metrics& metrics)
        : hooks_(std::move(hooks)), log_(log.For("hooks")), metrics_(metrics) {}

    void Before(const AttemptInfo& info) const { Call(hooks_.before_attempt, info); }
    void After(const AttemptInfo& info) const { Call(hooks_.after_attempt, info); }
    void Transition(TaskId task, model::State from, model::State to, model::Event event) const {
        if (!hooks_.on_transition) return;
        Call(
            hooks_.on_transition,
            TransitionInfo{
                task, model::StateName(from), model::StateName(to), model::EventName(event)}
        );
    }

private:
    template <class Hook, class Info>
    void Call(const Hook& hook, const Info& info) const {
        if (!hook) return;
        try {
            hook(info);
        } catch (const std::exception& error) {
            Broken(error.what());
        } catch (...) {
            Broken("something that is not a std::exception");
        }
    }
    void Broken(const char* what) const {
        ++metrics_.hook_errors;
        log_.Warn("a hook threw; ignored", {{"error", what}});
    }

    Hooks hooks_;
    base::Logger log_;
    Metrics& metrics_;
};

}  // namespace stint::engine
