// Testing code that uses Stint: an engine in memory whose time you own.
//
//     stint::testing::TestEngine engine;
//     engine.Handle(kResize, MakeThumbnail);
//     auto run = engine.Submit(kResize, {.url = "cat.png"}, {.delay = 1h}).value();
//     engine.AdvanceTime(1h);          // nothing sleeps
//     engine.RunUntilIdle();           // runs what is due, on this thread
//     EXPECT_EQ(run.Wait().value().bytes, 4096);
//     engine.ExpectSubmitted(kResize);  // throws with the list of what was, if not
#pragma once

#include <stint/engine.h>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stint::testing {

// Thrown by the Expect… functions; the message lists what was submitted.
class ExpectationFailed : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// A submitted task, as a test sees it.
struct Submitted {
    TaskId id;
    std::string type;
    std::string queue;
    std::string state;   // "open", "complete", …
    std::string input;   // JSON
    std::string output;  // JSON
    std::string error;
    int attempt = 0;
    int priority = 0;
    Time due_at{};
};

struct TestOptions {
    // Handlers run inside Submit(), on the calling thread, as soon as they are due.
    bool inline_mode = false;
    std::uint64_t seed = 1;  // of every random number: retries and ids repeat exactly
    Hooks hooks = {};
    LogSink log = {};
};

// Everything happens on the calling thread, in memory, in virtual time. Same engine code as in
// production: leases, retries, timeouts of waiting, cancellation, audit.
class TestEngine {
public:
    explicit TestEngine(TestOptions options = {});
    ~TestEngine();

    template <class In, class Out, HandlerFor<In, Out> F>
    void Handle(const Task<In, Out>& task, F handler) {
        engine().Handle(task, std::move(handler));
    }
    template <class In, class Out, StagesFor<In, Out> H>
    void Handle(const Task<In, Out>& task, H handler) {
        engine().Handle(task, std::move(handler));
    }
    template <class In, class Out, FlowFor<In, Out> F>
    void Handle(const Task<In, Out>& task, F flow) {
        engine().Handle(task, std::move(flow));
    }
    template <class In, class Out, BatchHandlerFor<In, Out> F>
    void HandleBatch(const Task<In, Out>& task, int most, F handler) {
        engine().HandleBatch(task, most, std::move(handler));
    }
    template <class In, class Out>
    Result<Run<Out>> Submit(
        const Task<In, Out>& task,
        const std::type_identity_t<In>& input,
        const SubmitOptions& options = {}
    ) {
        auto run = engine().Submit(task, input, options);
        AfterSubmit();
        return run;
    }
    template <class Out>
    Result<Run<Out>> Submit(const Task<void, Out>& task, const SubmitOptions& options = {}) {
        auto run = engine().Submit(task, options);
        AfterSubmit();
        return run;
    }

    Time now() const;
    // Moves virtual time. Runs nothing.
    void AdvanceTime(Duration by);
    // Fires the schedules that are due and runs what is due until nothing is; returns the number of
    // attempts made. Throws after 100 000 attempts: a task that submits itself for ever.
    int RunUntilIdle();
    // Advances to the next due time and runs, again and again, until nothing waits or `limit` has
    // passed: retries with their delays happen at once.
    int RunUntilDone(Duration limit = std::chrono::hours{24 * 30});

    std::vector<Submitted> All() const;
    std::vector<Submitted> OfType(std::string_view type) const;

    // Throws ExpectationFailed unless a task of this type was submitted (exactly `count`, if given)
    // whose input satisfies `matches`, if given.
    template <class In, class Out>
    void ExpectSubmitted(
        const Task<In, Out>& task,
        std::optional<int> count = {},
        const std::function<bool(const In&)>& matches = {}
    ) const {
        int found = 0;
        for (const Submitted& submitted : OfType(task.name)) {
            if (!matches || matches(Codec<In>::Decode(submitted.input))) ++found;
        }
        CheckCount(task.name, found, count);
    }
    template <class In, class Out>
    void ExpectNotSubmitted(const Task<In, Out>& task) const {
        CheckCount(task.name, static_cast<int>(OfType(task.name).size()), 0);
    }

    Engine& engine();

private:
    void AfterSubmit();
    void CheckCount(std::string_view type, int found, std::optional<int> expected) const;

    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace stint::testing
