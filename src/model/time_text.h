// Durations and instants as people write and read them.
#pragma once

#include <stint/result.h>
#include <stint/time.h>

#include <string>
#include <string_view>

namespace stint::model {

// "90s", "5m", "2h", "3d", "250ms", or several: "1h30m". Zero may stand without a unit. The message
// names the text and the units.
Result<Duration> ParseDuration(std::string_view text);

// The shortest spelling that ParseDuration reads back: "250ms", "1m30s", "3d". Negative ones get a
// leading minus, which ParseDuration refuses.
std::string FormatDuration(Duration duration);

// For tables: two units at most, rounded down: "1.5s", "3m 20s", "2h 5m", "3d 4h".
std::string RoughDuration(Duration duration);

// RFC 3339 with seconds and a zone ("2031-05-01T10:00:00Z", "…+02:00", fractions allowed), or
// "now", "now+10m", "now-2h" relative to `now`.
Result<Time> ParseTime(std::string_view text, Time now);

}  // namespace stint::model
