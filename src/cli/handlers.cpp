#include "cli/handlers.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "cli/cli.h"

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
constexpr Task<stint::Json, stint::Json> kNoop{"bench.noop"};
constexpr Task<stint::Json, stint::Json> kStamp{"bench.stamp"};

Outcome<stint::Json> RunSleep(Context& context, const stint::Json& input) {
    std::int64_t wanted = std::clamp<std::int64_t>(InputOf<Sleep>(input).ms, 0, 86'400'000);
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
    if (context.stop().stop_requested()) {
        return Failed{.message = fmt::format("stopped: {}", StopReasonName(context.why()))};
    }
    return stint::Json{base::JsonText(Json{{"slept_ms", wanted}})};
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

// When the handler began, on the clock that all processes of a machine share.
stint::Json RunStamp(Context&, const stint::Json&) {
    return {std::to_string(base::SystemClock().Now().time_since_epoch().count())};
}

}  // namespace

void HandleBuiltins(Engine& engine) {
    engine.Handle(kEcho, [](Context&, const stint::Json& input) { return input; });
    engine.Handle(kSleep, RunSleep);
    engine.Handle(kFail, RunFail);
    engine.Handle(kCrash, RunCrash);
}

void HandleBench(Engine& engine) {
    engine.Handle(kNoop, [](Context&, const stint::Json&) { return stint::Json{}; });
    engine.Handle(kStamp, RunStamp);
}

void RegisterIsolatedHandlers(HandlerRegistry& registry) {
    registry.Handle(kCrash, RunCrash);
}

}  // namespace stint::cli
