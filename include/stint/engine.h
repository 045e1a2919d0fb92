// Engine: the whole of Stint inside your program. It starts threads only in Start(), touches no
// signals, no globals and no output of the process.
#pragma once

#include <stint/batch.h>
#include <stint/codec.h>
#include <stint/context.h>
#include <stint/deletion.h>
#include <stint/event.h>
#include <stint/flow.h>
#include <stint/graph.h>
#include <stint/info.h>
#include <stint/options.h>
#include <stint/outcome.h>
#include <stint/probe.h>
#include <stint/queue.h>
#include <stint/resource.h>
#include <stint/result.h>
#include <stint/run.h>
#include <stint/schedule.h>
#include <stint/task.h>
#include <stint/transaction.h>

#include <concepts>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stint {

namespace detail {

using ErasedHandler = std::function<Outcome<std::string>(Context&, std::string_view input)>;

// A template of its own: clang 14 looks into Codec<void> where it is only named.
template <class Out, class T>
std::string EncodeEnd(const T& end) {
    return Codec<Out>::Encode(end);
}

template <class Out, class Returned>
Outcome<std::string> EraseOutcome(Returned&& returned) {
    return std::visit(
        []<class T>(T&& end) -> Outcome<std::string> {
            using Plain = std::remove_cvref_t<T>;
            if constexpr (std::same_as<Plain, std::monostate>) {
                return Outcome<std::string>(std::in_place_index<0>, "null");
            } else if constexpr (std::same_as<Plain, Complete<Out>>) {
                return Outcome<std::string>(std::in_place_index<0>, EncodeEnd<Out>(end));
            } else {
                return Outcome<std::string>(std::forward<T>(end));
            }
        },
        Outcome<Out>(std::forward<Returned>(returned))
    );
}

// Calls with the decoded input, or without one where there is none, and erases what comes back.
template <class In, class Out, class Call>
Outcome<std::string> CallErased(std::string_view input, Call&& call) {
    auto run = [&]() -> decltype(auto) {
        if constexpr (std::is_void_v<In>) {
            return call();
        } else {
            return call(static_cast<const In&>(Codec<In>::Decode(input)));
        }
    };
    if constexpr (std::is_void_v<decltype(run())>) {
        run();
        return Outcome<std::string>(std::in_place_index<0>, "null");
    } else {
        return EraseOutcome<Out>(run());
    }
}

// The first of those that were waited for.
SubtaskFailure FirstFailure(Context& context);

template <class In, class Out, class F>
ErasedHandler Erase(F function) {
    // Shared, because std::function copies and handlers may own what cannot be copied.
    auto shared = std::make_shared<F>(std::move(function));
    return [shared](Context& context, std::string_view input) -> Outcome<std::string> {
        if (context.stage() == Stage::kError) return FailedBySubtask(context);
        return CallErased<In, Out>(input, [&](const auto&... in) -> decltype(auto) {
            return (*shared)(context, in...);
        });
    };
}

template <class In, class Out, class H>
ErasedHandler EraseStages(H handler) {
    auto shared = std::make_shared<H>(std::move(handler));
    return [shared](Context& context, std::string_view text) -> Outcome<std::string> {
        H& stages = *shared;
        auto start = [&](const auto&... in) -> decltype(auto) {
            return stages.Start(context, in...);
        };
        auto resume = [&](const auto&... in) -> decltype(auto) {
            if constexpr (requires { stages.Resume(context, in...); }) {
                return stages.Resume(context, in...);
            } else {
                return stages.Start(context, in...);
            }
        };
        if (context.stage() == Stage::kStart) return CallErased<In, Out>(text, start);
        if (context.stage() == Stage::kResume) return CallErased<In, Out>(text, resume);
        SubtaskFailure failure = FirstFailure(context);
        if constexpr (std::is_void_v<In>) {
            if constexpr (requires { stages.Error(context, failure); }) {
                return CallErased<In, Out>(text, [&] { return stages.Error(context, failure); });
            }
        } else if constexpr (requires(const In& in) { stages.Error(context, in, failure); }) {
            return CallErased<In, Out>(text, [&](const In& in) {
                return stages.Error(context, in, failure);
            });
        }
        return FailedBySubtask(context);
    };
}

template <class F, class In>
struct ReturnedBy : std::invoke_result<F&, Context&, const In&> {};
template <class F>
struct ReturnedBy<F, void> : std::invoke_result<F&, Context&> {};

template <class H, class In>
struct StartedBy {};
template <class H, class In>
requires requires(H& stages, Context& context, const In& in) {
    stages.Start(context, in);
}
struct StartedBy<H, In> {
    using type =
        decltype(std::declval<H&>().Start(std::declval<Context&>(), std::declval<const In&>()));
};
template <class H>
requires requires(H& stages, Context& context) {
    stages.Start(context);
}
struct StartedBy<H, void> {
    using type = decltype(std::declval<H&>().Start(std::declval<Context&>()));
};

template <class R, class Out>
concept Returnable =
    (std::is_void_v<R> && std::is_void_v<Out>) || std::convertible_to<R, Outcome<Out>>;

}  // namespace detail

