// stint::Engine: translates the public interface into calls on the parts of node/engine_impl.h.
#include <stint/engine.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/check.h"
#include "base/result.h"
#include "base/thread.h"
#include "engine/hooks.h"
#include "engine/store_failure.h"
#include "model/placement.h"
#include "model/room.h"
#include "node/convert.h"
#include "node/engine_impl.h"
#include "node/make_wake.h"
#include "node/open_store.h"
#include "node/paths.h"
#include "services/steps.h"

namespace stint {

Engine::Impl::Impl(Options given, base::Clock& the_clock, base::Random& the_random)
    : options(std::move(given)), clock(the_clock), random(the_random), log(options.log, "engine") {
}

engine::WorkerOptions Engine::Impl::MakeWorkerOptions() const {
    engine::WorkerOptions worker_options;
    worker_options.slots = options.slots;
    worker_options.claim_ahead = options.prefetch;
    worker_options.queues = options.queues;
    worker_options.labels = model::CanonicalLabels(options.labels);
    worker_options.at_once_of_queue = options.at_once_of_queue;
    worker_options.at_once_of_resource =
        model::RoomFrom("at_once_of_resource", options.at_once_of_resource).value();
    if (probes) worker_options.withheld = [all = probes.get()] { return all->Withheld(); };
    worker_options.lease = node::ToModel(options.lease);
    worker_options.poll = options.poll;
    worker_options.drain = options.drain;
    worker_options.stop_grace = options.stop_grace;
    worker_options.timeout_grace = options.timeout_grace;
    worker_options.error_wait = options.error_wait;
    worker_options.sweep_every = options.sweep_every;
    worker_options.housekeep_every = options.housekeep_every;
    worker_options.history_every = options.history_every;
    worker_options.hostname = options.node_name.empty() ? node::HostName() : options.node_name;
    worker_options.pid = getpid();
    worker_options.version = node::kVersion;
    worker_options.state_dir = node::StateDirOfStore(options.state_dir, info.identity);
    worker_options.exclusive = options.exclusive && info.kind == "sqlite";
    worker_options.log = options.log;
    worker_options.hooks = options.hooks;
    worker_options.on_unhealthy = options.on_unhealthy;
    return worker_options;
}

engine::WorkerParts Engine::Impl::MakeWorkerParts() {
    return {
        .store = *store,
        .wake = *wake,
        .registry = registry,
        .clock = clock,
        .random = random,
        .reserved = reserved.get(),
        .metrics = &metrics,
    };
}

void Engine::Impl::MakeScheduler() {
    services::ZoneSource zones = services::SystemZones();
    desk = std::make_unique<services::ScheduleDesk>(*store, *wake, zones);
    scheduler = std::make_unique<services::Scheduler>(
        services::Scheduler::Parts{*store, *wake, clock, log.For("schedule"), zones},
        services::SchedulerOptions{
            .look_every = options.poll.max,
            .error_wait = options.error_wait,
            .forget_every = options.housekeep_every}
    );
    desk->OnChange([this] { scheduler->Poke(); });
    deletions = std::make_unique<services::DeletionDesk>(*store, *wake, clock, log.For("deletion"));
    // What schedules and deletions submit can be executed wherever they are.
    if (options.schedules) registry.Add(services::StepsHandler());
}

namespace {

void CheckOptions(const Options& options) {
    auto refuse = [](const std::string& why) { throw std::invalid_argument("Options: " + why); };
    if (options.slots < 1 || options.slots > model::limits::kSlots) {
        refuse(fmt::format(
            "slots is {}; it must be between 1 and {}", options.slots, model::limits::kSlots
        ));
    }
    int prefetch = options.prefetch.value_or(0);
    if (prefetch < 0 || prefetch > model::limits::kSlots) {
        refuse(fmt::format(
            "prefetch is {}; it must be between 0 (none) and {}; as many as slots is plenty",
            prefetch,
            model::limits::kSlots
        ));
    }
    if (auto labels = model::ValidateLabels("labels", options.labels); !labels) {
        refuse(labels.error().message);
    }
    for (const auto& [queue, at_once] : options.at_once_of_queue) {
        if (at_once >= 0 && at_once <= model::limits::kSlots) continue;
        refuse(fmt::format(
            "at_once_of_queue of \"{}\" is {}; it must be between 0 (none of it) and {}",
            queue,
            at_once,
            model::limits::kSlots
        ));
    }
    if (auto room = model::RoomFrom("at_once_of_resource", options.at_once_of_resource); !room) {
        refuse(room.error().message);
    }
    if (auto lease = Validate(node::ToModel(options.lease)); !lease) refuse(lease.error().message);
    if (options.poll.min <= Duration::zero() || options.poll.max < options.poll.min) {
        refuse(fmt::format(
            "poll is {} to {} ms; min must be positive and not above max",
            options.poll.min.count(),
            options.poll.max.count()
        ));
    }
}

std::unique_ptr<Engine::Impl> Build(Options options) {
    CheckOptions(options);
    auto url = node::ParseStoreUrl(options.store);
    if (!url) throw std::invalid_argument(url.error().message);
    auto impl = std::make_unique<Engine::Impl>(
        std::move(options), base::SystemClock(), base::SystemRandom()
    );
    if (!impl->options.probes.empty()) {
        impl->probes = std::make_unique<services::Probes>(
            impl->clock, impl->log, std::exchange(impl->options.probes, {})
        );
    }
    // First of all: whatever fails from here on, the host's log has heard of it.
    impl->log.Debug("opening the store", {{"store", node::WithoutSecrets(impl->options.store)}});
    if (impl->options.state_dir.empty()) impl->options.state_dir = node::DefaultStateDir(*url);
    node::StoreOptions store_options{.log = impl->options.log};
    impl->store = node::OpenStore(impl->options.store, store_options);
    impl->info = impl->store->Info();
    if (url->kind == node::StoreUrl::Kind::kPostgres) {
        store_options.migrate = false;
        impl->reserved = node::OpenStore(impl->options.store, store_options);
    }
    impl->wake = node::MakeWake(*url, impl->options.log);
    impl->submitter = std::make_unique<engine::Submitter>(
        *impl->store, *impl->wake, impl->clock, impl->random, impl->options.log
    );
    impl->await = std::make_shared<engine::Await>(
        *impl->store, *impl->wake, impl->clock, impl->random, impl->options.poll, impl->options.log
    );
    impl->waiter = impl->await;
    impl->MakeScheduler();
    impl->MakeEvents();
    return impl;
}

}  // namespace

Engine::Engine(Options options) : impl_(Build(std::move(options))) {
}
Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
}
Engine::Engine(Engine&&) noexcept = default;

