// The library writes nothing by itself: it hands log records to a sink that the host supplies.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarn, kError };
std::string_view LogLevelName(LogLevel level);

struct LogRecord {
    LogLevel level = LogLevel::kInfo;
    std::string_view room;     // "claim", "session", "sqlite", …
    std::string_view message;  // a sentence for a person
    std::vector<std::pair<std::string_view, std::string>> fields;  // task=17, session=…
};

// Called from any thread; must not throw and should not block for long.
using LogSink = std::function<void(const LogRecord&)>;

}  // namespace stint
