// How many leases to hold beyond those that run, so that a free slot never waits for a trip to the
// store.
//
// As many as the slots can work off during two such trips, by how long attempts take here: hundreds
// where a task takes microseconds, none where it takes longer than the trips. So nothing lies here
// for long that another worker could have taken. If attempts become slow all of a sudden, what has
// waited for too long is handed back (see Core::HandBackStalled), and nothing more is taken ahead
// until attempts end again.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

namespace stint::engine {

class Ahead {
public:
    using Time = std::chrono::nanoseconds;

    // `fixed`: always so many, whatever is seen.
    Ahead(int slots, std::optional<int> fixed);

    bool chosen() const { return !fixed_; }
    int limit() const { return limit_.load(std::memory_order_relaxed); }
    int most() const;
    // How many more to ask for, with so many held, of which so many wait for a slot. Where the
    // number is chosen here, only when half of what is ahead is used up: many small claims cost
    // more than a large one.
    int Room(int slots, int held, int waiting) const;

    // `count` attempts have ended that ran in one call. From any thread.
    void Ran(Time together, int count);
    // A claim that brought something took so long. From one thread, as the next.
    void Claimed(Time trip);
    void Stalled() { limit_ = 0; }

private:
    const int slots_;
    const std::optional<int> fixed_;
    std::atomic<int> limit_{0};
    std::atomic<std::int64_t> ran_time_{0}, ran_count_{0};  // since the last claim
    double each_ = 0, trip_ = 0;                            // in seconds, smoothed; 0: not seen yet
};

}  // namespace stint::engine