Engine::~Engine() {
    if (!impl_) return;
    Stop();
    // Handles may outlive the engine; from now on they answer that it is gone.
    if (impl_->await) impl_->await->Close();
}

void Engine::Bind(
    std::string_view name, const TaskDefaults& defaults, detail::ErasedHandler handler
) {
    engine::HandlerEntry entry;
    entry.handler = std::move(handler);
    impl_->Bind(name, defaults, std::move(entry));
}

void Engine::BindBatch(
    std::string_view name, const TaskDefaults& defaults, int most, detail::ErasedBatch handler
) {
    engine::HandlerEntry entry;
    entry.batch = std::move(handler);
    entry.batch_most = most;
    impl_->Bind(name, defaults, std::move(entry));
}

void Engine::Impl::Bind(
    std::string_view name, const TaskDefaults& defaults, engine::HandlerEntry entry
) {
    if (started) {
        throw std::invalid_argument(
            fmt::format("the handler of {} comes too late: register it before Start()", name)
        );
    }
    entry.type = name;
    entry.defaults = node::ToModel(name, defaults);
    entry.isolation = defaults.isolation;
    entry.at_once = defaults.at_once;
    entry.at_once_per_worker = defaults.at_once_per_worker;
    registry.Add(std::move(entry));
}

Result<TaskId> Engine::SubmitBytes(
    std::string_view type,
    const TaskDefaults* defaults,
    std::string input,
    const SubmitOptions& options
) {
    std::vector<std::string> inputs;
    inputs.push_back(std::move(input));
    return std::move(SubmitManyBytes(type, defaults, std::move(inputs), options).front());
}

