// Words of the match language.
#pragma once

#include <stint/result.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace stint::model::match {

enum class Word : std::uint8_t {
    kEnd,
    kName,   // a field's, or a method's of CEL
    kValue,  // a literal
    kAnd,
    kOr,
    kNot,
    kIn,
    kStartsWith,
    kEndsWith,
    kContains,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kDot,
    kComma,
    kOpen,          // (
    kClose,         // )
    kOpenBracket,   // [
    kCloseBracket,  // ]
};

struct Token {
    Word word = Word::kEnd;
    std::string_view text;   // as written
    std::size_t column = 1;  // in characters, from 1
    base::Json value{};      // of a literal
};

// All tokens, the last is kEnd.
Result<std::vector<Token>> Lex(std::string_view text);

// "column 7: <what>, found <token>"
Error Unexpected(const Token& token, std::string_view expected);

// Whether a name can stand in a path without brackets.
bool IsPlainName(std::string_view name);

}  // namespace stint::model::match
