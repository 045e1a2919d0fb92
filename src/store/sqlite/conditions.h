// Why a claim may skip a task, each reason in one place. The claim asks them sieve by sieve, of its
// session, of the lanes, of the tasks at their heads; explain asks them all of one task. So the two
// cannot disagree.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

#include "model/condition.h"
#include "store/store.h"

namespace stint::store::lite {

// Who asks.
struct Claimer {
    Claimer(const ClaimRequest& request, bool is_live);

    bool live;      // its session is
    bool any_type;  // the general question, of no worker in particular
    bool suspects;  // it is idle and takes a suspect
    bool named;     // it has a session at all
    std::unordered_set<std::string_view> queues;  // of the request; empty = every queue
    std::unordered_set<std::string_view> types;
};

struct LaneFacts {
    std::string_view queue;
    std::string_view type;
    bool paused = false;
};

struct TaskFacts {
    State state = State::kOpen;
    Time due_at{};
    std::optional<Time> start_by;
    bool cancel_requested = false;
    bool suspect = false;
    bool behind = false;
};

// kPlan: of what the claim's plan decides, see resources.cpp.
enum class Sieve : std::uint8_t { kSession, kLane, kTask, kPlan };
Sieve SieveOf(Condition condition);

struct Situation {
    const Claimer& claimer;
    Time now{};
    LaneFacts lane{};  // from Sieve::kLane on
    TaskFacts task{};  // at Sieve::kTask
};
bool Applies(Condition condition, const Situation& situation);

// Whether any condition of this sieve applies.
bool Skips(Sieve sieve, const Situation& situation);

}  // namespace stint::store::lite