std::vector<Result<TaskId>> Engine::SubmitManyBytes(
    std::string_view type,
    const TaskDefaults* defaults,
    std::vector<std::string> inputs,
    const SubmitOptions& options
) {
    std::vector<model::NewTask> tasks;
    tasks.reserve(inputs.size());
    for (std::string& input : inputs) {
        auto task =
            node::ToNewTask(type, defaults, std::move(input), options, impl_->options.tenant);
        if (!task) return std::vector<Result<TaskId>>(inputs.size(), task.error());
        tasks.push_back(std::move(*task));
    }
    if (options.in != nullptr) {
        return impl_->submitter->SubmitIn(options.in->implementation(), std::move(tasks));
    }
    return impl_->submitter->Submit(std::move(tasks));
}

Result<std::vector<TaskId>> Engine::SubmitGraph(const Graph& graph) {
    std::vector<model::NewTask> tasks;
    std::vector<engine::Submitter::Link> links;
    for (const Graph::Entry& entry : graph.entries()) {
        auto task = node::ToNewTask(
            entry.type, &entry.defaults, entry.input, entry.options, impl_->options.tenant
        );
        if (!task) return task.error();
        if (entry.options.in != nullptr) {
            return base::MakeError(
                Code::kInvalid,
                "task {} of the graph names a transaction; a graph is one by itself",
                tasks.size() + 1
            );
        }
        if (!entry.after.tasks.empty()) {
            if (!task->after) task->after.emplace();
            task->after->on_failure = entry.after.on_failure;
            task->after->any = entry.after.any;
            task->after->need_success = entry.after.need_success;
        }
        for (Graph::Node after : entry.after.tasks) {
            if (after.index >= graph.size()) {
                return base::MakeError(
                    Code::kInvalid,
                    "task {} of the graph starts after number {}, which it does not have",
                    tasks.size() + 1,
                    after.index + 1
                );
            }
            links.push_back({tasks.size(), after.index});
        }
        tasks.push_back(std::move(*task));
    }
    return impl_->submitter->SubmitAll(std::move(tasks), links);
}

Result<Run<Json>> Engine::SubmitJson(
    std::string_view type, std::string_view json, const SubmitOptions& options
) {
    return Wrap<Json>(SubmitBytes(type, nullptr, std::string(json), options));
}

std::shared_ptr<detail::Waiter> Engine::waiter() {
    return impl_->waiter;
}

namespace {

// Asks the store; what it throws is an answer.
template <class Question>
auto Ask(Question question) -> decltype(question()) {
    try {
        return question();
    } catch (const std::exception& error) {
        // Reading changes nothing, whatever became of it.
        Error failure = engine::StoreFailure(error);
        if (failure.code == Code::kUnknown) failure.code = Code::kUnavailable;
        return failure;
    }
}

template <class Record>
auto AllPublic(const std::vector<Record>& records) {
    std::vector<decltype(node::ToPublic(records.front()))> shown;
    shown.reserve(records.size());
    for (const Record& record : records) shown.push_back(node::ToPublic(record));
    return shown;
}

}  // namespace

Result<TaskInfo> Engine::Get(TaskId task) {
    return Ask([&]() -> Result<TaskInfo> {
        auto record = impl_->store->Get(task);
        if (!record) return base::MakeError(Code::kNotFound, "there is no task {}", task.value());
        return node::ToPublic(*record);
    });
}

Result<Cancelled> Engine::Cancel(TaskId task, std::string_view reason) {
    return impl_->waiter->Cancel(task, reason);
}

Result<std::vector<NodeInfo>> Engine::Nodes() {
    return Ask([&]() -> Result<std::vector<NodeInfo>> { return AllPublic(impl_->store->Nodes()); });
}

Result<std::vector<SessionInfo>> Engine::Sessions() {
    return Ask([&]() -> Result<std::vector<SessionInfo>> {
        return AllPublic(impl_->store->Sessions());
    });
}

namespace {

Result<void> Finish(Engine::Impl& impl, store::BackgroundFinish finish, std::string_view token) {
    auto parsed = LeaseToken::Parse(token);
    if (!parsed) {
        return base::MakeError(
            Code::kInvalid,
            "the completion token is \"{}\"; it must be the 32 hexadecimal digits that "
            "Context::completion_token() returned",
            token.substr(0, 64)
        );
    }
    finish.token = parsed;
    finish.actor = "completer";
    finish.jitter = impl.random.Fraction();
    try {
        auto state = impl.store->FinishBackground(finish);
        if (!state) return state.error();
        wake::Hint hint{.kind = wake::Hint::Kind::kTaskFinished, .queue = {}, .task = finish.task};
        if (model::IsTerminal(*state)) impl.wake->Signal({&hint, 1});
        return {};
    } catch (const std::exception& error) {
        return engine::StoreFailure(error);
    }
}

}  // namespace

