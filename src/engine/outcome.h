// How an attempt went, and what is to be reported of it. Pure.
#pragma once

#include <stint/context.h>
#include <stint/outcome.h>

#include <exception>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "store/store.h"

namespace stint::engine {

// What a process left behind, for the attempt's row.
struct Evidence {
    std::optional<int> exit_code;
    std::optional<int> exit_signal;
    std::string stderr_tail;
};

// The attempt's process died under it (isolated children only; our own death reports nothing).
struct Crashed {
    std::string message;
};

// Its process ended itself because it could not hear us any more (a frozen machine, say): nobody is
// to blame, and nothing is counted.
struct Orphaned {};

struct AttemptResult {
    std::variant<Outcome<std::string>, model::TaskError, Crashed, Orphaned> end =
        model::TaskError{};
    Evidence evidence = {};
    std::string warning = {};  // Context::Warn
    std::vector<model::NewTask> subtasks = {};
    model::Needs required = {};  // Context::Require: all that the task needs; empty = no more
    bool completed_in = false;   // the completion was written into a transaction of the handler's
    bool for_good = false;       // failed as every other try would, whatever the policy says
};

// S2.21 and D22. What is not a std::exception is "unknown". The stack is the chain of nested
// exceptions, outermost first.
model::TaskError Classify(std::exception_ptr thrown);
// How an attempt ends that threw this: Classify, but for what is no failure of the task's own.
std::variant<Outcome<std::string>, model::TaskError, Crashed, Orphaned> EndOf(
    std::exception_ptr thrown
);
// The same as Classify for a Failed that the handler returned.
model::TaskError ToError(const Failed& failed);

// Said of an output over its limit; nullopt when it is within.
std::optional<model::TaskError> TooLarge(std::string_view output);

// What is to be reported. `fraction` in [0, 1) varies the delay of a retry. Texts are cut to their
// limits; an output over its limit, or not JSON, is a failure that says so.
store::Settlement Conclude(
    const store::Lease& lease,
    SessionId session,
    const AttemptResult& result,
    StopReason why,
    double fraction
);

// What is reported instead when the store refuses what a blocked attempt wants to wait for. The
// store's reason is still to be put into its error.
store::Settlement IfRefused(const store::Lease& lease, SessionId session, double fraction);

// Those that no handler had a part in.
store::Settlement Release(const store::Lease& lease, SessionId session);
store::Settlement HungUp(const store::Lease& lease, SessionId session, double fraction);

// "complete", "failed", … for hooks and logs.
std::string_view OutcomeName(const store::Settlement& settlement);

}  // namespace stint::engine
