// stint::testing::TestEngine: the production engine on the memory store, driven step by step on the
// caller's thread, in virtual time.
#include <stint/testing.h>

#include <algorithm>

#include "base/result.h"
#include "node/engine_impl.h"
#include "store/memory/memory_store.h"
#include "wake/local.h"

namespace stint::testing {

namespace {

constexpr int kAttemptsInARow = 100'000;

Submitted ToSubmitted(const model::TaskRecord& task) {
    return {
        .id = task.id,
        .type = task.type,
        .queue = task.queue,
        .state = std::string(StateName(task.state)),
        .input = task.input,
        .output = task.output,
        .error = task.error ? task.error->message : std::string(),
        .attempt = task.attempt,
        .priority = task.priority,
        .due_at = task.due_at,
    };
}

}  // namespace

struct TestEngine::Impl : detail::Waiter {
    TestOptions options;
    base::ManualClock clock;
    base::SeededRandom random;
    Engine engine;
    std::size_t types = 0;  // that the worker knows
    bool running = false;   // a handler that submits must not run others inside itself

    explicit Impl(TestOptions given)
        : options(std::move(given)), random(options.seed), engine(MakeEngine()) {}

    std::unique_ptr<Engine::Impl> MakeEngine();
    engine::Worker& worker();
    int RunDue();
    std::vector<model::TaskRecord> Tasks(const model::TaskFilter& filter);
    // What waits here: is any of it due, and when is the first that is not?
    struct Waiting {
        bool due = false;
        std::optional<Time> next;
    };
    Waiting LookAtWaiting();
    int RunUntil(Time end, const std::function<bool()>& enough);

