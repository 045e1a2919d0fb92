// Task<In, Out>: a task's contract, shared by those who submit it and those who handle it.
#pragma once

#include <stint/codec.h>
#include <stint/placement.h>
#include <stint/time.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace stint {

// When a failed attempt is tried again.
struct Retry {
    enum class Kind : std::uint8_t { kExponential, kFixed, kList };
    enum class On : std::uint8_t {
        kRetryable,  // I/O errors, timeouts, stint::Retryable, Failed{.retryable = true}
        kAll,        // every failure
        kNone,       // no failure; a crash of the worker is still recovered, up to max_attempts
    };
    int max_attempts = 20;  // in all, the first included; 0 = no limit
    On on = On::kRetryable;
    Kind kind = Kind::kExponential;
    Duration first_delay = std::chrono::seconds{1};
    Duration max_delay = std::chrono::hours{1};
    double factor = 2.0;
    double jitter = 0.2;
    std::span<const Duration> delays = {};  // for kList; the last one repeats

    // One attempt, whatever becomes of it: a failure is final, and so is a crash of the worker.
    static constexpr Retry Never() { return {.max_attempts = 1, .on = On::kNone}; }
    // The first failure is final; crashes of the worker are recovered.
    static constexpr Retry ErrorIsFinal() { return {.on = On::kNone}; }
    // Errors that say they are worth it, counted, with growing pauses: the default.
    static constexpr Retry CountedBackoff() { return {}; }
    // Every failure, at once and without end; a task that keeps crashing its worker is quarantined
    // all the same.
    static constexpr Retry UncountedQuick() {
        return {
            .max_attempts = 0,
            .on = On::kAll,
            .kind = Kind::kFixed,
            .first_delay = Duration::zero(),
            .jitter = 0};
    }
    static constexpr Retry Times(int attempts) { return {.max_attempts = attempts}; }
};

// Runs each attempt in a child process, which a crash, a runaway loop or an exhausted memory cannot
// leave. The program must begin with the line shown in <stint/isolate.h>.
struct Isolation {
    bool enabled = false;
    std::uint64_t memory_bytes = 0;        // address space limit of the child; 0 = none
    Duration cpu_time = Duration::zero();  // processor time limit; 0 = none
};

// What holds for every task of a type unless the submitter says otherwise.
struct TaskDefaults {
    std::string_view queue = "default";
    int priority = 128;  // 0 … 255, higher first
    Retry retry = {};
    Duration timeout = Duration::zero();  // of one attempt; 0 = none
    Isolation isolation = {};
    detail::Few<detail::LiteralNeed, 8> needs = {};  // .needs = {"gpu", {"license", 2}}
    detail::Few<std::string_view, 8> labels = {};    // a worker must carry all (Options::labels)
    // Attempts of this type at once; 0 = no limit. Over all workers it is the resource "type:NAME",
    // made with this capacity when there is none; then it is the operator's.
    int at_once = 0;
    int at_once_per_worker = 0;
};

// A literal constant in the header that producers and workers share; it holds no code:
//
//     inline constexpr stint::Task<Resize, Thumbnail> kResize{
//         "image.resize", {.queue = "images", .timeout = 30s}};
template <Storable In, Storable Out = void>
struct Task {
    std::string_view name;  // stable, dotted; what the store knows the type by
    TaskDefaults defaults = {};
};

}  // namespace stint