// A handler of Task<In, Out>: f(Context&, const In&) → Out, or Outcome<Out>. (f(Context&) when In
// is void; may return nothing when Out is void.)
template <class F, class In, class Out>
concept HandlerFor = requires {
    typename detail::ReturnedBy<F, In>::type;
}
&&detail::Returnable<typename detail::ReturnedBy<F, In>::type, Out>;

// The same in stages, for tasks that wait for subtasks: an object with
//     Start(Context&, const In&)                                the first time
//     Resume(Context&, const In&)                               after a wait; without it: Start
//     Error(Context&, const In&, const SubtaskFailure&)         after one that has failed; without
//                                                               it the task fails with that
template <class H, class In, class Out>
concept StagesFor = requires {
    typename detail::StartedBy<H, In>::type;
}
&&detail::Returnable<typename detail::StartedBy<H, In>::type, Out>;

class Engine {
public:
    // Opens the store, migrating it if it is new; runs nothing yet. Throws std::runtime_error with
    // a sentence that says what is wrong and what to do.
    explicit Engine(Options options);
    ~Engine();  // Stop()
    Engine(Engine&&) noexcept;
    Engine& operator=(Engine&&) = delete;

    // Registers the handler of a task type. Before Start(). Throws std::invalid_argument for a
    // second handler of the same name, a bad name, or an isolated type without its first line in
    // main.
    template <class In, class Out, HandlerFor<In, Out> F>
    void Handle(const Task<In, Out>& task, F handler) {
        Bind(task.name, task.defaults, detail::Erase<In, Out>(std::move(handler)));
    }

    template <class In, class Out, StagesFor<In, Out> H>
    void Handle(const Task<In, Out>& task, H handler) {
        Bind(task.name, task.defaults, detail::EraseStages<In, Out>(std::move(handler)));
    }

    // A workflow, see <stint/flow.h>. It may not be isolated; what it calls may.
    template <class In, class Out, FlowFor<In, Out> F>
    void Handle(const Task<In, Out>& task, F flow) {
        BindFlow(task.name, task.defaults, detail::EraseFlow<In, Out>(std::move(flow)));
    }
    // Registers a handler that takes up to `most` tasks of its type at once, as many as are there
    // when a slot is free, each of which takes a slot, and each of which ends by itself: what it
    // returns for one says nothing of the others, and what it throws is the failure of all.
    // Not for isolated types: those have a process for each attempt (std::invalid_argument).
    template <class In, class Out, BatchHandlerFor<In, Out> F>
    void HandleBatch(const Task<In, Out>& task, int most, F handler) {
        BindBatch(task.name, task.defaults, most, detail::EraseBatch<In, Out>(std::move(handler)));
    }

