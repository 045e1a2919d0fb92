// Logging for internal use: formats and hands to the host's sink. Never throws, never prints.
#pragma once

#include <fmt/format.h>
#include <stint/log.h>

#include <exception>
#include <string_view>
#include <utility>

namespace stint::base {

class Logger {
public:
    Logger() = default;
    Logger(LogSink sink, std::string_view room) : sink_(std::move(sink)), room_(room) {}

    // The same sink under another room's name.
    Logger For(std::string_view room) const { return Logger(sink_, room); }

    using Fields = std::vector<std::pair<std::string_view, std::string>>;

    void Debug(std::string_view message, Fields fields = {}) const {
        Send(LogLevel::kDebug, message, std::move(fields));
    }
    void Info(std::string_view message, Fields fields = {}) const {
        Send(LogLevel::kInfo, message, std::move(fields));
    }
    void Warn(std::string_view message, Fields fields = {}) const {
        Send(LogLevel::kWarn, message, std::move(fields));
    }
    void Error(std::string_view message, Fields fields = {}) const {
        Send(LogLevel::kError, message, std::move(fields));
    }

private:
    void Send(LogLevel level, std::string_view message, Fields fields) const;

    LogSink sink_;
    std::string_view room_;  // a literal
};

}  // namespace stint::base
