// Flows: workflows that are functions, replayed from the steps that they have recorded.
#pragma once

#include <stint/ids.h>
#include <stint/result.h>
#include <stint/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::model {

enum class StepKind : std::uint8_t {
    kRun,      // a local effect
    kCall,     // another task
    kSleep,    // until an instant
    kSignal,   // something that is told from outside
    kValue,    // time, randomness
    kVersion,  // which way the code went
    kAny,      // which of several tasks was first
};
std::string_view StepKindName(StepKind kind);
std::optional<StepKind> StepKindNamed(std::string_view name);

enum class StepState : std::uint8_t {
    kOpen,  // begun: the task was made, the sleep or the wait for a signal has an end
    kDone,
    kFailed,    // `result` holds a StepFailure
    kTimedOut,  // no signal came
};
std::string_view StepStateName(StepState state);
std::optional<StepState> StepStateNamed(std::string_view name);

// One step, found by its name and which time the code asks for that name.
struct FlowStep {
    int no = 0;  // in the order of recording, from 1
    std::string name;
    int occurrence = 1;
    StepKind kind = StepKind::kRun;
    StepState state = StepState::kOpen;
    std::string about;           // the task's type, the signal's name
    std::string hash;            // of the input
    std::string result;          // JSON
    TaskId task;                 // of a call
    std::optional<Time> due_at;  // of a sleep its end; of a signal the end of patience
    bool late = false;  // recorded when steps that the code reaches after it were already there
    Time at{};
    std::optional<Time> ended_at;
    friend bool operator==(const FlowStep&, const FlowStep&) = default;
};
Result<void> Validate(const FlowStep& step);

struct StepFailure {
    std::string message;
    std::string klass;
    bool cancelled = false;
    friend bool operator==(const StepFailure&, const StepFailure&) = default;
};
std::string FailureText(const StepFailure& failure);  // JSON
StepFailure FailureOf(std::string_view json);

struct NewSignal {
    TaskId task;
    std::string name;
    std::string payload = "null";  // JSON
    std::string id;                // the same again is the same signal; empty = another one
    std::string actor;
};
Result<void> Validate(const NewSignal& signal);

struct FlowSignal {
    int no = 0;  // in the order of arrival, from 1
    std::string name;
    std::string id;
    std::string payload;
    Time at{};
    int step = 0;  // that took it; 0 = it waits
    friend bool operator==(const FlowSignal&, const FlowSignal&) = default;
};

struct FlowRecord {
    TaskId task;
    TenantId tenant = kDefaultTenant;
    int steps = 0;
    std::int64_t bytes = 0;  // of results
    int signals = 0;         // that ever came
    int waiting = 0;         // of them, not yet taken
    std::string awaits;      // the signal that it sleeps for; empty = none
    bool came = false;       // and it has come
    Time started_at{};
    friend bool operator==(const FlowRecord&, const FlowRecord&) = default;
};

struct FlowHistory {
    FlowRecord flow;
    std::vector<FlowStep> steps;      // by number
    std::vector<FlowSignal> signals;  // by number
    Time now{};                       // of the store
};

// For people and for tests: stint::testing::ReplayFlow reads it.
std::string HistoryText(const FlowHistory& history, std::string_view type, std::string_view input);
struct ExportedFlow {
    std::string type;
    std::string input;  // JSON
    FlowHistory history;
};
Result<ExportedFlow> ReadHistory(std::string_view json);

}  // namespace stint::model
