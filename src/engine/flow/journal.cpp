#include "engine/flow/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "base/hash.h"
#include "base/json.h"
#include "base/planted_bug.h"
#include "base/test_point.h"
#include "base/text.h"
#include "engine/outcome.h"
#include "model/limits.h"
#include "model/time_text.h"

namespace stint::engine::flow {

namespace {

using model::FlowStep;
using model::StepKind;
using model::StepState;

constexpr std::size_t kHashDigits = 32;

std::string HashOf(std::string_view text) {
    return base::Sha256Hex(text).substr(0, kHashDigits);
}

template <class Number>
Number NumberOf(std::string_view json) {
    Number number{};
    std::from_chars(json.data(), json.data() + json.size(), number);
    return number;
}

Failed Diverged(const Error& error) {
    return {.message = error.message, .retryable = false, .klass = "flow_diverged"};
}

model::StepFailure FailureOf(const store::FinishedTask& finished) {
    model::StepFailure failure;
    failure.cancelled = finished.state == model::State::kCancelled;
    if (finished.error) {
        failure.message = finished.error->message;
        failure.klass = finished.error->klass;
    }
    if (failure.cancelled || !finished.error) failure.message = finished.reason;
    return failure;
}

void CheckLength(std::string_view what, std::string_view name, Duration length) {
    if (length <= model::limits::kFlowWaitMax) return;
    throw std::invalid_argument(fmt::format(
        "the {} {} is {} ms; it may be at most {}{}",
        what,
        base::Quoted(name),
        length.count(),
        model::FormatDuration(model::limits::kFlowWaitMax),
        what == "sleep" ? "" : ": leave the timeout out to wait without end"
    ));
}

}  // namespace

void Journal::LeaveWith(Outcome<std::string> outcome) {
    if (!left_) left_ = std::move(outcome);
    throw Leave();
}

void Journal::LeaveForGood(Failed failed) {
    if (!left_) for_good_ = true;
    LeaveWith(std::move(failed));
}

bool Journal::IsToStop() {
    Context* about = context();
    return about != nullptr && about->why() != StopReason::kNone;
}

// Every call of a Flow comes through here first.
Journal::Asked Journal::Ask(
    std::string_view name, StepKind kind, std::string about, std::string hash
) {
    if (left_) throw Leave();  // somebody has kept the exception that left the function
    if (!now_in_.empty()) {
        throw std::logic_error(fmt::format(
            "step {} was asked for inside the local step {}: only the flow itself has steps",
            base::Quoted(name),
            base::Quoted(now_in_)
        ));
    }
    left_at_ = name;
    auto found = replay_.Ask({std::string(name), kind, about, hash});
    if (!found) LeaveForGood(Diverged(found.error()));
    if (found->step == nullptr) LeaveIfToStop();
    Asked asked;
    asked.step.name = name;
    asked.step.occurrence = found->occurrence;
    asked.step.kind = kind;
    asked.step.about = std::move(about);
    asked.step.hash = std::move(hash);
    asked.step.late = replay_.NextUnreached() != nullptr;
    asked.recorded = found->step;
    if (base::Planted(base::Bug::kFlowStepAgain) && kind == StepKind::kRun) {
        asked.recorded = nullptr;
    }
    return asked;
}

const FlowStep& Journal::Record(FlowStep step, std::string result) {
    step.state = StepState::kDone;
    step.result = std::move(result);
    return replay_.Add(recorder_.Record(step));
}

void Journal::ThrowIfFailed(const FlowStep& step) {
    if (step.state != StepState::kFailed) return;
    model::StepFailure failure = model::FailureOf(step.result);
    throw StepFailed(step.name, failure.message, failure.klass, step.task, failure.cancelled);
}

// ---- other tasks -------------------------------------------------------------------------------

detail::StartedStep Journal::Start(
    std::string_view name,
    std::string_view type,
    const TaskDefaults& defaults,
    std::string input,
    const SubmitOptions& options
) {
    Asked asked = Ask(name, StepKind::kCall, std::string(type), HashOf(input));
    if (asked.recorded == nullptr) {
        model::NewTask child = recorder_.NewChild(type, defaults, std::move(input), options);
        asked.recorded = &replay_.Add(recorder_.Record(asked.step, {}, std::move(child)));
    }
    return {asked.step.name, asked.step.occurrence, asked.recorded->task};
}

const FlowStep& Journal::Open(const detail::StartedStep& started) {
    if (left_) throw Leave();
    left_at_ = started.step;
    const FlowStep* step = replay_.Find(started.step, started.occurrence);
    if (step == nullptr) {
        throw std::logic_error("the flow waits for a step that it has not started");
    }
    return *step;
}

std::vector<const FlowStep*> Journal::Look(const std::vector<detail::StartedStep>& started) {
    std::vector<TaskId> open;
    for (const detail::StartedStep& one : started) {
        const FlowStep& step = Open(one);
        if (step.state == StepState::kOpen) open.push_back(step.task);
    }
    std::vector<store::FinishedTask> finished;
    if (!open.empty()) finished = recorder_.Finished(open);
    std::vector<const FlowStep*> steps;
    for (const detail::StartedStep& one : started) {
        const FlowStep* step = &Open(one);
        auto over = std::ranges::find(finished, step->task, &store::FinishedTask::id);
        if (step->state == StepState::kOpen && over != finished.end()) {
            FlowStep ended = *step;
            bool complete = over->state == model::State::kComplete;
            ended.state = complete ? StepState::kDone : StepState::kFailed;
            ended.result = complete ? over->output : model::FailureText(FailureOf(*over));
            step = &replay_.Add(recorder_.Record(ended));
        }
        steps.push_back(step);
    }
    return steps;
}

// Several steps may stand for one task.
void Journal::Block(std::vector<TaskId> on, bool any) {
    std::ranges::sort(on);
    on.erase(std::unique(on.begin(), on.end()), on.end());
    Blocked blocked;
    blocked.on = std::move(on);
    blocked.any = any;
    LeaveWith(std::move(blocked));
}

std::string Journal::Await(const detail::StartedStep& started) {
    const FlowStep& step = *Look({started}).front();
    if (step.state == StepState::kOpen) Block({step.task}, false);
    ThrowIfFailed(step);
    return step.result;
}

void Journal::AwaitAll(const std::vector<detail::StartedStep>& started) {
    std::vector<TaskId> open;
    for (const FlowStep* step : Look(started)) {
        if (step->state == StepState::kOpen) open.push_back(step->task);
    }
    if (!open.empty()) Block(std::move(open), false);
}

std::size_t Journal::AwaitAny(
    std::string_view name, const std::vector<detail::StartedStep>& started
) {
    if (started.empty()) throw std::invalid_argument("the flow waits for any of no tasks");
    std::string about;
    for (const detail::StartedStep& one : started) {
        about += fmt::format("{}#{} ", one.step, one.occurrence);
    }
    Asked asked = Ask(name, StepKind::kAny, {}, HashOf(about));
    if (asked.recorded == nullptr) {
        std::vector<const FlowStep*> steps = Look(started);
        auto won = std::ranges::find(steps, StepState::kDone, &FlowStep::state);
        std::vector<TaskId> open;
        for (const FlowStep* step : steps) {
            if (step->state == StepState::kOpen) open.push_back(step->task);
        }
        if (won == steps.end() && !open.empty()) Block(std::move(open), true);
        if (won == steps.end()) ThrowIfFailed(*steps.front());
        asked.recorded = &Record(asked.step, std::to_string(won - steps.begin()));
    }
    return NumberOf<std::size_t>(asked.recorded->result);
}

// ---- time and the world ------------------------------------------------------------------------

void Journal::Nap(std::optional<Time> until) {
    Duration length = model::limits::kSignalNap;
    if (until) length = std::chrono::ceil<Duration>(*until - recorder_.Now());
    LeaveWith(Snooze{std::max(length, Duration(1))});
}

void Journal::Sleep(std::string_view name, Duration duration) {
    CheckLength("sleep", name, duration);
    Asked asked = Ask(name, StepKind::kSleep, {}, {});
    if (asked.recorded == nullptr) {
        if (duration <= Duration::zero()) duration = Duration::zero();
        asked.recorded = &replay_.Add(recorder_.Record(asked.step, duration));
    }
    if (asked.recorded->state != StepState::kOpen) return;
    const Time due = asked.recorded->due_at.value_or(asked.recorded->at);
    if (recorder_.Now() < due) Nap(due);
    FlowStep over = *asked.recorded;
    Record(std::move(over), "null");
}

std::optional<std::string> Journal::AwaitSignal(
    std::string_view name, std::optional<Duration> timeout
) {
    if (timeout) CheckLength("patience for signal", name, *timeout);
    Asked asked = Ask(name, StepKind::kSignal, std::string(name), {});
    const FlowStep* step = asked.recorded;
    if (step == nullptr || step->state == StepState::kOpen) {
        step = &replay_.Add(recorder_.AwaitSignal(asked.step, timeout));
    }
    if (step->state == StepState::kOpen) Nap(step->due_at);
    if (step->state == StepState::kTimedOut) return std::nullopt;
    return step->result;
}

std::string Journal::Run(
    std::string_view name, const std::function<std::string(const LocalStep&)>& work
) {
    Asked asked = Ask(name, StepKind::kRun, {}, {});
    if (asked.recorded != nullptr) {
        ThrowIfFailed(*asked.recorded);
        return asked.recorded->result;
    }
    recorder_.BeforeRun(asked.step);
    LocalStep local;
    local.idempotency_key = recorder_.IdempotencyKey(name, asked.step.occurrence);
    if (Context* about = context()) local.stop = about->stop();
    struct Inside {
        Inside(std::string& place, std::string_view step) : now_in(place) { now_in = step; }
        ~Inside() { now_in.clear(); }
        Inside(const Inside&) = delete;
        Inside& operator=(const Inside&) = delete;
        std::string& now_in;
    };
    std::string result;
    std::optional<model::TaskError> error;
    try {
        Inside inside(now_in_, name);
        base::TestPoint("flow.before_run");
        result = work(local);
        base::TestPoint("flow.after_run");
    } catch (const ResourceUnavailable& unavailable) {
        LeaveIfToStop();
        LeaveWith(unavailable);
    } catch (const std::exception&) {
        // Interrupted is not failed.
        LeaveIfToStop();
        error = Classify(std::current_exception());
    }
    if (error && !recorder_.IsFinal(*error)) {
        LeaveWith(Failed{
            .message = fmt::format("step {}: {}", name, error->message),
            .retryable = error->retryable,
            .klass = error->klass});
    }
    if (!error) return Record(asked.step, std::move(result)).result;
    asked.step.state = StepState::kFailed;
    asked.step.result = model::FailureText({error->message, error->klass});
    const FlowStep& step = replay_.Add(recorder_.Record(asked.step));
    ThrowIfFailed(step);
    return step.result;
}

std::string Journal::Value(std::string_view name, const std::function<std::string(int)>& make) {
    Asked asked = Ask(name, StepKind::kValue, {}, {});
    if (asked.recorded == nullptr) {
        asked.recorded = &Record(asked.step, make(asked.step.occurrence));
    }
    return asked.recorded->result;
}

Time Journal::Now(std::string_view name) {
    std::string micros = Value(name, [this](int) {
        return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(
                                  recorder_.Now().time_since_epoch()
        )
                                  .count());
    });
    return Time(std::chrono::microseconds(NumberOf<std::int64_t>(micros)));
}