    // Accepts a task. When this returns a Run the task is durable.
    template <class In, class Out>
    Result<Run<Out>> Submit(
        const Task<In, Out>& task,
        const std::type_identity_t<In>& input,
        const SubmitOptions& options = {}
    ) {
        return Wrap<Out>(SubmitBytes(task.name, &task.defaults, Codec<In>::Encode(input), options));
    }
    template <class Out>
    Result<Run<Out>> Submit(const Task<void, Out>& task, const SubmitOptions& options = {}) {
        return Wrap<Out>(SubmitBytes(task.name, &task.defaults, "null", options));
    }
    // Many of one kind, in transactions of some 10 000: one answer each, in order.
    template <class In, class Out>
    std::vector<Result<Run<Out>>> SubmitMany(
        const Task<In, Out>& task, std::span<const In> inputs, const SubmitOptions& options = {}
    ) {
        std::vector<std::string> encoded;
        encoded.reserve(inputs.size());
        for (const In& input : inputs) encoded.push_back(Codec<In>::Encode(input));
        std::vector<Result<Run<Out>>> runs;
        runs.reserve(inputs.size());
        for (auto& id : SubmitManyBytes(task.name, &task.defaults, std::move(encoded), options)) {
            runs.push_back(Wrap<Out>(std::move(id)));
        }
        return runs;
    }
    // All of them or none, in one transaction; ids in the order of Graph::Add. Refused: a cycle,
    // which is named; a task that would be refused by itself.
    Result<std::vector<TaskId>> SubmitGraph(const Graph& graph);

    // By name, with JSON, for types this program does not know.
    Result<Run<Json>> SubmitJson(
        std::string_view type, std::string_view json, const SubmitOptions& options = {}
    );

    // The handle of a task that was submitted before, by this program or another.
    template <class In, class Out>
    Run<Out> Find(const Task<In, Out>&, TaskId id) {
        return Run<Out>(id, waiter());
    }

    // What is known of a task, whoever submitted it; kNotFound when there is none.
    Result<TaskInfo> Get(TaskId task);
    // Stops a task, whoever submitted it, with all below it; kNotFound when there is none.
    Result<Cancelled> Cancel(TaskId task, std::string_view reason = {});
    // The machines that have run workers on this store, and the workers themselves: those that run,
    // and for a day those that are over. Host name and process id are how an operator finds one.
    Result<std::vector<NodeInfo>> Nodes();
    Result<std::vector<SessionInfo>> Sessions();

    // Finishes a Background task from anywhere, with the token its handler handed out.
    template <Storable Out>
    Result<void> Complete(TaskId task, std::string_view completion_token, const Out& output) {
        return FinishBytes(task, completion_token, Codec<Out>::Encode(output));
    }
    Result<void> Complete(TaskId task, std::string_view completion_token) {
        return FinishBytes(task, completion_token, "null");
    }
    Result<void> Fail(TaskId task, std::string_view completion_token, const Failed& failure);

    // Tasks that are submitted again and again; see stint/schedule.h. Fired by every engine that is
    // started (Options::schedules).
    Schedules schedules();

    // Workflows that are functions: signals, and what they have recorded; see stint/flow.h.
    Flows flows();
    // Objects that are deleted when their grace period is over; see stint/deletion.h.
    Deletions deletions();

    // What a task's handler said of single objects (Context::Item), by key; `after` is the last key
    // of the page before.
    Result<std::vector<ItemResult>> Items(
        TaskId task, bool errors_only = false, std::string_view after = {}, int limit = 100
    );
    Result<ItemCounts> CountItems(TaskId task);
    // What tasks need and share; see <stint/resource.h>.
    Resources resources();
    // How the tasks of a queue take turns; see <stint/queue.h>.
    Queues queues();
    // What this process's probes have found (Options::probes), in their order.
    std::vector<ProbeInfo> Probes() const;

