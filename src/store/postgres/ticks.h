// From where to look for what came to light late: a submit that drew its places and committed after
// others had been taken, a claim that was rolled back after others had passed over what it held.
//
// Now and then a claim also asks which transactions are under way; the answer, with the marks as
// they were before the claim was sent, is a tick. What a transaction that begins after a tick makes
// lies above the marks of that tick, and what it holds is passed over after that tick. So
// - a transaction that was under way and has ended is a reason to look from the marks of the last
//   tick before it began;
// - marks that have moved since the last tick are one to look from there: of what began and ended
//   between two ticks nobody knows.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>

#include "store/postgres/in_progress.h"

namespace stint::store::pg {

using Positions = std::unordered_map<int, std::int64_t>;  // by lane

class Ticks {
public:
    // A claim is about to be sent that will ask. The number of the question, never 0.
    std::uint64_t Ask(const Positions& marks);
    // Only the last question can be answered: of a claim that failed there was no answer.
    void Answer(std::uint64_t question, const InProgress& seen);
    // Whether an answer could be a reason to look although nobody claims: something has moved since
    // the last tick, or since one that is under way began.
    bool Wants(const Positions& marks) const;
    // Something below is ready again.
    void Lower(int lane, std::int64_t position);

    bool owed() const { return owed_.has_value(); }
    // From where to look, and that somebody does. A lane that is not named: from its begin.
    Positions TakeOwed();

private:
    struct Tick {
        std::uint64_t number = 0;
        Positions positions = {};
        std::uint64_t own = 0;  // what is above it began later
    };

    void Owe(std::uint64_t tick);
    const Tick* UpTo(std::uint64_t number) const;
    std::uint64_t LastBefore(std::uint64_t transaction) const;
    void Watch(const InProgress& seen);
    void Forget();

    std::uint64_t last_ = 0;
    std::optional<Tick> asked_;
    std::deque<Tick> ticks_;  // by number
    // Under way at the last answer, with the last tick before each began; 0: before all.
    std::map<std::uint64_t, std::uint64_t> watched_;
    std::optional<std::uint64_t> owed_;  // the tick from which
};

}  // namespace stint::store::pg