std::uint64_t Journal::Random(std::string_view name) {
    std::string number = Value(name, [&](int occurrence) {
        std::string digits = recorder_.Secret(name, occurrence).substr(0, 16);
        std::uint64_t value = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
        return std::to_string(value);
    });
    return NumberOf<std::uint64_t>(number);
}

std::string Journal::NewId(std::string_view name) {
    std::string json = Value(name, [&](int occurrence) {
        return "\"" + recorder_.Secret(name, occurrence).substr(0, kHashDigits) + "\"";
    });
    return json.substr(1, json.size() - 2);
}

// ---- changing the code -------------------------------------------------------------------------

int Journal::Version(std::string_view name, int min, int max) {
    Asked asked = Ask(name, StepKind::kVersion, {}, {});
    if (asked.recorded == nullptr) {
        bool passed_before = replay_.NextUnreached() != nullptr;
        asked.recorded = &Record(asked.step, std::to_string(passed_before ? min : max));
    }
    int version = NumberOf<int>(asked.recorded->result);
    if (version < min || version > max) {
        LeaveForGood(Failed{
            .message = fmt::format(
                "version {} of {} is recorded, and the code knows {} to {} only. Nothing was "
                "executed. Run code that still knows it, then retry the task",
                version,
                base::Quoted(name),
                min,
                max
            ),
            .retryable = false,
            .klass = "flow_diverged"});
    }
    return version;
}

