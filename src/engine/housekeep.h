// Housekeeping: start-by deadlines, expired keys, forgotten sessions, retention. On its own timer,
// bounded per cycle; with the store's own locks any number of processes may do it.
#pragma once

#include "engine/parts.h"

namespace stint::engine {

class Housekeeper {
public:
    explicit Housekeeper(Parts parts) : parts_(parts.For("housekeep")) {}

    // Throws what the store throws. True: the cycle's bound was reached, come back soon.
    bool Once();

private:
    Parts parts_;
};

}  // namespace stint::engine
