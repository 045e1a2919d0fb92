// Which transactions of the server are under way.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace stint::store::pg {

struct InProgress {
    std::uint64_t next = 0;  // none from here on has ended; which of them have begun is not listed
    std::vector<std::uint64_t> running = {};  // below that
    std::uint64_t own = 0;  // of who asks: what is above it began later; 0: it has none
};

// As the server writes a pg_snapshot: "first:next:running,running".
InProgress ParseInProgress(std::string_view text);

}  // namespace stint::store::pg
