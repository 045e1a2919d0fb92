#include "base/log.h"

namespace stint {

std::string_view LogLevelName(LogLevel level) {
    switch (level) {
        case LogLevel::kDebug:
            return "debug";
        case LogLevel::kInfo:
            return "info";
        case LogLevel::kWarn:
            return "warn";
        case LogLevel::kError:
            return "error";
    }
    return "unknown";
}

}  // namespace stint

namespace stint::base {

void Logger::Send(LogLevel level, std::string_view message, Fields fields) const {
    if (!sink_) return;
    try {
        sink_(LogRecord{level, room_, message, std::move(fields)});
    } catch (...) {
        // A host's sink that throws must not break the loop that reports something.
    }
}

}  // namespace stint::base
