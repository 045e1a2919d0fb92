#include "sim/hints.h"

#include <algorithm>
#include <utility>

namespace stint::sim {

void Post::Send(const wake::Hint& hint) {
    for (SimWake* box : boxes_) {
        if (faults_.Strikes(Fault::kHintLost)) continue;
        int copies = faults_.Strikes(Fault::kHintDoubled) ? 2 : 1;
        for (int copy = 0; copy < copies; ++copy) {
            Virtual delay = world_.Between(Virtual{1'000}, std::chrono::milliseconds{1});
            if (faults_.Strikes(Fault::kHintLate)) {
                delay = world_.Between(delay, std::chrono::seconds{10});
            }
            box->arriving_.emplace(world_.now() + delay, hint);
            box->alarm_.Ring();
        }
    }
}

SimWake::SimWake(Post& post) : post_(post) {
    post_.boxes_.push_back(this);
}

SimWake::~SimWake() {
    std::erase(post_.boxes_, this);
}

void SimWake::Signal(std::span<const wake::Hint> hints) {
    post_.world_.Point("wake.signal");
    for (const wake::Hint& hint : hints) post_.Send(hint);
}

int SimWake::Subscribe(std::function<void(const wake::Hint&)> listener) {
    listeners_.emplace(++subscriptions_, std::move(listener));
    return subscriptions_;
}

void SimWake::Unsubscribe(int subscription) {
    listeners_.erase(subscription);
}

void SimWake::Deliver() {
    while (!arriving_.empty() && arriving_.begin()->first <= post_.world_.now()) {
        auto hint = arriving_.extract(arriving_.begin());
        auto listeners = listeners_;  // one of them may unsubscribe
        for (auto& [number, listener] : listeners) listener(hint.mapped());
    }
}

void SimWake::Poke() {
    poked_ = true;
    alarm_.Ring();
}

void SimWake::SleepUntil(Virtual instant) {
    while (post_.world_.now() < instant && !std::exchange(poked_, false)) {
        Virtual arrival = arriving_.empty() ? kNever : arriving_.begin()->first;
        if (arrival <= post_.world_.now()) return;
        post_.world_.SleepUntil(std::min(instant, arrival), alarm_);
    }
}

}  // namespace stint::sim
