// The answer of a claim.
#pragma once

#include "store/postgres/catalog.h"
#include "store/store.h"

namespace stint::store::pg {

struct Taken {
    Lease lease;
    int lane = 0;
    std::int64_t position = 0;
};

// What promote.sql answers: where it put something.
std::vector<std::pair<int, std::int64_t>> PlacesOf(const Rows& promoted);
void LearnNames(const Rows& rows, bool suspects, Catalog& catalog);
// `order`: the column of its order key.
Taken ReadLease(const Rows& rows, int i, int order, Catalog& catalog);

}  // namespace stint::store::pg
