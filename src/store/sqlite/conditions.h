// Why a claim may skip a task, each reason in one place. The claim asks them stage by stage, of its
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
};

enum class Stage : std::uint8_t { kSession, kLane, kTask };
Stage StageOf(Condition condition);

struct Situation {
    const Claimer& claimer;
    Time now{};
    LaneFacts lane{};  // from Stage::kLane on
    TaskFacts task{};  // at Stage::kTask
};
bool Applies(Condition condition, const Situation& situation);

// Whether any condition of this stage applies.
bool Skips(Stage stage, const Situation& situation);

}  // namespace stint::store::lite