void Journal::Retired(std::string_view name) {
    if (left_) throw Leave();
    replay_.Retire(name);
}

// ---- an attempt --------------------------------------------------------------------------------

namespace {

Failed Kept(const std::string& step) {
    return {
        .message = fmt::format(
            "the flow went on after step {} had made it leave: its code catches what it does not "
            "know, with catch (...), and does not throw it again. Catch std::exception instead, "
            "then retry the task",
            base::Quoted(step)
        ),
        .retryable = false,
        .klass = "flow_not_left"};
}

}  // namespace

Outcome<std::string> Play(
    Journal& journal, std::string_view input, const detail::ErasedFlow& function
) {
    Flow flow(journal);
    try {
        std::string output = function(flow, input);
        if (!journal.left()) {
            if (auto whole = journal.replay().AtEnd(); !whole) {
                return journal.ForGood(Diverged(whole.error()));
            }
            return Outcome<std::string>(std::in_place_index<0>, std::move(output));
        }
    } catch (const Leave&) {
        return *journal.left();
    } catch (const StepFailed& failed) {
        if (!journal.left()) {
            return journal.ForGood(
                {.message = failed.what(), .retryable = false, .klass = failed.klass()}
            );
        }
    } catch (const std::exception&) {
        if (!journal.left()) throw;
    }
    // It was left, and the function has gone on.
    if (std::holds_alternative<Failed>(*journal.left())) return *journal.left();
    return journal.ForGood(Kept(journal.left_at()));
}

}  // namespace stint::engine::flow
