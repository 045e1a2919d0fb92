// What a completed member does to its join. Pure: the store keeps the instances.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/event/workflow.h"

namespace stint::model {

struct JoinKey {
    TenantId tenant = kDefaultTenant;
    std::string workflow;
    std::string join;
    std::string key;
    friend auto operator<=>(const JoinKey&, const JoinKey&) = default;
};

// A member that is complete.
struct JoinPart {
    int member = 0;  // its place among the join's types, as they were when it was last looked at
    std::string type;
    TaskId task;
    std::string output;  // JSON
    Time completed_at{};
    friend bool operator==(const JoinPart&, const JoinPart&) = default;
};

enum class JoinState : std::uint8_t {
    kOpen,     // members are missing
    kFired,    // its task was created
    kExpired,  // its time was over before all members were there
    kRefused,  // all were there, and its task cannot be submitted: see the message
};
std::string_view JoinStateName(JoinState state);
std::optional<JoinState> JoinStateNamed(std::string_view name);

// One round of a join for one key.
struct JoinInstance {
    JoinKey key;
    int generation = 1;
    std::uint64_t mask = 0;  // a bit for each member that is complete
    JoinState state = JoinState::kOpen;
    TaskId task;          // that it created
    std::string message;  // why expired or refused
    Time created_at{};
    Time expires_at{};
    std::optional<Time> ended_at;
    std::vector<JoinPart> parts;
    std::int64_t no = 0;  // the store's number of the round; later ones have higher numbers
    bool once = false;    // when it has fired, its key is remembered for good
};

struct JoinArrival {
    JoinKey key;
    std::vector<std::string> types;  // of the members
    JoinPolicy policy = JoinPolicy::kEach;
    Duration ttl{};
    TaskTemplate submit;
    JoinPart part;
};

struct JoinStep {
    enum class Kind : std::uint8_t {
        kCounted,   // one more member is there
        kReplaced,  // it was there; the later one counts
        kAbsorbed,  // nothing changes
        kFull,      // the task is to be created now
    };
    Kind kind = Kind::kCounted;
    std::vector<JoinInstance> changed;  // the last one is the round that it belongs to
};
// `newest`: the latest round of this key, if there is one. Members are known by their types: when
// the join's types were changed since, those that it still has count, and the others are dropped.
JoinStep Arrive(const std::optional<JoinInstance>& newest, const JoinArrival& arrival, Time now);

void Expire(JoinInstance& instance, Time now);

// What the task is made from: key, generation, outputs and tasks by type.
base::Json FieldsOf(const JoinInstance& instance);

}  // namespace stint::model
