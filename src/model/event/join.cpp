#include "model/event/join.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/planted_bug.h"

namespace stint::model {

namespace {

constexpr std::array kStates = {
    std::pair{JoinState::kOpen, std::string_view{"open"}},
    std::pair{JoinState::kFired, std::string_view{"fired"}},
    std::pair{JoinState::kExpired, std::string_view{"expired"}},
    std::pair{JoinState::kRefused, std::string_view{"refused"}},
};

using base::Bug;
using base::Planted;

JoinInstance Begin(const JoinArrival& arrival, int generation, Time now) {
    JoinInstance instance;
    instance.key = arrival.key;
    instance.generation = generation;
    instance.created_at = now;
    instance.expires_at = now + arrival.ttl;
    return instance;
}

std::uint64_t Bit(int member) {
    return std::uint64_t{1} << member;
}

// As the join has its types now.
void Renumber(JoinInstance& round, const std::vector<std::string>& types) {
    auto place = [&](const JoinPart& part) {
        return std::find(types.begin(), types.end(), part.type);
    };
    std::erase_if(round.parts, [&](const JoinPart& part) { return place(part) == types.end(); });
    round.mask = 0;
    for (JoinPart& part : round.parts) {
        part.member = static_cast<int>(place(part) - types.begin());
        round.mask |= Bit(part.member);
    }
}

std::uint64_t Full(const JoinArrival& arrival) {
    return (std::uint64_t{1} << arrival.types.size()) - 1;
}

}  // namespace

std::string_view JoinStateName(JoinState state) {
    return kStates.at(static_cast<std::size_t>(state)).second;
}

std::optional<JoinState> JoinStateNamed(std::string_view name) {
    for (const auto& [state, text] : kStates) {
        if (text == name) return state;
    }
    return std::nullopt;
}

void Expire(JoinInstance& instance, Time now) {
    instance.state = JoinState::kExpired;
    instance.ended_at = now;
    std::string there;
    for (const JoinPart& part : instance.parts) {
        there += (there.empty() ? "" : ", ") + part.type;
    }
    instance.message =
        "its time to live was over before all members were complete; only these were: " + there;
}

JoinStep Arrive(const std::optional<JoinInstance>& newest, const JoinArrival& arrival, Time now) {
    JoinStep step;
    JoinInstance round;
    if (!newest) {
        round = Begin(arrival, 1, now);
    } else if (newest->state == JoinState::kOpen && newest->expires_at > now) {
        round = *newest;
        Renumber(round, arrival.types);
    } else if (newest->state == JoinState::kOpen) {
        Expire(step.changed.emplace_back(*newest), now);
        round = Begin(arrival, newest->generation + 1, now);
    } else if (arrival.policy == JoinPolicy::kOnce && newest->state != JoinState::kExpired) {
        step.kind = JoinStep::Kind::kAbsorbed;
        return step;
    } else if (Planted(Bug::kJoinWithoutGeneration)) {
        round = *newest;
        round.state = JoinState::kOpen;
    } else {
        round = Begin(arrival, newest->generation + 1, now);
    }

    round.once = arrival.policy == JoinPolicy::kOnce;
    const std::uint64_t bit = Bit(arrival.part.member);
    if ((round.mask & bit) != 0 && !Planted(Bug::kJoinWithoutGeneration)) {
        if (arrival.policy != JoinPolicy::kLatest) {
            // All that were missing may have been taken out of the join.
            if (round.mask == Full(arrival)) {
                step.kind = JoinStep::Kind::kFull;
                step.changed.push_back(std::move(round));
                return step;
            }
            step.kind = JoinStep::Kind::kAbsorbed;
            return step;
        }
        step.kind = JoinStep::Kind::kReplaced;
    }
    std::erase_if(round.parts, [&](const JoinPart& part) {
        return part.member == arrival.part.member;
    });
    round.parts.push_back(arrival.part);
    round.mask = Planted(Bug::kJoinMaskOverwritten) ? bit : round.mask | bit;
    if (round.mask == Full(arrival)) step.kind = JoinStep::Kind::kFull;
    step.changed.push_back(std::move(round));
    return step;
}

base::Json FieldsOf(const JoinInstance& instance) {
    base::Json outputs = base::Json::object();
    base::Json tasks = base::Json::object();
    for (const JoinPart& part : instance.parts) {
        outputs[part.type] = base::ReadJson(part.output.empty() ? "null" : part.output);
        tasks[part.type] = part.task.ToString();
    }
    return {
        {"key", instance.key.key},
        {"generation", instance.generation},
        {"outputs", std::move(outputs)},
        {"tasks", std::move(tasks)}};
}

}  // namespace stint::model
