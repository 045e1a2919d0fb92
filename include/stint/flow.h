// Durable workflows: a plain function that may take weeks.
//
//     Receipt Checkout(stint::Flow& flow, const Order& order) {
//         Charge charge = flow.Call("charge", kCharge, order);
//         auto shipped = flow.AwaitSignal<Shipment>("shipped", 72h);
//         if (!shipped) { flow.Call("refund", kRefund, charge); return {.refunded = true}; }
//         flow.Sleep("before the survey", 24h * 7);
//         flow.Call("survey", kSurvey, order);
//         return {.parcel = shipped->parcel};
//     }
//     engine.Handle(kCheckout, Checkout);
//     engine.Submit(kCheckout, order);
//
// It runs as an ordinary task, and while it waits it holds no thread and no slot. Whenever it goes
// on, perhaps in another process, it is called again from its first line: each step that was
// recorded is answered from the record instead of being done again. So between the steps the
// function must do the same again for the same answers: take time, randomness and everything from
// outside through steps. It must let exceptions that it does not know pass: waiting leaves the
// function by one, which derives from nothing; a `catch (...)` that keeps it fails the task.
//
// A step is known by its name and by which time the code asks for that name (1st, 2nd …). New steps
// may be added to the code while instances run: a name that is not recorded is a new step, and is
// done. A step that is recorded as something else, with another input or in another order, and a
// recorded effect that the code passes by, is a divergence: the task is DEAD with an explanation,
// nothing more is executed, and a retry goes on from the record once the right code is there. A
// call that got another name is known by its input and not made again. A Run that got another name
// is a new step: it is done under that name before the old one is missed, so keep the names of
// Runs.
#pragma once

#include <stint/codec.h>
#include <stint/context.h>
#include <stint/ids.h>
#include <stint/outcome.h>
#include <stint/result.h>
#include <stint/run.h>
#include <stint/submit_options.h>
#include <stint/task.h>
#include <stint/time.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stint {

// A step has failed for good, which is recorded: the next replay throws the same. A flow that does
// not catch it fails with it.
class StepFailed : public std::runtime_error {
public:
    StepFailed(
        std::string step, const std::string& message, std::string klass, TaskId task, bool cancelled
    )
        : std::runtime_error("step " + step + ": " + message),
          step_(std::move(step)),
          reason_(message),
          klass_(std::move(klass)),
          task_(task),
          cancelled_(cancelled) {}
    const std::string& step() const { return step_; }
    const std::string& reason() const { return reason_; }  // without the step's name
    const std::string& klass() const { return klass_; }
    TaskId task() const { return task_; }  // that was called; none where there was none
    bool cancelled() const { return cancelled_; }

private:
    std::string step_, reason_, klass_;
    TaskId task_;
    bool cancelled_;
};

// What a local step may use.
struct LocalStep {
    // The same whenever this step is tried, another one for every other step: for effects outside.
    std::string idempotency_key;
    std::stop_token stop;
};

// A task that was started and not yet waited for.
template <class Out>
struct Started {
    std::string step;
    int occurrence = 1;
    TaskId task;
};

namespace detail {

struct StartedStep {
    std::string step;
    int occurrence = 1;
    TaskId task;
};

// What stands behind a Flow: the journal of a running attempt, or a history that a test replays.
class FlowBody {
public:
    virtual ~FlowBody() = default;
    virtual Context* context() = 0;  // null in a test
    virtual StartedStep Start(
        std::string_view name,
        std::string_view type,
        const TaskDefaults& defaults,
        std::string input,
        const SubmitOptions& options
    ) = 0;
    virtual std::string Await(const StartedStep& started) = 0;
    virtual void AwaitAll(const std::vector<StartedStep>& started) = 0;
    virtual std::size_t AwaitAny(
        std::string_view name, const std::vector<StartedStep>& started
    ) = 0;
    virtual void Sleep(std::string_view name, Duration duration) = 0;
    virtual std::optional<std::string> AwaitSignal(
        std::string_view name, std::optional<Duration> timeout
    ) = 0;
    virtual std::string Run(
        std::string_view name, const std::function<std::string(const LocalStep&)>& work
    ) = 0;
    virtual Time Now(std::string_view name) = 0;
    virtual std::uint64_t Random(std::string_view name) = 0;
    virtual std::string NewId(std::string_view name) = 0;
    virtual int Version(std::string_view name, int min, int max) = 0;
    virtual void Retired(std::string_view name) = 0;
};

template <class Out>
StartedStep Plain(const Started<Out>& started) {
    return {started.step, started.occurrence, started.task};
}

}  // namespace detail

// Valid only inside the function, on its thread.
class Flow {
public:
    explicit Flow(detail::FlowBody& body) : body_(body) {}
    Flow(const Flow&) = delete;
    Flow& operator=(const Flow&) = delete;

    // ---- other tasks ----

