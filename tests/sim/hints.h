// Wake-ups between simulated processes: lost, doubled and late as the seed says. Each process has
// its own mailbox and reads it itself, between two steps of its loop.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <vector>

#include "sim/faults.h"
#include "sim/world.h"
#include "wake/wake.h"

namespace stint::sim {

class SimWake;

// All mailboxes of the world.
class Post {
public:
    Post(World& world, Faults& faults) : world_(world), faults_(faults) {}

private:
    friend class SimWake;
    void Send(const wake::Hint& hint);

    World& world_;
    Faults& faults_;
    std::vector<SimWake*> boxes_;
};

class SimWake final : public wake::Wake {
public:
    explicit SimWake(Post& post);
    ~SimWake() override;

    void Signal(std::span<const wake::Hint> hints) override;
    int Subscribe(std::function<void(const wake::Hint&)> listener) override;
    void Unsubscribe(int subscription) override;

    // Hands out what has arrived. On a fiber of the owning process that holds no lock.
    void Deliver();
    // Sleeps until the instant, until a hint is there to be delivered, or until poked.
    void SleepUntil(Virtual instant);
    void Poke();

private:
    friend class Post;
    Post& post_;
    std::multimap<Virtual, wake::Hint> arriving_;
    std::map<int, std::function<void(const wake::Hint&)>> listeners_;
    int subscriptions_ = 0;
    bool poked_ = false;
    Alarm alarm_;
};

}  // namespace stint::sim
