#include "store/postgres/marks.h"

#include <algorithm>
#include <utility>

namespace stint::store::pg {

namespace {

// Looking everywhere is cheap below this; above, it may take a twentieth of the time.
constexpr auto kCheap = std::chrono::milliseconds{5};
constexpr int kShare = 20;

}  // namespace

Marks::Snapshot Marks::Current(base::Instant now) {
    std::lock_guard guard(mutex_);
    if (now - last_rescan_ >= rescan_every_) return {};
    Snapshot snapshot;
    for (const auto& [lane, position] : marks_) {
        snapshot.lanes.push_back(lane);
        snapshot.positions.push_back(position);
    }
    return snapshot;
}

bool Marks::Advance(int lane, std::int64_t position) {
    std::lock_guard guard(mutex_);
    std::int64_t& mark = marks_[lane];
    return std::exchange(mark, std::max(mark, position)) < position;
}

void Marks::Lower(int lane, std::int64_t position) {
    std::lock_guard guard(mutex_);
    auto mark = marks_.find(lane);
    if (mark == marks_.end() || mark->second < position) return;
    mark->second = position - 1;
}

bool Marks::RescanNow(base::Instant now) {
    std::lock_guard guard(mutex_);
    if (marks_.empty()) return false;
    return last_cost_ < kCheap || now - last_rescan_ >= last_cost_ * kShare;
}

void Marks::Rescanned(base::Instant begun, base::Instant ended, bool to_the_end) {
    std::lock_guard guard(mutex_);
    last_rescan_ = begun;
    last_cost_ = ended - begun;
    // What lies below was just looked at; the claim that did so sets new marks.
    if (to_the_end) marks_.clear();
}

}  // namespace stint::store::pg
