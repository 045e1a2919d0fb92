// What each simulated task will do when it runs. The plan is written down by whoever submits, under
// the marker that the task's input carries: {"n":17}.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/registry.h"
#include "sim/setting.h"

namespace stint::sim {

enum class Behaviour : std::uint8_t {
    kSucceed,
    kFailRetryable,
    kFailFinally,
    kThrow,  // something that is no I/O error
    kThrowIo,
    kThrowOdd,  // not even a std::exception
    kSnooze,
    kBackground,
    kCrashProcess,
    kBlock,  // makes subtasks and waits for them, once
};
inline constexpr int kBehaviourCount = 10;

struct Plan {
    Behaviour behaviour = Behaviour::kSucceed;  // before claim `until`; from then on it succeeds
    int until = 2;
    Duration work{};            // how long it takes
    bool ignores_stop = false;  // goes on for a while after it was asked to stop
};

// A task that was left to the outside, and what the outside was given to finish it.
struct Handed {
    TaskId task;
    LeaseToken token;
};

class PlanBook {
public:
    std::int64_t Add(Plan plan);
    Plan Of(std::string_view input) const;
    static std::string Input(std::int64_t marker);
    // -1 when the input carries none.
    static std::int64_t Marker(std::string_view input);

    std::deque<Handed> handed;  // to the outside world

private:
    std::vector<Plan> plans_;
};

inline constexpr std::string_view kWork = "sim.work";
inline constexpr std::string_view kBrisk = "sim.brisk";  // with a timeout of its own
inline constexpr std::string_view kTx = "sim.tx";        // completes inside a transaction
inline constexpr std::string_view kRaw = "sim.raw";      // also claimed by generator B by hand
inline constexpr std::string_view kLeft = "sim.left";    // members of a join
inline constexpr std::string_view kRight = "sim.right";
inline constexpr std::string_view kJoined = "sim.joined";  // what it creates

// The handlers of one process. `store` is that process's way to the store.
void FillRegistry(
    engine::Registry& registry, Setting& setting, PlanBook& plans, store::Store& store
);

}  // namespace stint::sim
