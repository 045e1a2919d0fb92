// Guarded<T>: data that can only be reached while its lock is held.
#pragma once

#include <mutex>
#include <utility>

namespace stint::base {

template <class T>
class Guarded {
public:
    template <class... Args>
    explicit Guarded(Args&&... args) : data_(std::forward<Args>(args)...) {}

    // Calls `use(data)` under the lock and returns what it returns. Keep it short: no I/O inside.
    template <class Use>
    decltype(auto) With(Use&& use) {
        std::lock_guard guard(mutex_);
        return std::forward<Use>(use)(data_);
    }
    template <class Use>
    decltype(auto) With(Use&& use) const {
        std::lock_guard guard(mutex_);
        return std::forward<Use>(use)(data_);
    }

private:
    mutable std::mutex mutex_;
    T data_;
};

}  // namespace stint::base
