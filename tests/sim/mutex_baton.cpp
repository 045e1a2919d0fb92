// Linked with --wrap=pthread_mutex_lock: every lock taken by the code under test comes here. A
// fiber that would block for real would keep the baton for ever; instead it lets others run until
// the lock is free. Outside a simulation nothing changes.
#include <pthread.h>

#include <algorithm>
#include <cerrno>

#include "sim/world.h"

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
int __real_pthread_mutex_lock(pthread_mutex_t* mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
    using stint::sim::Virtual;
    auto* world = stint::sim::World::Current();
    if (world == nullptr) return __real_pthread_mutex_lock(mutex);
    Virtual wait = std::chrono::microseconds{100};
    for (;;) {
        int result = pthread_mutex_trylock(mutex);
        if (result != EBUSY) return result;
        world->Idle(wait);
        wait = std::min<Virtual>(2 * wait, std::chrono::milliseconds{20});
    }
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
}
