// Where claims start looking: behind what this process has already taken, lane by lane, so that a
// claim need not wade through what is gone but cannot be vacuumed yet because somebody holds an old
// snapshot.
//
// A mark is a hint. What turns up below it is found by a look that begins deeper:
// - where the marks were a moment ago: that finds a submit which drew its places early and
//   committed late, which is what happens all the time;
// - everywhere: a task put back at its old place by another process.
// Either happens when a claim came back with nothing, soon after one that came back short, and now
// and then; both are measured, and when they are dear they may take a small part of the time only.
// What a moment does not cover, a commit that took longer or a claim that was rolled back, is
// looked for beside claims (ticks.h, late_walk.h): what is found lowers the marks.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "store/postgres/late_walk.h"
#include "store/postgres/ticks.h"

namespace stint::store::pg {

class Marks {
public:
    explicit Marks(Duration rescan_every) : rescan_every_(rescan_every) {}

    enum class Depth : std::uint8_t { kMarks, kMomentAgo, kEverywhere };
    struct Snapshot {
        Depth depth = Depth::kEverywhere;
        std::vector<int> lanes = {};
        std::vector<std::int64_t> positions = {};
        std::uint64_t lowered = 0;   // how often something had been lowered
        std::uint64_t question = 0;  // of the ticks, to go with the look
        bool everywhere() const { return depth == Depth::kEverywhere; }
        bool asks() const { return question != 0; }
    };

    // For a claim: behind the marks, unless it is time to look deeper.
    Snapshot Current(base::Instant now);
    // For who only wants to give others a hint: everywhere as long as that is cheap.
    Snapshot ForHints();
    // For one that found nothing the last time: as deep as is cheap.
    Snapshot Idle(base::Instant now);
    // For one that just came back with nothing: where to look at once, if anywhere.
    std::optional<Snapshot> Deeper(base::Instant now, Depth from);
    // The same, if it was not done a moment ago; if it was, one of the next claims does it.
    std::optional<Snapshot> DeeperUnlessJustDone(base::Instant now, Depth from);
    // A claim came back short: there may be something below the marks. One of the next looks.
    void Owe();

    // The answer to what the look asked.
    void UnderWay(const Snapshot& look, const InProgress& seen);
    // What to look at beside claims, if anything. At leisure: a claim found nothing.
    std::optional<LatePiece> LookForLate(base::Instant now, bool at_leisure);
    // What was found there; the first of each lane is enough.
    void FoundLate(
        const LatePiece& piece,
        base::Instant::duration cost,
        std::span<const std::pair<int, std::int64_t>> places
    );
    void FailedLate(base::Instant::duration cost);
    // There is more to look at, and no reason to wait.
    bool LateGoesOn(base::Instant now);

    // A look has ended. more: it may not have come to the end of what is there, so that the next
    // goes on behind what it took (Advance), wherever the marks were.
    void Looked(const Snapshot& look, base::Instant begun, base::Instant ended, bool more);
    // That look saw these as the first in their lanes.
    void SetHeads(std::span<const std::pair<int, std::int64_t>> heads);
    // False: the mark is there already, or above.
    bool Advance(int lane, std::int64_t position);
    // Something at these positions of lanes is ready (again).
    void Lower(std::span<const std::pair<int, std::int64_t>> places);
    // After the last Advance of a look: what was lowered while it was under way stays so.
    void LowerAgain(const Snapshot& look);

private:
    struct Look {
        base::Instant begun{};
        std::chrono::nanoseconds cost{0};
        bool Cheap() const;
        bool Affordable(base::Instant now, int share) const;
    };

    bool Remember(base::Instant now);
    bool Due(base::Instant now) const;
    Snapshot ForClaim(base::Instant now) const;
    Snapshot ForIdle(base::Instant now) const;
    Snapshot Everywhere() const;
    Snapshot AtMarks() const;
    std::optional<Snapshot> MomentAgo(base::Instant now) const;
    void LowerOne(int lane, std::int64_t position);

    const Duration rescan_every_;
    std::mutex mutex_;  // guards all below
    Positions marks_;
    Positions before_, moment_ago_;  // what the marks were
    base::Instant remembered_{};
    std::deque<std::pair<int, std::int64_t>> lowered_;  // the last ones
    std::uint64_t lowerings_ = 0;
    bool owed_ = false;
    std::uint64_t must_see_ = 0;  // a look everywhere that began after so many lowerings
    std::uint64_t seen_ = 0;      // lowerings before the last one began
    Look everywhere_, near_;
    Ticks ticks_;
    LateWalk late_;
};

}  // namespace stint::store::pg
