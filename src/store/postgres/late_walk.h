// A look at everything that was passed over between some tick and now, in pieces: nobody knows how
// much of it is gone and in the way, and claims do not wait for more than a piece.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "store/postgres/ticks.h"

namespace stint::store::pg {

// Above low, up to high; a position of the vectors for each lane.
struct LatePiece {
    std::vector<int> lanes = {};
    std::vector<std::int64_t> low = {}, high = {};
    std::int64_t end = 0;
};

class LateWalk {
public:
    // Whether one may begin, or go on. At leisure: a claim found nothing.
    bool MayBegin(base::Instant now, bool at_leisure) const;
    bool MayGoOn(base::Instant now, bool at_leisure) const;
    void Begin(base::Instant now, Positions from, Positions upto);
    // Nothing: the end is reached, or somebody is at a piece.
    std::optional<LatePiece> Next(base::Instant now);
    void Passed(const LatePiece& piece, base::Instant::duration cost);
    // The same piece again, later, and smaller.
    void Failed(base::Instant::duration cost);

private:
    struct Way {
        Positions from, upto;
        std::int64_t at = 0;
        std::int64_t Low(int lane) const;
    };

    std::optional<Way> way_;
    bool busy_ = false, failed_ = false;
    std::int64_t places_ = 100'000;  // of a piece
    base::Instant begun_{}, piece_begun_{};
    base::Instant::duration cost_{0}, piece_cost_{0};  // of the last walk, or of this one so far
};

}  // namespace stint::store::pg