    // Every reason why a task is not running now, by the conditions of the claim itself, for the
    // workers that are there. Empty: it runs, or is finished.
    Result<std::vector<Reason>> Explain(TaskId task);
    // The same with its place: whether it is eligible, how many go before it, and how long that may
    // take. What the workers of other processes withhold is as old as their last heartbeat. Of a
    // whole queue: queues().Why().
    Result<TaskWait> Why(TaskId task);

    // Publishes an event: what workflows want done about it is done by the workers of this store,
    // once. Durable when it returns. See <stint/event.h>.
    template <Storable Data>
    Result<EventNo> Publish(
        std::string_view type, const Data& data, const PublishOptions& options = {}
    ) {
        return PublishJson(type, Codec<Data>::Encode(data), options);
    }
    Result<EventNo> PublishJson(
        std::string_view type, std::string_view json, const PublishOptions& options = {}
    );
    // Makes or replaces the workflow of this name; from now on, for every worker of this store. The
    // same again changes nothing.
    Result<WorkflowInfo> PutWorkflow(const Workflow& workflow);
    Result<WorkflowInfo> PutWorkflowJson(std::string_view json);
    Result<bool> RemoveWorkflow(std::string_view name);  // false: there was none
    Result<std::vector<WorkflowInfo>> Workflows();
    Result<EventInfo> GetEvent(EventNo event);
    Result<std::vector<FiringInfo>> Firings(EventNo event);
    // Newest first, a page at a time: then those `before` the number of the last one.
    Result<std::vector<JoinInfo>> Joins(
        std::string_view workflow, std::optional<std::int64_t> before = {}
    );
    // What keeps pending events, or this one, and incomplete joins from going on: what has to wait
    // and why, definitions that this program cannot read, tasks that no running worker handles.
    Result<std::vector<EventObstacle>> ExplainEvents(EventNo event = {});
    // Whether an expression matches these data, or what is wrong with it.
    static Result<bool> Matches(std::string_view expression, std::string_view json);

    // Runs `work` in one transaction of the store: your own writes through transaction.native(),
    // and tasks submitted with {.in = &transaction}, are committed together iff it returns success.
    // SQLite: only in the process that owns the file, the first that opened it; elsewhere it is
    // refused and names the owner. Several processes with writes of their own want PostgreSQL.
    Result<void> Write(const std::function<Result<void>(Transaction&)>& work);
    // Joins a transaction that you have begun on your own connection (PostgreSQL: PGconn*).
    Result<Transaction> Borrow(void* native_connection);

    void Start();  // returns at once; throws if called twice
    void Stop();   // drains, then stops attempts, hands back the rest; idempotent
    void Stop(Duration drain);

    // For programs that are nothing but a worker: Start, wait for SIGINT or SIGTERM, Stop. A second
    // signal stops at once. Returns 0, or 1 when it stopped because it was unhealthy.
    int RunUntilSignal();

    struct Impl;
    explicit Engine(std::unique_ptr<Impl> impl);  // for testing.h and the doors of this project
    Impl& impl() { return *impl_; }

private:
    void Bind(std::string_view name, const TaskDefaults& defaults, detail::ErasedHandler handler);
    void BindFlow(std::string_view name, const TaskDefaults& defaults, detail::ErasedFlow flow);
    void BindBatch(
        std::string_view name, const TaskDefaults& defaults, int most, detail::ErasedBatch handler
    );
    Result<TaskId> SubmitBytes(
        std::string_view type,
        const TaskDefaults* defaults,
        std::string input,
        const SubmitOptions& options
    );
    std::vector<Result<TaskId>> SubmitManyBytes(
        std::string_view type,
        const TaskDefaults* defaults,
        std::vector<std::string> inputs,
        const SubmitOptions& options
    );
    Result<void> FinishBytes(TaskId task, std::string_view completion_token, std::string output);
    std::shared_ptr<detail::Waiter> waiter();

    template <class Out>
    Result<Run<Out>> Wrap(Result<TaskId> id) {
        if (!id) return id.error();
        return Run<Out>(*id, waiter());
    }

    std::unique_ptr<Impl> impl_;
};

}  // namespace stint
