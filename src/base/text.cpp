#include "base/text.h"

#include <algorithm>

#include <fmt/format.h>

#include <cstdint>

namespace stint::base {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool IsContinuation(unsigned char byte) {
    return (byte & 0xC0) == 0x80;
}

// Bytes of the well-formed character at the start of `text` (which is not empty), or 0. The second
// byte's range is what excludes overlong forms, surrogates and code points that do not exist.
std::size_t CharacterSize(std::string_view text) {
    auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    unsigned char first = byte(0);
    if (first < 0x80) return 1;
    if (first < 0xC2 || first > 0xF4) return 0;

    std::size_t size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (text.size() < size) return 0;
    unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (byte(1) < low || byte(1) > high) return 0;
    for (std::size_t i = 2; i < size; ++i) {
        if (!IsContinuation(byte(i))) return 0;
    }
    return size;
}

}  // namespace

bool IsUtf8(std::string_view text) {
    while (!text.empty()) {
        std::size_t size = CharacterSize(text);
        if (size == 0) return false;
        text.remove_prefix(size);
    }
    return true;
}

bool HasControl(std::string_view text) {
    for (char c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return true;
    }
    return false;
}

std::string CleanText(std::string_view text, std::size_t max_bytes) {
    std::string clean;
    while (!text.empty()) {
        std::size_t size = CharacterSize(text);
        std::string_view piece = size == 0 ? kReplacement : text.substr(0, size);
        if (piece != std::string_view("\0", 1)) {
            if (clean.size() + piece.size() > max_bytes) break;
            clean += piece;
        }
        text.remove_prefix(size == 0 ? 1 : size);
    }
    return clean;
}

std::string Quoted(std::string_view text) {
    constexpr std::size_t kShown = 64;
    std::string shown = CleanText(text, kShown);
    bool cut = text.size() > kShown;
    for (char& c : shown) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
    }
    return '"' + shown + (cut ? "…\"" : "\"");
}

std::string Iso8601(Time time) {
    using namespace std::chrono;
    auto day = floor<days>(time);
    year_month_day date{day};
    hh_mm_ss<microseconds> clock{time - day};
    std::string text = fmt::format(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        static_cast<int>(date.year()),
        static_cast<unsigned>(date.month()),
        static_cast<unsigned>(date.day()),
        clock.hours().count(),
        clock.minutes().count(),
        clock.seconds().count()
    );
    std::int64_t fraction = clock.subseconds().count();
    if (fraction % 1000 != 0) {
        text += fmt::format(".{:06}", fraction);
    } else if (fraction != 0) {
        text += fmt::format(".{:03}", fraction / 1000);
    }
    return text + "Z";
}

std::string DurationText(Duration duration) {
    std::int64_t ms = duration.count();
    if (ms == 0) return "0 s";
    if (ms % 3'600'000 == 0) return fmt::format("{} h", ms / 3'600'000);
    if (ms % 60'000 == 0) return fmt::format("{} min", ms / 60'000);
    if (ms % 1'000 == 0) return fmt::format("{} s", ms / 1'000);
    return fmt::format("{} ms", ms);
}

bool EqualIgnoringCase(std::string_view one, std::string_view other) {
    auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return std::equal(one.begin(), one.end(), other.begin(), other.end(), [&](char a, char b) {
        return lower(a) == lower(b);
    });
}

}  // namespace stint::base
