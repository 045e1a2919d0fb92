// What every piece of the engine works with. References: the composition root owns them all.
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "engine/metrics.h"
#include "store/store.h"
#include "wake/wake.h"

namespace stint::engine {

struct Parts {
    store::Store& store;
    wake::Wake& wake;
    base::Clock& clock;
    base::Random& random;
    base::Logger log;
    Metrics& metrics;

    Parts For(std::string_view room) const {
        return {store, wake, clock, random, log.For(room), metrics};
    }
};

}  // namespace stint::engine
