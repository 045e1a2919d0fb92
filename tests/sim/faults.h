// What may go wrong in a run. Swarm testing: each seed switches a random subset on, at random
// rates, because faults that are always on hide what only some of them can show.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>

#include "sim/world.h"

namespace stint::sim {

enum class Fault : std::uint8_t {
    kErrorBefore,     // Unavailable: nothing happened
    kUnknownDone,     // CommitUnknown: it happened
    kUnknownNotDone,  // CommitUnknown: it did not
    kSlow,            // the store answers late, up to several leases
    kStoreDown,       // for everybody, for a while
    kLateArrival,     // the sender died, its request arrives all the same
    kHintLost,
    kHintDoubled,
    kHintLate,
    kCrash,
    kPause,           // frozen, then thawed with its old memories
    kClockStep,       // of a node's wall clock
    kStoreClockStep,  // leases end early, or late
    kClockDrift,
    kDrain,    // a graceful stop
    kBadLink,  // one process: answers come late, then requests are lost; others see nothing of it
};
inline constexpr int kFaultCount = 16;
std::string_view FaultName(Fault fault);

using FaultCounts = std::array<std::uint64_t, kFaultCount>;

// A link that turns bad: at first its answers come late, then most of what it is given is lost.
struct BadLink {
    Virtual loses_from{};
    Virtual until{};
};

class Faults {
public:
    // Draws the subset and the rates of this seed.
    explicit Faults(World& world);

    // True when the fault happens now; counts it. Rates are per occasion (a call, a hint, a round
    // of the nemesis).
    bool Strikes(Fault fault);
    void Count(Fault fault) { ++counts_[static_cast<std::size_t>(fault)]; }
    void Forbid(Fault fault) { rates_[static_cast<std::size_t>(fault)] = 0; }
    // A run about these: they strike often, and in half of such runs nothing else does.
    void Favour(std::span<const Fault> favoured);
    void Heal();  // from now on nothing goes wrong
    bool healed() const { return healed_; }
    void StoreDownUntil(Virtual instant);
    bool store_down() const { return !healed_ && world_.now() < down_until_; }
    void Spoil(const Process& process, BadLink link) { bad_links_[&process] = link; }
    bool answers_late(const Process& process) const;
    bool loses_requests(const Process& process) const;
    bool on(Fault fault) const { return rates_[static_cast<std::size_t>(fault)] > 0; }

    const FaultCounts& counts() const { return counts_; }
    Virtual slow_max() const { return slow_max_; }

private:
    World& world_;
    std::array<double, kFaultCount> rates_{};
    FaultCounts counts_{};
    Virtual slow_max_{};
    Virtual down_until_{};
    std::map<const Process*, BadLink> bad_links_;
    bool healed_ = false;
};

}  // namespace stint::sim
