// Log records on standard error: lines for people, or one JSON object each.
#pragma once

#include <stint/log.h>

#include <string>
#include <string_view>

namespace stint::cli {

// `level` and `format` as the configuration has accepted them.
LogSink MakeLogSink(std::string_view level, std::string_view format);

std::string HumanLogLine(const LogRecord& record, std::string_view time);
std::string JsonLogLine(const LogRecord& record, std::string_view time);

}  // namespace stint::cli
