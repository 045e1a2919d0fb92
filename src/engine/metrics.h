// What this process's worker has done, counted where it happens. Read by the doors.
#pragma once

#include <atomic>
#include <cstdint>

namespace stint::engine {

using Counter = std::atomic<std::uint64_t>;

struct Metrics {
    Counter submitted{0};        // accepted by the store
    Counter submits_unknown{0};  // commits whose end had to be read back
    Counter claims{0};           // round trips
    Counter claimed{0};          // leases received
    Counter polls_empty{0};
    Counter hints{0};    // wake-ups that concerned this worker
    Counter started{0};  // attempts handed to a handler
    Counter completed{0};
    Counter failed{0};   // for good
    Counter retried{0};  // failed, will be tried again
    Counter snoozed{0};
    Counter released{0};  // handed back with the attempt refunded
    Counter stalled{0};   // of those, claimed ahead and not begun in time
    Counter cancelled{0};
    Counter backgrounded{0};
    Counter blocked{0};             // wait for other tasks
    Counter timed_out{0};           // attempts whose own time was over
    Counter hung{0};                // of those, the ones whose thread was given up
    Counter lost{0};                // stale_write_rejected: outcomes refused by the fence
    Counter refused{0};             // waits that the store refused
    Counter settles{0};             // round trips
    Counter settles_unknown{0};     // commits whose end had to be read back
    Counter postponed{0};           // outcomes that had to wait for another transaction
    Counter settled_by_reserve{0};  // outcomes that went over the reserved connection
    Counter spooled{0};             // outcomes written to the local spool
    Counter replayed{0};            // outcomes replayed from a spool
    Counter heartbeats{0};
    Counter heartbeats_failed{0};
    Counter sessions_opened{0};
    Counter sessions_lost{0};  // ended by the store or given up by ourselves
    Counter self_stops{0};     // of those, given up because no renewal succeeded in time
    Counter clock_drift{0};    // heartbeats where the store's clock moved unlike ours
    Counter reclaimed{0};      // tasks recovered from dead workers
    Counter quarantined{0};
    Counter sweeps{0};
    Counter housekeepings{0};
    Counter store_errors{0};
    Counter breaker_opened{0};
    Counter hook_errors{0};
    Counter loop_errors{0};  // unexpected exceptions caught by a loop
};

}  // namespace stint::engine
