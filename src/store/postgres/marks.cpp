#include "store/postgres/marks.h"

#include <algorithm>
#include <utility>

namespace stint::store::pg {

namespace {

// A look is cheap below this; above, it may take a part of the time.
constexpr auto kCheap = std::chrono::milliseconds{5};
constexpr int kNearShare = 20;
constexpr int kEverywhereShare = 50;
// However cheap it is, a claim that found something does not make the next one do it more often.
constexpr auto kSoon = std::chrono::milliseconds{50};
// How old a moment is: one to two of these. Few commits take longer.
constexpr auto kMoment = std::chrono::milliseconds{250};
constexpr std::size_t kLoweredKept = 256;

}  // namespace

Marks::Snapshot Marks::ForHints() {
    std::lock_guard guard(mutex_);
    return everywhere_.Cheap() ? Everywhere() : AtMarks();
}

bool Marks::Look::Cheap() const {
    return cost < kCheap;
}

bool Marks::Look::Affordable(base::Instant now, int share) const {
    return Cheap() || now - begun >= cost * share;
}

// True: a moment has passed.
bool Marks::Remember(base::Instant now) {
    if (now - remembered_ < kMoment) return false;
    moment_ago_ = std::exchange(before_, marks_);
    remembered_ = now;
    return true;
}

bool Marks::Due(base::Instant now) const {
    if (must_see_ > seen_) return true;
    return now - everywhere_.begun >= rescan_every_ &&
           everywhere_.Affordable(now, kEverywhereShare);
}

Marks::Snapshot Marks::Everywhere() const {
    return {.depth = Depth::kEverywhere, .lowered = lowerings_};
}

Marks::Snapshot Marks::AtMarks() const {
    Snapshot snapshot = Everywhere();
    if (marks_.empty()) return snapshot;
    snapshot.depth = Depth::kMarks;
    for (const auto& [lane, position] : marks_) {
        snapshot.lanes.push_back(lane);
        snapshot.positions.push_back(position);
    }
    return snapshot;
}

// Nothing, if it may not be done now or would not be different.
std::optional<Marks::Snapshot> Marks::MomentAgo(base::Instant now) const {
    if (!near_.Affordable(now, kNearShare)) return {};
    Snapshot snapshot = Everywhere();
    snapshot.depth = Depth::kMomentAgo;
    for (const auto& [lane, position] : moment_ago_) {
        // A look everywhere may have gone back further since.
        auto mark = marks_.find(lane);
        if (mark == marks_.end()) continue;
        snapshot.lanes.push_back(lane);
        snapshot.positions.push_back(std::min(position, mark->second));
    }
    if (snapshot.lanes.empty()) return {};
    return snapshot;
}

Marks::Snapshot Marks::ForClaim(base::Instant now) const {
    if (Due(now)) return Everywhere();
    if (owed_ && everywhere_.Cheap() && now - everywhere_.begun >= kSoon) return Everywhere();
    if (owed_ && now - near_.begun >= kSoon) {
        if (auto look = MomentAgo(now)) return *look;
    }
    return AtMarks();
}

Marks::Snapshot Marks::ForIdle(base::Instant now) const {
    if (Due(now) || everywhere_.Cheap()) return Everywhere();
    if (auto look = MomentAgo(now)) return *look;
    return AtMarks();
}

Marks::Snapshot Marks::Current(base::Instant now) {
    std::lock_guard guard(mutex_);
    const bool asks = Remember(now);
    Snapshot look = ForClaim(now);
    if (asks) look.question = ticks_.Ask(marks_);
    return look;
}

Marks::Snapshot Marks::Idle(base::Instant now) {
    std::lock_guard guard(mutex_);
    const bool asks = Remember(now) && ticks_.Wants(marks_);
    Snapshot look = ForIdle(now);
    if (asks) look.question = ticks_.Ask(marks_);
    return look;
}

void Marks::UnderWay(const Snapshot& look, const InProgress& seen) {
    std::lock_guard guard(mutex_);
    ticks_.Answer(look.question, seen);
}

std::optional<LatePiece> Marks::LookForLate(base::Instant now, bool at_leisure) {
    std::lock_guard guard(mutex_);
    if (ticks_.owed() && late_.MayBegin(now, at_leisure)) {
        late_.Begin(now, ticks_.TakeOwed(), marks_);
    }
    if (!late_.MayGoOn(now, at_leisure)) return {};
    return late_.Next(now);
}

void Marks::FoundLate(
    const LatePiece& piece,
    base::Instant::duration cost,
    std::span<const std::pair<int, std::int64_t>> places
) {
    {
        std::lock_guard guard(mutex_);
        late_.Passed(piece, cost);
    }
    Lower(places);
}

void Marks::FailedLate(base::Instant::duration cost) {
    std::lock_guard guard(mutex_);
    late_.Failed(cost);
}

bool Marks::LateGoesOn(base::Instant now) {
    std::lock_guard guard(mutex_);
    return late_.MayGoOn(now, true);
}

std::optional<Marks::Snapshot> Marks::Deeper(base::Instant now, Depth from) {
    std::lock_guard guard(mutex_);
    if (from == Depth::kEverywhere) return {};
    if (everywhere_.Affordable(now, kEverywhereShare)) return Everywhere();
    owed_ = true;
    return from == Depth::kMarks ? MomentAgo(now) : std::nullopt;
}

std::optional<Marks::Snapshot> Marks::DeeperUnlessJustDone(base::Instant now, Depth from) {
    {
        std::lock_guard guard(mutex_);
        bool just_done = now - std::max(everywhere_.begun, near_.begun) < kSoon;
        owed_ = owed_ || just_done;
        if (just_done) return {};
    }
    return Deeper(now, from);
}

void Marks::Owe() {
    std::lock_guard guard(mutex_);
    owed_ = true;
}

void Marks::Looked(const Snapshot& look, base::Instant begun, base::Instant ended, bool more) {
    std::lock_guard guard(mutex_);
    if (look.depth == Depth::kMarks) return;
    owed_ = false;
    Look& kind = look.everywhere() ? everywhere_ : near_;
    kind = Look{begun, ended - begun};
    if (look.everywhere()) seen_ = std::max(seen_, look.lowered);
    if (!more) return;
    if (look.everywhere()) marks_.clear();
    for (std::size_t i = 0; i < look.lanes.size(); ++i) {
        auto mark = marks_.find(look.lanes[i]);
        // Another may have gone back further meanwhile.
        if (mark != marks_.end()) mark->second = std::min(mark->second, look.positions[i]);
    }
}

void Marks::SetHeads(std::span<const std::pair<int, std::int64_t>> heads) {
    std::lock_guard guard(mutex_);
    for (const auto& [lane, head] : heads) {
        LowerOne(lane, head);
        std::int64_t& mark = marks_[lane];
        mark = std::max(mark, head - 1);
    }
}

bool Marks::Advance(int lane, std::int64_t position) {
    std::lock_guard guard(mutex_);
    std::int64_t& mark = marks_[lane];
    return std::exchange(mark, std::max(mark, position)) < position;
}

void Marks::LowerOne(int lane, std::int64_t position) {
    for (Positions* positions : {&marks_, &before_, &moment_ago_}) {
        auto mark = positions->find(lane);
        if (mark != positions->end() && mark->second >= position) mark->second = position - 1;
    }
    ticks_.Lower(lane, position);
}

void Marks::Lower(std::span<const std::pair<int, std::int64_t>> places) {
    std::unordered_map<int, std::int64_t> lowest;
    for (const auto& [lane, position] : places) {
        auto [known, is_new] = lowest.try_emplace(lane, position);
        known->second = std::min(known->second, position);
    }
    std::lock_guard guard(mutex_);
    for (const auto& [lane, position] : lowest) {
        LowerOne(lane, position);
        ++lowerings_;
        lowered_.emplace_back(lane, position);
        if (lowered_.size() > kLoweredKept) lowered_.pop_front();
    }
}

void Marks::LowerAgain(const Snapshot& look) {
    std::lock_guard guard(mutex_);
    std::uint64_t since = lowerings_ - look.lowered;
    if (since > lowered_.size()) {
        must_see_ = lowerings_;  // too many to know them all
        since = lowered_.size();
    }
    for (std::size_t i = lowered_.size() - since; i < lowered_.size(); ++i) {
        LowerOne(lowered_[i].first, lowered_[i].second);
    }
}

}  // namespace stint::store::pg