    // Submits the task and waits for its output. Throws StepFailed when it is dead or cancelled.
    template <class In, class Out>
    Out Call(
        std::string_view name,
        const Task<In, Out>& task,
        const std::type_identity_t<In>& input,
        const SubmitOptions& options = {}
    ) {
        return Await(Start(name, task, input, options));
    }
    template <class Out>
    Out Call(
        std::string_view name, const Task<void, Out>& task, const SubmitOptions& options = {}
    ) {
        return Await(Start(name, task, options));
    }
    // The same without waiting: several run at once. The task is made, and recorded, in one
    // transaction; it is a subtask of this one, and cancelled with it.
    template <class In, class Out>
    Started<Out> Start(
        std::string_view name,
        const Task<In, Out>& task,
        const std::type_identity_t<In>& input,
        const SubmitOptions& options = {}
    ) {
        return As<Out>(
            body_.Start(name, task.name, task.defaults, Codec<In>::Encode(input), options)
        );
    }
    template <class Out>
    Started<Out> Start(
        std::string_view name, const Task<void, Out>& task, const SubmitOptions& options = {}
    ) {
        return As<Out>(body_.Start(name, task.name, task.defaults, "null", options));
    }
    template <class Out>
    Out Await(const Started<Out>& started) {
        std::string output = body_.Await(detail::Plain(started));
        if constexpr (!std::is_void_v<Out>) return Codec<Out>::Decode(output);
    }
    // Waits until all are over, then gives their outputs in order, or throws the first failure.
    template <class Out>
    requires(!std::is_void_v<Out>)
        std::vector<Out> AwaitAll(const std::vector<Started<Out>>& started) {
        Join(started);
        std::vector<Out> outputs;
        outputs.reserve(started.size());
        for (const Started<Out>& one : started) outputs.push_back(Await(one));
        return outputs;
    }
    void AwaitAll(const std::vector<Started<void>>& started) {
        Join(started);
        for (const Started<void>& one : started) Await(one);
    }
    template <class... Out>
    void AwaitAll(const Started<Out>&... started) {
        body_.AwaitAll({detail::Plain(started)...});
        (static_cast<void>(body_.Await(detail::Plain(started))), ...);
    }
    // Waits until one of them has succeeded, and says which; of several that have by then, the
    // first in the list. Recorded. The others go on. Throws when all have failed.
    template <class Out>
    std::size_t AwaitAny(std::string_view name, const std::vector<Started<Out>>& started) {
        return body_.AwaitAny(name, Plain(started));
    }

    // ---- time and the world ----

    // By the store's clock, also for months; at most 100 years, as all times here. The time counts
    // from the first call.
    void Sleep(std::string_view name, Duration duration) { body_.Sleep(name, duration); }

    // The next signal of this name that nobody has taken, also one that came before; nothing after
    // `timeout`, which counts from the first call.
    template <Storable T = Json>
    std::optional<T> AwaitSignal(
        std::string_view name, std::optional<Duration> timeout = std::nullopt
    ) {
        std::optional<std::string> payload = body_.AwaitSignal(name, timeout);
        if (!payload) return std::nullopt;
        return Codec<T>::Decode(*payload);
    }

    // A local effect: work(), or work(const LocalStep&). It is done at least once, since the
    // process may die between its end and the record; its result is recorded once, and only by who
    // holds the task. What it throws: errors worth another try end the attempt, which is tried
    // again by the task's own policy and with its count of attempts, which all Runs of the flow
    // share (waiting costs none); the last one, and all others, are recorded and thrown as
    // StepFailed. ResourceUnavailable is no failure: the flow waits as any task for the resource,
    // and does the step again. Nor is what is thrown when the attempt is to stop.
    template <class Work>
    auto Run(std::string_view name, Work&& work) {
        auto call = [&](const LocalStep& step) -> decltype(auto) {
            if constexpr (std::invocable<Work&, const LocalStep&>) {
                return work(step);
            } else {
                return work();
            }
        };
        using Made = std::remove_cvref_t<decltype(call(std::declval<const LocalStep&>()))>;
        std::string result = body_.Run(name, [&](const LocalStep& step) -> std::string {
            if constexpr (std::is_void_v<Made>) {
                call(step);
                return "null";
            } else {
                return Codec<Made>::Encode(call(step));
            }
        });
        if constexpr (!std::is_void_v<Made>) return Codec<Made>::Decode(result);
    }

    // Recorded: a replay sees the same.
    Time Now(std::string_view name = "now") { return body_.Now(name); }
    std::uint64_t Random(std::string_view name = "random") { return body_.Random(name); }
    std::string NewId(std::string_view name = "id") { return body_.NewId(name); }  // 32 hex digits

    // ---- changing the code ----

    // Which way this instance goes: `max` for one that comes here for the first time, `min` for one
    // that passed here before there was a question. Recorded. A version outside is a divergence.
    int Version(std::string_view name, int min, int max) { return body_.Version(name, min, max); }
    // The code has no step of this name any more, and that is meant. Say it before the steps that
    // came after it.
    void Retired(std::string_view name) { body_.Retired(name); }

    // ---- the task it is ----

