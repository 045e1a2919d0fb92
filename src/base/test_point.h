// Test points: named moments that a test can wait for or act at. Nobody listening: one relaxed
// load.
//
//     base::TestPoint("claim.before_store");
//
// Names are "room.moment", listed in tests that use them. The simulator passes its baton here.
#pragma once

#include <atomic>
#include <functional>
#include <string_view>

namespace stint::base {

namespace detail {
extern std::atomic<bool> test_points_armed;
void ReachTestPoint(std::string_view name);
}  // namespace detail

inline void TestPoint(std::string_view name) {
    if (detail::test_points_armed.load(std::memory_order_relaxed)) [[unlikely]] {
        detail::ReachTestPoint(name);
    }
}

// Installs a listener for all test points of the process; an empty function removes it.
// The listener runs on the thread that reached the point and may block or throw.
void SetTestPointListener(std::function<void(std::string_view)> listener);

}  // namespace stint::base
