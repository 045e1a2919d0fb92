#include "cli/handlers.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "base/tallies.h"
#include "cli/cli.h"
#include "cli/demo_workflow.h"

namespace stint::cli {

namespace {

using base::Json;

// The input's members, each with a default: a null or missing input is fine.
struct Sleep {
    std::int64_t ms = 100;
};
struct Fail {
    int times = 1'000'000;  // of the first attempts
    std::string message = "failed as asked";
    bool retryable = true;
};
struct Crash {
    int times = 1'000'000;
    std::string how = "abort";  // or "kill", "segv"
};

struct Number {
    std::int64_t n = 0;
    std::int64_t ms = 5;
};
struct Objects {
    int good = 3, bad = 0;
};
struct Fanout {
    int children = 10;
    std::string queue;    // of the subtasks; empty = the default
    std::int64_t ms = 5;  // of each
};

void from_json(const Json& json, Number& number) {
    number.n = json.value("n", number.n);
    number.ms = json.value("ms", number.ms);
}
void from_json(const Json& json, Objects& objects) {
    objects.good = json.value("good", objects.good);
    objects.bad = json.value("bad", objects.bad);
}
void from_json(const Json& json, Fanout& fanout) {
    fanout.children = json.value("children", fanout.children);
    fanout.queue = json.value("queue", fanout.queue);
    fanout.ms = json.value("ms", fanout.ms);
}
void from_json(const Json& json, Sleep& sleep) {
    sleep.ms = json.value("ms", sleep.ms);
}
void from_json(const Json& json, Fail& fail) {
    fail.times = json.value("times", fail.times);
    fail.message = json.value("message", fail.message);
    fail.retryable = json.value("retryable", fail.retryable);
}
void from_json(const Json& json, Crash& crash) {
    crash.times = json.value("times", crash.times);
    crash.how = json.value("how", crash.how);
}

template <class T>
T InputOf(const stint::Json& input) {
    if (input.text == "null") return {};
    return Codec<T>::Decode(input.text);
}

constexpr Retry kQuick{
    .max_attempts = 5,
    .first_delay = std::chrono::milliseconds{500},
    .max_delay = std::chrono::seconds{10},
};

constexpr Task<stint::Json, stint::Json> kEcho{"echo"};
constexpr Task<stint::Json, stint::Json> kSleep{"demo.sleep"};
constexpr Task<stint::Json, stint::Json> kFail{"demo.fail", {.retry = kQuick}};
constexpr Task<stint::Json, stint::Json> kCrash{
    "demo.crash", {.retry = kQuick, .isolation = {.enabled = true}}};
constexpr Task<stint::Json, stint::Json> kNumber{"demo.number"};
constexpr Task<stint::Json, stint::Json> kFanout{"demo.fanout"};
constexpr Task<stint::Json, stint::Json> kItems{"demo.items", {.retry = Retry::Never()}};
constexpr Task<stint::Json, stint::Json> kNoop{"bench.noop"};
constexpr Task<stint::Json, stint::Json> kStamp{"bench.stamp"};
constexpr Task<stint::Json, stint::Json> kBenchFanout{"bench.fanout"};

// False: told to stop before.
bool SleepFor(Context& context, std::int64_t wanted) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    base::Clock& clock = base::SystemClock();
    base::Instant until = clock.Now() + std::chrono::milliseconds{wanted};
    constexpr std::chrono::milliseconds kReportEvery{250};
    for (base::Instant now = clock.Now(); now < until && !context.stop().stop_requested();
         now = clock.Now()) {
        auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - now);
        context.Progress("sleep", wanted - left.count(), wanted);
        clock.WaitUntil(lock, wake, context.stop(), std::min(until, now + kReportEvery));
    }
    return !context.stop().stop_requested();
}

Failed Stopped(Context& context) {
    return Failed{.message = fmt::format("stopped: {}", StopReasonName(context.why()))};
}

Outcome<stint::Json> RunSleep(Context& context, const stint::Json& input) {
    std::int64_t wanted = std::clamp<std::int64_t>(InputOf<Sleep>(input).ms, 0, 86'400'000);
    if (!SleepFor(context, wanted)) return Stopped(context);
    return stint::Json{base::JsonText(Json{{"slept_ms", wanted}})};
}

