// Parameters of the hot statements: used by the store, and by the tests that run the very same
// statements step by step.
#pragma once

#include "base/random.h"
#include "store/postgres/db.h"
#include "store/postgres/marks.h"

namespace stint::store::pg {

// $1 to $4 of every statement with conditions: who asks.
Params ClaimerParams(const ClaimRequest& request);
Params PromoteParams(const ClaimRequest& request, int limit);
Params ClaimParams(
    const ClaimRequest& request, int limit, const Marks::Snapshot& marks, base::Random& random
);

}  // namespace stint::store::pg