    void Progress(
        std::string_view step,
        std::int64_t done,
        std::optional<std::int64_t> total = {},
        std::string_view message = {}
    ) {
        if (Context* context = body_.context()) context->Progress(step, done, total, message);
    }
    void Warn(std::string_view note) {
        if (Context* context = body_.context()) context->Warn(note);
    }
    TaskId id() const {
        Context* context = body_.context();
        return context != nullptr ? context->id() : TaskId();
    }

private:
    template <class Out>
    static Started<Out> As(detail::StartedStep step) {
        return {std::move(step.step), step.occurrence, step.task};
    }
    template <class Out>
    static std::vector<detail::StartedStep> Plain(const std::vector<Started<Out>>& started) {
        std::vector<detail::StartedStep> plain;
        for (const Started<Out>& one : started) plain.push_back(detail::Plain(one));
        return plain;
    }
    template <class Out>
    void Join(const std::vector<Started<Out>>& started) {
        body_.AwaitAll(Plain(started));
    }

    detail::FlowBody& body_;
};

namespace detail {

// A flow with its types erased: JSON in, JSON out.
using ErasedFlow = std::function<std::string(Flow&, std::string_view input)>;

template <class In, class Out, class F>
ErasedFlow EraseFlow(F function) {
    auto shared = std::make_shared<F>(std::move(function));
    return [shared](Flow& flow, std::string_view input) -> std::string {
        auto call = [&]() -> decltype(auto) {
            if constexpr (std::is_void_v<In>) {
                return (*shared)(flow);
            } else {
                return (*shared)(flow, static_cast<const In&>(Codec<In>::Decode(input)));
            }
        };
        if constexpr (std::is_void_v<Out>) {
            call();
            return "null";
        } else {
            return Codec<Out>::Encode(call());
        }
    };
}

// Runs one attempt of it.
Outcome<std::string> PlayFlow(Context& context, std::string_view input, const ErasedFlow& flow);

template <class F, class In>
struct FlownBy : std::invoke_result<F&, Flow&, const In&> {};
template <class F>
struct FlownBy<F, void> : std::invoke_result<F&, Flow&> {};

}  // namespace detail

// A flow of Task<In, Out>: f(Flow&, const In&) → Out. (f(Flow&) when In is void.)
template <class F, class In, class Out>
concept FlowFor = requires {
    typename detail::FlownBy<F, In>::type;
}
&&((std::is_void_v<Out> && std::is_void_v<typename detail::FlownBy<F, In>::type>) ||
   std::convertible_to<typename detail::FlownBy<F, In>::type, Out>);

// ---- from outside ------------------------------------------------------------------------------

struct FlowStepInfo {
    int no = 0;  // in the order of recording
    std::string name;
    int occurrence = 1;
    std::string kind;    // "run", "call", "sleep", "signal", "value", "version", "any"
    std::string state;   // "open", "done", "failed", "timed_out"
    std::string about;   // the called type, the signal's name
    std::string result;  // JSON
    TaskId task;         // that was called
    std::optional<Time> due_at;
    Time at{};
    std::optional<Time> ended_at;
};

struct FlowSignalInfo {
    std::string name;
    std::string id;
    std::string payload;  // JSON
    Time at{};
    int step = 0;  // that took it; 0 = it waits
};

struct FlowInfo {
    TaskId task;
    std::string type;
    std::string state;   // of the task
    std::string reason;  // why it ended so
    int steps = 0;       // recorded
    int waiting_signals = 0;
    std::string waits_for;  // in words; empty: it does not wait for anything of its own
    Time started_at{};
};

struct FlowDetails {
    FlowInfo flow;
    std::vector<FlowStepInfo> steps;
    std::vector<FlowSignalInfo> signals;
};

struct SignalOptions {
    std::string id = {};     // the same id again is the same signal, and told as accepted
    std::string actor = {};  // who says so, for the audit log
};

// See Engine::flows().
class Flows {
public:
    struct Body;
    explicit Flows(std::shared_ptr<Body> body) : body_(std::move(body)) {}

    // Kept until the flow asks for it, and wakes it. kNotFound: no such task; kConflict: the task
    // is over, or the id has said something else before; kLimit: 1000 wait already.
    template <Storable T>
    Result<void> Signal(
        TaskId task, std::string_view name, const T& payload, const SignalOptions& options = {}
    ) {
        return SignalJson(task, name, Codec<T>::Encode(payload), options);
    }
    Result<void> SignalJson(
        TaskId task,
        std::string_view name,
        std::string_view json = "null",
        const SignalOptions& options = {}
    );
    // Newest first, those below `before`.
    Result<std::vector<FlowInfo>> List(std::optional<TaskId> before = {}, int limit = 100);
    Result<FlowDetails> Get(TaskId task);
    // The recorded history as JSON, for stint::testing::ReplayFlow.
    Result<std::string> History(TaskId task);
    // A new instance of the same flow with the same input, for which all that was recorded before
    // this step has happened already. It goes on from there with the code that is deployed.
    Result<TaskId> Fork(TaskId task, std::string_view step, int occurrence = 1);
    // As any task: the flow, and what it has called.
    Result<Cancelled> Cancel(TaskId task, std::string_view reason = {});

private:
    std::shared_ptr<Body> body_;
};

}  // namespace stint
