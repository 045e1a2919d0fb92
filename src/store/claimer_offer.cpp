#include "store/claimer_offer.h"

#include "model/placement.h"

namespace stint::store {

Offer OfferOf(const ClaimRequest& request, Time now) {
    Offer offer;
    offer.now = now;
    offer.labels.insert(request.labels.begin(), request.labels.end());
    for (const std::string& name : request.withheld) offer.withheld.insert(ResourceName(name));
    offer.queue_room = request.queue_room;
    offer.type_room = request.type_room;
    for (const auto& [name, left] : request.resource_room) {
        offer.resource_room.emplace(ResourceName(name), left);
    }
    // What is limited here is counted by tasks, not by seats.
    const bool limited = HasRoomLimits(request) || !request.resource_room.empty();
    if (!limited && !request.suspect) offer.at_once = request.at_once;
    return offer;
}

Result<void> CheckResources(const Settlement& settlement) {
    if (settlement.needs) {
        if (auto ok = ValidateNeeds("needs", *settlement.needs); !ok) return ok;
    }
    if (settlement.unavailable.empty()) return {};
    return ValidateResourceName("unavailable", settlement.unavailable, false);
}

BreakerEvidence EvidenceOf(
    const Settlement& settlement, const std::string& type, NodeId node, Time now
) {
    std::string message = settlement.error ? settlement.error->message : settlement.reason;
    return {.at = now, .task = settlement.task, .type = type, .node = node, .message = message};
}

// Whether an attempt that ended so has shown that what it held works.
ResourceBook::Outcome OutcomeOf(AttemptEnd end) {
    switch (end) {
        case AttemptEnd::kComplete:
        case AttemptEnd::kFailed:
        case AttemptEnd::kBlocked:
        case AttemptEnd::kBackground:
            return ResourceBook::Outcome::kWorked;
        default:
            return ResourceBook::Outcome::kUnknown;
    }
}

}  // namespace stint::store
