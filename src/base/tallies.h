// What a process has asked of its stores, counted where it happens. A run of several processes (a
// benchmark and its workers) can count together, in a file that all of them map.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace stint::base {

struct Tallies {
    std::atomic<std::uint64_t> statements{0};  // sent to PostgreSQL, or run by SQLite
    // SQLite: what the process that owns the file does. A PostgreSQL server tells these itself.
    std::atomic<std::uint64_t> commits{0};
    std::atomic<std::uint64_t> syncs{0};      // where somebody asked to count them
    std::atomic<std::uint64_t> log_bytes{0};  // the same
    std::atomic<std::uint64_t> handled{0};    // handlers of a benchmark that have begun
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "several processes add to one");

// This process's.
Tallies& ProcessTallies();

// From now on this process counts in that file, which is made if it is not there. Before any thread
// that counts. Throws std::system_error.
void ShareTallies(const std::string& path);

inline void Count(std::atomic<std::uint64_t>& tally, std::uint64_t more = 1) {
    tally.fetch_add(more, std::memory_order_relaxed);
}

}  // namespace stint::base
