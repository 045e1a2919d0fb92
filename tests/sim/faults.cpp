#include "sim/faults.h"

#include <cmath>

namespace stint::sim {

namespace {

struct Kind {
    std::string_view name;
    double highest_rate;
};
constexpr std::array<Kind, kFaultCount> kKinds = {{
    {"error before effect", 0.10},
    {"commit unknown, done", 0.10},
    {"commit unknown, not done", 0.06},
    {"slow store", 0.04},
    {"store down", 0.15},
    {"late arrival", 0.90},
    {"hint lost", 0.90},
    {"hint doubled", 0.50},
    {"hint late", 0.50},
    {"crash", 0.60},
    {"pause", 0.50},
    {"clock step", 0.50},
    {"store's clock step", 0.15},
    {"clock drift", 1.00},
    {"drain", 0.30},
    {"bad link", 0.60},
}};

}  // namespace

std::string_view FaultName(Fault fault) {
    return kKinds.at(static_cast<std::size_t>(fault)).name;
}

Faults::Faults(World& world) : world_(world) {
    auto& random = world.random();
    for (std::size_t i = 0; i < kFaultCount; ++i) {
        bool enabled = random.Below(2) == 0;
        // Mostly gentle, sometimes brutal: the square favours low rates.
        double share = random.Fraction();
        if (enabled) rates_[i] = kKinds[i].highest_rate * share * share;
    }
    constexpr std::array<std::int64_t, 3> kSlowSeconds = {1, 12, 90};
    slow_max_ = std::chrono::seconds{kSlowSeconds[random.Below(kSlowSeconds.size())]};
}

void Faults::Favour(std::span<const Fault> favoured) {
    if (world_.Chance(0.5)) rates_.fill(0);
    for (Fault fault : favoured) {
        auto i = static_cast<std::size_t>(fault);
        rates_[i] = kKinds[i].highest_rate * (0.1 + 0.5 * world_.random().Fraction());
    }
}

bool Faults::Strikes(Fault fault) {
    double rate = rates_[static_cast<std::size_t>(fault)];
    if (healed_ || rate <= 0 || !world_.Chance(rate)) return false;
    Count(fault);
    return true;
}

void Faults::Heal() {
    healed_ = true;
    down_until_ = {};
}

bool Faults::answers_late(const Process& process) const {
    auto bad = bad_links_.find(&process);
    return !healed_ && bad != bad_links_.end() && world_.now() < bad->second.until;
}

bool Faults::loses_requests(const Process& process) const {
    return answers_late(process) && world_.now() >= bad_links_.at(&process).loses_from;
}

void Faults::StoreDownUntil(Virtual instant) {
    down_until_ = instant;
}

}  // namespace stint::sim
