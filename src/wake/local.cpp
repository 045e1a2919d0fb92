#include "wake/local.h"

#include <vector>

namespace stint::wake {

void LocalWake::Signal(std::span<const Hint> hints) {
    std::vector<std::shared_ptr<Listener>> listeners;
    {
        std::lock_guard guard(mutex_);
        listeners.reserve(listeners_.size());
        for (const auto& [number, listener] : listeners_) listeners.push_back(listener);
    }
    for (const auto& listener : listeners) {
        std::lock_guard guard(listener->mutex);
        if (!listener->hear) continue;
        for (const Hint& hint : hints) listener->hear(hint);
    }
}

int LocalWake::Subscribe(std::function<void(const Hint&)> listener) {
    auto entry = std::make_shared<Listener>();
    entry->hear = std::move(listener);
    std::lock_guard guard(mutex_);
    listeners_.emplace(++last_, std::move(entry));
    return last_;
}

void LocalWake::Unsubscribe(int subscription) {
    std::shared_ptr<Listener> gone;
    {
        std::lock_guard guard(mutex_);
        auto found = listeners_.find(subscription);
        if (found == listeners_.end()) return;
        gone = std::move(found->second);
        listeners_.erase(found);
    }
    std::lock_guard guard(gone->mutex);
    gone->hear = nullptr;
}

}  // namespace stint::wake
