// Parameters of the hot statements: used by the store, and by the tests that run the very same
// statements step by step.
#pragma once

#include "store/postgres/claim_rows.h"
#include "store/postgres/db.h"
#include "store/postgres/marks.h"

namespace stint::store::pg {

// $1 to $4 of every statement with conditions: who asks.
Params ClaimerParams(const ClaimRequest& request);
Params PromoteParams(const ClaimRequest& request, int limit);
// Lanes and positions, as two arrays.
void AddMarks(Params& params, const Marks::Snapshot& marks);
// `ahead`: what other services would find until then is asked too; zero = not.
Params IdleParams(const ClaimRequest& request, const Marks::Snapshot& marks, Duration ahead);
// claim.sql has marks behind these.
Params ClaimParams(const ClaimRequest& request, int limit, const LeaseTokens& tokens);
// Of claim_lane.sql.
Params LaneParams(
    const ClaimRequest& request,
    int limit,
    const LeaseTokens& tokens,
    int lane,
    std::int64_t mark,
    const std::vector<std::int64_t>& policies,
    TenantId tenant
);

}  // namespace stint::store::pg