Result<void> Engine::FinishBytes(
    TaskId task, std::string_view completion_token, std::string output
) {
    store::BackgroundFinish finish;
    finish.task = task;
    finish.output = std::move(output);
    return Finish(*impl_, std::move(finish), completion_token);
}

Result<void> Engine::Fail(TaskId task, std::string_view completion_token, const Failed& failure) {
    store::BackgroundFinish finish;
    finish.task = task;
    finish.success = false;
    finish.error = {failure.message, failure.klass, {}, failure.retryable};
    return Finish(*impl_, std::move(finish), completion_token);
}

Result<void> Engine::Write(const std::function<Result<void>(Transaction&)>& work) {
    std::exception_ptr thrown;  // by the caller's own work: rolled back, and the caller's to catch
    auto guarded = [&](store::Transaction& inner) -> Result<void> {
        Transaction transaction(&inner);
        try {
            return work(transaction);
        } catch (...) {
            thrown = std::current_exception();
            return Error{Code::kFailed, "the work threw"};
        }
    };
    try {
        Result<void> done = impl_->store->Write(guarded);
        if (!thrown) return done;
    } catch (const std::exception& error) {
        if (!thrown) return engine::StoreFailure(error);
    }
    std::rethrow_exception(thrown);
}

Result<Transaction> Engine::Borrow(void* native_connection) {
    return Ask([&]() -> Result<Transaction> {
        auto borrowed = impl_->store->Borrow(native_connection);
        if (!borrowed) return borrowed.error();
        return Transaction(std::move(*borrowed));
    });
}

void Engine::Start() {
    std::lock_guard guard(impl_->lifecycle);
    if (impl_->started) throw std::logic_error("Engine::Start() was called twice");
    impl_->worker =
        std::make_unique<engine::Worker>(impl_->MakeWorkerParts(), impl_->MakeWorkerOptions());
    if (impl_->probes) {
        impl_->probes->OnOffered([worker = impl_->worker.get()] { worker->Look(); });
        impl_->probes->Start();
    }
    impl_->worker->Start();
    if (impl_->options.schedules) {
        impl_->scheduler->Start();
        Duration look_every = std::max<Duration>(impl_->options.poll.max, std::chrono::seconds{1});
        impl_->deletions->Start(look_every, impl_->options.error_wait);
    }
    impl_->events->Start();
    impl_->started = true;
}

void Engine::Stop() {
    Stop(impl_->options.drain);
}

void Engine::Stop(Duration drain) {
    engine::InHook::Refuse("Engine::Stop()");
    engine::Worker* worker = nullptr;
    {
        std::lock_guard guard(impl_->lifecycle);
        worker = impl_->worker.get();
        impl_->stopped = true;
    }
    impl_->scheduler->Stop();
    impl_->deletions->Stop();
    if (worker == nullptr || !impl_->started) return;
    impl_->events->Stop();
    worker->Stop(drain);
    if (impl_->probes) impl_->probes->Stop();
}

namespace {

// Blocks signals in this thread, and in those that it starts, until it goes.
class BlockedSignals {
public:
    explicit BlockedSignals(const sigset_t& signals) {
        pthread_sigmask(SIG_BLOCK, &signals, &before_);
    }
    ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;

private:
    sigset_t before_{};
};

}  // namespace

int Engine::RunUntilSignal() {
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    // Before Start(), so that only the wait below receives them.
    BlockedSignals blocked(ours);
    Start();
    timespec look_again{.tv_sec = 0, .tv_nsec = 200'000'000};
    int signal_number = -1;
    while (signal_number < 0 && impl_->worker->healthy()) {
        signal_number = sigtimedwait(&ours, nullptr, &look_again);
    }
    {
        std::jthread stopper = base::StartThread([this] { Stop(); });
        std::jthread second = base::StartThread([&](std::stop_token done) {
            while (!done.stop_requested()) {
                if (sigtimedwait(&ours, nullptr, &look_again) > 0) impl_->worker->StopNow();
            }
        });
        stopper.join();
    }
    return signal_number < 0 ? 1 : 0;
}

}  // namespace stint
