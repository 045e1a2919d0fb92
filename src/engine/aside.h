// Runs the host's code for loops that must not wait for it: stop callbacks, hooks about attempts
// that were given up.
//
// Without threads (stepwise) it runs where it is asked. With them it never does: each piece is
// given to a thread of its own kind, up to kAsideThreads of them, and a piece that blocks holds up
// one. What still blocks at the end is left behind, so a piece may hold nothing of the worker.
#pragma once

#include <stint/time.h>

#include <functional>
#include <memory>

namespace stint::engine {

class Aside {
public:
    Aside();
    ~Aside();  // leaves behind what blocks
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

    void UseThreads();  // from now on
    void Do(std::function<void()> piece);
    // Waits for what is under way, in real time: this is not about tasks but about threads.
    void Finish(Duration grace);

private:
    struct Shared;
    const std::shared_ptr<Shared> shared_;
};

}  // namespace stint::engine
