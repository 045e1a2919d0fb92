// Text that comes from outside: is it UTF-8, how is it made safe to store, how is it shown.
#pragma once

#include <stint/time.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace stint::base {

// Well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsUtf8(std::string_view text);

// True when there is a control character (below U+0020, or U+007F) in it.
bool HasControl(std::string_view text);

// At most `max_bytes` of valid UTF-8 without U+0000: what is malformed becomes U+FFFD, NUL
// disappears, and the cut falls between characters. For error texts and captured output.
std::string CleanText(std::string_view text, std::size_t max_bytes);

// The text between quotes, for messages: cleaned, control characters as '?', at most 64 bytes and
// "…".
std::string Quoted(std::string_view text);

// Of ASCII letters; other bytes must be equal.
bool EqualIgnoringCase(std::string_view one, std::string_view other);

// 2023-11-14T22:13:20Z, with as many fractional digits (0, 3 or 6) as the instant needs.
std::string Iso8601(Time time);

// "250 ms", "90 s", "2 min", "24 h": the largest unit that divides it.
std::string DurationText(Duration duration);

}  // namespace stint::base
