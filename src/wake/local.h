// Hints within one process: delivered at once, on the signaller's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "wake/wake.h"

namespace stint::wake {

class LocalWake final : public Wake {
public:
    void Signal(std::span<const Hint> hints) override;
    int Subscribe(std::function<void(const Hint&)> listener) override;
    // When it returns the listener is not running and will not run again. Not from a listener.
    void Unsubscribe(int subscription) override;

private:
    // Its own lock: a listener may be slow, and others may subscribe meanwhile.
    struct Listener {
        std::mutex mutex;
        std::function<void(const Hint&)> hear;  // guarded by mutex; empty = gone
    };

    std::mutex mutex_;
    std::map<int, std::shared_ptr<Listener>> listeners_;  // guarded by mutex_
    int last_ = 0;                                        // guarded by mutex_
};

}  // namespace stint::wake
