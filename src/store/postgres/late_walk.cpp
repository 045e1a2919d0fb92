#include "store/postgres/late_walk.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace stint::store::pg {

namespace {

// However busy the lanes are, what came late is found after this and the length of a walk.
constexpr auto kLate = std::chrono::seconds{5};
constexpr auto kSoon = std::chrono::milliseconds{50};
// A part of the time.
constexpr int kShare = 5;
// How long a piece may take: below, the next is larger; above, smaller.
constexpr auto kShort = std::chrono::milliseconds{10};
constexpr auto kLong = std::chrono::milliseconds{50};
// However short the last ones were, the next may be full of what is gone: a second at most.
constexpr std::int64_t kLeast = 1'000, kMost = 1'000'000;

}  // namespace

bool LateWalk::MayBegin(base::Instant now, bool at_leisure) const {
    base::Instant::duration pause = at_leisure ? base::Instant::duration(kSoon) : kLate;
    return !way_ && now - begun_ >= std::max(pause, kShare * cost_);
}

bool LateWalk::MayGoOn(base::Instant now, bool at_leisure) const {
    if (!way_ || busy_) return false;
    return (at_leisure && !failed_) || now - piece_begun_ >= kShare * piece_cost_;
}

void LateWalk::Begin(base::Instant now, Positions from, Positions upto) {
    begun_ = now;
    cost_ = piece_cost_ = {};
    way_ = Way{std::move(from), std::move(upto)};
}

std::int64_t LateWalk::Way::Low(int lane) const {
    auto known = from.find(lane);
    return std::max(at, known == from.end() ? 0 : known->second);
}

std::optional<LatePiece> LateWalk::Next(base::Instant now) {
    if (!way_ || busy_) return {};
    constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
    std::int64_t first = kEnd;
    for (const auto& [lane, upto] : way_->upto) {
        if (way_->Low(lane) < upto) first = std::min(first, way_->Low(lane));
    }
    LatePiece piece{.end = first + std::min(places_, kEnd - first)};
    for (const auto& [lane, upto] : way_->upto) {
        if (way_->Low(lane) >= std::min(upto, piece.end)) continue;
        piece.lanes.push_back(lane);
        piece.low.push_back(way_->Low(lane));
        piece.high.push_back(std::min(upto, piece.end));
    }
    if (piece.lanes.empty()) {
        way_.reset();
        return {};
    }
    busy_ = true;
    piece_begun_ = now;
    return piece;
}

void LateWalk::Passed(const LatePiece& piece, base::Instant::duration cost) {
    busy_ = failed_ = false;
    cost_ += cost;
    piece_cost_ = cost;
    if (cost < kShort) places_ = std::min(4 * places_, kMost);
    if (cost > kLong) places_ = std::max(places_ / 2, kLeast);
    if (way_) way_->at = piece.end;
}

void LateWalk::Failed(base::Instant::duration cost) {
    busy_ = false;
    failed_ = true;
    cost_ += cost;
    piece_cost_ = cost;
    places_ = std::max(places_ / 4, kLeast);
}

}  // namespace stint::store::pg
