// Engine: the whole of Stint inside your program. It starts threads only in Start(), touches no
// signals, no globals and no output of the process.
#pragma once

#include <stint/codec.h>
#include <stint/context.h>
#include <stint/info.h>
#include <stint/options.h>
#include <stint/outcome.h>
#include <stint/result.h>
#include <stint/run.h>
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

template <class Out, class Returned>
Outcome<std::string> EraseOutcome(Returned&& returned) {
    return std::visit(
        []<class T>(T&& end) -> Outcome<std::string> {
            using Plain = std::remove_cvref_t<T>;
            if constexpr (std::same_as<Plain, std::monostate>) {
                return Outcome<std::string>(std::in_place_index<0>, "null");
            } else if constexpr (std::same_as<Plain, Complete<Out>>) {
                return Outcome<std::string>(std::in_place_index<0>, Codec<Out>::Encode(end));
            } else {
                return Outcome<std::string>(std::forward<T>(end));
            }
        },
        Outcome<Out>(std::forward<Returned>(returned))
    );
}

template <class In, class Out, class F>
ErasedHandler Erase(F function) {
    // Shared, because std::function copies and handlers may own what cannot be copied.
    auto shared = std::make_shared<F>(std::move(function));
    return [shared](Context& context, std::string_view input) -> Outcome<std::string> {
        auto call = [&]() -> decltype(auto) {
            if constexpr (std::is_void_v<In>) {
                return (*shared)(context);
            } else {
                return (*shared)(context, static_cast<const In&>(Codec<In>::Decode(input)));
            }
        };
        if constexpr (std::is_void_v<decltype(call())>) {
            call();
            return Outcome<std::string>(std::in_place_index<0>, "null");
        } else {
            return EraseOutcome<Out>(call());
        }
    };
}

template <class F, class In>
struct ReturnedBy {
    using type = std::invoke_result_t<F&, Context&, const In&>;
};
template <class F>
struct ReturnedBy<F, void> {
    using type = std::invoke_result_t<F&, Context&>;
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
    // Many of one kind, in one transaction per 10 000: one answer each, in order.
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
