// Housekeeping: start-by deadlines, expired keys, forgotten sessions; and, less often, the history
// that is kept no longer. On its own timer, bounded per cycle; with the store's own locks any
// number of processes may do it.
#pragma once

#include "engine/parts.h"

namespace stint::engine {

class Housekeeper {
public:
    Housekeeper(const Parts& parts, Duration every, Duration history_every)
        : parts_(parts.For("housekeep")), every_(every), history_every_(history_every) {}

    // Throws what the store throws. True: the cycle's bound was reached, come back soon.
    bool Once();

private:
    Parts parts_;
    const Duration every_;
    const Duration history_every_;
    base::Instant history_at_{};  // not before this; at first at once
    // While nothing happens at all there is little to do: then not before this.
    base::Instant again_at_{};
    std::uint64_t claimed_ = 0;  // when it was last done
};

}  // namespace stint::engine