    bool Done(TaskId task) override { return !engine.impl().store->Finished({&task, 1}).empty(); }
    Result<std::string> Wait(TaskId task, std::optional<Duration> limit, std::stop_token) override;
    Result<Cancelled> Cancel(TaskId task, std::string_view reason) override;
};

std::unique_ptr<Engine::Impl> TestEngine::Impl::MakeEngine() {
    Options engine_options;
    engine_options.store = "memory:";
    engine_options.hooks = options.hooks;
    engine_options.log = options.log;
    auto impl = std::make_unique<Engine::Impl>(std::move(engine_options), clock, random);
    impl->store = store::MakeMemoryStore(clock, random);
    impl->wake = std::make_unique<wake::LocalWake>();
    impl->submitter = std::make_unique<engine::Submitter>(
        *impl->store, *impl->wake, clock, random, impl->options.log
    );
    // Not owning: the handles of a test do not outlive its engine.
    impl->waiter = std::shared_ptr<detail::Waiter>(std::shared_ptr<void>(), this);
    impl->MakeScheduler();
    impl->MakeEvents();
    return impl;
}

engine::Worker& TestEngine::Impl::worker() {
    auto& impl = engine.impl();
    // A worker publishes and claims the types that it began with: a handler that came later needs a
    // new one.
    if (impl.worker && types != impl.registry.Types().size()) {
        impl.worker->Drain();
        impl.worker.reset();
    }
    if (!impl.worker) {
        types = impl.registry.Types().size();
        auto worker_options = impl.MakeWorkerOptions();
        worker_options.slots = 1;
        impl.worker = std::make_unique<engine::Worker>(impl.MakeWorkerParts(), worker_options);
        impl.worker->Open();
    }
    return *impl.worker;
}

int TestEngine::Impl::RunDue() {
    if (running) return 0;
    running = true;
    auto done = [this](void*) { running = false; };
    std::unique_ptr<void, decltype(done)> reset(this, done);
    engine::Worker& steps = worker();
    steps.RenewOnce();
    steps.SweepOnce();
    steps.HousekeepOnce();
    engine.impl().scheduler->RunOnce();
    engine.impl().deletions->RunOnce();
    int attempts = 0;
    while (true) {
        engine.impl().events->RunOnce();
        steps.ClaimOnce();
        if (!steps.RunOneAttempt()) break;
        steps.SettleOnce();
        if (++attempts > kAttemptsInARow) {
            throw ExpectationFailed(fmt::format(
                "{} attempts ran without an end: does a handler submit itself for ever?", attempts
            ));
        }
    }
    steps.SettleOnce();
    return attempts;
}

std::vector<model::TaskRecord> TestEngine::Impl::Tasks(const model::TaskFilter& filter) {
    std::vector<model::TaskRecord> tasks;
    store::ListRequest request{.filter = filter, .before = {}, .limit = model::limits::kListPage};
    while (true) {
        auto page = engine.impl().store->List(request);
        std::move(page.tasks.begin(), page.tasks.end(), std::back_inserter(tasks));
        if (!page.next) break;
        request.before = page.next;
    }
    std::reverse(tasks.begin(), tasks.end());  // oldest first: the order a test submitted in
    return tasks;
}

TestEngine::Impl::Waiting TestEngine::Impl::LookAtWaiting() {
    model::TaskFilter filter;
    filter.states = {model::State::kOpen, model::State::kError};
    Waiting waiting;
    for (const auto& task : Tasks(filter)) {
        if (engine.impl().registry.Find(task.type) == nullptr) continue;
        if (task.due_at <= clock.WallTime()) {
            waiting.due = true;
        } else if (!waiting.next || task.due_at < *waiting.next) {
            waiting.next = task.due_at;
        }
    }
    return waiting;
}

int TestEngine::Impl::RunUntil(Time end, const std::function<bool()>& enough) {
    int attempts = RunDue();
    // What is due now and still not run waits for something else, such as a resource that is
    // closed for a while: time passes in steps, longer while nothing comes of it.
    constexpr std::chrono::microseconds kShort = std::chrono::milliseconds{1};
    constexpr std::chrono::microseconds kLong = std::chrono::minutes{1};
    auto patience = kShort;
    while (!enough()) {
        Waiting waiting = LookAtWaiting();
        if (!waiting.due && !waiting.next) break;
        std::chrono::microseconds step = patience;
        if (waiting.next) {
            auto until = *waiting.next - clock.WallTime();
            step = waiting.due ? std::min<std::chrono::microseconds>(step, until) : until;
        }
        if (clock.WallTime() + step > end) break;
        clock.Advance(step);
        int ran = RunDue();
        attempts += ran;
        patience = ran > 0 ? kShort : std::min(2 * patience, kLong);
    }
    return attempts;
}

Result<std::string> TestEngine::Impl::Wait(
    TaskId task, std::optional<Duration> limit, std::stop_token
) {
    Time end = clock.WallTime() + limit.value_or(std::chrono::hours{24 * 30});
    RunUntil(end, [&] { return Done(task); });
    auto finished = engine.impl().store->Finished({&task, 1});
    if (finished.empty()) {
        auto record = engine.impl().store->Get(task);
        if (!record) return base::MakeError(Code::kNotFound, "there is no task {}", task.value());
        return base::MakeError(
            Code::kTimeout,
            "task {} ({}) is {} and nothing that is registered here will change that",
            task.value(),
            record->type,
            StateName(record->state)
        );
    }
    const auto& end_state = finished.front();
    if (end_state.state == model::State::kComplete) return end_state.output;
    if (end_state.state == model::State::kCancelled) {
        return Error{Code::kCancelled, end_state.reason};
    }
    return Error{Code::kFailed, end_state.error ? end_state.error->message : end_state.reason};
}

Result<Cancelled> TestEngine::Impl::Cancel(TaskId task, std::string_view reason) {
    auto replies = engine.impl().store->Cancel({&task, 1}, "test", reason);
    return engine::ToCancelled(task, replies.front());
}

TestEngine::TestEngine(TestOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {
}
TestEngine::~TestEngine() = default;

Engine& TestEngine::engine() {
    return impl_->engine;
}
Time TestEngine::now() const {
    return impl_->clock.WallTime();
}
void TestEngine::AdvanceTime(Duration by) {
    impl_->clock.Advance(by);
}
int TestEngine::RunUntilIdle() {
    return impl_->RunDue();
}

int TestEngine::RunUntilDone(Duration limit) {
    return impl_->RunUntil(now() + limit, [] { return false; });
}

void TestEngine::AfterSubmit() {
    if (impl_->options.inline_mode) impl_->RunDue();
}

std::vector<Submitted> TestEngine::All() const {
    std::vector<Submitted> all;
    for (const auto& task : impl_->Tasks({})) all.push_back(ToSubmitted(task));
    return all;
}

std::vector<Submitted> TestEngine::OfType(std::string_view type) const {
    std::vector<Submitted> all = All();
    std::erase_if(all, [&](const Submitted& task) { return task.type != type; });
    return all;
}

void TestEngine::CheckCount(std::string_view type, int found, std::optional<int> expected) const {
    if (expected ? found == *expected : found > 0) return;
    std::string message = fmt::format(
        "expected {} submitted, found {}; submitted were:",
        expected ? fmt::format("{} of {}", *expected, type) : std::string(type),
        found
    );
    for (const Submitted& task : All()) {
        message += fmt::format("\n  {} {} {}", task.type, task.state, task.input);
    }
    throw ExpectationFailed(message);
}

}  // namespace stint::testing
