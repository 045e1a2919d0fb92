// Where claims start looking: behind what this process has already taken, lane by lane, so that a
// claim need not wade through what is gone but cannot be vacuumed yet because somebody holds an old
// snapshot.
//
// A mark is a hint. What turns up below it (a submit that committed late, a claim that was rolled
// back, a task put back by another process) is found by a claim without marks: always when a claim
// came back short and looking everywhere is cheap, else now and then.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/clock.h"

namespace stint::store::pg {

class Marks {
public:
    explicit Marks(Duration rescan_every) : rescan_every_(rescan_every) {}

    struct Snapshot {
        std::vector<int> lanes;
        std::vector<std::int64_t> positions;
    };
    // Empty when it is time to look everywhere.
    Snapshot Current(base::Instant now);
    // False: the mark is there already, or above.
    bool Advance(int lane, std::int64_t position);
    // Something at `position` is ready (again).
    void Lower(int lane, std::int64_t position);

    // Whether a claim that came back short should look everywhere at once.
    bool RescanNow(base::Instant now);
    // to_the_end: of every lane; else what the marks stand for is not all seen.
    void Rescanned(base::Instant begun, base::Instant ended, bool to_the_end = true);

private:
    const Duration rescan_every_;
    std::mutex mutex_;  // guards all below
    std::unordered_map<int, std::int64_t> marks_;
    base::Instant last_rescan_{};
    std::chrono::nanoseconds last_cost_{0};
};

}  // namespace stint::store::pg
