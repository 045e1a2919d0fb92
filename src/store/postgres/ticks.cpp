#include "store/postgres/ticks.h"

#include <algorithm>
#include <utility>

namespace stint::store::pg {

namespace {

// Of more, every second one of the older half is forgotten: a look may always begin deeper.
constexpr std::size_t kKept = 32;
// Savepoints have numbers too, and one transaction may have a million of them.
constexpr std::uint64_t kMostUnlisted = 1'000;

}  // namespace

std::uint64_t Ticks::Ask(const Positions& marks) {
    asked_ = Tick{.number = ++last_, .positions = marks};
    return last_;
}

void Ticks::Owe(std::uint64_t tick) {
    owed_ = std::min(owed_.value_or(tick), tick);
}

std::uint64_t Ticks::LastBefore(std::uint64_t transaction) const {
    std::uint64_t found = 0;
    for (const Tick& tick : ticks_) {
        if (tick.own < transaction) found = tick.number;
    }
    return found;
}

void Ticks::Watch(const InProgress& seen) {
    std::map<std::uint64_t, std::uint64_t> running;
    auto add = [&](std::uint64_t transaction) {
        auto known = watched_.find(transaction);
        bool is_known = known != watched_.end();
        running.emplace(transaction, is_known ? known->second : LastBefore(transaction));
    };
    for (std::uint64_t transaction : seen.running) add(transaction);
    for (std::uint64_t transaction = seen.next; transaction < seen.own; ++transaction) {
        add(transaction);
    }
    for (const auto& [transaction, before] : watched_) {
        if (running.contains(transaction)) continue;
        if (transaction >= seen.next) {
            running.emplace(transaction, before);
        } else {
            Owe(before);
        }
    }
    watched_ = std::move(running);
}

void Ticks::Answer(std::uint64_t question, const InProgress& answer) {
    if (!asked_ || asked_->number != question) return;
    Tick tick = *std::exchange(asked_, std::nullopt);
    InProgress seen = answer;
    if (seen.own > seen.next + kMostUnlisted) seen.own = 0;
    if (!ticks_.empty() && ticks_.back().positions != tick.positions) Owe(ticks_.back().number);
    Watch(seen);
    // Without a number of its own it is not known what began later.
    if (seen.own == 0) return;
    tick.own = seen.own;
    ticks_.push_back(std::move(tick));
    Forget();
}

// What nobody needs any more, and of what is needed for long not all.
void Ticks::Forget() {
    std::uint64_t needed = owed_.value_or(ticks_.back().number);
    for (const auto& [transaction, before] : watched_) needed = std::min(needed, before);
    while (ticks_.size() > 1 && ticks_[1].number <= needed) ticks_.pop_front();
    if (ticks_.size() <= kKept) return;
    std::deque<Tick> kept;
    for (std::size_t i = 0; i < ticks_.size(); ++i) {
        if (i % 2 == 0 || i >= ticks_.size() / 2) kept.push_back(std::move(ticks_[i]));
    }
    ticks_ = std::move(kept);
}

bool Ticks::Wants(const Positions& marks) const {
    if (ticks_.empty()) return false;
    if (ticks_.back().positions != marks) return true;
    if (watched_.empty()) return false;
    std::uint64_t before = last_;
    for (const auto& [transaction, tick] : watched_) before = std::min(before, tick);
    const Tick* oldest = UpTo(before);
    return oldest == nullptr || oldest->positions != marks;
}

const Ticks::Tick* Ticks::UpTo(std::uint64_t number) const {
    const Tick* found = nullptr;
    for (const Tick& tick : ticks_) {
        if (tick.number <= number) found = &tick;
    }
    return found;
}

// Whoever holds it now began after some of the ticks, and it was passed over before them.
void Ticks::Lower(int lane, std::int64_t position) {
    auto lower = [&](Tick& tick) {
        auto mark = tick.positions.find(lane);
        if (mark == tick.positions.end()) return;
        mark->second = std::min(mark->second, position - 1);
    };
    for (Tick& tick : ticks_) lower(tick);
    if (asked_) lower(*asked_);
}

Positions Ticks::TakeOwed() {
    const Tick* from = UpTo(std::exchange(owed_, std::nullopt).value_or(0));
    return from == nullptr ? Positions{} : from->positions;
}

}  // namespace stint::store::pg