Outcome<stint::Json> RunNumber(Context& context, const stint::Json& input) {
    auto number = InputOf<Number>(input);
    if (!SleepFor(context, std::clamp<std::int64_t>(number.ms, 0, 60'000))) return Stopped(context);
    return stint::Json{std::to_string(number.n)};
}

// Makes subtasks with the numbers from 1 on, and returns their sum.
Outcome<stint::Json> RunFanout(Context& context, const stint::Json& input) {
    if (context.stage() == Stage::kStart) {
        auto fanout = InputOf<Fanout>(input);
        SubmitOptions options;
        if (!fanout.queue.empty()) options.queue = fanout.queue;
        for (int n = 1; n <= fanout.children; ++n) {
            context.Subtask(kNumber, {base::JsonText(Json{{"n", n}, {"ms", fanout.ms}})}, options);
        }
        return Blocked{};
    }
    std::int64_t sum = 0, count = 0;
    for (const stint::Json& output : context.OutputsOf(kNumber)) {
        sum += base::ReadJson(output.text).get<std::int64_t>();
        ++count;
    }
    return stint::Json{base::JsonText(Json{{"children", count}, {"sum", sum}})};
}

// An item for each object, good ones and those that are refused.
Outcome<stint::Json> RunItems(Context& context, const stint::Json& input) {
    auto objects = InputOf<Objects>(input);
    for (int i = 1; i <= std::min(objects.good, 10'000); ++i) {
        context.Item(
            {.key = fmt::format("good/{:04}", i),
             .action = "update",
             .before = {R"({"seen":false})"},
             .after = {R"({"seen":true})"}}
        );
    }
    for (int i = 1; i <= std::min(objects.bad, 10'000); ++i) {
        context.Item(
            {.key = fmt::format("bad/{:04}", i), .action = "update", .error = "refused as asked"}
        );
    }
    ItemCounts counts = context.FlushItems();
    return stint::Json{base::JsonText(Json{{"items", counts.total}, {"errors", counts.errors}})};
}

Outcome<stint::Json> RunFail(Context& context, const stint::Json& input) {
    Fail fail = InputOf<Fail>(input);
    if (context.attempt() <= fail.times) {
        return Failed{.message = fail.message, .retryable = fail.retryable, .klass = "demo.fail"};
    }
    return stint::Json{base::JsonText(Json{{"attempts", context.attempt()}})};
}

// Runs in a child process: what dies is only that.
Outcome<stint::Json> RunCrash(Context& context, const stint::Json& input) {
    Crash crash = InputOf<Crash>(input);
    if (context.attempt() <= crash.times) {
        if (crash.how == "kill") std::raise(SIGKILL);
        if (crash.how == "segv") {
            // A real one: sanitizers and cores see it as such.
            std::signal(SIGSEGV, SIG_DFL);
            std::raise(SIGSEGV);
        }
        std::signal(SIGABRT, SIG_DFL);
        std::abort();
    }
    return stint::Json{base::JsonText(Json{{"attempts", context.attempt()}})};
}

// Benchmarks see how far their workers are without asking the store that they measure.
void CountHandled() {
    base::Count(base::ProcessTallies().handled);
}

stint::Json RunNoop(Context&, const stint::Json&) {
    CountHandled();
    return {};
}

// Makes no-ops and waits for them; the answer is how many.
Outcome<stint::Json> RunBenchFanout(Context& context, const stint::Json& input) {
    auto fanout = InputOf<Fanout>(input);
    if (context.stage() != Stage::kStart) return stint::Json{std::to_string(fanout.children)};
    SubmitOptions options;
    options.queue = fanout.queue;
    for (int n = 0; n < fanout.children; ++n) {
        context.Subtask(kNoop, {R"({"n":1})"}, options);
    }
    return Blocked{};
}

// When the handler began, on the clock that all processes of a machine share.
stint::Json RunStamp(Context&, const stint::Json&) {
    CountHandled();
    return {std::to_string(base::SystemClock().Now().time_since_epoch().count())};
}

}  // namespace

void HandleBuiltins(Engine& engine) {
    engine.Handle(kEcho, [](Context&, const stint::Json& input) { return input; });
    engine.Handle(kSleep, RunSleep);
    engine.Handle(kFail, RunFail);
    engine.Handle(kCrash, RunCrash);
    HandleDemoOrders(engine);
    engine.Handle(kNumber, RunNumber);
    engine.Handle(kFanout, RunFanout);
    engine.Handle(kItems, RunItems);
}

void HandleBench(Engine& engine) {
    engine.Handle(kNoop, RunNoop);
    engine.Handle(kStamp, RunStamp);
    engine.Handle(kBenchFanout, RunBenchFanout);
}

void RegisterIsolatedHandlers(HandlerRegistry& registry) {
    registry.Handle(kCrash, RunCrash);
}

}  // namespace stint::cli
