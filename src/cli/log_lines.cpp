#include "cli/log_lines.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/output.h"

namespace stint::cli {

namespace {

// A value with spaces or quotes is quoted, so that a line can be taken apart again.
std::string FieldText(std::string_view value) {
    if (!value.empty() && value.find_first_of(" \"=\n\t") == std::string_view::npos &&
        !base::HasControl(value)) {
        return std::string(value);
    }
    return base::JsonText(base::OrderedJson(value));
}

LogLevel LevelNamed(std::string_view name) {
    for (auto level : {LogLevel::kDebug, LogLevel::kWarn, LogLevel::kError}) {
        if (LogLevelName(level) == name) return level;
    }
    return LogLevel::kInfo;
}

}  // namespace

std::string HumanLogLine(const LogRecord& record, std::string_view time) {
    std::string line = fmt::format(
        "{} {:5} {}: {}", time, LogLevelName(record.level), record.room, record.message
    );
    for (const auto& [name, value] : record.fields) {
        line += fmt::format("  {}={}", name, FieldText(value));
    }
    return line;
}

std::string JsonLogLine(const LogRecord& record, std::string_view time) {
    base::OrderedJson line = {
        {"time", time},
        {"level", LogLevelName(record.level)},
        {"room", record.room},
        {"message", record.message},
    };
    for (const auto& [name, value] : record.fields) line[std::string(name)] = value;
    return base::JsonText(line);
}

LogSink MakeLogSink(std::string_view level, std::string_view format) {
    return [least = LevelNamed(level), json = format == "json"](const LogRecord& record) {
        if (record.level < least) return;
        std::string time = base::Iso8601(base::SystemClock().WallTime());
        std::string line = json ? JsonLogLine(record, time) : HumanLogLine(record, time);
        line += '\n';
        // One write per line: lines of several threads and processes do not mix.
        std::fwrite(line.data(), 1, line.size(), stderr);
    };
}

}  // namespace stint::cli
