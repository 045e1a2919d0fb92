#include "engine/outcome.h"

#include <stint/codec.h>

#include <cxxabi.h>

#include <algorithm>
#include <ios>
#include <new>
#include <set>
#include <system_error>
#include <typeinfo>

#include "base/json.h"
#include "base/result.h"
#include "engine/require.h"
#include "engine/text.h"
#include "model/decide.h"
#include "model/limits.h"
#include "model/needs.h"
#include "model/placement.h"

namespace stint::engine {

namespace {

namespace limits = model::limits;
using Kind = store::Settlement::Kind;
using model::AttemptEnd;
using model::TaskError;

TaskError MakeError(std::string_view message, std::string_view klass, bool retryable) {
    return {
        CutText(message, limits::kErrorMessage),
        CutText(klass, limits::kErrorClass),
        {},
        retryable};
}

constexpr int kChainMax = 32;                                 // links of nested exceptions
constexpr Duration kReportedAgain = std::chrono::seconds{1};  // that a resource does not work

std::string TypeName(const std::type_info& type) {
    std::string name = Demangle(type.name());
    // What std::throw_with_nested makes of an exception is still that exception to a reader.
    constexpr std::string_view kNested = "std::_Nested_exception<";
    if (!name.starts_with(kNested) || !name.ends_with('>')) return name;
    return name.substr(kNested.size(), name.size() - kNested.size() - 1);
}

std::string CurrentTypeName() {
    const std::type_info* type = abi::__cxa_current_exception_type();
    return type != nullptr ? TypeName(*type) : "unknown";
}

void AppendCauses(std::string& chain, const std::exception& error, int depth) {
    if (depth >= kChainMax || chain.size() > limits::kErrorStack) return;
    try {
        std::rethrow_if_nested(error);
    } catch (const std::exception& cause) {
        chain += "\ncaused by " + TypeName(typeid(cause)) + ": " + cause.what();
        AppendCauses(chain, cause, depth + 1);
    } catch (...) {
        chain += "\ncaused by " + CurrentTypeName();
    }
}

TaskError FromException(const std::exception& error, bool retryable) {
    std::string type = TypeName(typeid(error));
    TaskError made = MakeError(error.what(), type, retryable);
    std::string chain = type + ": " + error.what();
    AppendCauses(chain, error, 1);
    made.stack = CutText(chain, limits::kErrorStack);
    return made;
}

store::Settlement Base(const store::Lease& lease, SessionId session) {
    store::Settlement settlement;
    settlement.task = lease.task;
    settlement.token = lease.token;
    settlement.session = session;
    return settlement;
}

void Fail(
    store::Settlement& settlement,
    const store::Lease& lease,
    TaskError error,
    AttemptEnd end,
    double fraction,
    bool for_good = false
) {
    model::RetryPolicy policy = lease.retry;
    // Also where the task wants all errors to be tried again.
    if (for_good && policy.on == model::RetryPolicy::On::kAll) {
        policy.on = model::RetryPolicy::On::kRetryable;
    }
    model::Disposition next =
        model::DecideFailure(policy, std::max(1, lease.attempt), error, fraction);
    settlement.kind = next.to == model::State::kDead ? Kind::kDead : Kind::kRetry;
    settlement.delay = next.delay;
    settlement.reason = CutText(next.reason, limits::kReason);
    settlement.end = end;
    settlement.error = std::move(error);
}

void Crash(store::Settlement& settlement, const store::Lease& lease, const std::string& message) {
    // A child has one attempt in it: nobody else can be to blame.
    model::Disposition next = model::DecideCrash(
        {.attempt = std::max(1, lease.attempt),
         .max_attempts = lease.retry.max_attempts,
         .alone = true,
         .crashes_alone = lease.crash_count + 1}
    );
    settlement.kind = next.to == model::State::kDead ? Kind::kDead : Kind::kRetry;
    settlement.delay = next.delay;
    settlement.reason = CutText(next.reason, limits::kReason);
    settlement.end = AttemptEnd::kCrashed;
    settlement.crashed = true;
    settlement.error = MakeError(message, "crash", true);
}

void Complete(
    store::Settlement& settlement,
    const store::Lease& lease,
    const std::string& output,
    const std::string& warning,
    double fraction
) {
    if (auto error = TooLarge(output)) {
        return Fail(settlement, lease, std::move(*error), AttemptEnd::kFailed, fraction);
    }
    if (auto json = base::CheckJson(output, limits::kJsonDepth); !json) {
        auto message =
            "the handler's output is not JSON that can be stored: " + json.error().message;
        return Fail(
            settlement,
            lease,
            MakeError(message, "output_invalid", false),
            AttemptEnd::kFailed,
            fraction
        );
    }
    settlement.kind = Kind::kComplete;
    settlement.end = AttemptEnd::kComplete;
    settlement.output = output;
    settlement.warning = !warning.empty();
    settlement.reason = warning.empty() ? "" : CutText(warning, limits::kReason);
}

void Block(
    store::Settlement& settlement,
    const store::Lease& lease,
    const Blocked& blocked,
    const std::vector<model::NewTask>& subtasks,
    double fraction
) {
    if (subtasks.empty() && blocked.on.empty()) {
        auto error = MakeError(
            "the handler returned Blocked, but has made no subtask and named no task to wait for",
            "blocked_by_nothing",
            false
        );
        return Fail(settlement, lease, error, AttemptEnd::kFailed, fraction);
    }
    settlement.kind = Kind::kBlocked;
    settlement.end = AttemptEnd::kBlocked;
    settlement.children = subtasks;
    settlement.reason = CutText(blocked.note, limits::kReason);
    settlement.wait = {.on = blocked.on, .on_failure = blocked.on_failure, .any = blocked.any};
    // Subtasks are waited for anyway; a handler may name them all the same.
    std::set<TaskId> made;
    for (const model::NewTask& subtask : subtasks) made.insert(subtask.id);
    std::erase_if(settlement.wait.on, [&](TaskId task) { return made.contains(task); });
}

// The slot goes back, and the attempt with it: nothing was done that counts.
void GiveBack(store::Settlement& settlement, const model::Needs& needs) {
    settlement.kind = Kind::kRelease;
    settlement.end = AttemptEnd::kReleased;
    settlement.needs = needs;
    settlement.reason = CutText("needs " + model::NeedsText(needs), limits::kReason);
}

// The task needs the resource, whether it had said so or not: it waits until that works. Reports of
// which there must be several before anybody is kept away come no faster than retries would.
void WaitForResource(store::Settlement& settlement, const store::Lease& lease, double fraction) {
    settlement.delay = std::max(kReportedAgain, model::RetryDelay(lease.retry, 1, fraction));
    if (model::Covers(lease.placement.needs, settlement.unavailable, 1)) return;
    model::Needs needs = model::Together(lease.placement.needs, {{settlement.unavailable, 1}});
    if (model::ValidateNeeds("needs", needs)) {
        settlement.needs = std::move(needs);
    } else {
        settlement.delay = std::max(settlement.delay, settlement.closed_for);
    }
}

void CloseResource(
    store::Settlement& settlement,
    const store::Lease& lease,
    const ResourceUnavailable& unavailable,
    double fraction
) {
    auto error = MakeError(unavailable.what(), "resource_unavailable", true);
    try {
        CheckNeed(unavailable.resource(), 1);
    } catch (const std::invalid_argument& wrong) {
        error.message = CutText(
            fmt::format("ResourceUnavailable: {}: {}", wrong.what(), unavailable.what()),
            limits::kErrorMessage
        );
        return Fail(settlement, lease, std::move(error), AttemptEnd::kFailed, fraction);
    }
    settlement.kind = Kind::kRelease;
    settlement.end = AttemptEnd::kReleased;
    settlement.unavailable = model::ResourceName(unavailable.resource());
    settlement.closed_for =
        std::clamp(unavailable.retry_after(), Duration::zero(), limits::kDelayMax);
    settlement.reason =
        CutText(fmt::format("resource {} is unavailable", settlement.unavailable), limits::kReason);
    settlement.error = std::move(error);
    WaitForResource(settlement, lease, fraction);
}

// A handler that turns every exception into a failure of its own has not failed.
bool FailedByRequirement(const AttemptResult& result) {
    if (result.required.empty()) return false;
    const auto* outcome = std::get_if<Outcome<std::string>>(&result.end);
    return std::holds_alternative<TaskError>(result.end) ||
           (outcome != nullptr && std::holds_alternative<Failed>(*outcome));
}

void Stopped(
    store::Settlement& settlement, const store::Lease& lease, StopReason why, double fraction
) {
    if (why == StopReason::kCancelled) {
        settlement.kind = Kind::kCancelled;
        settlement.end = AttemptEnd::kCancelled;
        settlement.reason = "cancel requested";
    } else if (why == StopReason::kTimeout) {
        auto message = fmt::format("the attempt took longer than its {} ms", lease.timeout.count());
        Fail(
            settlement, lease, MakeError(message, "timeout", true), AttemptEnd::kTimedOut, fraction
        );
    } else {
        // Shutdown, or a lease we believe lost: if it is not, it goes back untouched.
        settlement.kind = Kind::kRelease;
        settlement.end = AttemptEnd::kReleased;
    }
}

const std::string* CompletedOutput(const AttemptResult& result) {
    const auto* outcome = std::get_if<Outcome<std::string>>(&result.end);
    return outcome != nullptr ? std::get_if<0>(outcome) : nullptr;
}

void Ended(
    store::Settlement& settlement,
    const store::Lease& lease,
    const AttemptResult& result,
    double fraction
) {
    if (FailedByRequirement(result)) return GiveBack(settlement, result.required);
    if (const auto* error = std::get_if<TaskError>(&result.end)) {
        return Fail(settlement, lease, *error, AttemptEnd::kFailed, fraction);
    }
    if (const auto* crash = std::get_if<Crashed>(&result.end)) {
        return Crash(settlement, lease, crash->message);
    }
    if (std::holds_alternative<Orphaned>(result.end)) {
        return Stopped(settlement, lease, StopReason::kShutdown, fraction);
    }
    const auto& outcome = std::get<Outcome<std::string>>(result.end);
    if (const auto* background = std::get_if<Background>(&outcome)) {
        settlement.kind = Kind::kBackground;
        settlement.end = AttemptEnd::kBackground;
        settlement.delay = std::clamp(background->timeout, Duration::zero(), limits::kTimeoutMax);
        settlement.reason = CutText(background->reason, limits::kReason);
    } else if (const auto* snooze = std::get_if<Snooze>(&outcome)) {
        settlement.kind = Kind::kSnooze;
        settlement.end = AttemptEnd::kSnoozed;
        settlement.delay = std::clamp(snooze->delay, Duration::zero(), limits::kDelayMax);
    } else if (const auto* blocked = std::get_if<Blocked>(&outcome)) {
        Block(settlement, lease, *blocked, result.subtasks, fraction);
    } else if (const auto* unavailable = std::get_if<ResourceUnavailable>(&outcome)) {
        CloseResource(settlement, lease, *unavailable, fraction);
    } else {
        const auto& failed = std::get<Failed>(outcome);
        Fail(settlement, lease, ToError(failed), AttemptEnd::kFailed, fraction, result.for_good);
    }
}

}  // namespace

std::optional<TaskError> TooLarge(std::string_view output) {
    if (output.size() <= limits::kOutput) return std::nullopt;
    auto message = fmt::format(
        "the output has {} bytes, the limit is {}: keep large results elsewhere and return "
        "where they are",
        output.size(),
        limits::kOutput
    );
    return MakeError(message, "output_too_large", false);
}

TaskError ToError(const Failed& failed) {
    return MakeError(
        failed.message, failed.klass.empty() ? "failed" : failed.klass, failed.retryable
    );
}

TaskError Classify(std::exception_ptr thrown) {
    try {
        std::rethrow_exception(std::move(thrown));
    } catch (const GiveSlotBack&) {
        return MakeError("it needs a resource that it does not hold", "resource_required", true);
    } catch (const Retryable& error) {
        return FromException(error, true);
    } catch (const Permanent& error) {
        return FromException(error, false);
    } catch (const DecodeError& error) {
        return FromException(error, false);
    } catch (const std::system_error& error) {  // std::ios_base::failure is one
        return FromException(error, true);
    } catch (const std::exception& error) {
        return FromException(error, false);
    } catch (...) {
        return MakeError(
            "the handler threw something that is not a std::exception", CurrentTypeName(), false
        );
    }
}

std::variant<Outcome<std::string>, model::TaskError, Crashed, Orphaned> EndOf(
    std::exception_ptr thrown
) {
    try {
        std::rethrow_exception(thrown);
    } catch (const ResourceUnavailable& unavailable) {
        return Outcome<std::string>(unavailable);
    } catch (...) {
        return Classify(std::move(thrown));
    }
}

store::Settlement Conclude(
    const store::Lease& lease,
    SessionId session,
    const AttemptResult& result,
    StopReason why,
    double fraction
) {
    store::Settlement settlement = Base(lease, session);
    const std::string* output = CompletedOutput(result);
    if (result.completed_in && output != nullptr) {
        // Reported only if the token says that the transaction was rolled back.
        auto error = MakeError(
            "the transaction that held the completion was not committed", "transaction", true
        );
        Fail(settlement, lease, error, AttemptEnd::kFailed, fraction);
    } else if (output != nullptr && !result.subtasks.empty()) {
        auto error = MakeError(
            fmt::format(
                "the handler made {} subtasks and did not wait for them: return Blocked, or submit "
                "tasks that need no waiting through the engine",
                result.subtasks.size()
            ),
            "subtasks_not_waited_for",
            false
        );
        Fail(settlement, lease, error, AttemptEnd::kFailed, fraction);
    } else if (output != nullptr) {
        // Work that is done is done, whatever was asked of it meanwhile.
        Complete(settlement, lease, *output, result.warning, fraction);
    } else if (why != StopReason::kNone) {
        Stopped(settlement, lease, why, fraction);
    } else {
        Ended(settlement, lease, result, fraction);
    }
    settlement.exit_code = result.evidence.exit_code;
    settlement.exit_signal = result.evidence.exit_signal;
    settlement.stderr_tail = CutToTail(result.evidence.stderr_tail, limits::kStderrTail);
    return settlement;
}

store::Settlement IfRefused(const store::Lease& lease, SessionId session, double fraction) {
    store::Settlement settlement = Base(lease, session);
    Fail(
        settlement,
        lease,
        MakeError("what it wanted to wait for was refused", "subtask_refused", true),
        AttemptEnd::kFailed,
        fraction
    );
    return settlement;
}

store::Settlement Release(const store::Lease& lease, SessionId session) {
    store::Settlement settlement = Base(lease, session);
    Stopped(settlement, lease, StopReason::kShutdown, 0);
    return settlement;
}

store::Settlement HungUp(const store::Lease& lease, SessionId session, double fraction) {
    store::Settlement settlement = Base(lease, session);
    Stopped(settlement, lease, StopReason::kTimeout, fraction);
    settlement.error->message += "; its handler ignored the request to stop and was given up";
    return settlement;
}

std::string_view OutcomeName(const store::Settlement& settlement) {
    return model::AttemptEndName(settlement.end);
}

}  // namespace stint::engine
