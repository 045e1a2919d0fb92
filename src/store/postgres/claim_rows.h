// The answer of a claim.
#pragma once

#include "base/random.h"
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

// The tokens that a claim hands out, in order: one key for so many tasks, a secret for each.
struct LeaseTokens {
    LeaseTokens(int count, base::Random& random);
    LeaseToken Of(std::int64_t number) const;  // 1 is the first

    std::vector<std::int64_t> keys, secrets;
};

inline constexpr int kTasksPerLease = 256;  // their arrays stay within a page

// The answer: a row of what is said once, and one for each task.
void LearnNames(const Rows& rows, bool suspects, Catalog& catalog);
// Most of an answer is of few lanes: a placement is taken apart once as long as the lane is the
// same.
struct LastPlacement {
    int lane = 0;
    Placement placement;
};
Taken ReadLease(
    const Rows& rows, int i, const LeaseTokens& tokens, Catalog& catalog, LastPlacement& last
);

}  // namespace stint::store::pg
