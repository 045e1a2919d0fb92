// The two notions of time in the public interface.
#pragma once

#include <chrono>

namespace stint {

// A calendar instant, as the database's clock tells it. Microseconds, UTC.
using Time = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;
using Duration = std::chrono::milliseconds;

}  // namespace stint
