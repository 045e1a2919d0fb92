#include "model/time_text.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/result.h"

namespace stint::model {

namespace {

using base::MakeError;
using std::chrono::microseconds;

constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> kUnits = {{
    {"d", 86'400'000},
    {"h", 3'600'000},
    {"m", 60'000},
    {"s", 1'000},
    {"ms", 1},
}};

// Ten thousand years: far beyond every limit, far from overflow.
constexpr std::int64_t kLongestMs = 10'000LL * 366 * 86'400'000;

Error BadDuration(std::string_view text) {
    return MakeError(
        Code::kInvalid,
        "\"{}\" is not a duration; write a number and a unit: 250ms, 90s, 5m, 2h, 3d, 1h30m",
        text
    );
}

bool IsDigit(char c) {
    return c >= '0' && c <= '9';
}

// Takes `count` digits off the front; nullopt when there are fewer.
std::optional<int> TakeNumber(std::string_view& text, std::size_t count) {
    if (text.size() < count) return std::nullopt;
    int value = 0;
    for (char c : text.substr(0, count)) {
        if (!IsDigit(c)) return std::nullopt;
        value = value * 10 + (c - '0');
    }
    text.remove_prefix(count);
    return value;
}

bool TakeChar(std::string_view& text, std::string_view any_of) {
    if (text.empty() || any_of.find(text[0]) == std::string_view::npos) return false;
    text.remove_prefix(1);
    return true;
}

// ".123": microseconds; finer digits are dropped.
std::optional<microseconds> TakeFraction(std::string_view& text) {
    if (text.empty() || text[0] != '.') return microseconds{0};
    text.remove_prefix(1);
    std::int64_t value = 0;
    int digits = 0;
    while (!text.empty() && IsDigit(text[0])) {
        if (digits < 6) value = value * 10 + (text[0] - '0');
        ++digits;
        text.remove_prefix(1);
    }
    if (digits == 0) return std::nullopt;
    for (; digits < 6; ++digits) value *= 10;
    return microseconds{value};
}

std::optional<std::chrono::minutes> TakeZone(std::string_view& text) {
    if (TakeChar(text, "Zz")) return std::chrono::minutes{0};
    if (text.empty() || (text[0] != '+' && text[0] != '-')) return std::nullopt;
    int sign = text[0] == '-' ? -1 : 1;
    text.remove_prefix(1);
    auto hours = TakeNumber(text, 2);
    if (!hours || !TakeChar(text, ":")) return std::nullopt;
    auto minutes = TakeNumber(text, 2);
    if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
    return std::chrono::minutes{sign * (*hours * 60 + *minutes)};
}

std::optional<std::chrono::sys_days> TakeDate(std::string_view& text) {
    auto year = TakeNumber(text, 4);
    if (!year || !TakeChar(text, "-")) return std::nullopt;
    auto month = TakeNumber(text, 2);
    if (!month || !TakeChar(text, "-")) return std::nullopt;
    auto day = TakeNumber(text, 2);
    if (!day) return std::nullopt;
    std::chrono::year_month_day date{
        std::chrono::year{*year},
        std::chrono::month{static_cast<unsigned>(*month)},
        std::chrono::day{static_cast<unsigned>(*day)}};
    if (!date.ok()) return std::nullopt;
    return std::chrono::sys_days{date};
}

std::optional<Time> ParseRfc3339(std::string_view text) {
    auto date = TakeDate(text);
    if (!date || !TakeChar(text, "Tt ")) return std::nullopt;
    auto hour = TakeNumber(text, 2);
    if (!hour || !TakeChar(text, ":")) return std::nullopt;
    auto minute = TakeNumber(text, 2);
    if (!minute || !TakeChar(text, ":")) return std::nullopt;
    auto second = TakeNumber(text, 2);
    // 60 is a leap second, which the calendar of the machine does not have: the next second.
    if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
    auto fraction = TakeFraction(text);
    if (!fraction) return std::nullopt;
    auto zone = TakeZone(text);
    if (!zone || !text.empty()) return std::nullopt;
    return Time{*date} + std::chrono::hours{*hour} + std::chrono::minutes{*minute} +
           std::chrono::seconds{*second} + *fraction - *zone;
}

}  // namespace

Result<Duration> ParseDuration(std::string_view text) {
    if (text == "0") return Duration::zero();
    if (text.empty()) return BadDuration(text);
    std::string_view rest = text;
    std::int64_t total = 0;
    std::int64_t last_unit = INT64_MAX;  // units go from large to small, each once
    while (!rest.empty()) {
        std::int64_t number = 0;
        auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
        if (error != std::errc{} || !IsDigit(rest[0])) return BadDuration(text);
        rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
        std::size_t letters = 0;
        while (letters < rest.size() && !IsDigit(rest[letters])) ++letters;
        std::string_view unit = rest.substr(0, letters);
        rest.remove_prefix(letters);
        std::int64_t factor = 0;
        for (auto& [name, milliseconds] : kUnits) {
            if (name == unit) factor = milliseconds;
        }
        if (factor == 0 || factor >= last_unit) return BadDuration(text);
        last_unit = factor;
        if (number > kLongestMs / factor) return BadDuration(text);
        total += number * factor;
    }
    if (total > kLongestMs) return BadDuration(text);
    return Duration{total};
}

std::string FormatDuration(Duration duration) {
    std::int64_t rest = duration.count();
    if (rest == 0) return "0s";
    std::string text;
    if (rest < 0) {
        text = "-";
        rest = -rest;
    }
    for (auto& [name, milliseconds] : kUnits) {
        if (rest >= milliseconds) text += fmt::format("{}{}", rest / milliseconds, name);
        rest %= milliseconds;
    }
    return text;
}

std::string RoughDuration(Duration duration) {
    std::int64_t ms = duration.count();
    if (ms < 0) return "-" + RoughDuration(-duration);
    if (ms < 1'000) return fmt::format("{}ms", ms);
    if (ms < 10'000) return fmt::format("{}.{}s", ms / 1'000, ms % 1'000 / 100);
    if (ms < 60'000) return fmt::format("{}s", ms / 1'000);
    if (ms < 3'600'000) return fmt::format("{}m {}s", ms / 60'000, ms % 60'000 / 1'000);
    if (ms < 86'400'000) return fmt::format("{}h {}m", ms / 3'600'000, ms % 3'600'000 / 60'000);
    return fmt::format("{}d {}h", ms / 86'400'000, ms % 86'400'000 / 3'600'000);
}

Result<Time> ParseTime(std::string_view text, Time now) {
    if (text == "now") return now;
    if (text.starts_with("now+") || text.starts_with("now-")) {
        auto distance = ParseDuration(text.substr(4));
        if (!distance) return distance.error();
        return text[3] == '+' ? now + *distance : now - *distance;
    }
    if (auto time = ParseRfc3339(text)) return *time;
    return MakeError(
        Code::kInvalid,
        "\"{}\" is not an instant; write 2031-05-01T10:00:00Z (RFC 3339) or now+10m",
        text
    );
}

}  // namespace stint::model
