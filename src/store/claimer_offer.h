// What a claim's request and a settlement say about resources.
#pragma once

#include "model/claim_plan.h"
#include "store/resource_book.h"
#include "store/store.h"

namespace stint::store {

// What the claimer has; not yet what there is.
Offer OfferOf(const ClaimRequest& request, Time now);

// Whether the claimer itself has asked for a plan. Room for resources concerns only what needs
// some, which is planned anyway.
inline bool HasRoomLimits(const ClaimRequest& request) {
    return !request.queue_room.empty() || !request.type_room.empty();
}

Result<void> CheckResources(const Settlement& settlement);
BreakerEvidence EvidenceOf(
    const Settlement& settlement, const std::string& type, NodeId node, Time now
);
ResourceBook::Outcome OutcomeOf(AttemptEnd end);

}  // namespace stint::store
