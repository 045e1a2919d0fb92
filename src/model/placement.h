// Needs, labels and order keys: what is accepted, and the one way in which each is written.
#pragma once

#include <stint/result.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "model/resource.h"

namespace stint::model {

// Names of resources are case-insensitive: in lower case.
std::string ResourceName(std::string_view name);

// "queue:" or "type:", if the name begins so: those resources limit queues and types, and each task
// needs one unit of its own. Empty for the others.
std::string_view ReservedPrefix(std::string_view name);

// Of the patterns among the keys the one with the longest beginning of `name`; empty = none. Queues
// and types are matched only by what names their whole prefix: "q*" is of no queue.
template <class Resources>
std::string PatternFor(const Resources& resources, std::string_view name) {
    // No pattern is shorter than one byte and its star.
    const std::size_t least = std::max<std::size_t>(ReservedPrefix(name).size(), 1);
    for (std::size_t length = name.size(); length >= least; --length) {
        std::string pattern = std::string(name.substr(0, length)) + '*';
        if (resources.contains(pattern)) return pattern;
    }
    return {};
}

// By name, in lower case, each once; what was given twice needs the sum.
Needs Canonical(Needs needs);
std::vector<std::string> CanonicalLabels(std::vector<std::string> labels);
// What `more` asks for on top: of each resource the larger number.
Needs Together(const Needs& needs, const Needs& more);

// The message names the field, the value and the cure.
Result<void> ValidateNeeds(std::string_view field, const Needs& needs);
Result<void> ValidateLabels(std::string_view field, const std::vector<std::string>& labels);
Result<void> ValidateResourceName(std::string_view field, std::string_view name, bool pattern);

// Needs and labels on one line; empty for none. Equal texts, equal placements: the order key is not
// part of it, since it is a matter of one task and not of a line of them.
std::string PlacementText(const Placement& placement);
Placement PlacementOf(std::string_view text);

}  // namespace stint::model
