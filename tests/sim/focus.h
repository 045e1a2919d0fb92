// What a run is mainly about. What is rare drowns when everything happens at once: a run with a
// focus has one facility, what goes wrong with it often, and little else.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/planted_bug.h"
#include "sim/faults.h"
#include "sim/world.h"

namespace stint::sim {

enum class Focus : std::uint8_t {
    kDrawn,     // whatever the seed says: mostly a mix, now and then one of the others
    kCalls,     // of the store by hand, with tokens old and new
    kLeases,    // that run out: processes die, freeze and come back
    kAnswers,   // of the store that do not arrive
    kLinks,     // that turn bad under long work
    kFamilies,  // tasks that wait for tasks
    kEvents,
    kFlows,
    kSchedules,
    kSteps,
    kResources,
};
inline constexpr int kFocusCount = 11;
std::string_view FocusName(Focus focus);
std::optional<Focus> FocusNamed(std::string_view name);

// Which generators a run has.
struct Mix {
    bool structured = false;
    bool random_calls = false;
    bool events = false;
    bool flows = false;
    bool schedules = false;
    bool steps = false;
    bool resources = false;
};

// `exclusive`: one process that knows that it is alone.
Mix DrawMix(World& world, bool exclusive);
// The seed's choice for a run that was given none.
Focus DrawFocus(World& world);
Mix MixOf(Focus focus);
// The faults that bring its mistakes to light.
std::span<const Fault> FaultsOf(Focus focus);

// Where a planted bug shows: in the facility that it spoils.
Focus FocusOf(base::Bug bug);

}  // namespace stint::sim
