// How a resource behaves, whichever store keeps it: its settings, its rate, its breaker.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "model/claim_plan.h"
#include "model/placement.h"
#include "store/resources.h"

namespace stint::store {

// What a resource remembers beside who holds it.
struct ResourceState {
    int failures = 0;                  // reports in a row
    bool opened = false;               // tasks are kept away until one has tried it
    Duration open_for{};               // the last time
    std::optional<Time> closed_until;  // nothing starts before
    TaskId trial;                      // the task that tries it, as long as it holds it
    std::optional<double> tokens;      // none = as many as the rate allows at once
    std::optional<Time> refilled_at;
    std::vector<BreakerEvidence> evidence;  // newest first
    // So many units were held when the capacity was set below that. No more may be.
    int over = 0;

    friend bool operator==(const ResourceState&, const ResourceState&);
};

struct Resource {
    ResourceSettings settings;
    std::string pattern;  // whose settings it has; empty = its own
    ResourceState state;
};

// The settings after the change. An Error names the field, the value and the cure.
Result<ResourceSettings> Changed(ResourceSettings settings, const ResourceChange& change);

// Whether an operator has set it. The others have what their patterns say.
inline bool HasOwnSettings(const ResourceSettings& settings) {
    return settings.changed_at.has_value();
}
// It is there because a task took it by a pattern, or said that it does not work: such names come
// and go.
inline bool IsMade(std::string_view name, const ResourceSettings& settings) {
    return !HasOwnSettings(settings) && !name.ends_with('*');
}

using model::PatternFor;

// The resources that stand for a queue and a type: whoever limits one, limits how many of its tasks
// run at once.
std::string QueueResource(std::string_view queue);
std::string TypeResource(std::string_view type);
bool IsImplicit(std::string_view resource);

// Tokens that are there now; none = it has no rate.
std::optional<double> TokensAt(
    const ResourceSettings& settings, const ResourceState& state, Time now
);
// `held` units are in use.
Supply SupplyOf(const ResourceSettings& settings, const ResourceState& state, int held, Time now);
BreakerState BreakerOf(const ResourceState& state, Time now);

// A task starts with it, as the supply allowed.
void Start(const ResourceSettings& settings, ResourceState& state, TaskId task, Time now);
// A task has let go of it. `worked`: its attempt came to an end of its own without a complaint.
void End(ResourceState& state, TaskId task, bool worked);
// A task says that it does not work; `closed_for` where the resource itself said for how long.
void Report(
    const ResourceSettings& settings,
    ResourceState& state,
    BreakerEvidence evidence,
    Duration closed_for
);
void Reopen(ResourceState& state);
void CloseFor(ResourceState& state, Duration length, BreakerEvidence evidence);
// An operator's word.
BreakerEvidence OperatorEvidence(std::string_view reason, std::string_view actor, Time now);
// Nothing would be lost if it were forgotten; but for what was said of it long ago.
bool IsIdle(const ResourceSettings& settings, const ResourceState& state, Time now);

// As JSON.
std::string SettingsText(const ResourceSettings& settings);  // without the name
ResourceSettings SettingsOf(std::string_view name, std::string_view text);
std::string StateText(const ResourceState& state);  // empty for one that remembers nothing
ResourceState StateOf(std::string_view text);
std::string LeadsText(const Leads& leads);
Leads LeadsOf(std::string_view text);
std::string OrderText(const QueueOrder& order);  // without the queue
QueueOrder OrderOf(std::string_view queue, std::string_view text);

}  // namespace stint::store
