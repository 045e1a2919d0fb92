#include "base/test_point.h"

#include <memory>
#include <mutex>

namespace stint::base {

namespace detail {

std::atomic<bool> test_points_armed{false};

namespace {
std::mutex listener_mutex;
std::shared_ptr<const std::function<void(std::string_view)>> listener;
}  // namespace

void ReachTestPoint(std::string_view name) {
    std::shared_ptr<const std::function<void(std::string_view)>> current;
    {
        std::lock_guard guard(listener_mutex);
        current = listener;
    }
    if (current) (*current)(name);
}

}  // namespace detail

void SetTestPointListener(std::function<void(std::string_view)> listener) {
    std::lock_guard guard(detail::listener_mutex);
    detail::test_points_armed = static_cast<bool>(listener);
    detail::listener =
        listener
            ? std::make_shared<const std::function<void(std::string_view)>>(std::move(listener))
            : nullptr;
}

}  // namespace stint::base
